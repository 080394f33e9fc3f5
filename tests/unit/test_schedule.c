/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: balance, the same at every rank, nothing that NCCL ruled out; and the text of plans. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/calibrate/chunks.h"
#include "tuner_plugin/calibrate/plan.h"

enum { ALGOS = 7, PROTOS = 3 };

struct cells {
  float us[ALGOS][PROTOS];
};

static struct cells offer(float tree_ll, float tree_simple, float ring_ll, float ring_simple) {
  struct cells cells;
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    cells.us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  cells.us[PROFILE_TREE][PROFILE_LL] = tree_ll;
  cells.us[PROFILE_TREE][PROFILE_SIMPLE] = tree_simple;
  cells.us[PROFILE_RING][PROFILE_LL] = ring_ll;
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = ring_simple;
  return cells;
}

static struct plan_entry entries[PLAN_ENTRIES_MAX];

static struct plan parse(const char *text) {
  struct plan plan;
  char error[PLAN_ERROR_MAX] = "";
  if (plan_parse(text, entries, &plan, error) < 0) {
    fail_msg("%s: %s", text, error);
  }
  return plan;
}

static struct schedule_set open_as(const char *text, struct cells *cells, int algos,
                                   bool takes_chunks) {
  struct plan plan = parse(text);
  struct schedule_set set;
  plan_open(&plan, &plan.entries[0], (struct decide_costs){ &cells->us[0][0], algos, PROTOS },
            takes_chunks, &set);
  return set;
}

static struct schedule_set open_first(const char *text, struct cells *cells, int algos) {
  return open_as(text, cells, algos, false);
}

/* "ring.ll tree.simple@2" */
static const char *name(const struct schedule_set *set) {
  static char text[SCHEDULE_CELLS_MAX * PLAN_CELL_TEXT_MAX];
  text[0] = '\0';
  for (size_t i = 0; i < set->count; i++) {
    char cell[PLAN_CELL_TEXT_MAX];
    strcat(text, i ? " " : "");
    strcat(text, plan_format_cell(set->cells[i], cell));
  }
  return text;
}

static void every_block_has_every_cell_once(void **state) {
  (void)state;
  struct schedule_key key = { 7, 1, PROFILE_ALLREDUCE, 4096 };
  for (size_t count = 1; count <= SCHEDULE_CELLS_MAX; count++) {
    for (uint64_t block = 0; block < 50; block++) {
      uint64_t seen = 0;
      for (size_t i = 0; i < count; i++) {
        struct schedule_turn turn = schedule_pick(key, count, block * count + i);
        size_t picked = turn.cell;
        assert_true(turn.is_counted == (block > 0));
        assert_true(picked < count);
        seen |= UINT64_C(1) << picked;
      }
      assert_int_equal(seen, (UINT64_C(1) << count) - 1);
    }
  }
}

/* Behind the first block each cell comes `run` times in a row, two thirds count. */
static void check_runs(uint32_t most, uint64_t bytes, uint64_t run) {
  enum { CELLS = 5, BLOCKS = 40 };
  struct schedule_key key = { 3, most, PROFILE_ALLREDUCE, bytes };
  uint64_t counted[CELLS] = { 0 };
  for (uint64_t call = 0; call < CELLS + BLOCKS * CELLS * run; call++) {
    struct schedule_turn turn = schedule_pick(key, CELLS, call);
    uint64_t place = call < CELLS ? 0 : (call - CELLS) % run;
    assert_true(turn.is_counted == (call >= CELLS && place >= run / 3));
    if (place > 0) {
      assert_int_equal(turn.cell, schedule_pick(key, CELLS, call - 1).cell);
    }
    counted[turn.cell] += turn.is_counted;
  }
  for (int i = 0; i < CELLS; i++) {
    assert_int_equal(counted[i], BLOCKS * (run - run / 3));
  }
}

/* Of large sizes fewer calls are enough, but not less than a quarter. */
static void cells_come_in_runs(void **state) {
  (void)state;
  check_runs(12, 0, 12);
  check_runs(12, 1 << 20, 12);
  check_runs(12, 2 << 20, 8);
  check_runs(12, 4 << 20, 4);
  check_runs(12, 64 << 20, 3);
  check_runs(3, 8, 3);
  check_runs(3, 64 << 20, 1);
  check_runs(0, 8, 1);
}

