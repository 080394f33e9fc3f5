/* SPDX-License-Identifier: Apache-2.0 */
/* polled: messages that a kernel reads while they arrive.
 * Owns: nothing.  Threads: any (no state).  Blocks: never.  Fails: cannot.
 *
 * NCCL's LL and LL128 kernels do not wait for the proxy to report that a message is complete:
 * they poll flags inside it. LL takes 8 bytes once the upper 4 are the step's number, LL128 takes a
 * line of 128 bytes once the last 8 are (NVIDIA/nccl src/device/prims_ll.h, prims_ll128.h at
 * v2.29.7-1). So their bytes must become visible in order, and none before its checksum is known
 * to be right. recv() promises no order: a kernel that copies by string instructions, whose stores
 * are not ordered among themselves, shows a flag before the data in front of it.
 *
 * No call gives the protocol of a message, but the message shows it: every line that a proxy sends
 * carries the flag, the same one in the whole message and never 0. Other messages seldom have that
 * form; one that does is only received with one copy more. */
#ifndef NET_PLUGIN_LINK_LL_DETECT_H
#define NET_PLUGIN_LINK_LL_DETECT_H

#include <stddef.h>

enum ll_form {
  LL_NONE,
  LL_WORDS, /* LL: 8 bytes that NICs, which write aligned words whole, may write in any order */
  LL_LINES, /* LL128, or both: nothing promises that a NIC writes a line's end last */
};

enum ll_form ll_detect(const void *data, size_t bytes);

#endif
