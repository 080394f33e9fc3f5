/* SPDX-License-Identifier: Apache-2.0 */
/* dials: new sockets between the two ends, from an order to two lanes that are up; what is said on
 * the way may come late, or not at all. */
#include "tests/sim/world.h"

static void port_attach(struct world *world, enum side side, struct socket *socket) {
  struct end *end = &world->ends[side];
  struct port *port = &end->ports[socket->lane];
  /* Who has left, whose memory must not be written to, takes no RDMA lane any more. */
  bool is_too_late = end->is_gone || (socket->is_rdma && side == RECEIVER && end->is_detached);
  if (is_too_late || (port->socket != NULL && port->socket->epoch >= socket->epoch)) {
    socket_close(world, socket, side);
    return;
  }
  port_drop(world, side, socket->lane);
  port->socket = socket;
  world_trace(world, "%s has lane %u epoch %u up", side == SENDER ? "sender" : "receiver",
              socket->lane, socket->epoch);
  if (side == SENDER && (world->raw_lanes >> socket->lane & 1) != 0) {
    link_lane_is_raw(end->link, socket->lane);
  }
  link_lane_up(end->link, socket->lane, socket->epoch, world_clock(world));
  if (socket->is_rdma && link_status(end->link) == 0) {
    link_lane_is_rdma(end->link, socket->lane);
  }
}

void dials_start(struct world *world, unsigned lane, uint32_t epoch) {
  for (struct dial *dial = world->dials; dial < world->dials + WORLD_DIALS; dial++) {
    if (!dial->is_used) {
      world->dials_used++;
      world->totals->dials++;
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

/* Lanes above the first ones may be refused, as where descriptors are few. */
static bool dial_is_refused(struct world *world, const struct dial *dial) {
  unsigned first = world->config[SENDER].policy.first_lanes;
  return first > 0 && dial->lane >= first && world_chance(world, world->dial_failure_percent / 2);
}

static void dial_report(struct world *world, const struct dial *dial) {
  if (world->ends[SENDER].is_gone) {
    return;
  }
  struct link *link = world->ends[SENDER].link;
  if (dial_is_refused(world, dial)) {
    link_lane_refused(link, dial->lane, dial->epoch, world_clock(world));
  } else {
    link_lane_lost(link, dial->lane, dial->epoch, world_clock(world));
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
  if (!link_lane_fence(receiver->link, dial->lane, dial->epoch, world_clock(world))) {
    dial_fail(world, dial);
    return;
  }
  port_drop(world, RECEIVER, dial->lane);
  dial->socket = socket_open(world, dial->lane, dial->epoch);
  if (dial->socket->is_rdma) {
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
    port_attach(world, RECEIVER, dial->socket);
  }
  if (dial->sender_ns <= world->now_ns) {
    dial->sender_ns = WORLD_NEVER;
    if (dial->loses_reply) {
      socket_close(world, dial->socket, SENDER);
      dial_report(world, dial);
    } else {
      port_attach(world, SENDER, dial->socket);
    }
  }
  dial->is_used = dial->hello_ns != WORLD_NEVER || dial->receiver_ns != WORLD_NEVER ||
                  dial->sender_ns != WORLD_NEVER;
  world->dials_used -= dial->is_used ? 0 : 1;
}

void dials_run(struct world *world) {
  struct dial *end = world->dials + (world->dials_used > 0 ? WORLD_DIALS : 0);
  for (struct dial *dial = world->dials; dial < end; dial++) {
    if (dial->is_used) {
      dial_run(world, dial);
    }
  }
}

uint64_t dials_next_ns(const struct world *world) {
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