/* Each cell comes at each place of a block about equally often: 2400 blocks, 600 expected, and the
 * binomial's standard deviation is 21. */
static void no_place_is_favoured(void **state) {
  (void)state;
  enum { CELLS = 4, BLOCKS = 2400 };
  int seen[CELLS][CELLS] = { 0 };
  struct schedule_key key = { 1, 1, PROFILE_ALLGATHER, 1 << 20 };
  for (int call = 0; call < CELLS * BLOCKS; call++) {
    seen[call % CELLS][schedule_pick(key, CELLS, (uint64_t)call).cell]++;
  }
  for (int i = 0; i < CELLS * CELLS; i++) {
    assert_in_range(seen[i / CELLS][i % CELLS], 490, 710);
  }
}

static void seed_size_and_collective_change_the_order(void **state) {
  (void)state;
  static const struct schedule_key keys[] = { { 1, 1, PROFILE_ALLREDUCE, 8 },
                                              { 2, 1, PROFILE_ALLREDUCE, 8 },
                                              { 1, 1, PROFILE_ALLREDUCE, 16 },
                                              { 1, 1, PROFILE_REDUCE, 8 } };
  for (size_t i = 1; i < sizeof keys / sizeof keys[0]; i++) {
    int equal = 0;
    for (uint64_t call = 0; call < 600; call++) {
      equal += schedule_pick(keys[0], 6, call).cell == schedule_pick(keys[i], 6, call).cell;
    }
    assert_in_range(equal, 50, 150); /* by chance: 100 */
  }
}

static void never_tries_what_nccl_ruled_out(void **state) {
  (void)state;
  struct cells cells = offer(-1.0f, 10.0f, 9.0f, NAN);
  struct schedule_set set = open_first("channels=0,2/allreduce:8=all", &cells, ALGOS);
  assert_string_equal(name(&set), "ring.ll tree.simple tree.simple@2 ring.ll@2");
  set =
      open_first("allreduce:8=tree.ll,ring.simple,ring.ll128@1,tree.simple,pat.simple", &cells, 6);
  assert_string_equal(name(&set), "ring.ll tree.simple");
  cells = offer(-1.0f, INFINITY, -1.0f, NAN);
  set = open_first("allreduce:8=all,tree.ll", &cells, ALGOS);
  assert_int_equal(set.count, 0);
  struct plan plan = parse("allreduce:8=all");
  plan_open(&plan, &plan.entries[0], (struct decide_costs){ NULL, ALGOS, PROTOS }, true, &set);
  assert_int_equal(set.count, 0);
}

/* Nothing but the costs and the plan decides, so a random table is the same at every rank. */
static void only_offered_cells_whatever_the_table(void **state) {
  (void)state;
  srand(5);
  for (int round = 0; round < 2000; round++) {
    struct cells cells;
    for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
      cells.us[cell / PROTOS][cell % PROTOS] =
          rand() % 3 ? -1.0f : (float)(rand() % 1000) * (rand() % 2 ? 1.0f : 1024.0f);
    }
    struct cells before = cells;
    struct schedule_set set =
        open_first("channels=0,1,4/cost=200/ll=1G/allreduce:8=all", &cells, ALGOS);
    struct schedule_set again =
        open_first("channels=0,1,4/cost=200/ll=1G/allreduce:8=all", &cells, ALGOS);
    assert_true(schedule_is_same(&set, &again));
    assert_memory_equal(&cells, &before, sizeof cells);
    for (size_t i = 0; i < set.count; i++) {
      float cost = cells.us[set.cells[i].algorithm][set.cells[i].protocol];
      float cheapest = cells.us[set.cells[0].algorithm][set.cells[0].protocol];
      assert_true(cost >= cheapest && cost <= 200.0f * cheapest);
    }
  }
}

