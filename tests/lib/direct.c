/* SPDX-License-Identifier: Apache-2.0 */
/* See direct.h. */
#include "tests/lib/direct.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define MS 1000000ull

struct link *direct_ends[2];
uint8_t direct_sent[DIRECT_BYTES], direct_received[DIRECT_BYTES];
const struct wire_remote_buffer direct_target = { 0x7000, DIRECT_BYTES, { 11, 22 } };
uint64_t direct_now_ns;
static struct link_config wished;

void direct_make(enum link_role role, unsigned remote_keys) {
  struct link_config config = wished;
  config.role = role;
  config.remote_keys = remote_keys;
  direct_ends[role] = link_init(calloc(1, link_memory_bytes(&config)), &config, direct_now_ns);
}

void direct_lane_up(unsigned lane, uint32_t epoch, bool is_direct) {
  uint64_t count = link_lane_fence(direct_ends[LINK_RECEIVER], lane, epoch, direct_now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(direct_ends[LINK_RECEIVER], lane, epoch, 0, direct_now_ns);
  link_lane_up(direct_ends[LINK_SENDER], lane, epoch, count, direct_now_ns);
  for (int role = 0; role < 2 && is_direct; role++) {
    link_lane_is_rdma(direct_ends[role], lane);
  }
}

static int set_up(uint32_t chunk_bytes, uint32_t eager_bytes, bool has_checksums, unsigned paths) {
  direct_now_ns = 0;
  wished = (struct link_config){
    .lanes = DIRECT_LANES,
    .chunk_bytes = chunk_bytes,
    .eager_bytes = eager_bytes,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .paths = paths,
    .wants_checksums = has_checksums,
  };
  for (unsigned i = 0; i < DIRECT_BYTES; i++) {
    direct_sent[i] = (uint8_t)(i * 7 + i / 256);
  }
  memset(direct_received, 0, sizeof direct_received);
  direct_make(LINK_SENDER, 2);
  direct_make(LINK_RECEIVER, 2);
  direct_lane_up(0, 1, true);
  return 0;
}

int direct_set_up(void **state) {
  (void)state;
  return set_up(8192, 64, false, 1);
}

int direct_set_up_checked(void **state) {
  (void)state;
  return set_up(8192, 64, true, 1);
}

int direct_set_up_paths(void **state) {
  (void)state;
  return set_up(8192, 64, false, 2);
}

int direct_set_up_large(void **state) {
  (void)state;
  return set_up(32768, 32768, false, 1);
}

int direct_set_up_large_checked(void **state) {
  (void)state;
  return set_up(32768, 32768, true, 1);
}

int direct_tear_down(void **state) {
  (void)state;
  free(direct_ends[0]);
  free(direct_ends[1]);
  return 0;
}

int direct_deliver(enum link_role from, unsigned lane, const struct link_frame *frame) {
  struct link *to = direct_ends[from == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER];
  struct wire_header header;
  int error = wire_header_decode(frame->header, &header);
  if (!error) {
    error = link_frame_received(to, lane, &header, direct_now_ns);
  }
  if (!error && wire_stream_bytes(&header) > 0) {
    memcpy(link_receive_buffer(to, lane), frame->payload, frame->length);
  } else if (!error) {
    assert_null(link_receive_buffer(to, lane));
  }
  return error ? error : link_frame_completed(to, lane, direct_now_ns);
}

void direct_find_frame(enum link_role from, unsigned lane, enum wire_type type,
                       struct link_frame *frame) {
  while (next_frame(direct_ends[from], lane, frame, direct_now_ns)) {
    link_frame_written(direct_ends[from], lane, direct_now_ns);
    if (frame->header[1] == type) {
      return;
    }
    assert_int_equal(direct_deliver(from, lane, frame), 0);
  }
  fail_msg("no frame of type %d", type);
}

void direct_pass(enum link_role from, unsigned lane, enum wire_type type) {
  struct link_frame frame;
  direct_find_frame(from, lane, type, &frame);
  assert_int_equal(direct_deliver(from, lane, &frame), 0);
}

void direct_send(size_t bytes) {
  struct link *sender = direct_ends[LINK_SENDER];
  assert_int_equal(link_send_posted(sender, direct_sent, bytes, direct_sent, direct_now_ns), 0);
}

void direct_receive(const struct wire_remote_buffer *given) {
  struct link *receiver = direct_ends[LINK_RECEIVER];
  assert_int_equal(
      link_receive_posted(receiver, direct_received, DIRECT_BYTES, given, direct_now_ns), 0);
}

void direct_post_bytes(size_t bytes, const struct wire_remote_buffer *given) {
  direct_send(bytes);
  direct_pass(LINK_SENDER, 0, WIRE_REQUEST);
  direct_receive(given);
  direct_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
}

void direct_post_both(const struct wire_remote_buffer *given) {
  direct_post_bytes(DIRECT_BYTES, given);
}

void direct_fill_words(void) {
  for (size_t at = 0; at + 8 <= DIRECT_BYTES; at += 8) {
    bytes_put_le32(direct_sent + at, (uint32_t)at);
    bytes_put_le32(direct_sent + at + 4, 7);
  }
}
