/* SPDX-License-Identifier: Apache-2.0 */
/* tuner: opening with good, bad and no profile; what is said, what is shared, what is counted. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "tests/lib/fault.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/plugin/profile_cache.h"
#include "tuner_plugin/plugin/tuner.h"

static const struct tuner_host host = { .abi_version = 5, .nccl_version = 22907 };
static const struct tuner_shape shape = { .ranks = 32, .nodes = 4 };

static const char good_text[] =
    "schema = 1\n[meta]\nid = good\nnccl_min = 2.21.5\nnccl_max = 2.29\n"
    "[table allreduce nodes=4 ppn=8]\n"
    "1K 1M ring simple 4\n";

static struct tree tree;

static int set_up(void **state) {
  (void)state;
  tree_create(&tree);
  log_capture_start();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  log_capture_stop();
  tree_remove(&tree);
  unsetenv("NCCL_ALGO");
  return 0;
}

/* Parameters as the plugin would read them; the machine is an empty directory. */
static void set_parameters(const char *profile_file, const char *other) {
  static char profile[256], root[128], extra[128];
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s/%s", tree.root, profile_file);
  snprintf(root, sizeof root, "STRATUS_SYSFS_ROOT=%s", tree.root);
  snprintf(extra, sizeof extra, "%s", other);
  char *environment[] = { root, extra, profile, NULL };
  if (!profile_file[0]) {
    environment[2] = NULL;
  }
  param_load(environment);
  setenv("XDG_CONFIG_HOME", tree.root, 1);
}

static struct tuner *open_good(struct tuner_host as, struct tuner_shape of) {
  struct tuner *tuner = NULL;
  assert_int_equal(tuner_open(as, of, &tuner), 0);
  assert_non_null(tuner);
  return tuner;
}

/* One call of AllReduce, with NCCL preferring tree; returns whether ring was chosen. */
static bool is_ring_chosen(struct tuner *tuner, size_t bytes, int *channels) {
  float us[7][3];
  for (int cell = 0; cell < 21; cell++) {
    us[cell / 3][cell % 3] = -1.0f;
  }
  us[PROFILE_TREE][PROFILE_SIMPLE] = 10.0f;
  us[PROFILE_RING][PROFILE_SIMPLE] = 20.0f;
  struct decide_costs costs = { .us = &us[0][0], .algos = 7, .protos = 3 };
  tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, bytes, costs, channels);
  assert_true(us[PROFILE_TREE][PROFILE_SIMPLE] == 10.0f);
  return us[PROFILE_RING][PROFILE_SIMPLE] == 0.0f;
}

