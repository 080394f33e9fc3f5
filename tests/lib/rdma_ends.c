/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_ends.h. */
#include "tests/lib/rdma_ends.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define MS 1000000ull

struct link *rdma_ends[2];
uint8_t rdma_ends_sent[RDMA_ENDS_BYTES], rdma_ends_received[RDMA_ENDS_BYTES];
const struct wire_remote_buffer rdma_ends_target = { 0x7000, RDMA_ENDS_BYTES, { 11, 22 } };
uint64_t rdma_ends_now_ns;
static struct link_config wished;

void rdma_ends_make(enum link_role role, unsigned remote_keys) {
  struct link_config config = wished;
  config.role = role;
  config.remote_keys = remote_keys;
  rdma_ends[role] = link_init(calloc(1, link_memory_bytes(&config)), &config, rdma_ends_now_ns);
}

void rdma_ends_lane_up(unsigned lane, uint32_t epoch, bool is_rdma) {
  uint64_t count = link_lane_fence(rdma_ends[LINK_RECEIVER], lane, epoch, rdma_ends_now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(rdma_ends[LINK_RECEIVER], lane, epoch, 0, rdma_ends_now_ns);
  link_lane_up(rdma_ends[LINK_SENDER], lane, epoch, count, rdma_ends_now_ns);
  for (int role = 0; role < 2 && is_rdma; role++) {
    link_lane_is_rdma(rdma_ends[role], lane);
  }
}

const struct rdma_ends_wish rdma_ends_small = { .chunk_bytes = 8192, .eager_bytes = 64 };
const struct rdma_ends_wish rdma_ends_small_checked = { .chunk_bytes = 8192,
                                                        .eager_bytes = 64,
                                                        .has_checksums = true };
const struct rdma_ends_wish rdma_ends_large = { .chunk_bytes = 32768, .eager_bytes = 32768 };
const struct rdma_ends_wish rdma_ends_large_checked = { .chunk_bytes = 32768,
                                                        .eager_bytes = 32768,
                                                        .has_checksums = true };
const struct rdma_ends_wish rdma_ends_two_paths = { .chunk_bytes = 8192,
                                                    .eager_bytes = 64,
                                                    .paths = 2 };

void rdma_ends_begin(const struct rdma_ends_wish *wish) {
  rdma_ends_now_ns = 0;
  wished = (struct link_config){
    .policy = { .lanes = RDMA_ENDS_LANES,
                .chunk_bytes = wish->chunk_bytes,
                .paths = wish->paths ? wish->paths : 1 },
    .eager_bytes = wish->eager_bytes,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .wants_checksums = wish->has_checksums,
  };
  for (unsigned i = 0; i < RDMA_ENDS_BYTES; i++) {
    rdma_ends_sent[i] = (uint8_t)(i * 7 + i / 256);
  }
  memset(rdma_ends_received, 0, sizeof rdma_ends_received);
  rdma_ends_make(LINK_SENDER, 2);
  rdma_ends_make(LINK_RECEIVER, 2);
  rdma_ends_lane_up(0, 1, true);
}

int rdma_ends_set_up(void **state) {
  rdma_ends_begin(*state);
  return 0;
}

int rdma_ends_tear_down(void **state) {
  (void)state;
  free(rdma_ends[0]);
  free(rdma_ends[1]);
  return 0;
}

int rdma_ends_deliver(enum link_role from, unsigned lane, const struct link_frame *frame) {
  struct link *to = rdma_ends[from == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER];
  struct wire_header header;
  int error = wire_header_decode(frame->header, &header);
  if (!error) {
    error = link_frame_received(to, lane, &header, rdma_ends_now_ns);
  }
  if (!error && wire_stream_bytes(&header) > 0) {
    memcpy(link_receive_buffer(to, lane), frame->payload, frame->length);
  } else if (!error) {
    assert_null(link_receive_buffer(to, lane));
  }
  return error ? error : link_frame_completed(to, lane, rdma_ends_now_ns);
}

void rdma_ends_find_frame(enum link_role from, unsigned lane, enum wire_type type,
                          struct link_frame *frame) {
  while (next_frame(rdma_ends[from], lane, frame, rdma_ends_now_ns)) {
    link_frame_taken(rdma_ends[from], lane, rdma_ends_now_ns);
    if (frame->header[1] == type) {
      return;
    }
    assert_int_equal(rdma_ends_deliver(from, lane, frame), 0);
  }
  fail_msg("no frame of type %d", type);
}

void rdma_ends_pass(enum link_role from, unsigned lane, enum wire_type type) {
  struct link_frame frame;
  rdma_ends_find_frame(from, lane, type, &frame);
  assert_int_equal(rdma_ends_deliver(from, lane, &frame), 0);
}

void rdma_ends_send(size_t bytes) {
  struct link *sender = rdma_ends[LINK_SENDER];
  assert_int_equal(
      link_send_posted(sender, rdma_ends_sent, bytes, rdma_ends_sent, rdma_ends_now_ns), 0);
}

void rdma_ends_receive(const struct wire_remote_buffer *given) {
  struct link *receiver = rdma_ends[LINK_RECEIVER];
  assert_int_equal(
      link_receive_posted(receiver, rdma_ends_received, RDMA_ENDS_BYTES, given, rdma_ends_now_ns),
      0);
}

void rdma_ends_post_bytes(size_t bytes, const struct wire_remote_buffer *given) {
  rdma_ends_send(bytes);
  rdma_ends_pass(LINK_SENDER, 0, WIRE_REQUEST);
  rdma_ends_receive(given);
  rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
}

void rdma_ends_post_both(const struct wire_remote_buffer *given) {
  rdma_ends_post_bytes(RDMA_ENDS_BYTES, given);
}

void rdma_ends_fill_words(void) {
  for (size_t at = 0; at + 8 <= RDMA_ENDS_BYTES; at += 8) {
    bytes_put_le32(rdma_ends_sent + at, (uint32_t)at);
    bytes_put_le32(rdma_ends_sent + at + 4, 7);
  }
}
