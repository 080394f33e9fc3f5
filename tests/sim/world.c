/* SPDX-License-Identifier: Apache-2.0 */
/* world: draws a run from its seed, and turns the clock from one event to the next. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/random.h"

#define MS 1000000ull
/* Longer than the 600 s that a link gives a silent peer, and than one message takes on lanes that
 * crawl. */
#define LONGEST_PAUSE_NS (1200ull * 1000 * MS)
#define MOST_STEPS 3000000ull

/* ---- randomness, messages ---- */

uint64_t world_random(struct world *world) {
  return random_next(&world->random);
}

uint64_t world_between(struct world *world, uint64_t low, uint64_t high) {
  return low + world_random(world) % (high - low + 1);
}

bool world_chance(struct world *world, unsigned percent) {
  return world_random(world) % 100 < percent;
}

uint64_t world_clock(struct world *world) {
  if (world->clock_back_ns == 0 || random_next(&world->clock_random) % 100 >= 20) {
    return world->now_ns;
  }
  uint64_t behind_ns = random_next(&world->clock_random) % world->clock_back_ns;
  world->totals->clock_steps++;
  return behind_ns < world->now_ns ? world->now_ns - behind_ns : 0;
}

void world_fail(struct world *world, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("# seed %llu failed at %.6f ms: ", (unsigned long long)world->seed,
         (double)world->now_ns / 1e6);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  longjmp(*world->escape, 1);
}

