/* SPDX-License-Identifier: Apache-2.0 */
/* refine: from what ranks say about NCCL's own chunks to the plan that tries others. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/chunk_trials.h"

enum { CELLS = 4 };

#define OPEN                                                                                       \
  "TUNER/stratus: calibrate open allreduce 67108864 ranks 4 nodes 2 nccl 23007 cells ring.simple " \
  "tree.simple ring.simple@8 ring.ll128@4 ."
#define CHUNKS "TUNER/stratus: calibrate chunks allreduce 67108864 "

static double ring_us[] = { 100, 101, 102 }, tree_us[] = { 110, 111, 112 },
              eight_us[] = { 99, 100, 101 }, ll128_us[] = { 300, 301, 302 };

static struct label_times times_of(const struct label_entry *entry) {
  double *times[CELLS] = { ring_us, tree_us, eight_us, ll128_us };
  struct label_times measured = { .count = entry->set.count };
  for (size_t i = 0; i < measured.count; i++) {
    measured.cells[i] =
        (struct label_cell){ entry->set.cells[i], times[i], 3, label_summarize(times[i], 3) };
  }
  return measured;
}

/* The plan for what the lines say, "" if there is none. */
static const char *plan_of(const char *const *lines, size_t cells) {
  static char text[CHUNK_TRIALS_TEXT_MAX];
  struct label_log *log = calloc(1, sizeof *log);
  struct chunk_trials *trials = calloc(1, sizeof *trials);
  for (size_t i = 0; lines[i]; i++) {
    label_take_line(log, lines[i]);
  }
  assert_int_equal(log->count, 1);
  struct label_times times = times_of(&log->entries[0]);
  chunk_trials_add(trials, &log->entries[0], &times, cells);
  if (trials->count == 0 || !chunk_trials_format(trials, 0, text)) {
    text[0] = '\0';
  }
  free(trials);
  free(log);
  return text;
}

#define RING8 "ring.simple@8,ring.simple@8:524288,ring.simple@8:1048576"

static void the_fastest_cells_get_chunks(void **state) {
  (void)state;
  static const char *const lines[] = {
    OPEN, CHUNKS "8:2097152 2:524288 8:2097152 4:576000 .",
    OPEN, CHUNKS "8:2097152 2:524288 8:2097152 4:576000 .",
    NULL,
  };
  assert_string_equal(plan_of(lines, 0), "");
  assert_string_equal(plan_of(lines, 1), RING8);
  /* NCCL's own 8 channels are not tried twice, and what is three times slower not at all. */
  assert_string_equal(plan_of(lines, 2),
                      RING8 ",tree.simple@2,tree.simple@2:131072,tree.simple@2:262144");
  assert_string_equal(plan_of(lines, CHUNK_TRIALS_CELLS_MAX),
                      RING8 ",tree.simple@2,tree.simple@2:131072,tree.simple@2:262144");
}

static void what_is_not_known_is_not_tried(void **state) {
  (void)state;
  static const char *const none[] = { OPEN, NULL };
  assert_string_equal(plan_of(none, 2), "");
  static const char *const unknown[] = { OPEN, CHUNKS "- - - - .", NULL };
  assert_string_equal(plan_of(unknown, 2), "");
  static const char *const disputed[] = { OPEN, CHUNKS "8:2097152 - 8:2097152 - .",
                                          CHUNKS "8:2097152 - 6:2097152 - .", NULL };
  assert_string_equal(plan_of(disputed, 2), RING8); /* of the first cell, which agrees */
  static const char *const bad[] = {
    CHUNKS "8:2097152 2:524288 8:2097152 4:576000", /* cut off */
    CHUNKS "8:2097152 2:524288 8:2097152 .",        /* a cell too few */
    CHUNKS "8:2097152 2:524288 8:2097152 4:576000 1:1 .",
    CHUNKS "8:2097152 2:524288 8: 4:576000 .",
    CHUNKS "800:2097152 2:524288 8:2097152 4:576000 .",
    "TUNER/stratus: calibrate chunks allgather 67108864 8:2097152 - - - .",
    "TUNER/stratus: calibrate chunks alltoall 67108864 8:2097152 - - - .",
    "TUNER/stratus: calibrate chunks",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const char *const lines[] = { OPEN, bad[i], NULL };
    if (plan_of(lines, 2)[0] != '\0') {
      fail_msg("%s: %s", bad[i], plan_of(lines, 2));
    }
  }
}

/* Twice NCCL's own is tried where a larger size shows that the buffers hold it. */
static void a_larger_size_shows_what_buffers_hold(void **state) {
  (void)state;
  struct chunk_trials *trials = calloc(1, sizeof *trials);
  struct label_entry entry = { .collective = PROFILE_ALLREDUCE,
                               .ranks = 4,
                               .is_chunk_known = true };
  entry.set.count = 1;
  entry.set.cells[0] = (struct schedule_cell){ PROFILE_TREE, PROFILE_LL128, 2, 0 };
  char text[CHUNK_TRIALS_TEXT_MAX];
  for (uint64_t bytes = 4 << 20; bytes <= 64 << 20; bytes *= 16) {
    entry.bytes = bytes;
    entry.own[0] = (struct chunks_own){ 2, bytes > 4 << 20 ? 576000 : 72000 };
    struct label_times times = times_of(&entry);
    chunk_trials_add(trials, &entry, &times, 1);
  }
  assert_int_equal(trials->count, 2);
  assert_true(chunk_trials_format(trials, 0, text));
  assert_string_equal(text,
                      "tree.ll128@2,tree.ll128@2:15360,tree.ll128@2:32640,tree.ll128@2:130560");
  assert_true(chunk_trials_format(trials, 1, text));
  assert_string_equal(text, "tree.ll128@2,tree.ll128@2:130560,tree.ll128@2:261120");
  /* A later launch takes the place of an earlier one. */
  entry.own[0].channels = 0;
  struct label_times times = times_of(&entry);
  chunk_trials_add(trials, &entry, &times, 1);
  assert_int_equal(trials->count, 2);
  assert_false(chunk_trials_format(trials, 1, text));
  free(trials);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_fastest_cells_get_chunks),
    cmocka_unit_test(what_is_not_known_is_not_tried),
    cmocka_unit_test(a_larger_size_shows_what_buffers_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
