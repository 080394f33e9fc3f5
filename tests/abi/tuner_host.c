/* SPDX-License-Identifier: Apache-2.0 */
/* Every release of NCCL from 2.19 to 2.32, as far as a tuner plugin can see it, against the built
 * libnccl-tuner-stratus.so. Each case of each release runs in a process of its own, because the
 * plugin reads its parameters once and says some things once per process. */
#include "tests/abi/tuner_driver.h"

#include <math.h>
#include <string.h>

#include "common/random.h"

enum { CALLS_PER_COMM = 1000 };

/* ---- random calls ---- */

static float random_cost(uint64_t *random) {
  uint64_t value = random_next(random);
  switch (value % 24) {
  case 0:
    return NAN;
  case 1:
    return INFINITY;
  case 2:
    return 0.0f;
  case 3:
    return -0.0f;
  case 4:
    return -7.5f;
  case 5:
    return 1e-40f; /* denormal */
  case 6:
    return (float)(value >> 40) * 1024.0f;
  case 7: /* dearer by what is just too much */
    return value >> 40 & 1 ? 4.0f : 4.0f * 256.0f;
  default:
    return value % 3 == 0 ? HOST_IGNORE : (float)((value >> 40) % 100000) * 0.125f;
  }
}

static void fill_memory(uint64_t *random, struct driver_memory *memory) {
  static const int channels[] = { 0, 0, 0, 0, 1, 2, 5, 64, -1 };
  memory->algo = -1;
  memory->proto = -1;
  memory->channels = channels[random_next(random) % (sizeof channels / sizeof channels[0])];
  for (int i = 0; i < DRIVER_GUARD_WORDS; i++) {
    memory->before[i] = (uint32_t)random_next(random);
    memory->after[i] = (uint32_t)random_next(random);
  }
  for (int i = 0; i < DRIVER_CELLS_MAX; i++) {
    memory->costs[i] = random_cost(random);
  }
}

/* Any size, and often one beside a power of two, where rows begin and end. */
static size_t random_bytes(uint64_t *random) {
  uint64_t value = random_next(random);
  if (value % 3 == 0) {
    return ((size_t)1 << (value >> 8) % 36) + (size_t)(value >> 16) % 3 - 1;
  }
  return (size_t)(random_next(random) >> (value >> 8) % 64);
}

static struct driver_call random_call(uint64_t *random) {
  uint64_t value = random_next(random);
  return (struct driver_call){
    /* Mostly the five collectives; sometimes a number that no tuner should be asked about. */
    .func = value % 16 == 0 ? (int)(value >> 8 & 31) - 8 : (int)((value >> 8 & 0xff) % 5),
    .bytes = random_bytes(random),
    .pipe_ops = 1 + (int)(value >> 24 & 3),
    .is_registered = (int)(value >> 32 & 1),
  };
}

/* ---- the test's own idea of what a profile means ---- */

struct expected_row {
  int func;
  size_t ranks, nodes;
  size_t bytes_lo, bytes_hi;
  int algo, proto, channels;
  bool is_measured; /* against Ring Simple; such a row is valid only while NCCL would choose that */
};

static const struct expected_row expected_rows[] = {
  { HOST_ALLREDUCE, 32, 4, 1 << 10, 64 << 10, HOST_TREE, HOST_LL, 0, false },
  { HOST_ALLREDUCE, 32, 4, 64 << 10, 1 << 20, HOST_RING, HOST_LL128, 4, false },
  { HOST_ALLREDUCE, 32, 4, 1 << 20, 16 << 20, HOST_RING, HOST_SIMPLE, 8, false },
  { HOST_ALLREDUCE, 32, 4, 32 << 20, SIZE_MAX, HOST_PAT, HOST_SIMPLE, 2, false },
  { HOST_ALLGATHER, 32, 4, 0, SIZE_MAX, HOST_RING, HOST_SIMPLE, 3, false },
  { HOST_REDUCESCATTER, 32, 4, 0, SIZE_MAX, HOST_RING, HOST_LL, 0, true },
  { HOST_BROADCAST, 32, 4, 8, 1 << 20, HOST_RING, HOST_LL, 1, false },
  { HOST_REDUCE, 32, 4, 8, 1 << 20, HOST_TREE, HOST_SIMPLE, 1, false },
  { HOST_ALLREDUCE, 2, 2, 0, SIZE_MAX, HOST_TREE, HOST_SIMPLE, 0, false },
  { HOST_ALLREDUCE, 64, 8, 0, SIZE_MAX, HOST_COLLNET_CHAIN, HOST_SIMPLE, 0, false },
};

