/* SPDX-License-Identifier: Apache-2.0 */
/* The place of every member that NCCL and the plugins share, on 64-bit systems, from the headers of
 * NCCL v2.30.7-1 (tuner v1: v2.19.3-1, v7: 2449986). Everything else in the repository that speaks
 * one of these interfaces uses the same declarations.
 *
 * tests/abi/layouts compiles this as C++ with NCCL's own headers, and compares places, sizes and
 * the arguments of each function, one by one. */
#ifdef NCCL_HEADERS
#include "tests/abi/layouts_nccl.h"
#else
#include <assert.h>

#include "net_plugin/abi/collnet_abi.h"
#include "tuner_plugin/abi/tuner_abi.h"
#define SAME(type, member)
#define SAME_SIZE(type)
#endif

#define AT(type, member, offset)                                                                   \
  static_assert(offsetof(struct type, member) == (offset), #type "." #member);                     \
  SAME(type, member)
#define SIZE(type, bytes)                                                                          \
  static_assert(sizeof(struct type) == (bytes), "size of " #type);                                 \
  SAME_SIZE(type)

static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4, "64-bit system");
static_assert(sizeof(enum nccl_result) == 4, "ncclResult_t is as large as int");
static_assert(sizeof(enum nccl_log_level) == 4, "ncclDebugLogLevel is as large as int");

AT(net_vdevice_v9, ndevs, 0);
AT(net_vdevice_v9, devs, 4);
SIZE(net_vdevice_v9, 20);

AT(net_vdevice_v12, ndevs, 0);
AT(net_vdevice_v12, devs, 4);
SIZE(net_vdevice_v12, 36);

AT(net_config_v10, trafficClass, 0);
SIZE(net_config_v10, 4);

AT(net_comm_attributes_v11, maxConcurrentPeers, 0);
AT(net_comm_attributes_v11, minConcurrentPeers, 4);
AT(net_comm_attributes_v11, maxFlowsPerPeer, 8);
AT(net_comm_attributes_v11, minFlowsPerPeer, 12);
SIZE(net_comm_attributes_v11, 16);

AT(net_attributes_v11, sendCommAttr, 0);
AT(net_attributes_v11, recvCommAttr, 16);
AT(net_attributes_v11, op, 32);
AT(net_attributes_v11, algo, 36);
AT(net_attributes_v11, proto, 40);
SIZE(net_attributes_v11, 44);

AT(net_properties_v7, name, 0);
AT(net_properties_v7, pciPath, 8);
AT(net_properties_v7, guid, 16);
AT(net_properties_v7, ptrSupport, 24);
AT(net_properties_v7, speed, 28);
AT(net_properties_v7, port, 32);
AT(net_properties_v7, latency, 36);
AT(net_properties_v7, maxComms, 40);
AT(net_properties_v7, maxRecvs, 44);
AT(net_properties_v7, netDeviceType, 48);
AT(net_properties_v7, netDeviceVersion, 52);
SIZE(net_properties_v7, 56);

AT(net_properties_v8, name, 0);
AT(net_properties_v8, pciPath, 8);
AT(net_properties_v8, guid, 16);
AT(net_properties_v8, ptrSupport, 24);
AT(net_properties_v8, regIsGlobal, 28);
AT(net_properties_v8, speed, 32);
AT(net_properties_v8, port, 36);
AT(net_properties_v8, latency, 40);
AT(net_properties_v8, maxComms, 44);
AT(net_properties_v8, maxRecvs, 48);
AT(net_properties_v8, netDeviceType, 52);
AT(net_properties_v8, netDeviceVersion, 56);
SIZE(net_properties_v8, 64);

/* What v9 and later begin with. */
#define PROPERTIES(type)                                                                           \
  AT(type, name, 0);                                                                               \
  AT(type, pciPath, 8);                                                                            \
  AT(type, guid, 16);                                                                              \
  AT(type, ptrSupport, 24);                                                                        \
  AT(type, regIsGlobal, 28);                                                                       \
  AT(type, forceFlush, 32);                                                                        \
  AT(type, speed, 36);                                                                             \
  AT(type, port, 40);                                                                              \
  AT(type, latency, 44);                                                                           \
  AT(type, maxComms, 48);                                                                          \
  AT(type, maxRecvs, 52);                                                                          \
  AT(type, netDeviceType, 56);                                                                     \
  AT(type, netDeviceVersion, 60);                                                                  \
  AT(type, vProps, 64)

PROPERTIES(net_properties_v9);
AT(net_properties_v9, maxP2pBytes, 88);
AT(net_properties_v9, maxCollBytes, 96);
SIZE(net_properties_v9, 104);

PROPERTIES(net_properties_v11);
AT(net_properties_v11, maxP2pBytes, 88);
AT(net_properties_v11, maxCollBytes, 96);
AT(net_properties_v11, maxMultiRequestSize, 104);
SIZE(net_properties_v11, 112);

PROPERTIES(net_properties_v12);
AT(net_properties_v12, maxP2pBytes, 104);
AT(net_properties_v12, maxCollBytes, 112);
AT(net_properties_v12, maxMultiRequestSize, 120);
AT(net_properties_v12, railId, 124);
AT(net_properties_v12, planeId, 126);
SIZE(net_properties_v12, 128);

/* What all tables of the network have. */
#define TABLE(type)                                                                                \
  AT(type, name, 0);                                                                               \
  AT(type, init, 8);                                                                               \
  AT(type, devices, 16);                                                                           \
  AT(type, getProperties, 24);                                                                     \
  AT(type, listen, 32);                                                                            \
  AT(type, connect, 40);                                                                           \
  AT(type, accept, 48);                                                                            \
  AT(type, regMr, 56);                                                                             \
  AT(type, regMrDmaBuf, 64);                                                                       \
  AT(type, deregMr, 72);                                                                           \
  AT(type, isend, 80);                                                                             \
  AT(type, irecv, 88);                                                                             \
  AT(type, iflush, 96);                                                                            \
  AT(type, test, 104);                                                                             \
  AT(type, closeSend, 112);                                                                        \
  AT(type, closeRecv, 120);                                                                        \
  AT(type, closeListen, 128)

#define DEVICE_CODE(type)                                                                          \
  TABLE(type);                                                                                     \
  AT(type, getDeviceMr, 136);                                                                      \
  AT(type, irecvConsumed, 144)
#define FUSING(type)                                                                               \
  DEVICE_CODE(type);                                                                               \
  AT(type, makeVDevice, 152)
#define ENDING(type)                                                                               \
  FUSING(type);                                                                                    \
  AT(type, finalize, 160);                                                                         \
  AT(type, setNetAttr, 168)

DEVICE_CODE(net_v7);
SIZE(net_v7, 152);
DEVICE_CODE(net_v8);
SIZE(net_v8, 152);
FUSING(net_v9);
SIZE(net_v9, 160);
FUSING(net_v10);
SIZE(net_v10, 160);
ENDING(net_v11);
SIZE(net_v11, 176);
ENDING(net_v12);
SIZE(net_v12, 176);

/* And those of CollNet. */
#define COLLNET_TABLE(type)                                                                        \
  AT(type, name, 0);                                                                               \
  AT(type, init, 8);                                                                               \
  AT(type, devices, 16);                                                                           \
  AT(type, getProperties, 24);                                                                     \
  AT(type, listen, 32);                                                                            \
  AT(type, connect, 40);                                                                           \
  AT(type, reduceSupport, 48);                                                                     \
  AT(type, regMr, 56);                                                                             \
  AT(type, regMrDmaBuf, 64);                                                                       \
  AT(type, deregMr, 72);                                                                           \
  AT(type, iallreduce, 80);                                                                        \
  AT(type, iallgather, 88);                                                                        \
  AT(type, ireducescatter, 96);                                                                    \
  AT(type, iflush, 104);                                                                           \
  AT(type, test, 112);                                                                             \
  AT(type, closeColl, 120);                                                                        \
  AT(type, closeListen, 128)

COLLNET_TABLE(collnet_v8);
SIZE(collnet_v8, 136);

COLLNET_TABLE(collnet_v9);
AT(collnet_v9, makeVDevice, 136);
SIZE(collnet_v9, 144);

COLLNET_TABLE(collnet_v10);
AT(collnet_v10, makeVDevice, 136);
SIZE(collnet_v10, 144);

COLLNET_TABLE(collnet_v11);
AT(collnet_v11, makeVDevice, 136);
AT(collnet_v11, finalize, 144);
SIZE(collnet_v11, 152);

COLLNET_TABLE(collnet_v12);
AT(collnet_v12, makeVDevice, 136);
AT(collnet_v12, finalize, 144);
SIZE(collnet_v12, 152);

/* ---- tuners ---- */

#define TUNER(type, end)                                                                           \
  AT(type, name, 0);                                                                               \
  AT(type, init, 8);                                                                               \
  AT(type, getCollInfo, 16);                                                                       \
  AT(type, end, 24)

TUNER(tuner_abi_v1, destroy);
SIZE(tuner_abi_v1, 32);
TUNER(tuner_abi_v2, destroy);
SIZE(tuner_abi_v2, 32);
TUNER(tuner_abi_v3, destroy);
SIZE(tuner_abi_v3, 32);
TUNER(tuner_abi_v4, destroy);
SIZE(tuner_abi_v4, 32);
TUNER(tuner_abi_v5, finalize);
SIZE(tuner_abi_v5, 32);
TUNER(tuner_abi_v6, finalize);
AT(tuner_abi_v6, getChunkSize, 32);
SIZE(tuner_abi_v6, 40);

AT(tuner_abi_nvl_domain_info, nNvlDomains, 0);
AT(tuner_abi_nvl_domain_info, minRanksPerNvlDomain, 4);
AT(tuner_abi_nvl_domain_info, maxRanksPerNvlDomain, 8);
SIZE(tuner_abi_nvl_domain_info, 12);
