/* SPDX-License-Identifier: Apache-2.0 */
/* logger: makes NCCL's log the sink of common/log.h.
 * Owns: nothing.  Threads: any.  Blocks: as NCCL's log does.  Fails: cannot.
 *
 * A process has one sink. Each NCCL in it brings a logger, with each communicator: the latest one
 * is used, and never one whose last user has left, since that NCCL may be unloaded. */
#ifndef NET_PLUGIN_ABI_LOGGER_H
#define NET_PLUGIN_ABI_LOGGER_H

#include "net_plugin/abi/net_abi.h"

enum { LOGGERS_MAX = 8 }; /* one more is not used */

void logger_use(nccl_logger_fn *logger);
/* As many times as it was used. After the last one log.h's default is back. */
void logger_leave(nccl_logger_fn *logger);
/* For who never leaves: the library of the logger stays in memory until the process ends. */
void logger_keep(nccl_logger_fn *logger);

#endif
