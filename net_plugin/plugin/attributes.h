/* SPDX-License-Identifier: Apache-2.0 */
/* attributes: what NCCL announces of a communicator's coming traffic (setNetAttr, net API v11+).
 *
 * Advisory: NCCL changes them before each kind of operation, from the progress threads of all the
 * communicator's processes' GPUs, so a reader may see a mix of two updates. Kept for messages that
 * explain what a connection is used for; nothing depends on them. In particular they do not choose
 * the number of lanes, though many peers need fewer lanes each: they come from the progress thread
 * when the connections of an operation exist already; they change with every operation, while a
 * connection stays; and they are bounds that follow from the communicator's size, not what is
 * in flight. A connection opens its further lanes when its own traffic calls for them
 * (link/failover.h), which is the better signal.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_PLUGIN_ATTRIBUTES_H
#define NET_PLUGIN_PLUGIN_ATTRIBUTES_H

#include <stdint.h>

/* -1, or all bits: NCCL does not know. */
struct attributes_direction {
  int32_t max_peers; /* spoken to at the same time */
  int32_t min_peers;
  int32_t max_flows; /* connections to one peer */
  int32_t min_flows;
};

struct attributes {
  struct attributes_direction send;
  struct attributes_direction receive;
  uint32_t operations; /* bit n: ncclFunc_t n */
  uint32_t algorithms; /* bit n: NCCL_ALGO_* n */
  uint32_t protocols;  /* bit n: NCCL_PROTO_* n */
};

/* Each member is written at once, not all of them together. */
void attributes_store(struct attributes *to, const struct attributes *from);

/* "send: 1 to 2 peers, 1 to 4 connections each; ..." */
enum { ATTRIBUTES_TEXT_MAX = 256 };
const char *attributes_format(const struct attributes *attributes, char text[ATTRIBUTES_TEXT_MAX]);

#endif
