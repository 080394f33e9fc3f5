/* SPDX-License-Identifier: Apache-2.0 */
/* owner: what the engine and its lanes do for a link, on simulated sockets: parse frames from
 * pieces, write them in pieces, dial, hand over, close. */
#include <errno.h>
#include <string.h>

#include "common/hash.h"
#include "tests/sim/world.h"

#define LAST_WORD_NS 1000000000ull /* as the engine has it */

static void port_drop(struct world *world, enum side side, unsigned lane) {
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
  link_lane_lost(world->ends[side].link, lane, epoch, world->now_ns);
}

static void port_attach(struct world *world, enum side side, struct socket *socket,
                        uint64_t received) {
  struct end *end = &world->ends[side];
  struct port *port = &end->ports[socket->lane];
  /* Who has left, whose memory must not be written to, takes no direct lane any more. */
  bool is_too_late = end->is_gone || (socket->is_direct && side == RECEIVER && end->is_detached);
  if (is_too_late || (port->socket != NULL && port->socket->epoch >= socket->epoch)) {
    socket_close(world, socket, side);
    return;
  }
  port_drop(world, side, socket->lane);
  port->socket = socket;
  world_trace(world, "%s has lane %u epoch %u up, %llu frames before",
              side == SENDER ? "sender" : "receiver", socket->lane, socket->epoch,
              (unsigned long long)received);
  link_lane_up(end->link, socket->lane, socket->epoch, received, world->now_ns);
  if (socket->is_direct && link_status(end->link) == 0) {
    link_lane_is_direct(end->link, socket->lane);
  }
}

/* ---- dials ---- */

static void dial_start(struct world *world, unsigned lane, uint32_t epoch) {
  for (struct dial *dial = world->dials; dial < world->dials + WORLD_DIALS; dial++) {
    if (!dial->is_used) {
      world->dials_used++;
      uint64_t hello_ns = world->now_ns + world_between(world, 0, 4 * world->latency_ns);
      uint64_t late_ns = world_chance(world, 80) ? 2 * world->latency_ns : 50000000;
      *dial = (struct dial){
        .is_used = true,
        .fails = world_chance(world, world->dial_failure_percent),
        .loses_reply = world_chance(world, world->dial_failure_percent),
        .lane = lane,
        .epoch = epoch,
        .hello_ns = hello_ns,
        .sender_ns = hello_ns + world_between(world, 0, late_ns),
        .receiver_ns = hello_ns + world_between(world, 0, late_ns),
      };
      return;
    }
  }
  world_fail(world, "the sender orders more dials than there can be");
}

static void dial_report(struct world *world, const struct dial *dial) {
  if (!world->ends[SENDER].is_gone) {
    link_lane_lost(world->ends[SENDER].link, dial->lane, dial->epoch, world->now_ns);
  }
}

static void dial_fail(struct world *world, struct dial *dial) {
  dial_report(world, dial);
  dial->hello_ns = dial->sender_ns = dial->receiver_ns = WORLD_NEVER;
}

static void dial_say_hello(struct world *world, struct dial *dial) {
  struct end *receiver = &world->ends[RECEIVER];
  if (dial->fails || (world->dead_lanes >> dial->lane & 1) != 0 ||
      world->now_ns < world->no_dial_until_ns || receiver->is_gone) {
    dial_fail(world, dial);
    return;
  }
  dial->received = link_lane_fence(receiver->link, dial->lane, dial->epoch, world->now_ns);
  if (dial->received == UINT64_MAX) {
    dial_fail(world, dial);
    return;
  }
  port_drop(world, RECEIVER, dial->lane);
  dial->socket = socket_open(world, dial->lane, dial->epoch);
  if (dial->socket->is_direct) {
    dial->receiver_ns = world->now_ns; /* before the sender knows where to send */
  }
  dial->hello_ns = WORLD_NEVER;
}

/* A side that is stopped sees nothing of the dial until it runs again. */
static void dial_wait(const struct world *world, enum side side, uint64_t *event_ns) {
  if (*event_ns <= world->now_ns && owner_is_stopped(world, side)) {
    *event_ns = world->ends[side].stopped_until_ns;
  }
}

static void dial_run(struct world *world, struct dial *dial) {
  dial_wait(world, RECEIVER, &dial->hello_ns);
  if (dial->hello_ns != WORLD_NEVER && dial->hello_ns > world->now_ns) {
    uint64_t late_ns = dial->hello_ns + world->latency_ns;
    dial->sender_ns = dial->sender_ns > late_ns ? dial->sender_ns : late_ns;
    dial->receiver_ns = dial->receiver_ns > late_ns ? dial->receiver_ns : late_ns;
  }
  dial_wait(world, RECEIVER, &dial->receiver_ns);
  dial_wait(world, SENDER, &dial->sender_ns);
  if (dial->hello_ns <= world->now_ns) {
    dial_say_hello(world, dial);
  }
  if (dial->receiver_ns <= world->now_ns) {
    dial->receiver_ns = WORLD_NEVER;
    port_attach(world, RECEIVER, dial->socket, 0);
  }
  if (dial->sender_ns <= world->now_ns) {
    dial->sender_ns = WORLD_NEVER;
    if (dial->loses_reply) {
      socket_close(world, dial->socket, SENDER);
      dial_report(world, dial);
    } else {
      port_attach(world, SENDER, dial->socket, dial->received);
    }
  }
  dial->is_used = dial->hello_ns != WORLD_NEVER || dial->receiver_ns != WORLD_NEVER ||
                  dial->sender_ns != WORLD_NEVER;
  world->dials_used -= dial->is_used ? 0 : 1;
}

