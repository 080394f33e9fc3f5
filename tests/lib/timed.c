/* SPDX-License-Identifier: Apache-2.0 */
/* See timed.h. */
#include "tests/lib/timed.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

struct timed timed;

enum link_role timed_other(enum link_role role) {
  return role == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER;
}

void timed_lane_up(unsigned lane, uint32_t epoch) {
  assert_true(link_lane_fence(timed.links[LINK_RECEIVER], lane, epoch, timed.now_ns));
  link_lane_up(timed.links[LINK_RECEIVER], lane, epoch, timed.now_ns);
  link_lane_up(timed.links[LINK_SENDER], lane, epoch, timed.now_ns);
}

int timed_end(void **state) {
  free(timed.links[LINK_SENDER]);
  free(timed.links[LINK_RECEIVER]);
  coding_memory_free(&timed.memories[LINK_SENDER]);
  coding_memory_free(&timed.memories[LINK_RECEIVER]);
  memset(&timed, 0, sizeof timed);
  return 0;
}

void timed_begin_with(struct link_config config, unsigned lanes_up) {
  timed_end(NULL);
  for (size_t at = 0; at < TIMED_BULK; at++) {
    timed.out[at] = (uint8_t)(at * 31 + at / 251);
  }
  timed.now_ns = 1000000000;
  timed.can_dial = true;
  config.coding_memory = coding_memory_get;
  for (int role = 0; role < 2; role++) {
    config.role = (enum link_role)role;
    config.coding_owner = &timed.memories[role];
    timed.links[role] = link_init(calloc(1, link_memory_bytes(&config)), &config, timed.now_ns);
  }
  for (unsigned lane = 0; lane < lanes_up; lane++) {
    timed_lane_up(lane, 1);
  }
}

static void begin(unsigned lanes, unsigned lanes_up, uint64_t timeout_ns) {
  timed_begin_with(
      (struct link_config){
          .policy = { .lanes = lanes, .chunk_bytes = 4096 },
          .eager_bytes = 64,
          .eager_slots = 8,
          .timeout_ns = timeout_ns,
          .stopped_timeout_ns = TIMED_STOPPED_TIMEOUT,
          .seed = 1,
      },
      lanes_up);
}

void timed_begin(unsigned lanes_up) {
  begin(TIMED_LANES, lanes_up, TIMED_TIMEOUT);
}

void timed_begin_patient(unsigned lanes_up, uint64_t timeout_ns) {
  begin(lanes_up, lanes_up, timeout_ns);
}

bool timed_take(enum link_role from, unsigned lane, struct link_frame *frame) {
  if (!next_frame(timed.links[from], lane, frame, timed.now_ns)) {
    return false;
  }
  if (frame->wants_coding) {
    struct policy_encoded encoded = link_encode(timed.links[from], lane, frame);
    encoded.took_ns = TIMED_CODING;
    link_encoded(timed.links[from], &encoded);
    assert_false(frame->wants_coding);
  }
  return true;
}

int timed_deliver(enum link_role to, unsigned lane, const struct link_frame *frame) {
  struct wire_header header;
  assert_int_equal(wire_header_decode(frame->header, &header), 0);
  int error = link_frame_received(timed.links[to], lane, &header, timed.now_ns);
  if (error) {
    return error;
  }
  if (frame->length > 0) {
    memcpy(link_receive_buffer(timed.links[to], lane), frame->payload, frame->length);
  }
  return link_frame_completed(timed.links[to], lane, timed.now_ns);
}

bool timed_carry(enum link_role from) {
  int picked;
  bool has_carried = false;
  while (!timed.is_stopped[from] && !timed.is_stopped[timed_other(from)] &&
         (picked = pick_lane(timed.links[from], UINT64_MAX)) >= 0) {
    struct link_frame frame;
    struct wire_header header;
    assert_true(timed_take(from, (unsigned)picked, &frame));
    assert_int_equal(wire_header_decode(frame.header, &header), 0);
    timed.pinged[from] |= header.type == WIRE_PING ? 1ull << picked : 0;
    if (timed.largest > 0 && frame.length > timed.largest) {
      timed.black[from] |= 1ull << picked; /* a stream: until the lane reconnects */
    }
    if (!timed.is_mute[from] && (timed.black[from] >> picked & 1) == 0) {
      timed_deliver(timed_other(from), (unsigned)picked, &frame);
    }
    link_frame_taken(timed.links[from], (unsigned)picked, timed.now_ns);
    has_carried = true;
  }
  return has_carried;
}

static void take_orders(enum link_role role) {
  struct link_order order;
  while (!timed.is_stopped[role] && link_next_order(timed.links[role], &order, timed.now_ns)) {
    if (order.kind != LINK_ORDER_OPEN) {
      continue; /* whoever is on the other end of a black hole does not notice a CLOSE */
    }
    if (timed.can_dial && !timed.is_stopped[LINK_RECEIVER]) {
      timed.black[0] &= ~(1ull << order.lane);
      timed.black[1] &= ~(1ull << order.lane);
      timed_lane_up(order.lane, order.epoch);
    } else {
      link_lane_lost(timed.links[role], order.lane, order.epoch, timed.now_ns);
    }
  }
}

void timed_settle(void) {
  uint64_t completion;
  do {
    take_orders(LINK_SENDER);
    take_orders(LINK_RECEIVER);
    for (int role = 0; role < 2; role++) {
      while (link_next_completion(timed.links[role], &completion)) {
        timed.completed[role]++;
      }
      link_check(timed.links[role]);
    }
  } while (timed_carry(LINK_SENDER) + timed_carry(LINK_RECEIVER) > 0);
}

static void measure_lanes(struct link *link) {
  const struct policy_transport all = { .has_unacked = false };
  uint64_t wanted = timed.has_kernel_all ? link_wants_measured(link, timed.now_ns) : 0;
  for (; wanted != 0; wanted &= wanted - 1) {
    link_lane_measured(link, (unsigned)__builtin_ctzll(wanted), &all, timed.now_ns);
  }
}

void timed_pass(uint64_t for_ns) {
  uint64_t end_ns = timed.now_ns + for_ns;
  timed_settle();
  while (timed.now_ns < end_ns) {
    uint64_t next_ns = end_ns;
    for (int role = 0; role < 2; role++) {
      uint64_t deadline_ns =
          timed.is_stopped[role] ? end_ns : link_next_deadline_ns(timed.links[role]);
      next_ns = deadline_ns < next_ns ? deadline_ns : next_ns;
    }
    timed.now_ns = next_ns > timed.now_ns ? next_ns : timed.now_ns + 1;
    for (int role = 0; role < 2; role++) {
      if (!timed.is_stopped[role]) {
        if (link_wants_evidence(timed.links[role], timed.now_ns) &&
            timed.does_host_answer[timed_other((enum link_role)role)]) {
          link_host_answered(timed.links[role], timed.now_ns, timed.now_ns);
        }
        link_time_passed(timed.links[role], timed.now_ns);
        measure_lanes(timed.links[role]);
      }
    }
    timed_settle();
  }
}

void timed_post(size_t bytes) {
  assert_int_equal(
      link_receive_posted(timed.links[LINK_RECEIVER], timed.in, bytes, NULL, timed.now_ns), 0);
  assert_int_equal(link_send_posted(timed.links[LINK_SENDER], timed.out, bytes, NULL, timed.now_ns),
                   0);
}

struct link_view timed_view(enum link_role role) {
  struct link_view view;
  link_view(timed.links[role], &view);
  return view;
}
