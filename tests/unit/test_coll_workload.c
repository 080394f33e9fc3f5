/* SPDX-License-Identifier: Apache-2.0 */
/* Workload files: what lines mean, what is wrong with them, and what ranks make of them. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/coll/replay/workload.h"
#include "tests/lib/unit.h"

static struct workload workload;
static char error[WORKLOAD_ERROR_MAX];

static void parse(const char *text) {
  error[0] = '\0';
  if (workload_parse(&workload, text, "dir/w.txt", 1, 1, error))
    fail_msg("%s", error);
}

UNIT_TEST(test_lines) {
  parse("# a remark\n\nbatch 32\ntype bfloat16\ncompute 24048.3\nall_reduce 2049000\n"
        "reduce_scatter 10 float32\nwait 1\n\tall_gather  7 \nalltoall 12");
  assert_string_equal(workload.name, "w");
  assert_int_equal(workload.batch, 32);
  assert_int_equal(workload.count, 6);
  assert_int_equal(workload.numbers, 4);
  const struct workload_item *items = workload.items;
  assert_true(items[0].kind == WORKLOAD_COMPUTE && items[0].us == 24048.3);
  assert_true(items[1].operation == OPERATION_ALL_REDUCE && items[1].elements == 2049000);
  assert_true(items[1].type == ELEMENT_BFLOAT16 && items[2].type == ELEMENT_FLOAT);
  assert_true(items[3].kind == WORKLOAD_WAIT && items[3].number == 1);
  assert_true(items[5].operation == OPERATION_ALLTOALL && items[5].number == 4);
  workload_free(&workload);
}

UNIT_TEST(test_stages) {
  parse("stages 2\n0: exchange 1 5 0\n1: exchange 0 0 5\n1: wait\n0: compute 3\n1: wait\n"
        "all_reduce 9 copies\nall_reduce 8 stages\nwait 1");
  const struct workload_item *items = workload.items;
  assert_true(items[0].kind == WORKLOAD_EXCHANGE && items[0].peer == 1 && items[0].sent == 5);
  assert_int_equal(items[2].number, 2);
  assert_int_equal(items[4].number, 2); /* of what stage 1 has started */
  assert_int_equal(items[7].number, 3);
  assert_true(workload_applies(&workload, &items[0], 4) &&
              !workload_applies(&workload, &items[0], 3) &&
              workload_applies(&workload, &items[5], 3));
  struct workload_place copies = workload_place(&workload, WORKLOAD_COPIES, 6, 3);
  struct workload_place stages = workload_place(&workload, WORKLOAD_STAGES, 6, 3);
  assert_true(copies.ranks == 3 && copies.rank == 1 && copies.color == 1);
  assert_true(stages.ranks == 2 && stages.rank == 1 && stages.color == 1);
  assert_int_equal(workload_check(&workload, 6, error), 0);
  assert_true(workload_check(&workload, 5, error) < 0);
  assert_non_null(strstr(error, "multiple of 2 ranks, not 5"));
  struct workload_sum sum = workload_sum(&workload, 6);
  assert_int_equal(sum.collectives, 3);
  assert_int_equal(sum.bytes, (5 + 9 + 8) * 4);
  workload_free(&workload);
}

UNIT_TEST(test_shares_are_padded) {
  parse("all_gather 10\nreduce_scatter 10\nalltoall 10\nall_reduce 10");
  static const size_t send[] = { 4, 12, 12, 10 }, recv[] = { 12, 4, 12, 10 };
  for (int i = 0; i < 4; i++) {
    struct operation_counts counts = workload_counts(&workload, &workload.items[i], 3);
    assert_int_equal(counts.send, send[i]);
    assert_int_equal(counts.recv, recv[i]);
  }
  assert_int_equal(workload_sum(&workload, 3).buffer_bytes, 48);
  workload_free(&workload);
}

