/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark's command line, and what launchers say in the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/unit.h"
#include "common/cli.h"
#include "tests/coll/options.h"
#include "tests/coll/world.h"

/* ---- options ---- */

static struct options options;
static char error[512];

/* Parses a command line whose words are separated by spaces; messages go to `error`. */
static bool parse(const char *line) {
  static char copy[512];
  char *argv[64] = { (char[]){ "coll" } }, *rest = copy;
  int argc = 1, status;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *word; (word = strsep(&rest, " "));) {
    if (*word)
      argv[argc++] = word;
  }
  int saved = dup(STDERR_FILENO);
  FILE *messages = tmpfile();
  assert_non_null(messages);
  dup2(fileno(messages), STDERR_FILENO);
  bool shall_run = options_parse(&options, argc, argv, &status);
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(messages);
  error[fread(error, 1, sizeof error - 1, messages)] = '\0';
  fclose(messages);
  assert_int_equal(status, shall_run ? CLI_OK : CLI_USAGE);
  return shall_run;
}

UNIT_TEST(test_defaults) {
  assert_true(parse(""));
  assert_true(options.operations[OPERATION_ALL_REDUCE]);
  assert_false(options.operations[OPERATION_ALL_GATHER]);
  assert_true(options.types[ELEMENT_FLOAT]);
  assert_false(options.types[ELEMENT_INT8]);
  assert_true(options.redops[PATTERN_SUM]);
  assert_int_equal(options.sizes_count, 1);
  assert_int_equal(options.sizes[0], 32 << 20);
  assert_int_equal(options.iterations, 20);
  assert_int_equal(options.checks, 1);
  assert_int_equal(options.gpus, 1);
  assert_int_equal(options.ppn, 1);
  assert_null(options.hosts);
}

UNIT_TEST(test_sizes) {
  assert_true(parse("-b 8 -e 64K -f 8"));
  assert_int_equal(options.sizes_count, 5); /* 8 64 512 4096 32768 */
  assert_int_equal(options.sizes[4], 32768);
  assert_true(parse("-b 0 -e 16 -f 4"));
  assert_int_equal(options.sizes_count, 4); /* 0 1 4 16 */
  assert_int_equal(options.sizes[1], 1);
  assert_true(parse("-b 1K -e 4K"));
  assert_int_equal(options.sizes_count, 3);
  assert_true(parse("-b 64M"));
  assert_int_equal(options.sizes[0], 64 << 20);
  assert_true(parse("--sizes 7,0,1G"));
  assert_int_equal(options.sizes_count, 3);
  assert_int_equal(options.sizes[0], 7);
  assert_int_equal(options.sizes[2], 1 << 30);
  /* A factor near 1 must not stand still at small sizes. */
  assert_true(parse("-b 1 -e 20 -f 1.1"));
  assert_int_equal(options.sizes[options.sizes_count - 1], 20);
}

UNIT_TEST(test_lists) {
  assert_true(parse("-O all -d all -o all"));
  for (int i = 0; i < OPERATIONS; i++)
    assert_true(options.operations[i]);
  assert_true(options.types[ELEMENT_BFLOAT16]);
  assert_true(options.redops[PATTERN_SUM] && options.redops[PATTERN_AVG]);
  assert_true(parse("--op alltoall,reduce -d half,int8 -o min"));
  assert_true(options.operations[OPERATION_ALLTOALL] && options.operations[OPERATION_REDUCE]);
  assert_false(options.operations[OPERATION_ALL_REDUCE]);
  assert_true(options.types[ELEMENT_HALF] && options.types[ELEMENT_INT8]);
  assert_false(options.types[ELEMENT_FLOAT]);
  assert_false(options.redops[PATTERN_SUM]);
}

UNIT_TEST(test_times_and_numbers) {
  assert_true(parse("-T 90 --min-time 250ms -n 5 -w 0 -c 0 -R 1 -I 1"));
  assert_int_equal(options.timeout_ns, UINT64_C(90000000000));
  assert_int_equal(options.min_time_ns, 250000000);
  assert_true(options.is_registered && options.is_per_iteration);
  assert_int_equal(options.checks, 0);
  assert_true(parse("--hosts local:2 --ppn 3"));
  assert_int_equal(options.ppn, 3);
  assert_true(parse("--grace 500ms"));
  assert_int_equal(options.grace_ns, 500000000);
}

UNIT_TEST(test_replay) {
  assert_true(parse("--replay resnet50,./mine"));
  assert_string_equal(options.replay, "resnet50,./mine");
  assert_int_equal(options.replay_steps, 100);
  assert_int_equal(options.replay_skip, 20);
  assert_true(options.compute_scale == 1 && options.bytes_scale == 1);
  assert_true(parse("--replay a --replay-steps 7 --replay-skip 0 --compute-scale 0.5 "
                    "--bytes-scale 1e-2 --hosts local:2 --ppn 2 -T 9 -c 2 "
                    "--json f --grace 1s --split-cpus -g 1"));
  assert_int_equal(options.replay_steps, 7);
  assert_int_equal(options.replay_skip, 0);
  assert_true(options.compute_scale == 0.5 && options.bytes_scale == 0.01);
  assert_true(parse("-b 8"));
  assert_null(options.replay);
}

