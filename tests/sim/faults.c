/* SPDX-License-Identifier: Apache-2.0 */
/* faults: what goes wrong in a run, and when. */
#include <errno.h>

#include "tests/sim/world.h"

#define MS 1000000ull

enum fault {
  FAULT_CUT,        /* both sides notice soon */
  FAULT_HALF_OPEN,  /* one side notices much later */
  FAULT_STALL,      /* nothing moves for a while */
  FAULT_TAIL,       /* the last packets are lost, and nothing is behind them */
  FAULT_CRAWL,      /* 1 % of the speed for good */
  FAULT_NO_DIALS,   /* nobody can dial for a while */
  FAULT_ALL_DOWN,   /* every lane is cut, and nobody can dial for a while */
  FAULT_FLIP,       /* a byte on the way changes */
  FAULT_DEAD,       /* the lane is cut and can never reconnect; one lane is spared */
  FAULT_BLACK_HOLE, /* bytes vanish, in one direction or both; nobody notices; one lane is spared */
  FAULT_STOP,       /* a process does not run for a while: to itself, the clock jumps */
  FAULT_ABORT,      /* a side gives up */
  FAULT_HOST_DOWN,  /* one of them for good: nobody hears anything any more */
  FAULT_SMALL_ONLY, /* the sender's large frames are lost on every lane for a while, also new ones
                     */
  FAULT_END
};

static const char *const fault_names[FAULT_END] = {
  "cut",  "half open", "stall",      "tail", "crawl", "no dials",  "all down",
  "flip", "dead",      "black hole", "stop", "abort", "host down", "small only",
};

void faults_plan(struct world *world) {
  world->next_fault_ns = WORLD_NEVER;
  world->detach_ns[SENDER] = world->detach_ns[RECEIVER] = WORLD_NEVER;
  world->replay_percent = world_chance(world, 40) ? (unsigned)world_between(world, 1, 30) : 0;
  if (world_chance(world, 20)) {
    return; /* a quiet run */
  }
  world->faults_left = (unsigned)world_between(world, 1, world_chance(world, 20) ? 100 : 10);
  world->fault_gap_ns = 16384ull << world_between(world, 0, 12);
  world->next_fault_ns = world_between(world, 0, world->fault_gap_ns);
  /* One of those that are wanted for certain. */
  unsigned first = world->config[SENDER].policy.first_lanes;
  world->spared_lane = (unsigned)world_between(world, 0, (first > 0 ? first : world->lanes) - 1);
  world->dial_failure_percent = (unsigned)world_between(world, 0, 1) * 30;
  world->may_corrupt = world->config[SENDER].wants_checksums && world_chance(world, 50);
  world->may_time_out = world_chance(world, 10);
  world->may_abort = world_chance(world, 5);
  world->has_black_holes = world_chance(world, 70);
  world->has_long_stops = world_chance(world, 5);
  if (world->has_long_stops) {
    world->faults_left = (unsigned)world_between(world, 1, 3);
    world->dial_failure_percent = 0;
    world->may_corrupt = false; /* a lane that is lost needs a peer that runs */
    return;
  }
  if (world_chance(world, 15)) {
    uint64_t latest_ns = 1024ull << world_between(world, 0, 15); /* most runs take little time */
    world->detach_ns[world_between(world, 0, 1)] = world_between(world, 0, latest_ns);
    world->may_reset = true;
  }
}

/* A lane that one of the sides has open; NULL if the one drawn is not. */
static struct socket *fault_socket(struct world *world, unsigned lane) {
  struct socket *socket = world->ends[SENDER].ports[lane].socket;
  return socket != NULL ? socket : world->ends[RECEIVER].ports[lane].socket;
}

static void fault_cut(struct world *world, struct socket *socket, bool is_half_open) {
  enum side first = world_chance(world, 50) ? SENDER : RECEIVER;
  enum side second = first == SENDER ? RECEIVER : SENDER;
  uint64_t soon_ns = world->now_ns + world_between(world, 0, 2 * world->latency_ns);
  uint64_t late_ns = soon_ns + world_between(world, 0, is_half_open ? 500 * MS : MS / 10);
  socket->pipes[first].is_cut |= world_chance(world, 70);
  socket->pipes[second].is_cut |= world_chance(world, 70);
  if (soon_ns < socket->broken_ns[first]) {
    socket->broken_ns[first] = soon_ns;
  }
  if (late_ns < socket->broken_ns[second]) {
    socket->broken_ns[second] = late_ns;
  }
}

/* Where none may be the end: seconds, or a minute. */
static uint64_t fault_outage_ns(struct world *world) {
  uint64_t timeout_ns = world->config[SENDER].timeout_ns;
  return world->may_time_out
             ? world_between(world, 0, 2 * timeout_ns)
             : world_between(world, 0, timeout_ns / 2) >> world_between(world, 0, 6);
}

static void fault_all_down(struct world *world) {
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    struct socket *socket = fault_socket(world, lane);
    if (socket != NULL) {
      fault_cut(world, socket, false);
    }
  }
  world->no_dial_until_ns = world->now_ns + fault_outage_ns(world);
}

static void fault_flip(struct socket *socket, uint64_t random) {
  struct pipe *pipe = &socket->pipes[random & 1];
  uint64_t unread = pipe->written - pipe->read;
  if (unread > 0) {
    uint64_t at = pipe->read + (random >> 8) % unread;
    pipe->ring[at & (pipe->capacity - 1)] ^= (uint8_t)(1u << (random >> 1 & 7));
  }
}

