/* SPDX-License-Identifier: Apache-2.0 */
/* choice: ring or tree, as NCCL 2.29 chooses for AllReduce with protocol Simple on hosts of GPUs of
 * the V100's time with one NIC behind the processor.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot.
 *
 * Facts from NVIDIA/nccl, src/graph/tuning.cc and src/graph/search.cc at v2.29.7-1. */
#ifndef TESTS_SCALE_CHOICE_H
#define TESTS_SCALE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* At least two hosts; nic_rate: bytes per second. */
bool choice_is_tree(unsigned hosts, unsigned gpus, uint64_t nic_rate, uint64_t bytes);

#endif
