/* SPDX-License-Identifier: Apache-2.0 */
/* stratus compare, on what nccl-tests and launchers leave in files. */
#include <stdio.h>

#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

#define DATA "tests/data/compare/"
#define START "# Collective test starting: all_reduce_perf\n"
#define HEADING                                                                                    \
  "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "     \
  "time   algbw   busbw  #wrong\n"
#define UNITS                                                                                      \
  "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "     \
  "(us)  (GB/s)  (GB/s)\n"
#define SMALL                                                                                      \
  "           8             2     float     sum      -1    40.00    0.10    0.10       0    "      \
  "40.00    0.10    0.10       0\n"
#define LARGE                                                                                      \
  "      131072         32768     float     sum      -1    120.0    1.00    1.00       0    "      \
  "120.0    1.00    1.00       0\n"
#define END "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.5\n"
#define GOOD START HEADING UNITS SMALL LARGE END

/* Compares `a` with `b`, which becomes a file first. */
static int compare(const char *a, const char *b) {
  tree_write(&tool.tree, "a.txt", "%s", a);
  tree_write(&tool.tree, "b.txt", "%s", b);
  return tool_run_there("stratus compare a.txt b.txt");
}

UNIT_TEST(example_shows_each_size) {
  char line[TOOL_LINE_MAX];
  tool_read_example("compare", line);
  TOOL_SAYS(tool_run(line), 1, "all_reduce float sum, out of place\n",
            "\nall_reduce float sum, in place\n", "\n     2097152 ",
            "16 rows: ", "B's time / A's, geometric mean: ");
  assert_string_equal(tool.errors, "");
}

UNIT_TEST(every_release_is_read) {
  static const char *const files[] = { "all_reduce-2.0.txt", "all_reduce-2.13.txt",
                                       "nccl-tests-2.17.txt", "nccl-tests-2.19.txt" };
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    char command[256];
    snprintf(command, sizeof command, "stratus compare " DATA "%s " DATA "%s", files[i], files[i]);
    TOOL_SAYS(tool_run(command), 0, "12 rows: B is faster in 0, slower in 0",
              "geometric mean: 1.000");
  }
}

UNIT_TEST(slower_faster_and_wrong_are_told) {
  TOOL_SAYS(compare(GOOD, GOOD), 0,
            "4 rows: B is faster in 0, slower in 0, has wrong values (or A has) in 0");
  TOOL_SAYS(compare(GOOD, START HEADING UNITS
                    "8 2 float sum -1 44.0 0.1 0.1 0 36.0 0.1 0.1 0\n"
                    "131072 32768 float sum -1 60.0 1.0 1.0 3 121.0 1.0 1.0 0\n" END),
            1, "   1.100  slower\n", "   0.900  faster\n", "   0.500  wrong values\n",
            "   1.008  same\n",
            "4 rows: B is faster in 1, slower in 1, has wrong values (or A has) in 1");
}

UNIT_TEST(another_heading_is_refused) {
  TOOL_WARNS(compare(GOOD, START "# size count type redop root algbw\n" LARGE END), 1,
             "b.txt:2: not two of time and busbw in the heading");
}

UNIT_TEST(a_bad_row_costs_itself) {
  TOOL_SAYS(compare(GOOD, START HEADING UNITS
                    "8 2 float sum -1 nan 0.1 0.1 0 40.0 0.1 0.1 0\n" LARGE END),
            1, "B: line 4: left out: 8 2 float sum -1 nan 0.1 0.1 0 40.0 0.1",
            "3 rows: B is faster in 0, slower in 0", "rows without a match: 1 of A, 0 of B");
  TOOL_SAYS(compare(GOOD,
                    START HEADING UNITS "8 2 float sum -1 40.0 0.1 -inf 0 N/A N/A N/A N/A\n"
                                        "0 0 float sum -1 40.0 0.1 0.1 0 0 0 0 0\n" LARGE END),
            1, "B: line 4: left out: ", "2 rows: ", "rows without a match: 2 of A, 0 of B");
  TOOL_SAYS(compare(GOOD, START HEADING UNITS "  8  2  float  sum\nhost NCCL WARN x\n" LARGE END),
            1,
            "B: line 4: left out, as it has other columns than the heading:   8  2  float  sum\n",
            "2 rows: ");
}

UNIT_TEST(a_run_that_failed_is_told) {
  TOOL_SAYS(compare(GOOD, START HEADING UNITS SMALL
                    "node-b: Test NCCL failure common.cu:1050 'remote process exited'\n"),
            1, "B: line 5: the run ended within its table\n",
            "B: line 5: the run says: node-b: Test NCCL failure");
  TOOL_SAYS(compare(GOOD, GOOD "srun: error: node-b: task 1: Killed\n"), 1,
            "B: line 8: the run says: srun: error: node-b: task 1: Killed\n");
  TOOL_SAYS(compare(GOOD, START HEADING UNITS SMALL LARGE
                    "# Out of bounds values : 4 FAILED\n# Avg bus bandwidth : 0.5\n"),
            1, "B: line 6: the run says: # Out of bounds values : 4 FAILED");
  TOOL_SAYS(compare("# Rank 0 Group 0 Pid 1 on a device 0 [0] GPU\n" GOOD, GOOD), 1,
            "ranks: 1, 0\n");
}

UNIT_TEST(launchers_write_before_rows) {
#define P "[1,0]<stdout>: "
  TOOL_SAYS(compare(GOOD, P START P HEADING P UNITS
                    "[1,1]<stderr>: NCCL WARN 8 2 x\n" P SMALL P LARGE P END),
            0, "4 rows: ");
  TOOL_SAYS(compare(GOOD, "10:00:00 " START "10:00:00 " HEADING "10:00:01 " UNITS "10:00:02 " SMALL
                          "10:00:03 " LARGE END),
            0, "4 rows: ");
}

UNIT_TEST(what_is_no_such_file_is_refused) {
  TOOL_WARNS(compare(GOOD, "{\"version\": 1}\n"), 1, "b.txt: no row of a table");
  TOOL_WARNS(compare(GOOD, ""), 1, "b.txt: no row of a table");
  TOOL_WARNS(
      compare(GOOD, START HEADING UNITS "64 2 float sum -1 44.0 0.1 0.1 0 36.0 0.1 0.1 0\n" END), 1,
      "nothing in common: A begins with all_reduce float sum of 8 B, B with all_reduce float sum "
      "of 64 B");
  TOOL_WARNS(tool_run_there("stratus compare a.txt ."), 1, ".: Is a directory");
  TOOL_WARNS(tool_run_there("stratus compare a.txt none"), 1, "none: No such file");
}

UNIT_MAIN(tool_set_up, tool_tear_down)
