/* SPDX-License-Identifier: Apache-2.0 */
/* pipe: sockets of the simulated network: bytes in order, with a rate, a latency, and an end. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

#define SEGMENT_BYTES 16384u /* at most so many bytes travel as one */

static void pipe_open(struct world *world, struct pipe *pipe, uint64_t speed_percent) {
  pipe->capacity = world->buffer_bytes;
  pipe->ring = malloc(pipe->capacity);
  pipe->counted_ns = world->now_ns;
  pipe->bytes_per_second = world->bytes_per_second * speed_percent / 100;
  pipe->latency_ns = world_between(world, world->latency_ns / 2, world->latency_ns * 2);
}

struct socket *socket_open(struct world *world, unsigned lane, uint32_t epoch) {
  struct socket *socket = calloc(1, sizeof *socket);
  socket->lane = lane;
  socket->epoch = epoch;
  socket->is_rdma = world_chance(world, world->rdma_percent);
  for (int side = 0; side < 2; side++) {
    pipe_open(world, &socket->pipes[side], world->lane_speed_percent[lane]);
    socket->broken_ns[side] = WORLD_NEVER;
    socket->is_held[side] = true;
  }
  return socket;
}

static struct placement *placement_at(struct socket *socket, unsigned i) {
  return &socket->placements[(socket->first_placement + i) % WORLD_PLACEMENTS];
}

static struct placement *placement_take(struct socket *socket) {
  struct placement *placement = placement_at(socket, 0);
  socket->first_placement = (socket->first_placement + 1) % WORLD_PLACEMENTS;
  socket->placement_count--;
  return placement;
}

void socket_place(struct socket *socket, const struct link_frame *frame) {
  struct placement *placement = placement_at(socket, socket->placement_count++);
  *placement = (struct placement){
    .end = socket->pipes[SENDER].written + WIRE_HEADER_BYTES,
    .from = frame->payload,
    .to = (uint8_t *)(uintptr_t)(frame->remote_buffer->address + frame->offset),
    .length = frame->length,
  };
}

/* What a NIC does by itself. A packet that was lost is read from memory once more. */
static void socket_place_some(struct world *world, struct socket *socket) {
  const struct pipe *pipe = &socket->pipes[SENDER];
  for (unsigned i = 0; i < socket->placement_count; i++) {
    struct placement *placement = placement_at(socket, i);
    if (placement->taken == NULL && placement->end <= pipe->departed) {
      users_check_lent(world, SENDER, placement->from, placement->length);
      placement->taken = malloc(placement->length);
      memcpy(placement->taken, placement->from, placement->length);
    }
  }
  while (socket->placement_count > 0 && placement_at(socket, 0)->end <= pipe->arrived) {
    struct placement *placement = placement_take(socket);
    const uint8_t *from = placement->taken;
    if (socket->is_held[SENDER] && world_chance(world, 50)) {
      users_check_lent(world, SENDER, placement->from, placement->length);
      from = placement->from;
    }
    if (socket->is_held[RECEIVER]) {
      users_check_lent(world, RECEIVER, placement->to, placement->length);
      memcpy(placement->to, from, placement->length);
      if (world->may_corrupt && world_chance(world, 2)) {
        placement->to[world_between(world, 0, placement->length - 1)] ^= 4;
      }
    }
    free(placement->taken);
  }
}

void socket_close(struct world *world, struct socket *socket, enum side side) {
  enum side other = side == SENDER ? RECEIVER : SENDER;
  socket->is_held[side] = false;
  if (!socket->is_held[other]) {
    while (socket->placement_count > 0) {
      free(placement_take(socket)->taken);
    }
    free(socket->pipes[0].ring);
    free(socket->pipes[1].ring);
    free(socket);
    return;
  }
  /* What was written may still arrive, or be overtaken by the reset. */
  socket->pipes[side].is_cut |= world_chance(world, 50) || socket->is_rdma;
  uint64_t notice_ns = world->now_ns + world_between(world, 0, 4 * world->latency_ns);
  if (notice_ns < socket->broken_ns[other]) {
    socket->broken_ns[other] = notice_ns;
  }
}

uint32_t pipe_space(const struct pipe *pipe) {
  return pipe->capacity - (uint32_t)(pipe->written - pipe->read);
}

/* The bytes from `at` to the ring's end, of `count`. */
static uint32_t ring_first(const struct pipe *pipe, uint64_t at, uint32_t count) {
  uint32_t left = pipe->capacity - (uint32_t)(at & (pipe->capacity - 1));
  return count < left ? count : left;
}

void pipe_write(struct pipe *pipe, const void *bytes, uint32_t count) {
  uint32_t first = ring_first(pipe, pipe->written, count);
  memcpy(pipe->ring + (pipe->written & (pipe->capacity - 1)), bytes, first);
  memcpy(pipe->ring, (const uint8_t *)bytes + first, count - first);
  pipe->written += count;
}

