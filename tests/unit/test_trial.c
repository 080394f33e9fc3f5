/* SPDX-License-Identifier: Apache-2.0 */
/* Which way wins, under traffic and time that are made up. */
#include "common/trial.h"

#include "common/clock.h"
#include "tests/lib/unit.h"

#define MB_PER_S UINT64_C(1000000)
#define STEP_NS (50 * NS_PER_US)

/* Traffic whose rate depends on the way. */
struct traffic {
  uint64_t rates[TRIAL_WAYS];  /* bytes per second */
  unsigned noise_percent;      /* of each step, up or down */
  uint64_t burst_ns, pause_ns; /* 0: without pauses */
};

struct world {
  struct trial trial;
  uint64_t now_ns, random;
  uint64_t in_way_ns[TRIAL_WAYS]; /* busy time */
  unsigned switches;
};

static void world_init(struct world *world, uint64_t seed) {
  *world = (struct world){ .now_ns = 7 * NS_PER_S, .random = seed * 2 + 1 };
  trial_init(&world->trial, TRIAL_USUAL, true, TRIAL_FIRST_NS, seed);
}

static uint64_t draw(struct world *world, uint64_t below) {
  world->random = world->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (world->random >> 33) % below;
}

/* Lets so much busy time pass. */
static void run(struct world *world, const struct traffic *traffic, uint64_t busy_ns) {
  uint64_t burst_ns = 0;
  for (uint64_t done_ns = 0; done_ns < busy_ns; done_ns += STEP_NS) {
    enum trial_way way = world->trial.way;
    uint64_t bytes = traffic->rates[way] / (NS_PER_S / STEP_NS);
    if (traffic->noise_percent) {
      bytes = bytes * (100 - traffic->noise_percent + draw(world, 2 * traffic->noise_percent + 1)) /
              100;
    }
    world->now_ns += STEP_NS;
    burst_ns += STEP_NS;
    if (traffic->burst_ns && burst_ns >= traffic->burst_ns) {
      world->now_ns += traffic->pause_ns;
      burst_ns = 0;
    }
    world->in_way_ns[way] += STEP_NS;
    trial_moved(&world->trial, bytes, world->now_ns);
    world->switches += world->trial.way != way;
  }
}

/* What the way is once the first trial is over. */
static enum trial_way outcome(const struct traffic *traffic, uint64_t seed) {
  struct world world;
  world_init(&world, seed);
  run(&world, traffic, NS_PER_S);
  assert_false(world.trial.is_trying);
  assert_int_not_equal(world.trial.interval_ns, 0); /* there was one */
  return world.trial.way;
}

static void the_faster_way_is_taken(void **state) {
  (void)state;
  struct traffic traffic = { .noise_percent = 30 };
  for (uint64_t seed = 0; seed < 50; seed++) {
    traffic.rates[TRIAL_USUAL] = 2000 * MB_PER_S;
    traffic.rates[TRIAL_OTHER] = 3000 * MB_PER_S;
    assert_int_equal(outcome(&traffic, seed), TRIAL_OTHER);
    traffic.rates[TRIAL_OTHER] = 2020 * MB_PER_S; /* not worth it */
    assert_int_equal(outcome(&traffic, seed), TRIAL_USUAL);
    traffic.rates[TRIAL_OTHER] = 1000 * MB_PER_S;
    assert_int_equal(outcome(&traffic, seed), TRIAL_USUAL);
  }
}

/* 400 Gb/s and more must not overflow anything. */
static void very_fast_networks(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 60000 * MB_PER_S, 200000 * MB_PER_S } };
  assert_int_equal(outcome(&traffic, 1), TRIAL_OTHER);
}

static void one_bad_window_does_not_decide(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct world world;
    struct traffic traffic = { .rates = { 2000 * MB_PER_S, 3000 * MB_PER_S } };
    struct traffic disturbed = { .rates = { 500 * MB_PER_S, 500 * MB_PER_S } };
    world_init(&world, seed);
    run(&world, &traffic, 100 * NS_PER_MS + draw(&world, 120) * NS_PER_MS);
    run(&world, &disturbed, 10 * NS_PER_MS);
    run(&world, &traffic, NS_PER_S);
    assert_int_equal(world.trial.way, TRIAL_OTHER);
  }
}

static void small_messages_go_the_usual_way(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 20 * MB_PER_S, 200 * MB_PER_S } };
  struct world world;
  world_init(&world, 3);
  run(&world, &traffic, 20 * NS_PER_S);
  assert_int_equal(world.switches, 0);
  assert_int_equal(world.trial.way, TRIAL_USUAL);
}

static void bulk_that_ends_is_noticed_at_once(void **state) {
  (void)state;
  struct traffic bulk = { .rates = { 2000 * MB_PER_S, 4000 * MB_PER_S } };
  struct traffic small = { .rates = { MB_PER_S, MB_PER_S } };
  struct world world;
  world_init(&world, 4);
  run(&world, &bulk, NS_PER_S);
  assert_int_equal(world.trial.way, TRIAL_OTHER);
  run(&world, &small, 5 * NS_PER_MS);
  assert_int_equal(world.trial.way, TRIAL_USUAL);
  /* What was found out still holds. */
  run(&world, &bulk, 5 * NS_PER_MS);
  assert_int_equal(world.trial.way, TRIAL_OTHER);
  /* One message now and then has no busy time at all. */
  for (int i = 0; i < 3; i++) {
    world.now_ns += 5 * NS_PER_MS;
    trial_moved(&world.trial, 8, world.now_ns);
  }
  assert_int_equal(world.trial.way, TRIAL_USUAL);
}

