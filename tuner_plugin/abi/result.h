/* SPDX-License-Identifier: Apache-2.0 */
/* result: converts negative errno to ncclResult_t, at the boundary of the plugin.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_ABI_RESULT_H
#define TUNER_PLUGIN_ABI_RESULT_H

/* NVIDIA/nccl v2.30.7-1 src/nccl.h.in, ncclResult_t; unchanged since 2.19. Every release ends the
 * communicator or the collective on anything but success (src/init.cc:1641 and src/enqueue.cc:2147
 * wrap the calls in NCCLCHECK), so invalid usage is returned only where the user asked for a fatal
 * error. */
enum result_nccl { RESULT_SUCCESS = 0, RESULT_INVALID_USAGE = 5 };

static inline int result_from_errno(int error) {
  return error == 0 ? RESULT_SUCCESS : RESULT_INVALID_USAGE;
}

#endif