static const char profile_text[] =
    "{'schema': 2, 'id': 'host-test', %s'tables': ["
    "{'coll': 'allreduce', 'nodes': 4, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 1024, 'bytes_hi': 65536, 'algo': 'tree', 'proto': 'll'}, "
    "{'bytes_lo': 65536, 'bytes_hi': 1048576, 'algo': 'ring', 'proto': 'll128', 'channels': 4}, "
    "{'bytes_lo': 1048576, 'bytes_hi': 16777216, 'algo': 'ring', 'proto': 'simple', 'channels': "
    "8}, "
    "{'bytes_lo': 33554432, 'algo': 'pat', 'proto': 'simple', 'channels': 2}]}"
    ", {'coll': 'allgather', 'nodes': 4, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'simple', 'channels': 3}]}"
    ", {'coll': 'reducescatter', 'nodes': 4, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll', 'over_algo': 'ring', 'over_proto': 'simple', "
    "'default_ns': 2000, 'choice_ns': 1000}]}"
    ", {'coll': 'broadcast', 'nodes': 4, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 8, 'bytes_hi': 1048576, 'algo': 'ring', 'proto': 'll', 'channels': 1}, "
    "{'bytes_lo': 1048576, 'bytes_hi': 2097152, 'algo': 'ring', 'proto': 'll', 'channels': 1, "
    "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 102000, 'choice_ns': 100000, "
    "'noise_permille': 10}]}" /* too little */
    ", {'coll': 'reduce', 'nodes': 4, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 8, 'bytes_hi': 1048576, 'algo': 'tree', 'proto': 'simple', 'channels': 1}]}"
    ", {'coll': 'allreduce', 'nodes': 2, 'ppn': 1, 'rows': ["
    "{'bytes_lo': 0, 'algo': 'tree', 'proto': 'simple'}]}"
    ", {'coll': 'allreduce', 'nodes': 8, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 0, 'algo': 'collnetchain', 'proto': 'simple', 'channels': 4}]}" /* takes the
                                                                                     channels that
                                                                                     NCCL has */
    ", {'coll': 'allreduce', 'nodes': 1, 'ppn': 8, 'rows': ["
    "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll', 'channels': 1}]}"
    "]}";

static const struct expected_row *find_expected(const struct driver_comm *comm,
                                                struct driver_call call) {
  for (size_t i = 0; i < sizeof expected_rows / sizeof expected_rows[0]; i++) {
    const struct expected_row *row = &expected_rows[i];
    if (row->func == call.func && row->ranks == comm->ranks && row->nodes == comm->nodes &&
        call.bytes >= row->bytes_lo && call.bytes < row->bytes_hi) {
      return row;
    }
  }
  return NULL;
}

/* May the row's cell be chosen? With a table: it is available, NCCL has a choice at all, and the
 * cell is not 256 times dearer. Without: only what every communicator has. */
static bool is_choosable(const struct driver_comm *comm, const struct expected_row *row,
                         const float *costs) {
  int algos = cases_release->algos;
  if (comm->plugin->abi == 1) {
    return false;
  }
  if (comm->plugin->abi == 2) {
    return row->proto != HOST_LL128 &&
           (row->algo == HOST_RING || (row->algo == HOST_TREE && row->func == HOST_ALLREDUCE));
  }
  int algo, proto;
  if (row->algo >= algos || !driver_select(costs, algos, &algo, &proto)) {
    return false;
  }
  if (row->is_measured && (algo != HOST_RING || proto != HOST_SIMPLE)) {
    return false;
  }
  float wanted = costs[row->algo * HOST_PROTOS + row->proto];
  if (algo == row->algo && proto == row->proto) {
    return true;
  }
  return wanted >= 0 && wanted / 256.0 < (double)costs[algo * HOST_PROTOS + proto];
}

