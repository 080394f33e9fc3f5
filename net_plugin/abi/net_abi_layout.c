/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts the place of every member that NCCL and the plugin share, on 64-bit systems. The numbers
 * follow from the member lists in NVIDIA/nccl v2.30.7-1, src/include/plugin/net/net_v6.h to
 * net_v12.h; tests/abi/net_host.c calls the built plugin through declarations of its own. */
#include "net_plugin/abi/net_abi.h"

#define AT(type, member, offset)                                                                   \
  _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "size of " #type)

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4, "64-bit system");
_Static_assert(sizeof(enum nccl_result) == 4, "ncclResult_t is as large as int");
_Static_assert(sizeof(enum nccl_log_level) == 4, "ncclDebugLogLevel is as large as int");

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

AT(net_properties_v6, name, 0);
AT(net_properties_v6, pciPath, 8);
AT(net_properties_v6, guid, 16);
AT(net_properties_v6, ptrSupport, 24);
AT(net_properties_v6, speed, 28);
AT(net_properties_v6, port, 32);
AT(net_properties_v6, latency, 36);
AT(net_properties_v6, maxComms, 40);
AT(net_properties_v6, maxRecvs, 44);
SIZE(net_properties_v6, 48);

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

AT(net_properties_v9, name, 0);
AT(net_properties_v9, pciPath, 8);
AT(net_properties_v9, guid, 16);
AT(net_properties_v9, ptrSupport, 24);
AT(net_properties_v9, regIsGlobal, 28);
AT(net_properties_v9, forceFlush, 32);
AT(net_properties_v9, speed, 36);
AT(net_properties_v9, port, 40);
AT(net_properties_v9, latency, 44);
AT(net_properties_v9, maxComms, 48);
AT(net_properties_v9, maxRecvs, 52);
AT(net_properties_v9, netDeviceType, 56);
AT(net_properties_v9, netDeviceVersion, 60);
AT(net_properties_v9, vProps, 64);
AT(net_properties_v9, maxP2pBytes, 88);
AT(net_properties_v9, maxCollBytes, 96);
SIZE(net_properties_v9, 104);

AT(net_properties_v11, name, 0);
AT(net_properties_v11, pciPath, 8);
AT(net_properties_v11, guid, 16);
AT(net_properties_v11, ptrSupport, 24);
AT(net_properties_v11, regIsGlobal, 28);
AT(net_properties_v11, forceFlush, 32);
AT(net_properties_v11, speed, 36);
AT(net_properties_v11, port, 40);
AT(net_properties_v11, latency, 44);
AT(net_properties_v11, maxComms, 48);
AT(net_properties_v11, maxRecvs, 52);
AT(net_properties_v11, netDeviceType, 56);
AT(net_properties_v11, netDeviceVersion, 60);
AT(net_properties_v11, vProps, 64);
AT(net_properties_v11, maxP2pBytes, 88);
AT(net_properties_v11, maxCollBytes, 96);
AT(net_properties_v11, maxMultiRequestSize, 104);
SIZE(net_properties_v11, 112);

AT(net_properties_v12, name, 0);
AT(net_properties_v12, pciPath, 8);
AT(net_properties_v12, guid, 16);
AT(net_properties_v12, ptrSupport, 24);
AT(net_properties_v12, regIsGlobal, 28);
AT(net_properties_v12, forceFlush, 32);
AT(net_properties_v12, speed, 36);
AT(net_properties_v12, port, 40);
AT(net_properties_v12, latency, 44);
AT(net_properties_v12, maxComms, 48);
AT(net_properties_v12, maxRecvs, 52);
AT(net_properties_v12, netDeviceType, 56);
AT(net_properties_v12, netDeviceVersion, 60);
AT(net_properties_v12, vProps, 64);
AT(net_properties_v12, maxP2pBytes, 104);
AT(net_properties_v12, maxCollBytes, 112);
AT(net_properties_v12, maxMultiRequestSize, 120);
AT(net_properties_v12, railId, 124);
AT(net_properties_v12, planeId, 126);
SIZE(net_properties_v12, 128);

AT(net_v6, name, 0);
AT(net_v6, init, 8);
AT(net_v6, devices, 16);
AT(net_v6, getProperties, 24);
AT(net_v6, listen, 32);
AT(net_v6, connect, 40);
AT(net_v6, accept, 48);
AT(net_v6, regMr, 56);
AT(net_v6, regMrDmaBuf, 64);
AT(net_v6, deregMr, 72);
AT(net_v6, isend, 80);
AT(net_v6, irecv, 88);
AT(net_v6, iflush, 96);
AT(net_v6, test, 104);
AT(net_v6, closeSend, 112);
AT(net_v6, closeRecv, 120);
AT(net_v6, closeListen, 128);
SIZE(net_v6, 136);