void world_trace(const struct world *world, const char *format, ...) {
  if (!world->is_verbose) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  printf("%12.6f ms  ", (double)world->now_ns / 1e6);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

/* ---- what the seed decides ---- */

static unsigned draw_lanes(struct world *world) {
  uint64_t kind = world_between(world, 0, 19);
  if (kind == 0) {
    return WIRE_MAX_LANES;
  }
  return (unsigned)(kind <= 2    ? 1
                    : kind <= 17 ? world_between(world, 2, 8)
                                 : world_between(world, 9, 16));
}

static void draw_config(struct world *world) {
  static const uint32_t chunks[] = { 4096, 8192, 32768, 65536, 131072 };
  static const uint32_t eagers[] = { 0, 8, 256, 4096, 16384 };
  static const unsigned slots[] = { 0, 1, 2, 8, 16, 32 };
  struct link_config config = {
    .role = LINK_SENDER,
    .policy = { .lanes = world->lanes,
                .chunk_bytes = chunks[world_between(world, 0, 4)],
                .usual_chunk_bytes =
                    world_chance(world, 50) ? 0 : chunks[world_between(world, 0, 4)] },
    .eager_bytes = eagers[world_between(world, 0, 4)],
    .eager_slots = slots[world_between(world, 0, 5)],
    .timeout_ns = 120000 * MS, /* many failed dials of a second each fit in */
    .stopped_timeout_ns = 1200000 * MS,
    .seed = world_random(world),
  };
  config.policy.reconnects_slow_lanes = world_chance(world, 50);
  config.wants_checksums = world_chance(world, 30);
  config.policy.learns_lanes = world_chance(world, 30);
  config.policy.first_lanes = (unsigned)world_between(world, 0, world->lanes);
  policy_shared_init(&world->policy_shared);
  if (world_chance(world, 40)) {
    world->rdma_percent = (unsigned)world_between(world, 20, 100);
    config.remote_keys = (unsigned)world_between(world, 1, WIRE_REMOTE_KEYS);
  } else if (world_chance(world, 60)) {
    config.policy.compress = world_chance(world, 30) ? POLICY_COMPRESS_AUTO : POLICY_COMPRESS_ON;
    world->is_codable = world_chance(world, 80);
  }
  bool learns = config.policy.learns_lanes || config.policy.compress == POLICY_COMPRESS_AUTO;
  config.policy.shared = learns ? &world->policy_shared : NULL;
  if (config.eager_bytes > config.policy.chunk_bytes) {
    config.eager_bytes = config.policy.chunk_bytes;
  }
  world->config[SENDER] = config;
  config.role = LINK_RECEIVER;
  world->config[RECEIVER] = config;
}

static void draw_network(struct world *world) {
  static const uint32_t reads[] = { 1, 3, 64, 4096, 1u << 20 };
  static const unsigned speeds[] = { 1, 10, 50 };
  world->read_bytes = reads[world_between(world, 0, 4)];
  world->buffer_bytes = 512u << world_between(world, 0, 9);
  world->written_delay_ns = world_chance(world, 70) ? 0 : 1ull << world_between(world, 10, 24);
  world->latency_ns = 1000ull << world_between(world, 0, 12);
  world->bytes_per_second = 20000000ull << world_between(world, 0, 6);
  bool is_uneven = world_chance(world, 30);
  for (unsigned lane = 0; lane < WIRE_MAX_LANES; lane++) {
    bool is_slow = is_uneven && world_chance(world, 30);
    world->lane_speed_percent[lane] = is_slow ? speeds[world_between(world, 0, 2)] : 100;
  }
}

/* From a microsecond to 17 ms: a thread that loses its CPU between the clock and the lock. */
static void draw_clock(struct world *world) {
  world->clock_random = world->seed ^ 0xc10c;
  bool is_behind = random_next(&world->clock_random) % 100 < 40;
  uint64_t shift = 10 + random_next(&world->clock_random) % 15;
  world->clock_back_ns = is_behind ? 1ull << shift : 0;
}

static void draw_users(struct world *world) {
  world->message_count = (unsigned)world_between(world, 1, world_chance(world, 30) ? 250 : 40);
  for (int side = 0; side < 2; side++) {
    world->depth[side] = (unsigned)world_between(world, 1, world_chance(world, 30) ? 100 : 8);
    world->pause_ns[side] = world_chance(world, 50) ? 0 : 1ull << world_between(world, 1, 21);
  }
  /* One of them may come late. */
  world->ends[world_between(world, 0, 1)].next_post_ns =
      world_chance(world, 30) ? world_between(world, 0, 20 * MS) : 0;
}

/* Long enough for what takes seconds of load: rates become known, bad paths are left. */
static void draw_bulk(struct world *world) {
  world->is_bulk = world_chance(world, 1);
  if (!world->is_bulk) {
    return;
  }
  world->read_bytes = 1u << 20;
  world->buffer_bytes = 262144;
  world->bytes_per_second = 30000000 / world->lanes;
  world->message_count = 60;
  world->lane_speed_percent[world->lanes - 1] = world_between(world, 5, 60);
  for (int side = 0; side < 2; side++) {
    world->depth[side] = 8;
    world->pause_ns[side] = 0;
    if (world->config[side].policy.chunk_bytes < 32768) {
      world->config[side].policy.chunk_bytes = 32768;
    }
  }
}

/* Where memory is short: on some lanes there is none for compressed chunks. */
static void draw_coding(struct world *world) {
  uint64_t random = world->seed ^ 0xc0d1;
  for (int side = 0; side < 2; side++) {
    bool is_short = random_next(&random) % 100 < 30;
    world->ends[side].coding.refused = is_short ? random_next(&random) : 0;
    world->config[side].coding_memory = coding_memory_get;
    world->config[side].coding_owner = &world->ends[side].coding;
  }
}

static struct link *make_link(const struct link_config *config) {
  void *memory = calloc(1, link_memory_bytes(config));
  return memory != NULL ? link_init(memory, config, 0) : NULL;
}

struct world *world_create(uint64_t seed, bool is_verbose, struct world_totals *totals) {
  struct world *world = calloc(1, sizeof *world);
  world->seed = world->random = seed;
  world->is_verbose = is_verbose;
  world->totals = totals;
  world->lanes = draw_lanes(world);
  draw_config(world);
  draw_network(world);
  draw_users(world);
  draw_clock(world);
  draw_coding(world);
  draw_bulk(world);
  users_plan(world);
  faults_plan(world);
  for (int side = 0; side < 2; side++) {
    world->ends[side].link = make_link(&world->config[side]);
  }
  world_trace(world,
              "seed %llu: %u lanes, chunk %u, eager %u x %u, %u messages, depth %u and "
              "%u",
              (unsigned long long)seed, world->lanes, world->config[SENDER].policy.chunk_bytes,
              world->config[SENDER].eager_slots, world->config[SENDER].eager_bytes,
              world->message_count, world->depth[SENDER], world->depth[RECEIVER]);
  world_trace(world, "pipes of %u bytes, %llu ns, %llu bytes/s, reads of up to %u bytes",
              world->buffer_bytes, (unsigned long long)world->latency_ns,
              (unsigned long long)world->bytes_per_second, world->read_bytes);
  return world;
}

void world_destroy(struct world *world) {
  for (int side = 0; side < 2; side++) {
    owner_close_all(world, side == 0 ? SENDER : RECEIVER);
  }
  for (struct dial *dial = world->dials; dial < world->dials + WORLD_DIALS; dial++) {
    if (dial->is_used && dial->socket != NULL) {
      if (dial->sender_ns != WORLD_NEVER) {
        socket_close(world, dial->socket, SENDER);
      }
      if (dial->receiver_ns != WORLD_NEVER) {
        socket_close(world, dial->socket, RECEIVER);
      }
    }
  }
  for (unsigned i = 0; i < WORLD_MESSAGES; i++) {
    free(world->plans[i].out);
    free(world->plans[i].in);
  }
  for (int side = 0; side < 2; side++) {
    free(world->ends[side].link);
    coding_memory_free(&world->ends[side].coding);
  }
  free(world);
}

void world_add_links(const struct world *world) {
  struct world_totals *totals = world->totals;
  for (int side = 0; side < 2; side++) {
    struct link_view view;
    int status = link_status(world->ends[side].link);
    link_view(world->ends[side].link, &view);
    totals->losses += view.losses;
    totals->stalls_cut += view.stalls_cut;
    totals->requeued += view.chunks_requeued;
    totals->pings += view.counts.pings_sent;
    totals->tail_pings += view.counts.tail_pings;
    totals->repeats += view.counts.repeats;
    totals->duplicates += view.counts.duplicates;
    totals->coded += side == SENDER ? view.counts.coding.coded : 0;
    totals->decoded += side == RECEIVER ? view.counts.coding.coded : 0;
    totals->raw += view.counts.coding.raw;
    totals->silent += status == -EHOSTDOWN;
    totals->timed_out += status == -ETIMEDOUT;
    totals->stuck += status == -ECOMM;
  }
  totals->messages += world->ends[RECEIVER].completed;
  totals->waited_us += world->waited_ns / 1000;
  totals->raw_lanes += (uint64_t)__builtin_popcountll(world->raw_lanes);
}

/* ---- time ---- */

/* The owner opens lane 0 before the links begin; here it is there from the start. */
static void open_first_lane(struct world *world) {
  struct socket *socket = socket_open(world, 0, 1);
  if (!link_lane_fence(world->ends[RECEIVER].link, 0, 1, 0)) {
    world_fail(world, "a lane that never was is refused");
  }
  for (int side = 0; side < 2; side++) {
    world->ends[side].ports[0].socket = socket;
    link_lane_up(world->ends[side].link, 0, 1, 0);
    if (socket->is_rdma) {
      link_lane_is_rdma(world->ends[side].link, 0);
    }
  }
}

/* Lets the network move; what arrives now must be seen by the ends, so this comes before them. */
static uint64_t sockets_advance(struct world *world) {
  uint64_t next_ns = WORLD_NEVER;
  for (int side = 0; side < 2; side++) {
    for (unsigned lane = 0; lane < world->lanes; lane++) {
      struct socket *socket = world->ends[side].ports[lane].socket;
      uint64_t socket_ns = socket != NULL ? socket_advance(world, socket) : WORLD_NEVER;
      next_ns = socket_ns < next_ns ? socket_ns : next_ns;
    }
  }
  return next_ns;
}

static uint64_t user_next_ns(const struct world *world, enum side side) {
  const struct end *end = &world->ends[side];
  if (end->is_detached) {
    return WORLD_NEVER;
  }
  if (owner_is_stopped(world, side)) {
    return end->stopped_until_ns;
  }
  if (end->completed == world->message_count) {
    return world->now_ns; /* it detaches */
  }
  bool can_post = end->posted < world->message_count &&
                  end->posted - end->completed < world->depth[side] &&
                  end->next_post_ns >= world->now_ns;
  uint64_t next_ns = can_post ? end->next_post_ns : WORLD_NEVER;
  return world->detach_ns[side] < next_ns ? world->detach_ns[side] : next_ns;
}

static uint64_t earliest(uint64_t a_ns, uint64_t b_ns) {
  return a_ns < b_ns ? a_ns : b_ns;
}

static uint64_t world_next_ns(struct world *world) {
  uint64_t next_ns = earliest(sockets_advance(world), dials_next_ns(world));
  next_ns = earliest(next_ns, world->next_fault_ns);
  for (int s = 0; s < 2; s++) {
    enum side side = s == 0 ? SENDER : RECEIVER;
    next_ns = earliest(next_ns, owner_next_ns(world, side));
    next_ns = earliest(next_ns, user_next_ns(world, side));
  }
  return next_ns;
}

/* What the sender's engine learned from its other connections. */
static void change_decisions(struct world *world) {
  struct flow_count *count = &world->policy_shared.count;
  count->level = (unsigned)world_between(world, 0, count->most);
  count->changes++;
  if (world_chance(world, 50)) {
    world->policy_shared.compression.is_on = !world->policy_shared.compression.is_on;
  }
}

void world_run(struct world *world) {
  open_first_lane(world);
  uint64_t completed = 0, completed_ns = 0;
  while (!world->ends[SENDER].is_gone || !world->ends[RECEIVER].is_gone) {
    world->steps++;
    faults_run(world);
    if (world_chance(world, 1)) {
      change_decisions(world);
    }
    dials_run(world);
    owner_run(world, world->steps % 2 == 0 ? SENDER : RECEIVER);
    owner_run(world, world->steps % 2 == 0 ? RECEIVER : SENDER);
    invariants_check(world);
    uint64_t completed_now = world->ends[SENDER].completed + world->ends[RECEIVER].completed;
    completed_ns = completed_now != completed ? world->now_ns : completed_ns;
    completed = completed_now;
    uint64_t next_ns = world_next_ns(world);
    if (next_ns == WORLD_NEVER && world->ends[SENDER].is_gone && world->ends[RECEIVER].is_gone) {
      break;
    }
    if (next_ns == WORLD_NEVER || world->now_ns - completed_ns > LONGEST_PAUSE_NS ||
        world->steps > MOST_STEPS) {
      world_fail(world, "stuck: sender completed %llu, receiver %llu of %u messages",
                 (unsigned long long)world->ends[SENDER].completed,
                 (unsigned long long)world->ends[RECEIVER].completed, world->message_count);
    }
    world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns + 1;
  }
  invariants_check_end(world);
}
