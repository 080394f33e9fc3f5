/* SPDX-License-Identifier: Apache-2.0 */
/* Which mode wins, under traffic and time that are made up. */
#include "net_plugin/engine/drive.h"

#include "common/clock.h"
#include "tests/lib/unit.h"

#define MB_PER_S UINT64_C(1000000)
#define STEP_NS (50 * NS_PER_US)

/* Traffic whose rate depends on who moves it. */
struct traffic {
  uint64_t rates[DRIVE_MODES]; /* bytes per second */
  unsigned noise_percent;      /* of each step, up or down */
  uint64_t burst_ns, pause_ns; /* 0: without pauses */
};

struct world {
  struct drive drive;
  uint64_t now_ns, random;
  uint64_t in_mode_ns[DRIVE_MODES]; /* busy time */
  unsigned switches;
};

static void world_init(struct world *world, uint64_t seed) {
  *world = (struct world){ .now_ns = 7 * NS_PER_S, .random = seed * 2 + 1 };
  drive_init(&world->drive, DRIVE_INLINE, true, seed);
}

static uint64_t draw(struct world *world, uint64_t below) {
  world->random = world->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (world->random >> 33) % below;
}

/* Lets so much busy time pass. */
static void run(struct world *world, const struct traffic *traffic, uint64_t busy_ns) {
  uint64_t burst_ns = 0;
  for (uint64_t done_ns = 0; done_ns < busy_ns; done_ns += STEP_NS) {
    enum drive_mode mode = world->drive.mode;
    uint64_t bytes = traffic->rates[mode] / (NS_PER_S / STEP_NS);
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
    world->in_mode_ns[mode] += STEP_NS;
    drive_moved(&world->drive, bytes, world->now_ns);
    world->switches += world->drive.mode != mode;
  }
}

/* What the mode is once the first trial is over. */
static enum drive_mode outcome(const struct traffic *traffic, uint64_t seed) {
  struct world world;
  world_init(&world, seed);
  run(&world, traffic, NS_PER_S);
  assert_false(world.drive.is_trying);
  assert_int_not_equal(world.drive.interval_ns, 0); /* there was one */
  return world.drive.mode;
}

static void the_faster_mode_is_taken(void **state) {
  (void)state;
  struct traffic traffic = { .noise_percent = 30 };
  for (uint64_t seed = 0; seed < 50; seed++) {
    traffic.rates[DRIVE_INLINE] = 2000 * MB_PER_S;
    traffic.rates[DRIVE_THREAD] = 3000 * MB_PER_S;
    assert_int_equal(outcome(&traffic, seed), DRIVE_THREAD);
    traffic.rates[DRIVE_THREAD] = 2020 * MB_PER_S; /* not worth it */
    assert_int_equal(outcome(&traffic, seed), DRIVE_INLINE);
    traffic.rates[DRIVE_THREAD] = 1000 * MB_PER_S;
    assert_int_equal(outcome(&traffic, seed), DRIVE_INLINE);
  }
}

/* 400 Gb/s and more must not overflow anything. */
static void very_fast_networks(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 60000 * MB_PER_S, 200000 * MB_PER_S } };
  assert_int_equal(outcome(&traffic, 1), DRIVE_THREAD);
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
    assert_int_equal(world.drive.mode, DRIVE_THREAD);
  }
}

static void small_messages_stay_inline(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 20 * MB_PER_S, 200 * MB_PER_S } };
  struct world world;
  world_init(&world, 3);
  run(&world, &traffic, 20 * NS_PER_S);
  assert_int_equal(world.switches, 0);
  assert_int_equal(world.drive.mode, DRIVE_INLINE);
}

static void bulk_that_ends_is_noticed_at_once(void **state) {
  (void)state;
  struct traffic bulk = { .rates = { 2000 * MB_PER_S, 4000 * MB_PER_S } };
  struct traffic small = { .rates = { MB_PER_S, MB_PER_S } };
  struct world world;
  world_init(&world, 4);
  run(&world, &bulk, NS_PER_S);
  assert_int_equal(world.drive.mode, DRIVE_THREAD);
  run(&world, &small, 5 * NS_PER_MS);
  assert_int_equal(world.drive.mode, DRIVE_INLINE);
  /* What was found out still holds. */
  run(&world, &bulk, 5 * NS_PER_MS);
  assert_int_equal(world.drive.mode, DRIVE_THREAD);
  /* One message now and then has no busy time at all. */
  for (int i = 0; i < 3; i++) {
    world.now_ns += 5 * NS_PER_MS;
    drive_moved(&world.drive, 8, world.now_ns);
  }
  assert_int_equal(world.drive.mode, DRIVE_INLINE);
}

