/* SPDX-License-Identifier: Apache-2.0 */
/* direct: for tests of links with a direct lane: two ends, lane 0 of which is direct and up, and
 * frames that are handed over by hand, one at a time.
 * Owns: both links, until tear_down.  Threads: one.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_DIRECT_H
#define TESTS_LIB_DIRECT_H

#include <stddef.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

#define DIRECT_BYTES 30000u
#define DIRECT_LANES 2u

extern struct link *direct_ends[2]; /* by enum link_role */
extern uint8_t direct_sent[DIRECT_BYTES], direct_received[DIRECT_BYTES];
extern const struct wire_remote_buffer direct_target;
extern uint64_t direct_now_ns;

/* For cmocka. Chunks of 8 KiB and next to nothing eager; the same with checksums, over two paths.
 */
int direct_set_up(void **state);
int direct_set_up_checked(void **state);
int direct_set_up_paths(void **state);
/* Chunks of 32 KiB, all of which may go eagerly. */
int direct_set_up_large(void **state);
int direct_set_up_large_checked(void **state);
int direct_tear_down(void **state);

/* One end as the set-up before it wished, with other targets, and no lane. */
void direct_make(enum link_role role, unsigned remote_keys);
void direct_lane_up(unsigned lane, uint32_t epoch, bool is_direct);
/* Hands a frame over: 0, or what the other end made of it. */
int direct_deliver(enum link_role from, unsigned lane, const struct link_frame *frame);
/* The next frame of this type is left in *frame; others are handed over. */
void direct_find_frame(enum link_role from, unsigned lane, enum wire_type type,
                       struct link_frame *frame);
/* Hands over frames up to the next one of this type, and that one. */
void direct_pass(enum link_role from, unsigned lane, enum wire_type type);
/* So many bytes of direct_sent are posted; a receive of DIRECT_BYTES is. */
void direct_send(size_t bytes);
void direct_receive(const struct wire_remote_buffer *given);
/* A message of so many bytes, or of DIRECT_BYTES, waits on both sides, and the sender knows the
 * target of the receive. */
void direct_post_bytes(size_t bytes, const struct wire_remote_buffer *given);
void direct_post_both(const struct wire_remote_buffer *given);
/* What is sent looks like LL: each word of 8 bytes tells by itself that it has come. */
void direct_fill_words(void);

#endif
