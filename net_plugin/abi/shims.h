/* SPDX-License-Identifier: Apache-2.0 */
/* shims: what the adapters of the network share with those of CollNet. An adapter
 * casts, widens sizes, fills in what its version lacks, and turns errno into ncclResult_t; nothing
 * else is decided here.
 *
 * Owns: nothing.  Threads, blocking: as plugin/plugin.h.  Fails: ncclResult_t. */
#ifndef NET_PLUGIN_ABI_SHIMS_H
#define NET_PLUGIN_ABI_SHIMS_H

#include "common/fork_guard.h"
#include "common/param.h"
#include "common/version.h"
#include "net_plugin/abi/net_abi.h"
#include "net_plugin/plugin/device.h"

#define SHIMS_NAME STRATUS_TRANSPORT

/* In a forked child of a process that uses the plugin: what would move or make something fails,
 * what ends something does nothing. */
#define SHIMS_FAIL_IN_CHILD                                                                        \
  do {                                                                                             \
    if (fork_guard_refuses()) {                                                                    \
      return NCCL_INVALID_USAGE;                                                                   \
    }                                                                                              \
  } while (0)
#define SHIMS_DO_NOTHING_IN_CHILD                                                                  \
  do {                                                                                             \
    if (fork_guard_is_child()) {                                                                   \
      return NCCL_SUCCESS;                                                                         \
    }                                                                                              \
  } while (0)

/* Negative errno, or 0, as NCCL has it: the only place that knows both. */
enum nccl_result shims_result(int error);

net_devices_v7_fn shims_devices;

/* For init up to v10, which is once per process. */
enum nccl_result shims_init_process(int api_version, nccl_logger_fn *logger);

/* getProperties, one macro per version: the previous one and what was added. `to` is NCCL's struct,
 * `from` a struct device. NCCL keeps the two texts as char *, and does not write them. */
#define SHIMS_COPY_V7(to, from)                                                                    \
  do {                                                                                             \
    (to)->name = (char *)(uintptr_t)(from)->name;                                                  \
    (to)->pciPath = (from)->pci_path[0] ? (char *)(uintptr_t)(from)->pci_path : NULL;              \
    (to)->guid = (from)->guid;                                                                     \
    (to)->ptrSupport =                                                                             \
        NCCL_PTR_HOST | (param_bool(PARAM_GPU_POINTERS) ? NCCL_PTR_CUDA | NCCL_PTR_DMABUF : 0);    \
    (to)->speed = (int)(from)->speed_mbps;                                                         \
    (to)->port = 0;                                                                                \
    (to)->latency = 0;      /* it changes costs, by which NCCL chooses */                          \
    (to)->maxComms = 65536; /* no limit of ours; NCCL's socket transport says the same */          \
    (to)->maxRecvs = 1;                                                                            \
    (to)->netDeviceType = NCCL_NET_DEVICE_HOST;                                                    \
    (to)->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;                                      \
  } while (0)

/* regIsGlobal: where it is 1, NCCL 2.20 to 2.23 register user buffers, send them whole, and expect
 * a send that is larger than its receive to be cut to it, as NCCL's IB does since 2.20
 * (sendProxyProgress in src/transport/net.cc at v2.22.3 sends the rest in a further step). A sender
 * here does not know how large the receive is. Later releases do not ask. */
#define SHIMS_COPY_V8(to, from)                                                                    \
  do {                                                                                             \
    SHIMS_COPY_V7(to, from);                                                                       \
    (to)->regIsGlobal = 0; /* see above */                                                         \
  } while (0)

/* Fused devices come from NCCL's own makeVDevice, so their parts fit in its array. */
#define SHIMS_COPY_V9(to, from)                                                                    \
  do {                                                                                             \
    SHIMS_COPY_V8(to, from);                                                                       \
    (to)->forceFlush = 0;                /* the CPU copies: what is complete is visible */         \
    (to)->maxP2pBytes = (size_t)1 << 40; /* NCCL_MAX_NET_SIZE_BYTES, nccl_net.h:18 */              \
    (to)->maxCollBytes = (size_t)1 << 40;                                                          \
    (to)->vProps.ndevs = (int)(from)->part_count;                                                  \
    for (size_t i = 0; i < sizeof((to)->vProps.devs) / sizeof(int); i++) {                         \
      (to)->vProps.devs[i] = (from)->parts[i];                                                     \
    }                                                                                              \
  } while (0)

#define SHIMS_COPY_V11(to, from)                                                                   \
  do {                                                                                             \
    SHIMS_COPY_V9(to, from);                                                                       \
    (to)->maxMultiRequestSize = 1;                                                                 \
  } while (0)

#define SHIMS_COPY_V12(to, from)                                                                   \
  do {                                                                                             \
    SHIMS_COPY_V11(to, from);                                                                      \
    (to)->railId = NCCL_NET_ID_UNDEF; /* nothing in a cloud tells */                               \
    (to)->planeId = NCCL_NET_ID_UNDEF;                                                             \
  } while (0)

#define SHIMS_GET_PROPERTIES(version, COPY)                                                        \
  static enum nccl_result get_properties_v##version(int index,                                     \
                                                    struct net_properties_v##version *out) {       \
    SHIMS_FAIL_IN_CHILD;                                                                           \
    const struct device *device = plugin_device(index);                                            \
    if (device) {                                                                                  \
      COPY(out, device);                                                                           \
    }                                                                                              \
    return shims_result(device ? 0 : -EINVAL);                                                     \
  }

#endif