static void hopeless_cells_are_left_out(void **state) {
  (void)state;
  struct cells cells = offer(10.0f, 30.0f, 45.0f, 11.0f);
  struct schedule_set set = open_first("allreduce:1M=all", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll tree.simple ring.simple"); /* 45 is over 4 x 10 */
  set = open_first("cost=5/allreduce:1M=all", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll tree.simple ring.ll ring.simple");
  set = open_first("cost=5/allreduce:2M=all", &cells, ALGOS); /* LL, unless NCCL itself chose it */
  assert_string_equal(name(&set), "tree.ll tree.simple ring.simple");
  set = open_first("allreduce:2M=ring.ll", &cells, ALGOS); /* named: tried */
  assert_string_equal(name(&set), "tree.ll ring.ll");
  cells.us[PROFILE_RING][PROFILE_LL] = 10.0f * 1024.0f; /* fp8's penalty holds for these, too */
  set = open_first("allreduce:2M=ring.ll", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll");
}

static void collnet_keeps_its_channels(void **state) {
  (void)state;
  struct cells cells = offer(10.0f, -1.0f, -1.0f, -1.0f);
  cells.us[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] = 12.0f;
  struct schedule_set set = open_first("channels=0,2/allreduce:8=all", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll collnetchain.simple tree.ll@2");
}

/* ---- chunks ---- */

static void chunks_are_tried_where_nccl_asks(void **state) {
  (void)state;
  static const char plan[] = "allreduce:1M=ring.simple@2,ring.simple@2:64K,ring.simple@2:256K";
  struct cells cells = offer(10.0f, -1.0f, -1.0f, 11.0f);
  struct schedule_set set = open_as(plan, &cells, ALGOS, true);
  assert_string_equal(name(&set), "tree.ll ring.simple@2 ring.simple@2:65536 ring.simple@2:262144");
  struct schedule_set without = open_as(plan, &cells, ALGOS, false);
  assert_string_equal(name(&without), "tree.ll ring.simple@2");
  assert_false(schedule_is_same(&set, &without));
  without = set;
  without.cells[2].chunk = 512;
  assert_false(schedule_is_same(&set, &without));
  for (size_t i = 0; i < set.count; i++) {
    char text[PLAN_CELL_TEXT_MAX];
    struct schedule_cell cell;
    assert_int_equal(plan_parse_cell(plan_format_cell(set.cells[i], text), &cell), 0);
    assert_int_equal(cell.chunk, set.cells[i].chunk);
    assert_int_equal(cell.channels, set.cells[i].channels);
  }
}

/* As NCCL deals a call out to channels (v2.30.7-1 src/enqueue.cc:640-680): cells of a size that
 * hangs on the protocol, about equally many for each, the last channel what is left. */
static struct chunks_own deal_out(uint64_t bytes, uint64_t cell, uint64_t channels) {
  struct chunks_call call = { .bytes = bytes };
  uint64_t cells = (bytes + cell - 1) / cell, each = (cells + channels - 1) / channels;
  uint64_t used = (cells + each - 1) / each, last = bytes - (used - 1) * each * cell;
  chunks_add(&call, used == 1 ? bytes : each * cell, 1000);
  if (used > 1) {
    chunks_add(&call, last, last == each * cell ? 1000 : 900);
  }
  if (used > 2) {
    chunks_add(&call, each * cell, 1000);
  }
  struct chunks_own own = chunks_sum(&call);
  assert_int_equal(own.chunk, 1000);
  return own.channels == used ? own : (struct chunks_own){ 0 };
}

static void shares_tell_the_channels(void **state) {
  (void)state;
  for (uint64_t channels = 1; channels <= PROFILE_CHANNELS_MAX; channels++) {
    for (uint64_t bytes = 1; bytes < 100 << 20; bytes = bytes * 3 + 7) {
      assert_true(deal_out(bytes, 16 << 10, channels).channels > 0);
    }
  }
  /* Two calls asked about as one, a share of nothing, more questions than there are: not known. */
  struct chunks_call call = { .bytes = 100 };
  assert_int_equal(chunks_sum(&call).channels, 0);
  chunks_add(&call, 60, 10);
  assert_int_equal(chunks_sum(&call).channels, 0);
  chunks_add(&call, 60, 10);
  assert_int_equal(chunks_sum(&call).channels, 0);
  call = (struct chunks_call){ .bytes = 100 };
  chunks_add(&call, 100, 10);
  assert_int_equal(chunks_sum(&call).channels, 1);
  chunks_add(&call, 0, 10);
  assert_int_equal(chunks_sum(&call).channels, 0);
  call = (struct chunks_call){ .bytes = 100 };
  for (int i = 0; i < 4; i++) {
    chunks_add(&call, 25, 10);
  }
  assert_int_equal(chunks_sum(&call).channels, 0);
  call = (struct chunks_call){ .bytes = 1000 };
  for (int i = 0; i < 3; i++) {
    chunks_add(&call, 10, 10); /* 100 channels are none that NCCL has */
  }
  assert_int_equal(chunks_sum(&call).channels, 0);
}

static void a_few_chunks_around_nccls_own(void **state) {
  (void)state;
  static const struct {
    struct chunks_site site;
    uint32_t chunks[CHUNKS_TRIED_MAX];
  } cases[] = {
    /* Ring Simple, large: NCCL's own is all its buffers hold. */
    { { PROFILE_ALLREDUCE, PROFILE_RING, PROFILE_SIMPLE, 256 << 20, 16, { 8, 2 << 20 }, 2 << 20 },
      { 512 << 10, 1 << 20 } },
    /* Small: each of 16 ranks passes 32K, so that NCCL's 2M is 32K. */
    { { PROFILE_ALLREDUCE, PROFILE_RING, PROFILE_SIMPLE, 4 << 20, 16, { 8, 2 << 20 }, 2 << 20 },
      { 8 << 10, 16 << 10 } },
    { { PROFILE_BROADCAST, PROFILE_RING, PROFILE_SIMPLE, 4 << 20, 16, { 8, 2 << 20 }, 2 << 20 },
      { 128 << 10, 256 << 10 } },
    { { PROFILE_ALLREDUCE, PROFILE_RING, PROFILE_SIMPLE, 64 << 10, 16, { 2, 2 << 20 }, 2 << 20 },
      { 0 } },
    /* NCCL has halved it: twice as much fits, and there is enough; not so beyond the slot. */
    { { PROFILE_ALLREDUCE, PROFILE_TREE, PROFILE_LL128, 8 << 20, 16, { 4, 72000 }, 576000 },
      { 16384 / 1920 * 1920, 32768 / 1920 * 1920, 131072 / 1920 * 1920 } },
    { { PROFILE_ALLREDUCE, PROFILE_TREE, PROFILE_LL128, 8 << 20, 16, { 4, 72000 }, 143999 },
      { 16384 / 1920 * 1920, 32768 / 1920 * 1920 } },
    { { PROFILE_ALLREDUCE, PROFILE_TREE, PROFILE_LL128, 256 << 10, 16, { 4, 72000 }, 576000 },
      { 16384 / 1920 * 1920, 32768 / 1920 * 1920 } },
    /* Not known. */
    { { PROFILE_ALLREDUCE, PROFILE_RING, PROFILE_SIMPLE, 256 << 20, 16, { 0, 0 }, 2 << 20 },
      { 0 } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t chunks[CHUNKS_TRIED_MAX] = { 0 };
    size_t count = chunks_around(&cases[i].site, chunks);
    for (size_t k = 0; k < CHUNKS_TRIED_MAX; k++) {
      if (chunks[k] != cases[i].chunks[k] || (k < count) != (chunks[k] > 0)) {
        fail_msg("case %zu, chunk %zu of %zu: %u, not %u", i, k, count, chunks[k],
                 cases[i].chunks[k]);
      }
    }
  }
}

/* Whatever NCCL does: whole grains, at least one, never more than its buffers are known to hold. */
static void chunks_stay_within_limits(void **state) {
  (void)state;
  static const uint32_t grains[PROFILE_PROTOCOL_COUNT] = { 16, 1920, 512 };
  srand(3);
  size_t tried = 0;
  for (int draw = 0; draw < 20000; draw++) {
    struct chunks_site site = {
      .collective = (enum profile_collective)(rand() % PROFILE_COLLECTIVE_COUNT),
      .algorithm = (enum profile_algorithm)(rand() % PROFILE_ALGORITHM_COUNT),
      .protocol = (enum profile_protocol)(rand() % PROFILE_PROTOCOL_COUNT),
      .bytes = (uint64_t)rand() << rand() % 12,
      .ranks = (uint32_t)rand() % 600,
      .own = { (uint32_t)rand() % 65, (uint32_t)rand() >> rand() % 31 },
    };
    site.slot = site.own.chunk << rand() % 2;
    uint32_t chunks[CHUNKS_TRIED_MAX];
    size_t count = chunks_around(&site, chunks);
    for (size_t i = 0; i < count; i++) {
      assert_true(chunks[i] >= grains[site.protocol] && chunks[i] % grains[site.protocol] == 0);
      assert_true(chunks[i] <= site.own.chunk || chunks[i] <= site.slot);
      assert_in_range(chunks[i], NCCL_CHUNK_MIN, NCCL_CHUNK_MAX);
      assert_int_not_equal(chunks[i], site.own.chunk);
    }
    tried += count;
  }
  assert_true(tried > 10000);
}

static void plan_is_read_and_found(void **state) {
  (void)state;
  struct plan plan =
      parse("seed=12/run=3/channels=1/allreduce:8,64K=all/allgather:8=tree.ll128@3,default");
  assert_int_equal(plan.seed, 12);
  assert_int_equal(plan.run, 3);
  assert_int_equal(plan.entry_count, 3);
  assert_int_equal(plan_find(&plan, PROFILE_ALLREDUCE, 65536), 1);
  assert_int_equal(plan_find(&plan, PROFILE_ALLGATHER, 8), 2);
  assert_int_equal(plan_find(&plan, PROFILE_REDUCE, 8), -1);
  assert_int_equal(plan_find(&plan, -1, 8), -1);
  assert_true(plan.entries[1].is_all);
  assert_int_equal(plan.entries[2].cell_count, 1);
  char text[PLAN_CELL_TEXT_MAX];
  assert_string_equal(plan_format_cell(plan.entries[2].cells[0], text), "tree.ll128@3");
}

static void bad_plans_name_the_fault(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } bad[] = {
    { "", "COLLECTIVE:SIZES" },
    { "seed=1", "no collective" },
    { "seed=x/allreduce:8=all", "seed=" },
    { "run=0/allreduce:8=all", "1 to 1000" },
    { "cost=0/allreduce:8=all", "1 to 200" },
    { "cost=201/allreduce:8=all", "1 to 200" },
    { "channels=65/allreduce:8=all", "0 to 64" },
    { "channels=1,1,1,1,1,1,1,1,1/allreduce:8=all", "up to 8" },
    { "ll=x/allreduce:8=all", "a size" },
    { "allreduce:8", "what to try" },
    { "allreduce:8=", "no cell" },
    { "allreduce:x=all", "a size is wanted" },
    { "allreduce:8,=all", "a size is wanted" },
    { "alltoall:8=all", "broadcast|reduce" },
    { "allreduce:8=ring", "no cell" },
    { "allreduce:8=ring.simple@0", "no cell" },
    { "allreduce:8=ring.simple@65", "no cell" },
    { "allreduce:8=ring.simple@", "no cell" },
    { "allreduce:8=ring.simple:64K", "no cell" },
    { "allreduce:8=ring.simple@2:", "no cell" },
    { "allreduce:8=ring.simple@2:256", "no cell" },
    { "allreduce:8=ring.simple@2:32M", "no cell" },
    { "allreduce:8=ring.ll128@2:1K", "no cell" }, /* less than its grain */
    { "allreduce:8=all/allreduce:4,8=all", "twice" },
    { "allreduce:8=all/", "COLLECTIVE" },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:8=all",
      "accepted" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct plan plan;
    char error[PLAN_ERROR_MAX] = "";
    assert_int_equal(plan_parse(bad[i].text, entries, &plan, error), -EINVAL);
    if (!strstr(error, bad[i].part)) {
      fail_msg("%s: \"%s\" is not in: %s", bad[i].text, bad[i].part, error);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_block_has_every_cell_once),
    cmocka_unit_test(cells_come_in_runs),
    cmocka_unit_test(no_place_is_favoured),
    cmocka_unit_test(seed_size_and_collective_change_the_order),
    cmocka_unit_test(never_tries_what_nccl_ruled_out),
    cmocka_unit_test(only_offered_cells_whatever_the_table),
    cmocka_unit_test(hopeless_cells_are_left_out),
    cmocka_unit_test(collnet_keeps_its_channels),
    cmocka_unit_test(chunks_are_tried_where_nccl_asks),
    cmocka_unit_test(shares_tell_the_channels),
    cmocka_unit_test(a_few_chunks_around_nccls_own),
    cmocka_unit_test(chunks_stay_within_limits),
    cmocka_unit_test(plan_is_read_and_found),
    cmocka_unit_test(bad_plans_name_the_fault),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
