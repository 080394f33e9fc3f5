/* SPDX-License-Identifier: Apache-2.0 */
/* config: the emulated GPUs as FAKE_CUDA_* describe them; for the runtime and for NVML.
 * Owns: the device table, filled before main.  Threads: any; read only.  Blocks: never.
 * Fails: cannot; what cannot be parsed keeps its default. */
#ifndef FAKE_CUDA_CONFIG_H
#define FAKE_CUDA_CONFIG_H

#include <stdbool.h>

#define MAX_DEVICES 16

struct device {
  char bus_id[16]; /* dddd:bb:ss.0 */
  unsigned bus;
};
extern int device_count;
extern int device_cc; /* compute capability, major * 10 + minor */
extern struct device devices[MAX_DEVICES];
/* LL and LL128 kernels that receive from the network wait until the proxy has the whole step. On a
 * CPU they need that where a transport lets recv() fill NCCL's buffers, as NCCL's Socket does: the
 * stores of a copy in the operating system are not in order, and a flag may show before its data.
 * Without, a transport is held to what the kernels ask for. */
extern bool waits_for_proxy;

#endif