void owner_run_dials(struct world *world) {
  struct dial *end = world->dials + (world->dials_used > 0 ? WORLD_DIALS : 0);
  for (struct dial *dial = world->dials; dial < end; dial++) {
    if (dial->is_used) {
      dial_run(world, dial);
    }
  }
}

uint64_t owner_next_dial_ns(const struct world *world) {
  uint64_t next_ns = WORLD_NEVER;
  const struct dial *end = world->dials + (world->dials_used > 0 ? WORLD_DIALS : 0);
  for (const struct dial *dial = world->dials; dial < end; dial++) {
    if (dial->is_used) {
      next_ns = dial->hello_ns < next_ns ? dial->hello_ns : next_ns;
      next_ns = dial->sender_ns < next_ns ? dial->sender_ns : next_ns;
      next_ns = dial->receiver_ns < next_ns ? dial->receiver_ns : next_ns;
    }
  }
  return next_ns;
}

/* ---- orders ---- */

static void owner_take_orders(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  struct link_order order;
  while (link_next_order(end->link, &order, world->now_ns)) {
    if (order.kind == LINK_ORDER_OPEN) {
      if (side == RECEIVER) {
        world_fail(world, "the receiver orders a dial");
      }
      dial_start(world, order.lane, order.epoch);
      continue;
    }
    const struct socket *socket = end->ports[order.lane].socket;
    if (socket != NULL && socket->epoch <= order.epoch) {
      world_trace(world, "%s closes lane %u epoch %u by order",
                  side == SENDER ? "sender" : "receiver", order.lane, socket->epoch);
      port_drop(world, side, order.lane);
    }
  }
}

/* ---- reading ---- */

/* A negative result of the link closes the lane. Honest peers on sound lanes never break rules. */
static void port_refused(struct world *world, enum side side, unsigned lane, int error) {
  if (error != -ESTALE && !((error == -EPROTO || error == -EBADMSG) && world->may_corrupt)) {
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
    error = link_frame_received(world->ends[side].link, lane, &port->incoming, world->now_ns);
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
  link_bytes_arrived(world->ends[side].link, lane, world->now_ns);
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
      error = link_frame_completed(end->link, lane, world->now_ns);
    }
    if (error != 0) {
      port_refused(world, side, lane, error);
    }
    invariants_check(world);
  }
}

/* ---- writing ---- */

/* Old control frames come again: they must change nothing. BYE and ABORT are the last of
 * all. */
static void replay_remember(struct end *end, const struct link_frame *frame) {
  uint8_t type = frame->header[1];
  if (type != WIRE_WINDOW && type != WIRE_REQUEST && type != WIRE_FENCE && type != WIRE_FENCED &&
      type != WIRE_PING && type != WIRE_PONG) {
    return;
  }
  if (frame->length > WIRE_MAX_WINDOW_BYTES) {
    return; /* padding */
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
  link_frame_written(world->ends[side].link, lane, world->now_ns);
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
  int picked;
  while ((picked = link_pick_lane(end->link, owner_writable(world, side))) >= 0) {
    unsigned lane = (unsigned)picked;
    struct port *port = &end->ports[lane];
    if (port->socket == NULL || port->has_frame) {
      world_fail(world, "picked lane %u cannot write", lane);
    }
    if (!link_next_frame(end->link, lane, &port->frame, world->now_ns)) {
      world_fail(world, "picked lane %u has nothing to write", lane);
    }
    port->has_frame = true;
    port->frame_put = 0;
    port->frame_bytes = port->frame.length;
    if (port->frame.target != NULL && world_chance(world, 80)) {
      socket_place(port->socket, &port->frame);
      wire_header_place(port->frame.header);
      port->frame_bytes = 0;
      world->placed++;
    }
    port->payload_hash = frame_hash(&port->frame);
    port_write(world, side, lane);
    if (port_has_put(port) && port->written_ns <= world->now_ns) {
      port_written(world, side, lane);
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
      link_host_answered(end->link, world->now_ns, world->now_ns);
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
  if (link_next_deadline_ns(end->link) <= world->now_ns || world_chance(world, 5)) {
    if (link_wants_evidence(end->link, world->now_ns)) {
      owner_look_for_host(world, side);
    }
    link_time_passed(end->link, world->now_ns);
  }
  owner_take_orders(world, side);
  users_run(world, side);
  owner_take_orders(world, side);
  owner_write(world, side);
  users_run(world, side); /* hearing that a frame was written may complete a message */
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
  uint64_t next_ns = link_next_deadline_ns(end->link);
  bool is_reading = link_status(end->link) == 0;
  if (!is_reading && end->last_word_ns != 0) {
    next_ns = end->last_word_ns;
  }
  if (next_ns <= world->now_ns || link_pick_lane(end->link, owner_writable(world, side)) >= 0) {
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