static void profile_chooses_and_counts(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  struct tuner *tuner = open_good(host, shape);
  int channels = 0;
  assert_false(is_ring_chosen(tuner, 1023, &channels));
  assert_int_equal(channels, 0);
  assert_true(is_ring_chosen(tuner, 1024, &channels));
  assert_int_equal(channels, 4);
  struct tuner_counts counts = tuner_get_counts(tuner);
  assert_int_equal(counts.calls, 2);
  assert_int_equal(counts.chosen, 1);
  tuner_close(tuner);
  assert_int_equal(log_capture_find("1 rows of profile good hold"), 1);
  assert_int_equal(log_capture_find("the profile chose for 1 of 2 calls"), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

static void says_one_banner_in_a_process(void **state) {
  (void)state;
  /* The test before has opened one. */
  set_parameters("", "");
  tuner_close(open_good(host, shape));
  tuner_close(open_good(host, shape));
  assert_int_equal(log_capture_find("tuner interface"), 0);
}

static void only_the_measured_shape_and_release(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  static const struct {
    struct tuner_host host;
    struct tuner_shape shape;
    bool is_chosen;
  } cases[] = {
    { { 5, 22907 }, { 32, 4, false }, true },  { { 5, 0 }, { 32, 4, false }, true },
    { { 5, 22999 }, { 32, 4, false }, true },  { { 6, 23003 }, { 32, 4, false }, false },
    { { 3, 22104 }, { 32, 4, false }, false }, { { 5, 22907 }, { 16, 4, false }, false },
    { { 5, 22907 }, { 33, 4, false }, false }, { { 5, 22907 }, { 8, 1, false }, false },
    { { 5, 22907 }, { 0, 0, false }, false },  { { 5, 22907 }, { 32, 4, true }, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tuner *tuner = open_good(cases[i].host, cases[i].shape);
    int channels = 0;
    assert_int_equal(is_ring_chosen(tuner, 4096, &channels), cases[i].is_chosen);
    assert_int_equal(channels, cases[i].is_chosen ? 4 : 0);
    tuner_close(tuner);
  }
}

static void the_user_wins_where_costs_are_hidden(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  for (int has_choice = 0; has_choice < 2; has_choice++) {
    if (has_choice) {
      setenv("NCCL_ALGO", "Tree", 1);
    }
    struct tuner *tuner = open_good((struct tuner_host){ 2, 22105 }, shape);
    int algo = -1, proto = -1, channels = 0;
    tuner_choose_by_number(tuner, PROFILE_ALLREDUCE, 4096, &algo, &proto, &channels);
    assert_int_equal(algo, has_choice ? -1 : PROFILE_RING);
    assert_int_equal(proto, has_choice ? -1 : PROFILE_SIMPLE);
    assert_int_equal(channels, has_choice ? 0 : 4);
    tuner_close(tuner);
  }
}

static void turned_off_it_reads_nothing(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "not a profile");
  set_parameters("p.profile", "STRATUS_TUNER=0");
  struct tuner *tuner = open_good(host, shape);
  int channels = 0;
  assert_false(is_ring_chosen(tuner, 4096, &channels));
  tuner_close(tuner);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

static void bad_profile_is_one_warning(void **state) {
  (void)state;
  tree_write(&tree, "bad.profile", "schema = 1\n[meta]\nid = x\nwrong = 1\n");
  set_parameters("bad.profile", "");
  for (int i = 0; i < 3; i++) {
    struct tuner *first = open_good(host, shape);
    struct tuner *second = open_good(host, shape);
    int channels = 0;
    assert_false(is_ring_chosen(first, 4096, &channels));
    assert_false(is_ring_chosen(second, 4096, &channels));
    tuner_close(first);
    tuner_close(second);
  }
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_int_equal(log_capture_find("bad.profile:4:1: "), 1);
  assert_int_equal(log_capture_find("the job goes on"), 1);
}

static void strict_makes_it_an_error(void **state) {
  (void)state;
  tree_write(&tree, "bad.profile", "schema = 2\n");
  set_parameters("bad.profile", "STRATUS_PROFILE_STRICT=1");
  struct tuner *tuner = NULL;
  assert_int_equal(tuner_open(host, shape, &tuner), -EINVAL);
  assert_null(tuner);
  set_parameters("nowhere.profile", "STRATUS_PROFILE_STRICT=1");
  assert_int_equal(tuner_open(host, shape, &tuner), -EINVAL);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 2);
  /* No profile at all is no error. */
  set_parameters("", "STRATUS_PROFILE_STRICT=1");
  tuner_close(open_good(host, shape));
}

/* The file is read by the first communicator and again only after the last has gone. */
static void profile_is_read_once(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  struct tuner *first = open_good(host, shape);
  tree_write(&tree, "p.profile", "gone bad");
  struct tuner *second = open_good(host, shape);
  tuner_close(first);
  struct tuner *third = open_good(host, shape);
  int channels = 0;
  assert_true(is_ring_chosen(second, 4096, &channels));
  assert_true(is_ring_chosen(third, 4096, &channels));
  tuner_close(second);
  tuner_close(third);
  struct tuner *fourth = open_good(host, shape);
  assert_false(is_ring_chosen(fourth, 4096, &channels));
  tuner_close(fourth);
}

/* Another host may not have it, and without the net plugin nobody would notice. */
static void found_by_topology_counts_where_hosts_are_compared(void **state) {
  (void)state;
  static const struct {
    const char *net_plugin, *topology, *profile;
    bool is_chosen;
  } cases[] = {
    { "libnccl-net-stratus.so", "0123456789ab", "", true },
    { "stratus", "ba9876543210", "", false },
    { NULL, "0123456789ab", "", false },
    { "none", "0123456789ab", "", false },
    { "none", "0123456789ab", "stratus/profiles/p.profile", true },
    { "none", "ba9876543210", "stratus/profiles/p.profile", true },
  };
  tree_write(&tree, "stratus/profiles/p.profile", "%s[match]\ntopology = 0123456789ab\n",
             good_text);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char word[64];
    snprintf(word, sizeof word, "STRATUS_TOPOLOGY=%s", cases[i].topology);
    set_parameters(cases[i].profile, word);
    unsetenv("NCCL_NET_PLUGIN");
    if (cases[i].net_plugin) {
      setenv("NCCL_NET_PLUGIN", cases[i].net_plugin, 1);
    }
    struct tuner *tuner = open_good(host, shape);
    int channels = 0;
    assert_int_equal(is_ring_chosen(tuner, 4096, &channels), cases[i].is_chosen);
    tuner_close(tuner);
  }
  unsetenv("NCCL_NET_PLUGIN");
}

static void cache_names_what_it_holds(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  struct profile profile;
  struct profile_error error;
  assert_int_equal(profile_parse(good_text, strlen(good_text), &profile, &error), 0);
  struct profile_cache_view view;
  assert_int_equal(profile_cache_acquire(&view), 0);
  assert_string_equal(view.id, "good");
  assert_true(view.hash == profile_hash(&profile));
  assert_non_null(strstr(view.path, "p.profile"));
  assert_ptr_equal(profile_cache_find_table(32, 4), profile_cache_find_table(32, 4));
  assert_null(profile_cache_find_table(32, 8));
  profile_cache_release();
  profile_free(&profile);
}

/* Without memory the job goes on, and nothing is chosen or lost. */
static void survives_failing_allocations(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  bool has_failed = true;
  for (unsigned long k = 1; has_failed; k++) {
    assert_in_range(k, 1, 1000);
    struct tuner *tuner;
    fault_fail_allocation(k);
    int result = tuner_open(host, shape, &tuner);
    has_failed = fault_clear();
    assert_int_equal(result, 0);
    int channels = 0;
    if (tuner) {
      bool is_chosen = is_ring_chosen(tuner, 4096, &channels);
      assert_true(has_failed || is_chosen);
    } else {
      float us[21] = { 0 };
      struct decide_costs costs = { us, 7, 3 };
      tuner_choose_by_costs(NULL, PROFILE_ALLREDUCE, 4096, costs, &channels);
      tuner_choose_by_number(NULL, PROFILE_ALLREDUCE, 4096, &channels, &channels, &channels);
      assert_int_equal(channels, 0);
    }
    tuner_close(tuner);
  }
}

/* A file that cannot be read is no reason to fail, nor to choose by half of a profile. */
static void survives_failing_reads(void **state) {
  (void)state;
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "");
  static const enum fault_call calls[] = { FAULT_OPEN, FAULT_READ };
  for (unsigned i = 0; i < 2; i++) {
    bool has_failed = true;
    for (unsigned long k = 1; has_failed; k++) {
      assert_in_range(k, 1, 1000);
      struct tuner *tuner;
      fault_fail(calls[i], k, calls[i] == FAULT_OPEN ? EMFILE : EIO);
      int result = tuner_open(host, shape, &tuner), channels = 0;
      has_failed = fault_clear();
      assert_int_equal(result, 0);
      assert_non_null(tuner);
      bool is_chosen = is_ring_chosen(tuner, 4096, &channels);
      assert_true(is_chosen || (has_failed && log_capture_count(LOG_LEVEL_WARN) > 0));
      tuner_close(tuner);
    }
  }
}

