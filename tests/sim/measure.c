/* SPDX-License-Identifier: Apache-2.0 */
/* measure: what the protocol core costs by itself: two links, frames handed over by function call,
 * so that all there is are the links' own cycles and one copy of the payload. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/sim/world.h"

#define LANES 8u

struct pair {
  struct link *sender, *receiver;
  uint64_t now_ns, frames;
};

/* All that the link wants written goes to its peer; *step is the last answer. */
static void hand_over(struct pair *pair, struct link *from, struct link *to,
                      struct link_step *step) {
  enum link_step_kind kind;
  struct link_ready ready = { .writable = UINT64_MAX, .taken = UINT64_MAX };
  while ((kind = link_step(from, &ready, pair->now_ns, step)) != LINK_STEP_WAIT) {
    struct wire_header header;
    const struct link_frame *frame = &step->frame;
    if (kind == LINK_STEP_ORDER) {
      continue;
    }
    if (wire_header_decode(frame->header, &header) != 0 ||
        link_frame_received(to, step->lane, &header, pair->now_ns) != 0) {
      abort();
    }
    if (frame->length > 0) {
      memcpy(link_receive_buffer(to, step->lane), frame->payload, frame->length);
    }
    if (link_frame_completed(to, step->lane, pair->now_ns) != 0) {
      abort();
    }
    pair->frames++;
  }
}

static void measure(const char *name, size_t bytes, unsigned messages, bool wants_checksums) {
  struct link_config config = {
    .role = LINK_SENDER,
    .policy = { .lanes = LANES, .chunk_bytes = 128 << 10 },
    .eager_bytes = 16 << 10,
    .eager_slots = 16,
    .timeout_ns = 1ull << 40,
    .wants_checksums = wants_checksums,
  };
  struct pair pair = { .now_ns = 1 };
  pair.sender = link_init(calloc(1, link_memory_bytes(&config)), &config, 0);
  config.role = LINK_RECEIVER;
  pair.receiver = link_init(calloc(1, link_memory_bytes(&config)), &config, 0);
  for (unsigned lane = 0; lane < LANES; lane++) {
    link_lane_up(pair.receiver, lane, 1, 0, 0);
    link_lane_up(pair.sender, lane, 1, 0, 0);
  }
  uint8_t *out = calloc(1, bytes), *in = calloc(1, bytes);
  uint64_t start_ns = clock_now_ns();
  for (unsigned i = 0; i < messages; i++) {
    pair.now_ns += 2000;
    if (link_receive_posted(pair.receiver, in, bytes, NULL, pair.now_ns) != 0 ||
        link_send_posted(pair.sender, out, bytes, NULL, pair.now_ns) != 0) {
      abort();
    }
    unsigned completed = 0;
    while (completed < 2) { /* more than once if the sender waits for credit */
      struct link_step step;
      hand_over(&pair, pair.sender, pair.receiver, &step);
      completed += step.completed;
      hand_over(&pair, pair.receiver, pair.sender, &step);
      completed += step.completed;
    }
  }
  double elapsed_ns = (double)(clock_now_ns() - start_ns);
  printf("%-28s %8.0f ns per message, %5.2f frames, %6.0f ns per frame\n", name,
         elapsed_ns / messages, (double)pair.frames / messages, elapsed_ns / (double)pair.frames);
  free(out);
  free(in);
  free(pair.sender);
  free(pair.receiver);
}

void measure_run(void) {
  measure("8 B", 8, 2000000, false);
  measure("8 KiB", 8 << 10, 200000, false);
  measure("128 KiB", 128 << 10, 20000, false);
  measure("128 KiB, checksums", 128 << 10, 5000, true);
  measure("1 MiB", 1 << 20, 4000, false);
  measure("4 MiB", 4 << 20, 1000, false);
}
