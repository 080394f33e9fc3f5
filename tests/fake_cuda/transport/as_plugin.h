/* SPDX-License-Identifier: Apache-2.0 */
/* as_plugin: the transport's devices, for what is linked beside it and must name the same ones.
 * Owns: nothing.  Threads, blocks, fails: as the transport. */
#ifndef FAKE_CUDA_TRANSPORT_AS_PLUGIN_H
#define FAKE_CUDA_TRANSPORT_AS_PLUGIN_H

#include "net_plugin/abi/net_abi.h"

enum nccl_result transport_devices(int *count);
enum nccl_result transport_properties(int device, struct net_properties_v8 *out);

#endif
