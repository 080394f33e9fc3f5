/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_numbers: how NCCL counts collectives, algorithms and protocols towards a tuner
 * (src/include/nccl_common.h at v2.30.7-1, 0 to 4 unchanged since v2.19.3-1). */
#ifndef TESTS_ABI_TUNER_NUMBERS_H
#define TESTS_ABI_TUNER_NUMBERS_H

enum {
  HOST_BROADCAST = 0,
  HOST_REDUCE = 1,
  HOST_ALLGATHER = 2,
  HOST_REDUCESCATTER = 3,
  HOST_ALLREDUCE = 4,
};
enum {
  HOST_TREE = 0,
  HOST_RING = 1,
  HOST_COLLNET_CHAIN = 3,
  HOST_NVLS = 4,
  HOST_PAT = 6,
  HOST_ALGOS_MAX = 7,
};
enum { HOST_LL = 0, HOST_LL128 = 1, HOST_SIMPLE = 2, HOST_PROTOS = 3 };
#define HOST_IGNORE (-1.0f)

#endif