struct thread_work {
  struct tuner *shared;
  int calls;
  size_t ranks;
};

static void *open_and_choose(void *argument) {
  struct thread_work *work = argument;
  for (int i = 0; i < work->calls; i++) {
    struct tuner *tuner;
    struct tuner_shape own = { work->ranks, 4, false };
    if (tuner_open(host, own, &tuner) != 0) {
      return "open";
    }
    int channels = 0;
    if (is_ring_chosen(tuner, 4096, &channels) != (work->ranks == 32) ||
        !is_ring_chosen(work->shared, 4096, &channels)) {
      return "choice";
    }
    tuner_close(tuner);
  }
  return NULL;
}

static void threads_share_profile_and_tuner(void **state) {
  (void)state;
  enum { THREADS = 4, CALLS = 100 };
  tree_write(&tree, "p.profile", "%s", good_text);
  set_parameters("p.profile", "STRATUS_LOG=warn");
  struct thread_work work[THREADS];
  pthread_t threads[THREADS];
  struct tuner *shared = open_good(host, shape);
  for (int i = 0; i < THREADS; i++) {
    work[i] = (struct thread_work){ shared, CALLS, i % 2 ? 32 : 28 };
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_choose, &work[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *problem;
    pthread_join(threads[i], &problem);
    assert_null(problem);
  }
  assert_int_equal(tuner_get_counts(shared).calls, THREADS * CALLS);
  tuner_close(shared);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(profile_chooses_and_counts),
    TEST(says_one_banner_in_a_process),
    TEST(only_the_measured_shape_and_release),
    TEST(the_user_wins_where_costs_are_hidden),
    TEST(turned_off_it_reads_nothing),
    TEST(bad_profile_is_one_warning),
    TEST(strict_makes_it_an_error),
    TEST(profile_is_read_once),
    TEST(found_by_topology_counts_where_hosts_are_compared),
    TEST(cache_names_what_it_holds),
    TEST(survives_failing_allocations),
    TEST(survives_failing_reads),
    TEST(threads_share_profile_and_tuner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