/* A job that computes most of the time is measured while it communicates. */
static void pauses_do_not_count(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 3000 * MB_PER_S },
                             .noise_percent = 20,
                             .burst_ns = 6 * NS_PER_MS,
                             .pause_ns = 300 * NS_PER_MS };
  for (uint64_t seed = 0; seed < 20; seed++) {
    assert_int_equal(outcome(&traffic, seed), DRIVE_THREAD);
  }
}

/* Threads that get no CPU: what they move is not even bulk. */
static void a_mode_that_does_not_work_is_left(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 10 * MB_PER_S } };
  struct world world;
  world_init(&world, 5);
  run(&world, &traffic, 2 * NS_PER_S);
  assert_int_equal(world.drive.mode, DRIVE_INLINE);
  assert_false(world.drive.is_trying);
  assert_true(world.in_mode_ns[DRIVE_THREAD] < 100 * NS_PER_MS);
}

static void trials_become_rare(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 1000 * MB_PER_S } };
  struct world world;
  world_init(&world, 6);
  run(&world, &traffic, 1000 * NS_PER_S);
  /* After 0.1, 5, 15, 35, 75, 155, 315, 615 and 915 s, about; three windows each. */
  assert_in_range(world.in_mode_ns[DRIVE_THREAD] / NS_PER_MS, 8 * 60, 10 * 80);
  assert_int_equal(world.drive.interval_ns, 300 * NS_PER_S);
  /* And another winner is looked at again soon. */
  traffic.rates[DRIVE_THREAD] = 3000 * MB_PER_S;
  run(&world, &traffic, 400 * NS_PER_S);
  assert_int_equal(world.drive.mode, DRIVE_THREAD);
  assert_true(world.drive.interval_ns < 300 * NS_PER_S);
}

static void what_is_fixed_stays(void **state) {
  (void)state;
  struct traffic traffic = { .rates = { 2000 * MB_PER_S, 4000 * MB_PER_S } };
  for (int mode = 0; mode < DRIVE_MODES; mode++) {
    struct world world;
    world_init(&world, 7);
    drive_init(&world.drive, (enum drive_mode)mode, false, 7);
    run(&world, &traffic, 3 * NS_PER_S);
    assert_int_equal(world.switches, 0);
    assert_int_equal(world.drive.mode, mode);
  }
}

/* Threads read the clock before they have the lock. */
static void time_may_seem_to_go_back(void **state) {
  (void)state;
  struct drive drive;
  uint64_t now_ns = NS_PER_S;
  drive_init(&drive, DRIVE_INLINE, true, 8);
  for (int i = 0; i < 100000; i++) {
    now_ns += STEP_NS;
    uint64_t rate = drive.mode == DRIVE_THREAD ? 4000 * MB_PER_S : 2000 * MB_PER_S;
    drive_moved(&drive, rate / 40000, now_ns);
    drive_moved(&drive, rate / 40000, now_ns - 30 * NS_PER_US);
  }
  assert_int_equal(drive.choice, DRIVE_THREAD);
}

static void numbers_of_engines(void **state) {
  (void)state;
  assert_int_equal(drive_engines(1, 1), 1);
  assert_int_equal(drive_engines(7, 1), 1);
  assert_int_equal(drive_engines(8, 1), 2);
  assert_int_equal(drive_engines(31, 1), 2);
  assert_int_equal(drive_engines(32, 1), 4);
  assert_int_equal(drive_engines(192, 2), 2);
  assert_int_equal(drive_engines(192, 3), 1);
  assert_int_equal(drive_engines(192, 8), 1);
  assert_false(drive_has_room(2, 1));
  assert_false(drive_has_room(3, 1));
  assert_true(drive_has_room(4, 1));
  assert_true(drive_has_room(4, 2));
  assert_false(drive_has_room(4, 3));
  assert_false(drive_has_room(5, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_faster_mode_is_taken),
    cmocka_unit_test(very_fast_networks),
    cmocka_unit_test(one_bad_window_does_not_decide),
    cmocka_unit_test(small_messages_stay_inline),
    cmocka_unit_test(bulk_that_ends_is_noticed_at_once),
    cmocka_unit_test(pauses_do_not_count),
    cmocka_unit_test(a_mode_that_does_not_work_is_left),
    cmocka_unit_test(trials_become_rare),
    cmocka_unit_test(what_is_fixed_stays),
    cmocka_unit_test(time_may_seem_to_go_back),
    cmocka_unit_test(numbers_of_engines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