AT(net_v7, name, 0);
AT(net_v7, init, 8);
AT(net_v7, devices, 16);
AT(net_v7, getProperties, 24);
AT(net_v7, listen, 32);
AT(net_v7, connect, 40);
AT(net_v7, accept, 48);
AT(net_v7, regMr, 56);
AT(net_v7, regMrDmaBuf, 64);
AT(net_v7, deregMr, 72);
AT(net_v7, isend, 80);
AT(net_v7, irecv, 88);
AT(net_v7, iflush, 96);
AT(net_v7, test, 104);
AT(net_v7, closeSend, 112);
AT(net_v7, closeRecv, 120);
AT(net_v7, closeListen, 128);
AT(net_v7, getDeviceMr, 136);
AT(net_v7, irecvConsumed, 144);
SIZE(net_v7, 152);

AT(net_v8, name, 0);
AT(net_v8, init, 8);
AT(net_v8, devices, 16);
AT(net_v8, getProperties, 24);
AT(net_v8, listen, 32);
AT(net_v8, connect, 40);
AT(net_v8, accept, 48);
AT(net_v8, regMr, 56);
AT(net_v8, regMrDmaBuf, 64);
AT(net_v8, deregMr, 72);
AT(net_v8, isend, 80);
AT(net_v8, irecv, 88);
AT(net_v8, iflush, 96);
AT(net_v8, test, 104);
AT(net_v8, closeSend, 112);
AT(net_v8, closeRecv, 120);
AT(net_v8, closeListen, 128);
AT(net_v8, getDeviceMr, 136);
AT(net_v8, irecvConsumed, 144);
SIZE(net_v8, 152);

AT(net_v9, name, 0);
AT(net_v9, init, 8);
AT(net_v9, devices, 16);
AT(net_v9, getProperties, 24);
AT(net_v9, listen, 32);
AT(net_v9, connect, 40);
AT(net_v9, accept, 48);
AT(net_v9, regMr, 56);
AT(net_v9, regMrDmaBuf, 64);
AT(net_v9, deregMr, 72);
AT(net_v9, isend, 80);
AT(net_v9, irecv, 88);
AT(net_v9, iflush, 96);
AT(net_v9, test, 104);
AT(net_v9, closeSend, 112);
AT(net_v9, closeRecv, 120);
AT(net_v9, closeListen, 128);
AT(net_v9, getDeviceMr, 136);
AT(net_v9, irecvConsumed, 144);
AT(net_v9, makeVDevice, 152);
SIZE(net_v9, 160);

AT(net_v10, name, 0);
AT(net_v10, init, 8);
AT(net_v10, devices, 16);
AT(net_v10, getProperties, 24);
AT(net_v10, listen, 32);
AT(net_v10, connect, 40);
AT(net_v10, accept, 48);
AT(net_v10, regMr, 56);
AT(net_v10, regMrDmaBuf, 64);
AT(net_v10, deregMr, 72);
AT(net_v10, isend, 80);
AT(net_v10, irecv, 88);
AT(net_v10, iflush, 96);
AT(net_v10, test, 104);
AT(net_v10, closeSend, 112);
AT(net_v10, closeRecv, 120);
AT(net_v10, closeListen, 128);
AT(net_v10, getDeviceMr, 136);
AT(net_v10, irecvConsumed, 144);
AT(net_v10, makeVDevice, 152);
SIZE(net_v10, 160);

AT(net_v11, name, 0);
AT(net_v11, init, 8);
AT(net_v11, devices, 16);
AT(net_v11, getProperties, 24);
AT(net_v11, listen, 32);
AT(net_v11, connect, 40);
AT(net_v11, accept, 48);
AT(net_v11, regMr, 56);
AT(net_v11, regMrDmaBuf, 64);
AT(net_v11, deregMr, 72);
AT(net_v11, isend, 80);
AT(net_v11, irecv, 88);
AT(net_v11, iflush, 96);
AT(net_v11, test, 104);
AT(net_v11, closeSend, 112);
AT(net_v11, closeRecv, 120);
AT(net_v11, closeListen, 128);
AT(net_v11, getDeviceMr, 136);
AT(net_v11, irecvConsumed, 144);
AT(net_v11, makeVDevice, 152);
AT(net_v11, finalize, 160);
AT(net_v11, setNetAttr, 168);
SIZE(net_v11, 176);

AT(net_v12, name, 0);
AT(net_v12, init, 8);
AT(net_v12, devices, 16);
AT(net_v12, getProperties, 24);
AT(net_v12, listen, 32);
AT(net_v12, connect, 40);
AT(net_v12, accept, 48);
AT(net_v12, regMr, 56);
AT(net_v12, regMrDmaBuf, 64);
AT(net_v12, deregMr, 72);
AT(net_v12, isend, 80);
AT(net_v12, irecv, 88);
AT(net_v12, iflush, 96);
AT(net_v12, test, 104);
AT(net_v12, closeSend, 112);
AT(net_v12, closeRecv, 120);
AT(net_v12, closeListen, 128);
AT(net_v12, getDeviceMr, 136);
AT(net_v12, irecvConsumed, 144);
AT(net_v12, makeVDevice, 152);
AT(net_v12, finalize, 160);
AT(net_v12, setNetAttr, 168);
SIZE(net_v12, 176);
