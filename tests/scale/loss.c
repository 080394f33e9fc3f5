/* SPDX-License-Identifier: Apache-2.0 */
/* See loss.h. */
#include "tests/scale/loss.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "tests/scale/network.h"

#define PACKET_BYTES 1448u      /* of an MTU of 1500, with timestamps */
#define TIMER_LEAST_NS 2000000u /* TCP_TIMEOUT_MIN_US */
#define TIMEOUT_NS 200000000u   /* TCP_RTO_MIN */
#define BACKOFF_MOST 9u         /* 102 s; TCP_RTO_MAX is 120 */
#define REORDERING 3u           /* TCP_FASTRETRANS_THRESH */
#define REORDERING_RTT_PARTS 4u /* how much later is later: tcp_rack_reo_wnd */

uint64_t loss_packets(uint64_t bytes) {
  return (bytes + PACKET_BYTES - 1) / PACKET_BYTES;
}

static struct network *network_of(const struct stream *stream) {
  return stream->path->nic->network;
}

static uint64_t now_of(const struct stream *stream) {
  return network_of(stream)->events->now_ns;
}

static uint64_t latency_of(const struct stream *stream) {
  return network_of(stream)->config.latency_ns;
}

static bool is_lost(const struct stream *stream) {
  struct network *network = network_of(stream);
  return stream->path->nic->is_down ||
         (network->loss_below > 0 && random_next(&network->loss_random) < network->loss_below);
}

/* ---- what is missing ---- */

static void hole_add(struct stream *stream, uint64_t begin, uint64_t end) {
  struct loss *loss = &stream->loss;
  if (loss->count == loss->capacity) {
    loss->capacity = loss->capacity > 0 ? 2 * loss->capacity : 4;
    loss->holes = realloc(loss->holes, loss->capacity * sizeof *loss->holes);
    if (!loss->holes) {
      perror("scale");
      exit(1);
    }
  }
  loss->holes[loss->count++] = (struct loss_hole){ .begin = begin,
                                                   .end = end,
                                                   .sent_ns = now_of(stream),
                                                   .heard_ns = EVENTS_NEVER,
                                                   .again_ns = EVENTS_NEVER };
}

/* An event's argument: the stream's epoch, and where the hole begins. Of those that are open at a
 * time no two are 4 GiB apart. */
static uint64_t hole_name(const struct stream *stream, const struct loss_hole *hole) {
  return (uint64_t)stream->epoch << 32 | (uint32_t)hole->begin;
}

static struct loss_hole *hole_of(struct stream *stream, uint64_t name) {
  struct loss *loss = &stream->loss;
  for (unsigned i = 0; i < loss->count; i++) {
    if (hole_name(stream, &loss->holes[i]) == name) {
      return &loss->holes[i];
    }
  }
  return NULL;
}

bool loss_is_repairing(const struct stream *stream) {
  const struct loss *loss = &stream->loss;
  bool is_known = loss->backoff > 0;
  for (unsigned i = 0; i < loss->count; i++) {
    is_known |= loss->holes[i].heard_ns <= now_of(stream);
  }
  return is_known;
}

static void deliver(struct stream *stream);

/* ---- the sender's timer ---- */

static void timer_looks(void *owner, uint64_t epoch);

/* Several are on the way, and nothing was heard of any. */
static bool may_probe(const struct stream *stream) {
  const struct loss *loss = &stream->loss;
  bool may = !loss->has_probed && network_on_way(stream) > PACKET_BYTES;
  for (unsigned i = 0; i < loss->count; i++) {
    may &= loss->holes[i].heard_ns == EVENTS_NEVER;
  }
  return may;
}

static void timer_set(struct stream *stream, uint64_t from_ns) {
  struct loss *loss = &stream->loss;
  uint64_t rtt_ns = 2 * latency_of(stream);
  loss->timer_ns = from_ns + (may_probe(stream) ? 2 * rtt_ns + TIMER_LEAST_NS
                                                : rtt_ns + ((uint64_t)TIMEOUT_NS << loss->backoff));
  if (loss->count > 0 && loss->timer_ns < loss->event_ns) {
    loss->event_ns = loss->timer_ns;
    events_add(network_of(stream)->events, loss->event_ns, timer_looks, stream, stream->epoch);
  }
}

static void hole_filled(void *owner, uint64_t name);

static void send_again(struct stream *stream, struct loss_hole *hole) {
  hole->sent_ns = now_of(stream);
  hole->again_ns = EVENTS_NEVER;
  hole->behind = 0;
  hole->is_on_way = !is_lost(stream);
  stream->loss.retransmits++;
  if (hole->is_on_way) {
    events_add(network_of(stream)->events, now_of(stream) + latency_of(stream), hole_filled, stream,
               hole_name(stream, hole));
  }
}

/* The last one as a probe; or all of them. */
static void time_is_up(struct stream *stream) {
  struct loss *loss = &stream->loss;
  bool is_probe = may_probe(stream);
  loss->has_probed = true;
  if (!is_probe) {
    loss->backoff += loss->backoff < BACKOFF_MOST;
  }
  for (unsigned i = is_probe ? loss->count - 1 : 0; i < loss->count; i++) {
    if (!loss->holes[i].is_on_way) {
      send_again(stream, &loss->holes[i]);
    }
  }
  timer_set(stream, now_of(stream));
}

