/* SPDX-License-Identifier: Apache-2.0 */
/* owner: what the engine and its lanes do for a link, on simulated sockets: parse frames from
 * pieces, write them in pieces, order dials, close. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/hash.h"
#include "tests/lib/link_parts.h"
#include "tests/sim/world.h"

#define LAST_WORD_NS 1000000000ull /* as the engine has it */

void port_drop(struct world *world, enum side side, unsigned lane) {
  struct port *port = &world->ends[side].ports[lane];
  if (port->socket != NULL) {
    socket_close(world, port->socket, side);
  }
  *port = (struct port){ 0 };
}

static void port_lose(struct world *world, enum side side, unsigned lane, const char *why) {
  struct socket *socket = world->ends[side].ports[lane].socket;
  uint32_t epoch = socket->epoch;
  world_trace(world, "%s loses lane %u epoch %u: %s", side == SENDER ? "sender" : "receiver", lane,
              epoch, why);
  port_drop(world, side, lane);
  link_lane_lost(world->ends[side].link, lane, epoch, world_clock(world));
}

/* ---- orders ---- */

static void owner_carry_out(struct world *world, enum side side, const struct link_order *order) {
  const struct socket *socket = world->ends[side].ports[order->lane].socket;
  if (order->kind == LINK_ORDER_OPEN) {
    if (side == RECEIVER) {
      world_fail(world, "the receiver orders a dial");
    }
    world_trace(world, "sender dials lane %u epoch %u", order->lane, order->epoch);
    dials_start(world, order->lane, order->epoch);
  } else if (order->kind == LINK_ORDER_MOVE) {
    world->ends[side].ports[order->lane].frame.payload = order->payload;
    world->totals->moved++;
  } else if (socket != NULL && socket->epoch <= order->epoch) {
    world_trace(world, "%s closes lane %u epoch %u by order: %s",
                side == SENDER ? "sender" : "receiver", order->lane, socket->epoch,
                link_close_reason_text(order->reason));
    port_drop(world, side, order->lane);
  }
}

static uint64_t owner_taken(const struct world *world, enum side side) {
  uint64_t taken = 0;
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    const struct port *port = &world->ends[side].ports[lane];
    taken |= port->socket != NULL && !port->has_frame ? 1ull << lane : 0;
  }
  return taken;
}

/* One answer of the link is acted on, but for frames. */
static enum link_step_kind owner_step(struct world *world, enum side side, uint64_t writable,
                                      struct link_step *step) {
  struct end *end = &world->ends[side];
  struct link_ready ready = { writable, owner_taken(world, side) };
  enum link_step_kind kind = link_step(end->link, &ready, world_clock(world), step);
  if (kind == LINK_STEP_ORDER) {
    owner_carry_out(world, side, &step->order);
  } else if (kind == LINK_STEP_WAIT) {
    users_completed(world, side);
    assert(step->deadline_ns >= end->link->now_ns);
    end->deadline_ns = step->deadline_ns;
  }
  return kind;
}

static void owner_take_orders(struct world *world, enum side side) {
  struct link_step step;
  while (owner_step(world, side, 0, &step) != LINK_STEP_WAIT) {
  }
}

/* ---- reading ---- */

/* A negative result of the link closes the lane. Honest peers on sound lanes never break rules. */
static void port_refused(struct world *world, enum side side, unsigned lane, int error) {
  bool has_no_memory = error == -ENOMEM && (world->ends[side].coding.refused >> lane & 1) != 0;
  world->raw_lanes |= has_no_memory ? 1ull << lane : 0;
  if (error != -ESTALE && !has_no_memory &&
      !((error == -EPROTO || error == -EBADMSG) && world->may_corrupt)) {
    world_fail(world, "%s refuses a frame on lane %u with %s",
               side == SENDER ? "sender" : "receiver", lane, strerror(-error));
  }
  port_lose(world, side, lane, strerror(-error));
}

static int port_read_header(struct world *world, enum side side, unsigned lane, struct pipe *pipe,
                            uint32_t most) {
  struct port *port = &world->ends[side].ports[lane];
  uint32_t count = WIRE_HEADER_BYTES - port->header_got;
  count = count < most ? count : most;
  pipe_read(pipe, port->header + port->header_got, count);
  port->header_got += count;
  if (port->header_got < WIRE_HEADER_BYTES) {
    return 0;
  }
  port->header_got = port->payload_got = 0;
  int error = wire_header_decode(port->header, &port->incoming);
  if (error == 0) {
    error = link_frame_received(world->ends[side].link, lane, &port->incoming, world_clock(world));
  }
  port->has_header = error == 0;
  return error;
}

