/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_version: which release of NCCL has loaded the plugin.
 * Owns: nothing.  Threads: any.  Blocks: as the loader does.  Fails: 0 if it cannot be told. */
#ifndef TUNER_PLUGIN_ABI_NCCL_VERSION_H
#define TUNER_PLUGIN_ABI_NCCL_VERSION_H

#include "tuner_plugin/abi/tuner_abi.h"

/* As ncclGetVersion counts: 22203 is 2.22.3. `logger` is NCCL's own function. */
int nccl_version_find(tuner_abi_logger logger);

#endif