static void apply_expected(const struct driver_comm *comm, const struct expected_row *row,
                           struct driver_memory *memory) {
  if (comm->plugin->abi == 2) {
    memory->algo = row->algo;
    memory->proto = row->proto;
  } else {
    int algo, proto;
    driver_select(memory->costs, cases_release->algos, &algo, &proto);
    if (algo != row->algo || proto != row->proto) {
      memory->costs[row->algo * HOST_PROTOS + row->proto] = 0.0f;
    }
  }
  if (row->channels > 0 && (memory->channels <= 0 || memory->channels > row->channels)) {
    memory->channels = row->channels;
  }
}

struct tally {
  int matched, chosen;
};

/* One call: everything the plugin could write to must be as expected, bit for bit. */
static void ask_and_compare(struct driver_comm *comm, struct driver_call call,
                            struct driver_memory *memory, bool has_profile, struct tally *tally) {
  struct driver_memory expected = *memory;
  const struct expected_row *row = has_profile ? find_expected(comm, call) : NULL;
  bool is_chosen = row && is_choosable(comm, row, memory->costs);
  if (is_chosen) {
    apply_expected(comm, row, &expected);
  }
  enum nccl_result result = driver_ask(comm, call, memory);
  CHECK(result == NCCL_SUCCESS, "getCollInfo gave %d", result);
  CHECK(memcmp(&expected, memory, sizeof expected) == 0,
        "func %d, %zu bytes, %zu ranks on %zu nodes: outputs differ (%s; algo %d proto %d "
        "channels %d, expected %d %d %d)",
        call.func, call.bytes, comm->ranks, comm->nodes, is_chosen ? "row holds" : "untouched",
        memory->algo, memory->proto, memory->channels, expected.algo, expected.proto,
        expected.channels);
  if (is_chosen && comm->plugin->abi > 2) {
    int algo = -1, proto = -1;
    driver_select(memory->costs, cases_release->algos, &algo, &proto);
    CHECK(algo == row->algo && proto == row->proto, "NCCL would run %d,%d", algo, proto);
  }
  tally->matched += row != NULL;
  tally->chosen += is_chosen;
}

static void ask_many(struct driver_comm *comm, uint64_t seed, bool has_profile,
                     struct tally *tally) {
  uint64_t random = seed;
  for (int i = 0; i < CALLS_PER_COMM; i++) {
    struct driver_memory memory;
    fill_memory(&random, &memory);
    ask_and_compare(comm, random_call(&random), &memory, has_profile, tally);
  }
}

static const size_t shapes[][2] = { { 32, 4 }, { 2, 2 }, { 8, 1 }, { 1, 1 },
                                    { 33, 4 }, { 0, 0 }, { 64, 8 } };
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

/* All shapes at once, in turn, opened and closed in different orders. */
static void run_communicators(const struct driver_plugin *plugin, bool has_profile,
                              struct tally *tally) {
  struct driver_comm comms[SHAPE_COUNT];
  for (int i = 0; i < SHAPE_COUNT; i++) {
    enum nccl_result result = driver_init_comm(&comms[i], plugin, shapes[i][0], shapes[i][1]);
    CHECK(result == NCCL_SUCCESS, "init gave %d", result);
  }
  for (int i = SHAPE_COUNT - 1; i >= 0; i--) {
    ask_many(&comms[i], (uint64_t)i, has_profile, tally);
  }
  for (int i = 0; i < SHAPE_COUNT; i += 2) {
    driver_close_comm(&comms[i]);
  }
  ask_many(&comms[1], 99, has_profile, tally);
  for (int i = 1; i < SHAPE_COUNT; i += 2) {
    driver_close_comm(&comms[i]);
  }
}

/* Communicators, and all again after NCCL unloaded the plugin and loaded it anew. */
static struct tally run_all(bool has_profile) {
  struct tally tally = { 0 };
  for (int load = 0; load < 2; load++) {
    struct driver_plugin plugin;
    driver_open(&plugin, cases_release);
    CHECK(plugin.abi == cases_release->tuners[0] - '0', "picked v%d", plugin.abi);
    CHECK(strcmp(driver_name(&plugin), "stratus") == 0, "is named %s", driver_name(&plugin));
    run_communicators(&plugin, has_profile, &tally);
    driver_close(&plugin);
  }
  return tally;
}