static int port_read_payload(struct world *world, enum side side, unsigned lane, struct pipe *pipe,
                             uint32_t most) {
  struct port *port = &world->ends[side].ports[lane];
  uint8_t *buffer = link_receive_buffer(world->ends[side].link, lane);
  if (buffer == NULL) {
    return -ESTALE;
  }
  uint32_t count = wire_stream_bytes(&port->incoming) - port->payload_got;
  count = count < most ? count : most;
  pipe_read(pipe, buffer + port->payload_got, count);
  port->payload_got += count;
  link_bytes_arrived(world->ends[side].link, lane, world_clock(world));
  return 0;
}

static void port_read(struct world *world, enum side side, unsigned lane) {
  struct end *end = &world->ends[side];
  struct port *port = &end->ports[lane];
  while (port->socket != NULL && link_status(end->link) == 0) {
    struct pipe *pipe = &port->socket->pipes[side == SENDER ? RECEIVER : SENDER];
    uint32_t most = pipe_readable(pipe);
    if (most == 0 || world_chance(world, 1)) {
      return;
    }
    uint32_t piece = (uint32_t)world_between(world, 1, world->read_bytes);
    most = most < piece ? most : piece;
    int error = port->has_header ? port_read_payload(world, side, lane, pipe, most)
                                 : port_read_header(world, side, lane, pipe, most);
    if (error == 0 && port->has_header && port->payload_got == wire_stream_bytes(&port->incoming)) {
      port->has_header = false;
      error = link_frame_completed(end->link, lane, world_clock(world));
    }
    if (error != 0) {
      port_refused(world, side, lane, error);
    }
    users_completed(world, side);
    invariants_check(world);
  }
}

/* ---- writing ---- */

/* Old control frames come again: they must change nothing. BYE and ABORT are the last of
 * all. */
static void replay_remember(struct end *end, const struct link_frame *frame) {
  uint8_t type = frame->header[1];
  if (type != WIRE_WINDOW && type != WIRE_REQUEST && type != WIRE_CLOSED && type != WIRE_PING &&
      type != WIRE_PONG) {
    return;
  }
  struct replay *replay = &end->replays[end->replay_count++ % WORLD_REPLAYS];
  memcpy(replay->bytes, frame->header, WIRE_HEADER_BYTES);
  if (frame->length > 0) {
    memcpy(replay->bytes + WIRE_HEADER_BYTES, frame->payload, frame->length);
  }
  replay->length = WIRE_HEADER_BYTES + frame->length;
}

static void replay_write(struct world *world, struct end *end, struct pipe *pipe) {
  unsigned kept = end->replay_count < WORLD_REPLAYS ? end->replay_count : WORLD_REPLAYS;
  if (kept == 0 || !world_chance(world, world->replay_percent)) {
    return;
  }
  const struct replay *replay = &end->replays[world_between(world, 0, kept - 1)];
  if (pipe_space(pipe) >= replay->length) {
    pipe_write(pipe, replay->bytes, replay->length);
  }
}

static uint32_t frame_hash(const struct link_frame *frame) {
  return frame->length > 0 ? hash_crc32c(0, frame->payload, frame->length) : 0;
}

/* A lane that writes without copying tells the link some time later than the bytes travel; until
 * then the payload is lent. */
static void port_written(struct world *world, enum side side, unsigned lane) {
  struct port *port = &world->ends[side].ports[lane];
  if (frame_hash(&port->frame) != port->payload_hash) {
    world_fail(world, "the payload changed while lane %u was writing it", lane);
  }
  replay_remember(&world->ends[side], &port->frame);
  replay_write(world, &world->ends[side], &port->socket->pipes[side]);
  port->has_frame = false;
}

static bool port_has_put(const struct port *port) {
  return port->frame_put == WIRE_HEADER_BYTES + port->frame_bytes;
}

