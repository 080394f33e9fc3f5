/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_ends: for tests of links with an RDMA lane: two ends, lane 0 of which is one and up, and
 * frames that are handed over by hand, one at a time.
 * Owns: both links, until tear_down.  Threads: one.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_RDMA_ENDS_H
#define TESTS_LIB_RDMA_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

#define RDMA_ENDS_BYTES 30000u
#define RDMA_ENDS_LANES 2u

extern struct link *rdma_ends[2]; /* by enum link_role */
extern uint8_t rdma_ends_sent[RDMA_ENDS_BYTES], rdma_ends_received[RDMA_ENDS_BYTES];
extern const struct wire_remote_buffer rdma_ends_target;
extern uint64_t rdma_ends_now_ns;

struct rdma_ends_wish {
  uint32_t chunk_bytes, eager_bytes;
  unsigned paths; /* 0: one */
  bool has_checksums;
};
/* Chunks of 8 KiB and next to nothing eager. */
extern const struct rdma_ends_wish rdma_ends_small, rdma_ends_small_checked, rdma_ends_two_paths;
/* Chunks of 32 KiB, all of which may go eagerly. */
extern const struct rdma_ends_wish rdma_ends_large, rdma_ends_large_checked;
void rdma_ends_begin(const struct rdma_ends_wish *wish);

/* A test that is run with ends of each of these wishes: RDMA_ENDS_TEST(name, &rdma_ends_small). */
#define RDMA_ENDS_TEST(name, ...)                                                                  \
  UNIT_TEST_EACH(name, rdma_ends_set_up, rdma_ends_tear_down, __VA_ARGS__)
int rdma_ends_set_up(void **state);
int rdma_ends_tear_down(void **state);

/* One end as the set-up before it wished, with other targets, and no lane. */
void rdma_ends_make(enum link_role role, unsigned remote_keys);
void rdma_ends_lane_up(unsigned lane, uint32_t epoch, bool is_rdma);
/* Hands a frame over: 0, or what the other end made of it. */
int rdma_ends_deliver(enum link_role from, unsigned lane, const struct link_frame *frame);
/* The next frame of this type is left in *frame; others are handed over. */
void rdma_ends_find_frame(enum link_role from, unsigned lane, enum wire_type type,
                          struct link_frame *frame);
/* Hands over frames up to the next one of this type, and that one. */
void rdma_ends_pass(enum link_role from, unsigned lane, enum wire_type type);
/* So many bytes of rdma_ends_sent are posted; a receive of RDMA_ENDS_BYTES is. */
void rdma_ends_send(size_t bytes);
void rdma_ends_receive(const struct wire_remote_buffer *given);
/* A message of so many bytes, or of RDMA_ENDS_BYTES, waits on both sides, and the sender knows the
 * target of the receive. */
void rdma_ends_post_bytes(size_t bytes, const struct wire_remote_buffer *given);
void rdma_ends_post_both(const struct wire_remote_buffer *given);
/* What is sent looks like LL: each word of 8 bytes tells by itself that it has come. */
void rdma_ends_fill_words(void);

#endif