uint32_t pipe_readable(const struct pipe *pipe) {
  return (uint32_t)(pipe->arrived - pipe->read);
}

void pipe_read(struct pipe *pipe, void *bytes, uint32_t count) {
  uint32_t first = ring_first(pipe, pipe->read, count);
  memcpy(bytes, pipe->ring + (pipe->read & (pipe->capacity - 1)), first);
  memcpy((uint8_t *)bytes + first, pipe->ring, count - first);
  pipe->read += count;
}

/* Nothing has changed since it was counted last. A buffer that is full of bytes that arrived is the
 * reader's: a kernel would have others waiting for it to have room. */
static void pipe_count(struct pipe *pipe, uint64_t now_ns) {
  uint64_t passed_ns = now_ns - pipe->counted_ns;
  bool is_peer = pipe->arrived == pipe->written && pipe_space(pipe) == 0;
  pipe->busy_ns += is_peer || pipe->arrived < pipe->written ? passed_ns : 0;
  pipe->peer_ns += is_peer ? passed_ns : 0;
  pipe->counted_ns = now_ns;
}

struct policy_transport socket_measure(const struct socket *socket, enum side side) {
  const struct pipe *pipe = &socket->pipes[side];
  bool is_all_there = pipe->arrived == pipe->written;
  bool is_lost = pipe->lost_until_ns > pipe->counted_ns;
  return (struct policy_transport){
    .busy_us = pipe->busy_ns / 1000,
    .peer_us = pipe->peer_ns / 1000,
    .is_app_limited = pipe->is_app_limited,
    .has_unacked = !is_all_there,
    .acked_bytes = pipe->arrived,
    .rtt_min_us = 2 * pipe->latency_ns / 1000,
    .retransmits = pipe->losses,
    .is_repairing = is_lost,
  };
}

void pipe_lose_tail(struct pipe *pipe, uint64_t until_ns, bool is_lost_again) {
  pipe->is_lost_again = is_lost_again;
  pipe->departed = pipe->arrived;
  pipe->segment_count = 0;
  pipe->lost_end = pipe->written;
  pipe->lost_until_ns = until_ns;
  pipe->losses++;
}

static bool pipe_waits_for_timeout(const struct pipe *pipe, uint64_t now_ns) {
  return pipe->departed < pipe->written &&
         (pipe->is_lost_again || pipe->written == pipe->lost_end) && now_ns < pipe->lost_until_ns;
}

static uint64_t pipe_advance(struct pipe *pipe, uint64_t now_ns) {
  while (pipe->segment_count > 0 && pipe->segments[pipe->first_segment].arrival_ns <= now_ns) {
    pipe->arrived = pipe->segments[pipe->first_segment].end;
    pipe->is_app_limited = pipe->segments[pipe->first_segment].is_app_limited;
    pipe->first_segment = (pipe->first_segment + 1) % WORLD_SEGMENTS;
    pipe->segment_count--;
  }
  bool waits = pipe_waits_for_timeout(pipe, now_ns);
  bool is_held = pipe->is_cut || waits;
  while (!is_held && pipe->departed < pipe->written && pipe->free_ns <= now_ns &&
         pipe->segment_count < WORLD_SEGMENTS) {
    uint64_t bytes = pipe->written - pipe->departed;
    bytes = bytes < SEGMENT_BYTES ? bytes : SEGMENT_BYTES;
    pipe->free_ns = now_ns + bytes * 1000000000ull / pipe->bytes_per_second + 1;
    pipe->departed += bytes;
    unsigned last = (pipe->first_segment + pipe->segment_count++) % WORLD_SEGMENTS;
    pipe->segments[last] = (struct segment){
      .end = pipe->departed,
      .arrival_ns = pipe->free_ns + pipe->latency_ns,
      .is_app_limited = pipe->departed == pipe->written && pipe_space(pipe) > 0,
    };
  }
  uint64_t next_ns = WORLD_NEVER;
  if (pipe->segment_count > 0) {
    next_ns = pipe->segments[pipe->first_segment].arrival_ns;
  }
  if (!is_held && pipe->departed < pipe->written && pipe->free_ns > now_ns &&
      pipe->free_ns < next_ns) {
    next_ns = pipe->free_ns;
  }
  if (!pipe->is_cut && waits && pipe->lost_until_ns < next_ns) {
    next_ns = pipe->lost_until_ns;
  }
  return next_ns;
}

uint64_t socket_advance(struct world *world, struct socket *socket) {
  pipe_count(&socket->pipes[SENDER], world->now_ns);
  if (world->now_ns < socket->stalled_until_ns) {
    return socket->stalled_until_ns;
  }
  uint64_t there_ns = pipe_advance(&socket->pipes[SENDER], world->now_ns);
  uint64_t back_ns = pipe_advance(&socket->pipes[RECEIVER], world->now_ns);
  socket_place_some(world, socket);
  return there_ns < back_ns ? there_ns : back_ns;
}