/* Writes as much of the port's frame as fits, or a part of that. */
static void port_write(struct world *world, enum side side, unsigned lane) {
  struct port *port = &world->ends[side].ports[lane];
  struct pipe *pipe = &port->socket->pipes[side];
  uint32_t space = pipe_space(pipe);
  if (world_chance(world, 10)) {
    space = (uint32_t)world_between(world, 0, space);
  }
  if (port->frame_put < WIRE_HEADER_BYTES) {
    uint32_t count = WIRE_HEADER_BYTES - port->frame_put;
    count = count < space ? count : space;
    pipe_write(pipe, port->frame.header + port->frame_put, count);
    port->frame_put += count;
    space -= count;
  }
  if (port->frame_put >= WIRE_HEADER_BYTES) {
    uint32_t put = port->frame_put - WIRE_HEADER_BYTES;
    uint32_t count = port->frame_bytes - put;
    count = count < space ? count : space;
    if (count > 0) {
      pipe_write(pipe, (const uint8_t *)port->frame.payload + put, count);
    }
    port->frame_put += count;
    if (port_has_put(port)) {
      port->written_ns = world->now_ns + world_between(world, 0, world->written_delay_ns);
    }
  }
}

static uint64_t owner_writable(const struct world *world, enum side side) {
  uint64_t writable = 0;
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    const struct port *port = &world->ends[side].ports[lane];
    if (port->socket != NULL && !port->has_frame && pipe_space(&port->socket->pipes[side]) > 0) {
      writable |= 1ull << lane;
    }
  }
  return writable;
}

static void port_encode(struct world *world, enum side side, unsigned lane,
                        struct link_frame *frame) {
  struct policy_encoded encoded = link_encode(world->ends[side].link, lane, frame);
  encoded.took_ns = world_between(world, 0, 20000);
  link_encoded(world->ends[side].link, &encoded);
}

static void port_begin(struct world *world, enum side side, unsigned lane,
                       struct link_frame *frame) {
  struct port *port = &world->ends[side].ports[lane];
  if (frame->wants_coding) {
    port_encode(world, side, lane, frame);
  }
  if (port->socket == NULL || port->has_frame) {
    world_fail(world, "picked lane %u cannot write", lane);
  }
  world->totals->frames[frame->header[1]]++;
  port->frame = *frame;
  port->has_frame = true;
  port->frame_put = 0;
  port->frame_bytes = port->frame.length;
  if (side == SENDER && world->now_ns < world->small_until_ns &&
      port->frame.length > WORLD_SMALL_BYTES) {
    port->socket->pipes[SENDER].is_cut = true; /* it is lost, and what follows it waits for it */
  }
  if (port->frame.remote_buffer != NULL && world_chance(world, 80)) {
    socket_place(port->socket, &port->frame);
    wire_header_place(port->frame.header);
    port->frame_bytes = 0;
    world->totals->placed++;
  }
  port->payload_hash = frame_hash(&port->frame);
  port_write(world, side, lane);
  if (port_has_put(port) && port->written_ns <= world->now_ns) {
    port_written(world, side, lane);
  }
}

static void owner_write(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    struct port *port = &end->ports[lane];
    if (port->has_frame && !port_has_put(port)) {
      port_write(world, side, lane);
    }
    if (port->has_frame && port_has_put(port) && port->written_ns <= world->now_ns) {
      port_written(world, side, lane);
    }
  }
  struct link_step step;
  enum link_step_kind kind;
  while ((kind = owner_step(world, side, owner_writable(world, side), &step)) != LINK_STEP_WAIT) {
    if (kind == LINK_STEP_WRITE) {
      port_begin(world, side, step.lane, &step.frame);
    }
  }
}

/* ---- all of it ---- */

static void owner_notice(struct world *world, enum side side) {
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    const struct socket *socket = world->ends[side].ports[lane].socket;
    if (socket != NULL && socket->broken_ns[side] <= world->now_ns) {
      port_lose(world, side, lane, "broken");
    }
  }
}

bool owner_is_stopped(const struct world *world, enum side side) {
  return world->now_ns < world->ends[side].stopped_until_ns;
}

/* Is it over for this side, with a failed link when its ABORT was written or cannot be? */
static bool owner_is_over(struct world *world, struct end *end) {
  if (end->is_detached && world->now_ns >= end->linger_ns) {
    return true;
  }
  if (!end->is_detached || !link_is_finished(end->link)) {
    return false;
  }
  if (link_status(end->link) != 0 && end->last_word_ns == 0) {
    end->last_word_ns = world->now_ns + LAST_WORD_NS;
  }
  return !link_has_last_word(end->link) || world->now_ns >= end->last_word_ns;
}