/* One lane, or all but the one that is spared. */
static void fault_black_hole(struct world *world, unsigned lane) {
  bool is_all = world_chance(world, 30);
  for (unsigned i = 0; i < world->lanes; i++) {
    struct socket *socket = fault_socket(world, i);
    if (socket != NULL && (i == lane || is_all) && i != world->spared_lane) {
      unsigned directions = (unsigned)world_between(world, 1, 3);
      socket->pipes[SENDER].is_cut |= (directions & 1) != 0;
      socket->pipes[RECEIVER].is_cut |= (directions & 2) != 0;
    }
  }
}

/* Stops that follow each other closely would add up to a silence that means something; so would a
 * long one and the time that it takes to find that the only lane is a black hole. */
static void fault_stop(struct world *world) {
  uint64_t most_ns = world->config[SENDER].timeout_ns / 3 *
                     (world->has_long_stops    ? 10
                      : world->may_time_out    ? 5
                      : world->has_black_holes ? 1
                                               : 2);
  if (world->now_ns < world->no_stop_until_ns) {
    return;
  }
  uint64_t pause_ns = world_between(world, 0, most_ns >> world_between(world, 0, 12));
  enum side side = world_chance(world, 50) ? SENDER : RECEIVER;
  world->ends[side].stopped_until_ns = world->now_ns + pause_ns;
  world_trace(world, "the %s is stopped for %.3f ms", side == SENDER ? "sender" : "receiver",
              (double)pause_ns / 1e6);
  world->no_stop_until_ns = world->now_ns + pause_ns + world->config[SENDER].timeout_ns;
}

static void fault_abort(struct world *world) {
  if (world->may_abort) {
    link_fail(world->ends[world_between(world, 0, 1)].link, -EIO);
  }
}

static void fault_host_down(struct world *world) {
  if (!world->may_time_out) {
    return;
  }
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    for (int side = 0; side < 2; side++) {
      struct socket *socket = world->ends[side].ports[lane].socket;
      if (socket != NULL) {
        socket->pipes[SENDER].is_cut = socket->pipes[RECEIVER].is_cut = true;
        socket->broken_ns[SENDER] = socket->broken_ns[RECEIVER] = WORLD_NEVER;
      }
    }
  }
  world->down_ns = world->now_ns + 1;
  world->no_dial_until_ns = WORLD_NEVER;
  world->next_fault_ns = WORLD_NEVER;
  world->faults_left = 0;
}

static void fault_small_only(struct world *world) {
  if (world->has_black_holes) {
    world->small_until_ns = world->now_ns + fault_outage_ns(world);
  }
}

/* What concerns no lane. */
static bool fault_general(struct world *world, enum fault fault) {
  switch (fault) {
  case FAULT_NO_DIALS:
    world->no_dial_until_ns = world->now_ns + world_between(world, 0, 200 * MS);
    return true;
  case FAULT_ALL_DOWN:
    fault_all_down(world);
    return true;
  case FAULT_STOP:
    fault_stop(world);
    return true;
  case FAULT_ABORT:
    fault_abort(world);
    return true;
  case FAULT_HOST_DOWN:
    fault_host_down(world);
    return true;
  case FAULT_SMALL_ONLY:
    fault_small_only(world);
    return true;
  default:
    return false;
  }
}

void faults_run(struct world *world) {
  if (world->faults_left == 0 || world->now_ns < world->next_fault_ns) {
    return;
  }
  world->next_fault_ns = --world->faults_left == 0
                             ? WORLD_NEVER
                             : world->now_ns + world_between(world, 0, world->fault_gap_ns);
  enum fault fault =
      world->has_long_stops ? FAULT_STOP : (enum fault)world_between(world, 0, FAULT_END - 1);
  unsigned lane = (unsigned)world_between(world, 0, world->lanes - 1);
  struct socket *socket = fault_socket(world, lane);
  world_trace(world, "fault: %s, lane %u", fault_names[fault], lane);
  if (fault_general(world, fault) || socket == NULL) {
    return;
  }
  if (fault == FAULT_CUT || fault == FAULT_HALF_OPEN) {
    fault_cut(world, socket, fault == FAULT_HALF_OPEN);
  } else if (fault == FAULT_DEAD && lane != world->spared_lane) {
    world->dead_lanes |= 1ull << lane;
    fault_cut(world, socket, world_chance(world, 50));
  } else if (fault == FAULT_STALL) {
    socket->stalled_until_ns = world->now_ns + world_between(world, 0, 200 * MS);
  } else if (fault == FAULT_TAIL && !socket->is_rdma) {
    pipe_lose_tail(&socket->pipes[world_between(world, 0, 1)], world->now_ns + 200 * MS,
                   world_chance(world, 50));
  } else if (fault == FAULT_CRAWL) {
    for (int side = 0; side < 2; side++) {
      socket->pipes[side].bytes_per_second = world->bytes_per_second / 100;
    }
  } else if (fault == FAULT_BLACK_HOLE && world->has_black_holes) {
    fault_black_hole(world, lane);
  } else if (fault == FAULT_FLIP && world->may_corrupt) {
    fault_flip(socket, world_random(world));
  }
}