static void check_banner(const char *part) {
  char banner[64];
  snprintf(banner, sizeof banner, "tuner interface v%c", cases_release->tuners[0]);
  CHECK(cases_log_count(NCCL_LOG_INFO, banner) == 1, "not one banner with '%s'", banner);
  CHECK(cases_log_count(NCCL_LOG_INFO, part) >= 1, "nothing says '%s'", part);
}

/* ---- the cases ---- */

static void write_good_profile(const char *meta) {
  char text[sizeof profile_text + 64];
  snprintf(text, sizeof text, profile_text, meta);
  driver_write_profile(text);
}

static void case_no_profile(void) {
  struct tally tally = run_all(false);
  CHECK(tally.chosen == 0, "chosen without a profile");
  check_banner("no profile: NCCL's own choice is untouched");
  CHECK(cases_log_count(NCCL_LOG_WARN, "") == 0, "a warning without reason");
}

static void case_bad_profile(void) {
  driver_write_profile(
      "{'schema': 2, 'id': 'bad', 'tables': [{'coll': 'allreduce', 'nodes': 2, 'ppn': 1, "
      "'rows': [{'bytes_lo': 1024, 'algo': 'tre', 'proto': 'll'}]}]}");
  run_all(false);
  check_banner("bad profile: NCCL's own choice is untouched");
  CHECK(cases_log_count(NCCL_LOG_WARN, "test.profile: tables[0].rows[0].algo takes tree") == 1,
        "the place is not named");
  CHECK(cases_log_count(NCCL_LOG_WARN, "") == 1, "not one warning");
}

static void case_lost_profile(void) {
  setenv("STRATUS_PROFILE", "/nowhere/lost.profile", 1);
  run_all(false);
  CHECK(cases_log_count(NCCL_LOG_WARN, "/nowhere/lost.profile") == 1, "the file is not named");
  CHECK(cases_log_count(NCCL_LOG_WARN, "") == 1, "not one warning");
}

static void case_profile(void) {
  write_good_profile("");
  struct tally tally = run_all(true);
  check_banner("profile host-test, hash ");
  CHECK(cases_log_count(NCCL_LOG_WARN, "") == 0, "a warning without reason");
  CHECK(tally.matched > CALLS_PER_COMM / 3, "only %d calls matched", tally.matched);
  if (cases_release->tuners[0] == '1') {
    CHECK(cases_log_count(NCCL_LOG_INFO, "do not pass the communicator") == 1, "no reason");
  } else {
    CHECK(tally.chosen > CALLS_PER_COMM / 6 && tally.chosen < tally.matched, "%d of %d chosen",
          tally.chosen, tally.matched);
  }
}

static void case_other_release(void) {
  write_good_profile("'nccl_min': 29901, ");
  struct tally tally = run_all(false);
  CHECK(tally.chosen == 0, "chosen with a profile of another release");
  check_banner("made for other releases of NCCL");
}

static void case_off(void) {
  write_good_profile("");
  setenv("STRATUS_TUNER", "0", 1);
  run_all(false);
  check_banner("STRATUS_TUNER=0");
}

/* The user's own choice: IGNORE cells where there is a table, the variable itself where not. */
static void case_user_choice(void) {
  write_good_profile("");
  setenv("NCCL_ALGO", "Ring", 1);
  struct tally tally = run_all(cases_release->algos > 0);
  check_banner("profile host-test");
  CHECK((tally.chosen > 0) == (cases_release->algos > 0), "%d chosen", tally.chosen);
}

static const struct cases_case cases[] = {
  { "no_profile", case_no_profile, 0 },       { "bad_profile", case_bad_profile, 0 },
  { "lost_profile", case_lost_profile, 0 },   { "profile", case_profile, 0 },
  { "other_release", case_other_release, 0 }, { "off", case_off, 0 },
  { "user_choice", case_user_choice, 0 },     { 0 },
};

static void begin(void) {
  driver_isolate();
  driver_tell_release();
}

const struct cases_host tuner_host = {
  .name = "tuner",
  .title = "tuner plugin, every release",
  .cases = cases,
  .begin = begin,
  .end = driver_remove_scratch,
};
