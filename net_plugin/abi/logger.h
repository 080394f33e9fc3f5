/* SPDX-License-Identifier: Apache-2.0 */
/* logger: makes NCCL's log the sink of common/log.h.
 * Owns: nothing.  Threads: any.  Blocks: as NCCL's log does.  Fails: cannot.
 *
 * A process has one sink: the logger that came last, of whichever NCCL is in the process. Its
 * library stays in memory until the process ends. */
#ifndef NET_PLUGIN_ABI_LOGGER_H
#define NET_PLUGIN_ABI_LOGGER_H

#include "net_plugin/abi/net_abi.h"

void logger_use(nccl_logger_fn *logger);

#endif