static void timer_looks(void *owner, uint64_t epoch) {
  struct stream *stream = owner;
  struct loss *loss = &stream->loss;
  if (stream->epoch != epoch || loss->event_ns != now_of(stream)) {
    return;
  }
  loss->event_ns = EVENTS_NEVER;
  if (loss->count > 0 && loss->timer_ns > now_of(stream)) {
    loss->event_ns = loss->timer_ns;
    events_add(network_of(stream)->events, loss->event_ns, timer_looks, stream, epoch);
  } else if (loss->count > 0) {
    time_is_up(stream);
  }
}

/* ---- what arrives behind a hole ---- */

static void time_to_resend(void *owner, uint64_t name) {
  struct stream *stream = owner;
  struct loss_hole *hole = stream->epoch == name >> 32 ? hole_of(stream, name) : NULL;
  if (hole && !hole->is_on_way && hole->again_ns == now_of(stream)) {
    send_again(stream, hole);
    timer_set(stream, now_of(stream));
  }
}

/* The sender will hear of packets behind the hole; is_later: than by reordering. */
static void hole_passed(struct stream *stream, struct loss_hole *hole, uint64_t packets,
                        bool is_later) {
  if (packets == 0 || hole->is_on_way) {
    return;
  }
  hole->behind += (unsigned)packets;
  uint64_t heard_ns = now_of(stream) + latency_of(stream);
  hole->heard_ns = heard_ns < hole->heard_ns ? heard_ns : hole->heard_ns;
  uint64_t again_ns = heard_ns + (hole->behind >= REORDERING || is_later ? 0 : TIMER_LEAST_NS);
  if (again_ns < hole->again_ns) {
    hole->again_ns = again_ns;
    events_add(network_of(stream)->events, again_ns, time_to_resend, stream,
               hole_name(stream, hole));
  }
  timer_set(stream, heard_ns);
}

static bool was_sent_before(const struct stream *stream, const struct loss_hole *hole,
                            uint64_t sent_ns) {
  return hole->sent_ns + 2 * latency_of(stream) / REORDERING_RTT_PARTS < sent_ns;
}

static void hole_filled(void *owner, uint64_t name) {
  struct stream *stream = owner;
  struct loss *loss = &stream->loss;
  struct loss_hole *hole = stream->epoch == name >> 32 ? hole_of(stream, name) : NULL;
  if (!hole) {
    return;
  }
  uint64_t sent_ns = hole->sent_ns;
  unsigned at = (unsigned)(hole - loss->holes);
  memmove(hole, hole + 1, (--loss->count - at) * sizeof *hole);
  for (unsigned i = 0; i < loss->count; i++) {
    if (loss->holes[i].sent_ns <= sent_ns) {
      hole_passed(stream, &loss->holes[i], 1, was_sent_before(stream, &loss->holes[i], sent_ns));
    }
  }
  deliver(stream);
}

/* In order, as far as nothing is missing. */
static void deliver(struct stream *stream) {
  struct loss *loss = &stream->loss;
  uint64_t bytes = loss->passed_bytes;
  if (loss->count > 0 && loss->holes[0].begin < bytes) {
    bytes = loss->holes[0].begin;
  }
  if (bytes == stream->arrived_bytes) {
    return;
  }
  stream->loss.backoff = 0;
  stream->loss.has_probed = false;
  network_deliver(stream, bytes); /* which may close it */
  if (stream->path && loss->count > 0) {
    timer_set(stream, now_of(stream) + latency_of(stream));
  }
}

/* ---- the stream ---- */

void loss_begin(struct stream *stream) {
  stream->loss = (struct loss){ .event_ns = EVENTS_NEVER };
}

void loss_end(struct stream *stream) {
  free(stream->loss.holes);
  stream->loss = (struct loss){ .event_ns = EVENTS_NEVER };
}

static bool is_aimed_at(struct stream *stream) {
  struct loss_aim *aim = stream->aim;
  if (aim->packets > 0 && --aim->packets == 0) {
    aim->in_danger = LOSS_IN_DANGER;
    return true;
  }
  if (aim->in_danger == 0) {
    return false;
  }
  aim->in_danger--;
  return is_lost(stream);
}

void loss_sent(struct stream *stream, uint64_t bytes) {
  const struct network *network = network_of(stream);
  if (network->config.loss == 0) {
    return;
  }
  uint64_t end = stream->written_bytes - stream->queued_bytes;
  for (uint64_t at = end - bytes; at < end; at += PACKET_BYTES) {
    if (network->is_aimed ? is_aimed_at(stream) : is_lost(stream)) {
      hole_add(stream, at, at + PACKET_BYTES < end ? at + PACKET_BYTES : end);
    }
  }
  if (stream->loss.count > 0) {
    timer_set(stream, now_of(stream));
  }
}

void loss_arrived(struct stream *stream, uint64_t bytes) {
  struct loss *loss = &stream->loss;
  uint64_t begin = loss->passed_bytes, sent_ns = now_of(stream) - latency_of(stream);
  uint64_t there = loss_packets(bytes), lost = 0;
  loss->passed_bytes += bytes;
  for (unsigned i = loss->count; i-- > 0;) { /* the last one first: what is behind it is known */
    struct loss_hole *hole = &loss->holes[i];
    if (hole->begin >= loss->passed_bytes) {
      continue;
    }
    if (hole->begin >= begin) {
      uint64_t behind = loss_packets(loss->passed_bytes - hole->end);
      hole_passed(stream, hole, behind - lost, false);
      lost++;
    } else if (hole->sent_ns <= sent_ns) {
      hole_passed(stream, hole, there - lost, was_sent_before(stream, hole, sent_ns));
    }
  }
  deliver(stream);
}
