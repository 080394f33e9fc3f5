/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plugin of one of NCCL's built-in transports. The library holds NCCL's unmodified objects;
 * this file exports their table, TRANSPORT (ncclNetSocket or ncclNetIb), under the name by which
 * plugins are found. The table has the newest interface that the release knows: ncclNet_t in
 * src/include/plugin/nccl_net.h, before 2.26 src/include/nccl_net.h. */
#include <nccl.h>

#include "net_plugin/abi/net_abi.h"

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0) && NCCL_VERSION_CODE < NCCL_VERSION(2, 30, 0)
#define TABLE net_v11
#define EXPORTED "ncclNetPlugin_v11"
#elif NCCL_VERSION_CODE >= NCCL_VERSION(2, 20, 0) && NCCL_VERSION_CODE < NCCL_VERSION(2, 24, 0)
#define TABLE net_v8
#define EXPORTED "ncclNetPlugin_v8"
#else
#error "which version of the net plugin interface has ncclNet_t in this release?"
#endif

extern const struct TABLE TRANSPORT;
/* Not by its name in net_abi.h, where it is constant. */
extern struct TABLE exported __asm__(EXPORTED);
__attribute__((visibility("default"))) struct TABLE exported;

__attribute__((constructor)) static void copy_table(void) {
  exported = TRANSPORT;
}