/* Each wrong line's message names what is wrong. */
UNIT_TEST(test_wrong_options) {
  static const struct {
    const char *line, *message;
  } lines[] = {
    { "-b 8Q", "8Q" },
    { "-b 1M -e 1K", "-e is less than -b" },
    { "-f 1", "--stepfactor takes a number above 1" },
    { "-n 0", "1 to" },
    { "-n", "--iters needs a value" },
    { "--op allreduce", "all_reduce" },
    { "-d fp16", "half" },
    { "-o xor", "avg" },
    { "-O ,", "not \"\"" },
    { "--ppn 1", "--hosts" },
    { "--sizes 8 -b 8", "--sizes" },
    { "--nonsense", "--nonsense" },
    { "-Z", "has no option -Z" },
    { "extra", "extra" },
    { "-T soon", "soon" },
    { "-R 2", "0 to 1" },
    { "--replay a -n 3", "--replay excludes --iters" },
    { "--replay a --sizes 8", "--replay excludes --sizes" },
    { "--replay a -g 2", "--ppn" },
    { "--replay-steps 3", "--replay-steps goes with --replay" },
    { "--bytes-scale 2 -b 8", "--bytes-scale goes with --replay" },
    { "--replay a --replay-steps 0", "1 to" },
    { "--replay a --compute-scale 0", "above 0" },
    { "--replay a --bytes-scale 1001", "at most 1000" },
    { "--replay a --bytes-scale nan", "nan" },
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    if (parse(lines[i].line) || !strstr(error, lines[i].message))
      fail_msg("%s: \"%s\" does not mention %s", lines[i].line, error, lines[i].message);
  }
}

/* ---- launchers ---- */

static const char *const variables[] = {
  "RANK",
  "WORLD_SIZE",
  "LOCAL_RANK",
  "LOCAL_WORLD_SIZE",
  "MASTER_ADDR",
  "MASTER_PORT",
  "COLL_ADDR",
  "COLL_HOST",
  "OMPI_COMM_WORLD_RANK",
  "OMPI_COMM_WORLD_SIZE",
  "OMPI_COMM_WORLD_LOCAL_RANK",
  "OMPI_COMM_WORLD_LOCAL_SIZE",
  "SLURM_PROCID",
  "SLURM_STEP_NUM_TASKS",
  "SLURM_LOCALID",
  "SLURM_STEP_TASKS_PER_NODE",
};

static int clear_environment(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    unsetenv(variables[i]);
  return 0;
}

static struct world world;

static int read_world(void) {
  return world_read(&world, error, sizeof error);
}

UNIT_TEST_WITH(test_no_launcher, clear_environment, NULL) {
  assert_int_equal(read_world(), 0);
  assert_int_equal(world.size, 1);
  assert_true(world.is_local);
}

/* Rank 1 of 4, on two hosts. */
static void be_rank_of_torchrun(void) {
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("LOCAL_RANK", "1", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "10.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
}

UNIT_TEST_WITH(test_open_mpi, clear_environment, NULL) {
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  assert_int_not_equal(read_world(), 0);
  assert_non_null(strstr(error, "COLL_ADDR"));
  setenv("COLL_ADDR", "node1:29500", 1);
  assert_int_equal(read_world(), 0);
  assert_int_equal(world.rank, 5);
  assert_int_equal(world.local_rank, 1);
  assert_string_equal(world.address, "node1:29500");
  assert_false(world.is_local);
  unsetenv("COLL_ADDR");
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 1);
  assert_int_equal(read_world(), 0);
  assert_non_null(strstr(world.address, "unix:/tmp/"));
  assert_null(strchr(world.address + strlen("unix:/tmp/"), '/'));
  assert_true(world.is_local);
}

UNIT_TEST_WITH(test_slurm, clear_environment, NULL) {
  setenv("SLURM_PROCID", "3", 1);
  assert_int_equal(read_world(), 0);
  assert_int_equal(world.size, 1); /* a batch script, not a step */
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  setenv("SLURM_LOCALID", "1", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2)", 1);
  setenv("COLL_ADDR", "gpu007:29400", 1);
  assert_int_equal(read_world(), 0);
  assert_int_equal(world.size, 4);
  assert_int_equal(world.local_size, 2);
  assert_string_equal(world.address, "gpu007:29400");
}

UNIT_TEST_WITH(test_torchrun, clear_environment, NULL) {
  be_rank_of_torchrun();
  assert_int_equal(read_world(), 0);
  assert_string_equal(world.address, "10.0.0.1:29501");
  setenv("RANK", "4", 1);
  assert_int_not_equal(read_world(), 0);
  assert_non_null(strstr(error, "rank 4 of 4"));
  setenv("RANK", "1", 1);
  setenv("MASTER_ADDR", "fd00::1", 1);
  assert_int_equal(read_world(), 0);
  assert_string_equal(world.address, "[fd00::1]:29501");
}

/* Ranks that know how many are on this machine, and ranks that do not, would wait for each other at
 * different places: by hand, all of them may lack it. */
UNIT_TEST_WITH(test_by_hand_on_one_machine, clear_environment, NULL) {
  setenv("WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
  for (int rank = 0; rank < 2; rank++) {
    char text[16];
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    setenv("LOCAL_RANK", text, 1);
    assert_int_equal(read_world(), 0);
    assert_string_equal(world.address, "127.0.0.1:29501");
    assert_int_equal(world.local_rank, rank);
  }
}

UNIT_MAIN(NULL, NULL)