/* A job that computes most of the time is measured while it communicates. */
static void pauses_do_not_count(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 3000 * MB_PER_S },
                             .noise_percent = 20,
                             .burst_ns = 6 * NS_PER_MS,
                             .pause_ns = 300 * NS_PER_MS };
  for (uint64_t seed = 0; seed < 20; seed++) {
    assert_int_equal(outcome(&traffic, seed), TRIAL_OTHER);
  }
}

/* Threads that get no CPU: what they move is not even bulk. */
static void a_way_that_does_not_work_is_left(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 10 * MB_PER_S } };
  struct world world;
  world_init(&world, 5);
  run(&world, &traffic, 2 * NS_PER_S);
  assert_int_equal(world.trial.way, TRIAL_USUAL);
  assert_false(world.trial.is_trying);
  assert_true(world.in_way_ns[TRIAL_OTHER] < 100 * NS_PER_MS);
}

static void trials_become_rare(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 1500 * MB_PER_S } };
  struct world world;
  world_init(&world, 6);
  run(&world, &traffic, 1000 * NS_PER_S);
  /* After 0.1, 5, 15, 35, 75, 155, 315, 615 and 915 s, about; three windows each. */
  assert_in_range(world.in_way_ns[TRIAL_OTHER] / NS_PER_MS, 8 * 60, 10 * 80);
  assert_int_equal(world.trial.interval_ns, 300 * NS_PER_S);
  /* And another winner is looked at again soon. */
  traffic.rates[TRIAL_OTHER] = 3000 * MB_PER_S;
  run(&world, &traffic, 400 * NS_PER_S);
  assert_int_equal(world.trial.way, TRIAL_OTHER);
  assert_true(world.trial.interval_ns < 300 * NS_PER_S);
}

/* Where the other way is no good, it costs little to know. */
static void bad_windows_are_cut_short(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 8000 * MB_PER_S, 1000 * MB_PER_S }, .noise_percent = 20 };
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct world world;
    world_init(&world, seed);
    run(&world, &traffic, 2 * NS_PER_S);
    assert_int_not_equal(world.trial.interval_ns, 0);
    assert_in_range(world.in_way_ns[TRIAL_OTHER] / NS_PER_MS, 3 * 6, 3 * 12);
  }
}

static void a_winner_that_falls_behind_is_tried_again(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 3000 * MB_PER_S } };
  struct world world;
  world_init(&world, 9);
  run(&world, &traffic, 500 * NS_PER_S);
  assert_int_equal(world.trial.way, TRIAL_OTHER);
  assert_in_range(world.trial.interval_ns, 160 * NS_PER_S, 300 * NS_PER_S);
  traffic.rates[TRIAL_OTHER] = 500 * MB_PER_S;
  run(&world, &traffic, 6 * NS_PER_S);
  assert_int_equal(world.trial.way, TRIAL_USUAL);
}

static void what_is_fixed_stays(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 4000 * MB_PER_S } };
  for (int way = 0; way < TRIAL_WAYS; way++) {
    struct world world;
    world_init(&world, 7);
    trial_init(&world.trial, (enum trial_way)way, false, TRIAL_FIRST_NS, 7);
    run(&world, &traffic, 3 * NS_PER_S);
    assert_int_equal(world.switches, 0);
    assert_int_equal(world.trial.way, way);
  }
}

/* Threads read the clock before they have the lock. */
static void time_may_seem_to_go_back(void **state) {
  (void)state;
  struct trial trial;
  uint64_t now_ns = NS_PER_S;
  trial_init(&trial, TRIAL_USUAL, true, TRIAL_FIRST_NS, 8);
  for (int i = 0; i < 100000; i++) {
    now_ns += STEP_NS;
    uint64_t rate = trial.way == TRIAL_OTHER ? 4000 * MB_PER_S : 2000 * MB_PER_S;
    trial_moved(&trial, rate / 40000, now_ns);
    trial_moved(&trial, rate / 40000, now_ns - 30 * NS_PER_US);
  }
  assert_int_equal(trial.choice, TRIAL_OTHER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_faster_way_is_taken),
    cmocka_unit_test(very_fast_networks),
    cmocka_unit_test(one_bad_window_does_not_decide),
    cmocka_unit_test(small_messages_go_the_usual_way),
    cmocka_unit_test(bulk_that_ends_is_noticed_at_once),
    cmocka_unit_test(pauses_do_not_count),
    cmocka_unit_test(a_way_that_does_not_work_is_left),
    cmocka_unit_test(trials_become_rare),
    cmocka_unit_test(bad_windows_are_cut_short),
    cmocka_unit_test(a_winner_that_falls_behind_is_tried_again),
    cmocka_unit_test(what_is_fixed_stays),
    cmocka_unit_test(time_may_seem_to_go_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