/* The peer's host answers on sockets that its process has open, whether it runs or not. */
static void owner_look_for_host(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    struct socket *socket = end->ports[lane].socket;
    if (socket != NULL && socket->is_held[side == SENDER ? RECEIVER : SENDER] &&
        !socket->pipes[SENDER].is_cut && !socket->pipes[RECEIVER].is_cut &&
        world->now_ns >= socket->stalled_until_ns) {
      link_host_answered(end->link, world->now_ns, world_clock(world));
    }
  }
}

/* As the link asks for it, as connection.c does. An RDMA socket counts nothing. */
static void owner_measure(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  uint64_t wanted = link_wants_measured(end->link, world_clock(world));
  for (; wanted != 0; wanted &= wanted - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(wanted);
    const struct socket *socket = end->ports[lane].socket;
    if (socket != NULL) {
      struct policy_transport transport = socket_measure(socket, side);
      link_lane_measured(end->link, lane, socket->is_rdma ? NULL : &transport, world_clock(world));
      world->totals->measured += !socket->is_rdma;
    }
  }
}

void owner_run(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  if (end->is_gone || owner_is_stopped(world, side)) {
    return;
  }
  if (world_chance(world, 50)) { /* the error overtakes what has arrived, or not */
    owner_notice(world, side);
  }
  owner_take_orders(world, side);
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    port_read(world, side, lane);
    owner_take_orders(world, side);
  }
  owner_notice(world, side);
  if (end->deadline_ns <= world->now_ns || world_chance(world, 5)) {
    if (link_wants_evidence(end->link, world_clock(world))) {
      owner_look_for_host(world, side);
    }
    link_time_passed(end->link, world_clock(world));
  }
  owner_take_orders(world, side);
  owner_measure(world, side);
  users_run(world, side);
  owner_take_orders(world, side);
  owner_write(world, side);
  users_run(world, side);
  owner_take_orders(world, side);
  if (owner_is_over(world, end)) {
    owner_close_all(world, side);
    end->is_gone = true;
  }
}

uint64_t owner_next_ns(const struct world *world, enum side side) {
  const struct end *end = &world->ends[side];
  if (end->is_gone) {
    return WORLD_NEVER;
  }
  if (owner_is_stopped(world, side)) {
    return end->stopped_until_ns;
  }
  uint64_t soon_ns = world->now_ns + 1000;
  uint64_t next_ns = end->deadline_ns;
  bool is_reading = link_status(end->link) == 0;
  if (!is_reading && end->last_word_ns != 0) {
    next_ns = end->last_word_ns;
  }
  if (end->is_detached && end->linger_ns < next_ns) {
    next_ns = end->linger_ns;
  }
  if (next_ns <= world->now_ns || pick_lane(end->link, owner_writable(world, side)) >= 0) {
    return soon_ns;
  }
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    const struct port *port = &end->ports[lane];
    if (port->socket == NULL) {
      continue;
    }
    const struct pipe *incoming = &port->socket->pipes[side == SENDER ? RECEIVER : SENDER];
    if ((is_reading && pipe_readable(incoming) > 0) ||
        (port->has_frame && !port_has_put(port) && pipe_space(&port->socket->pipes[side]) > 0)) {
      return soon_ns;
    }
    if (port->has_frame && port_has_put(port) && port->written_ns < next_ns) {
      next_ns = port->written_ns > soon_ns ? port->written_ns : soon_ns;
    }
    if (port->socket->broken_ns[side] < next_ns) {
      next_ns = port->socket->broken_ns[side];
    }
  }
  return next_ns;
}

/* In good order: what was written still arrives. */
void owner_close_all(struct world *world, enum side side) {
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    struct socket *socket = world->ends[side].ports[lane].socket;
    if (socket == NULL) {
      continue;
    }
    bool was_cut = socket->pipes[side].is_cut;
    port_drop(world, side, lane);
    enum side other = side == SENDER ? RECEIVER : SENDER;
    struct port *port = &world->ends[other].ports[lane];
    if (port->socket == socket) {
      socket->pipes[side].is_cut = was_cut;
      socket->broken_ns[other] = world->now_ns + 1000000000ull;
    }
  }
}
