/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts the place of every member of CollNet's tables, on 64-bit systems. The numbers follow from
 * the member lists in NVIDIA/nccl v2.30.7-1, src/include/plugin/net/net_v8.h to net_v12.h;
 * tests/abi/collnet_host.c calls the built plugin through declarations of its own. */
#include "net_plugin/abi/collnet_abi.h"

#define AT(type, member, offset)                                                                   \
  _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "size of " #type)

/* What all versions begin with. */
#define COMMON(type)                                                                               \
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

COMMON(collnet_v8);
SIZE(collnet_v8, 136);

COMMON(collnet_v9);
AT(collnet_v9, makeVDevice, 136);
SIZE(collnet_v9, 144);

COMMON(collnet_v10);
AT(collnet_v10, makeVDevice, 136);
SIZE(collnet_v10, 144);

COMMON(collnet_v11);
AT(collnet_v11, makeVDevice, 136);
AT(collnet_v11, finalize, 144);
SIZE(collnet_v11, 152);

COMMON(collnet_v12);
AT(collnet_v12, makeVDevice, 136);
AT(collnet_v12, finalize, 144);
SIZE(collnet_v12, 152);

AT(collnet_sge, mhandle, 0);
AT(collnet_sge, address, 8);
AT(collnet_sge, size, 16);
SIZE(collnet_sge, 24);