UNIT_TEST(test_experts) {
  parse("alltoall sends=5,0,0,0,7,1,2,30\nalltoall receives=5,0,0,0,7,1,2,30");
  static const uint64_t parts[] = { 5, 0, 8, 32 };
  for (int part = 0; part < 4; part++)
    assert_int_equal(workload_part(&workload.items[0], part, 4), parts[part]);
  struct operation_counts sends = workload_counts(&workload, &workload.items[0], 4);
  struct operation_counts receives = workload_counts(&workload, &workload.items[1], 4);
  assert_true(sends.send == 45 && sends.recv == 128 && sends.bytes == 180);
  assert_true(receives.send == 128 && receives.recv == 45);
  assert_int_equal(workload_check(&workload, 8, error), 0);
  assert_true(workload_check(&workload, 3, error) < 0);
  assert_non_null(strstr(error, "w:1: 8 counts, expected a multiple of 3 ranks"));
  workload_free(&workload);
}

UNIT_TEST(test_scales) {
  assert_int_equal(workload_parse(&workload,
                                  "stages 2\ncompute 100\nall_reduce 1000\nall_reduce 1\n"
                                  "alltoall sends=100,0,1\n0: exchange 1 100 0",
                                  "w.txt", 0.5, 0.01, error),
                   0);
  const struct workload_item *items = workload.items;
  assert_true(items[0].us == 50);
  assert_true(items[1].elements == 10 && items[2].elements == 1);
  assert_true(items[3].counts[0] == 1 && items[3].counts[1] == 0 && items[3].counts[2] == 1);
  assert_true(items[4].sent == 1 && items[4].received == 0);
  workload_free(&workload);
}

UNIT_TEST(test_mistakes_are_named_with_their_line) {
  static const struct {
    const char *text, *says;
  } cases[] = {
    { "", "w.txt:1: no line says" },
    { "compute 1\nsum 5", "w.txt:2: \"sum\" is none of batch" },
    { "all_reduce 0", "elements: \"0\", expected 1 to " },
    { "all_reduce", "elements: \"\"" },
    { "all_reduce 1e12", "expected 1 to 100000000000" },
    { "all_reduce 5 float33", "\"float33\" is neither a type nor a group" },
    { "compute -1", "microseconds: \"-1\"" },
    { "compute nan", "microseconds: \"nan\"" },
    { "compute 1 2", "\"2\" is left over" },
    { "batch 0\ncompute 1", "batch: \"0\"" },
    { "type f5\ncompute 1", "w.txt:1: type:" },
    { "wait\nall_reduce 4", "w.txt:1: nothing has been started" },
    { "all_reduce 4\nwait 1", "w.txt:2: nothing has been started" },
    { "1: compute 1", "stage 1 of 1" },
    { "stages 2\n2: compute 1", "stage 2 of 2" },
    { "stages 2\n0: exchange 0 1 1", "one stage with another" },
    { "stages 2\nexchange 1 1 1", "one stage with another" },
    { "stages 2\n0: exchange 2 1 1", "stage: \"2\", expected 0 to 1" },
    { "stages 2\n0: all_reduce 1\n1: wait", "w.txt:3: nothing has been started" },
    { "alltoall gets=1", "\"gets=\", expected sends= or receives=" },
    { "alltoall sends=1,,2", "elements: \"\"" },
    { "alltoall sends=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "more than 16 counts" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!workload_parse(&workload, cases[i].text, "w.txt", 1, 1, error) ||
        !strstr(error, cases[i].says))
      fail_msg("%s: \"%s\" does not say %s", cases[i].text, error, cases[i].says);
    assert_null(workload.items);
  }
}

/* Read by name, for as many ranks as each takes. */
UNIT_TEST(test_files_of_tests_workloads) {
  DIR *directory = opendir("tests/workloads");
  int files = 0;
  assert_non_null(directory);
  for (struct dirent *entry; (entry = readdir(directory));) {
    char name[256];
    if (sscanf(entry->d_name, "%250[^.]", name) != 1 || !strstr(entry->d_name, ".txt"))
      continue;
    *strstr(strcpy(name, entry->d_name), ".txt") = '\0';
    if (workload_read(&workload, name, 1, 1, error) || workload_check(&workload, 8, error))
      fail_msg("%s", error);
    assert_string_equal(workload.name, name);
    assert_true(workload_sum(&workload, 8).bytes > 1000000);
    workload_free(&workload);
    files++;
  }
  closedir(directory);
  assert_true(files >= 20);
  assert_true(workload_read(&workload, "resnet51", 1, 1, error) < 0);
  assert_non_null(strstr(error, "workload resnet51: No such file"));
}

UNIT_MAIN(NULL, NULL)
