/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate: the command line for every launcher, labels, what is not measured again. */
#include <argz.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/json_text.h"
#include "tests/lib/tool.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/label.h"
#include "tuner_plugin/tools/calibrate/launch.h"

/* ---- launchers ---- */

static const uint64_t sizes[] = { 8, 64, 4096 };
static const char *const ours[] = { "STRATUS_TUNER=1", "STRATUS_CALIBRATE=ring.ll", NULL };
static const struct launch_job job = {
  .collective = PROFILE_ALLGATHER, .sizes = sizes, .size_count = 3, .iterations = 20, .ours = ours
};
static struct launch launch;

static void open_launch(int count, char **command) {
  assert_int_equal(launch_open(&launch, count, command), 0);
  strcpy(launch.json_path, "/w/x.json");
}

static const char *build(const struct launch_job *of) {
  static char text[4096];
  struct launch_words list = launch_build(&launch, of);
  argz_stringify(list.words, list.bytes, ' ');
  snprintf(text, sizeof text, "%s", list.words);
  free(list.words);
  return text;
}

/* A program in the tool's tree; its path is kept until the next one. */
static char *write_script(const char *name, const char *text) {
  static char path[TREE_PATH_MAX];
  tree_write(&tool.tree, name, "#!/bin/sh\n%s\n", text);
  tree_path(&tool.tree, name, path);
  assert_int_equal(chmod(path, 0755), 0);
  return path;
}

#define TOOL_TEST(name) UNIT_TEST_WITH(name, tool_set_up, tool_tear_down)

TOOL_TEST(mpirun_of_open_mpi_and_of_hydra) {
  static const struct {
    const char *name, *script, *expected;
  } cases[] = {
    { "mpirun", "echo 'mpirun (Open MPI) 4.1.4'",
      "-x STRATUS_TUNER -x STRATUS_CALIBRATE -x NCCL_DEBUG " },
    { "mpiexec.openmpi", "echo 'mpirun (Open MPI) 4.1.4'",
      "-x STRATUS_TUNER -x STRATUS_CALIBRATE -x " },
    { "mpirun", "echo HYDRA build details:", "-np 16 " },
  };
  static const char end[] = " -np 16 -N 8 /opt/all_gather_perf -g 1 -b 8 -e 4096 -f 8 -n 20 -w 0 "
                            "-c 0 -I 1 -J /w/x.json";
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char begin[TREE_PATH_MAX + 128], *path = write_script(cases[i].name, cases[i].script);
    char *command[] = { path, "-np", "16", "-N", "8", "/opt/all_reduce_perf", "-g", "1" };
    open_launch(8, command);
    const char *text = build(&job);
    snprintf(begin, sizeof begin, "%s %s", path, cases[i].expected);
    assert_memory_equal(text, begin, strlen(begin));
    assert_string_equal(text + strlen(text) - strlen(end), end);
  }
}

UNIT_TEST(srun_hands_on_the_environment) {
  char *srun[] = { "srun", "-N", "2", "/opt/all_reduce_perf", "-g", "1" };
  open_launch(6, srun);
  struct launch_job checked = job;
  checked.is_checked = true;
  assert_string_equal(build(&checked), "srun -N 2 /opt/all_gather_perf -g 1 -b 8 -e 4096 -f 8 "
                                       "-n 20 -w 0 -c 1 -I 1 -J /w/x.json");
}

/* ---- labels ---- */

#define OPEN_LINE                                                                                  \
  "host:1:2 [0] NCCL INFO TUNER/stratus: calibrate open allreduce 64 ranks 4 nodes 2 nccl 22907 "  \
  "cells ring.ll tree.ll tree.simple ."

static const struct bench_json_row row = {
  .collective = PROFILE_ALLREDUCE, .bytes = 64, .calls = 26, .median_us = 100, .mad_us = 2
};

/* What is taken from these lines, until the next call. */
#define LABEL_LOG(...) read_lines((const char *const[]){ __VA_ARGS__, NULL })
static struct label_log *read_lines(const char *const *lines) {
  static struct label_log log;
  memset(&log, 0, sizeof log);
  for (; *lines; lines++) {
    label_take_line(&log, *lines);
  }
  return &log;
}

UNIT_TEST(lines_say_what_ran) {
  struct label_log *log = LABEL_LOG("nothing", OPEN_LINE, OPEN_LINE "\r");
  assert_int_equal(log->count, 1);
  const struct label_entry *entry = label_find(log, PROFILE_ALLREDUCE, 64);
  static const struct profile_cell ring = { PROFILE_RING, PROFILE_LL, 0 },
                                   ring_2 = { PROFILE_RING, PROFILE_LL, 2 },
                                   tree = { PROFILE_TREE, PROFILE_SIMPLE, 2 },
                                   other = { PROFILE_PAT, PROFILE_SIMPLE, 0 };
  assert_false(label_is_open(entry, &ring)); /* that is NCCL's own choice */
  assert_true(label_is_open(entry, &ring_2));
  struct sample sample;
  assert_null(label_row(&row, entry, NULL, &sample));
  assert_true(sample.is_default && sample.cell.algorithm == PROFILE_RING &&
              sample.cell.protocol == PROFILE_LL);
  assert_null(label_row(&row, entry, &tree, &sample));
  assert_true(!sample.is_default && sample.cell.algorithm == PROFILE_TREE &&
              sample.cell.protocol == PROFILE_SIMPLE && sample.cell.channels == 2);
  assert_true(sample.nccl == 22907 && sample.nodes == 2 && sample.ppn == 2);
  assert_true(sample.n == 26 && sample.median_us == 100 && sample.mad_us == 2);
  assert_string_equal(label_row(&row, entry, &other, &sample), "NCCL does not offer it");
}

UNIT_TEST(a_log_without_entries_says_why) {
#define LOADED "h:1:2 [0] NCCL INFO TUNER/stratus: stratus 0.1.0, tuner interface v5"
  assert_non_null(strstr(label_why_none(LABEL_LOG(LOADED)), "was it loaded"));
  const struct label_log *log = LABEL_LOG(
      LOADED, "h:1:2 [0] NCCL INFO TUNER/stratus: 2 ranks on 1 nodes, tuner interface v5: "
              "not calibrated; that needs two or more nodes with equal numbers of ranks, "
              "and NCCL 2.22 or later");
  assert_int_equal(log->count, 0);
  assert_non_null(strstr(label_why_none(log), "two or more nodes"));
}

UNIT_TEST(ranks_agree_on_a_topology_or_have_none) {
#define IS "h:1:2 [0] NCCL INFO TUNER/stratus: calibrate topology "
  static const struct {
    const char *lines[4], *topology;
    bool is_mixed;
  } cases[] = {
    { { IS "0d5fc02a91e7 .", IS "0d5fc02a91e7 ." }, "0d5fc02a91e7", false },
    { { IS "0d5fc02a91e7 .", IS "0d5fc02a91e8 .", IS "0d5fc02a91e7 ." }, "", true },
    { { IS "0d5fc02a91e7 .", IS "unknown ." }, "", true },
    { { IS "unknown .", IS "0d5fc02a91e7 ." }, "", true },
    { { IS "unknown .", IS "unknown ." }, "", false },
    { { IS "0d5fc02a91e7 .", IS "0d5fc02a91" }, "0d5fc02a91e7", false }, /* cut off on the way */
    { { NULL }, "", false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct label_log *log = read_lines(cases[i].lines);
    assert_string_equal(log->topology, cases[i].topology);
    assert_int_equal(log->is_mixed, cases[i].is_mixed);
  }
}

UNIT_TEST(doubtful_logs_label_nothing) {
  static const struct {
    const char *line, *part;
  } cases[] = {
    { "TUNER/stratus: calibrate unsteady allreduce 64 .", "changed" },
    { "TUNER/stratus: calibrate open allreduce 64 ranks 4 nodes 2 nccl 22907 cells ring.ll .",
      "disagree" },
  };
  struct sample sample;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct label_log *log = LABEL_LOG(OPEN_LINE, cases[i].line);
    const char *objection = label_row(&row, &log->entries[0], NULL, &sample);
    if (!objection || !strstr(objection, cases[i].part)) {
      fail_msg("\"%s\" is not in: %s", cases[i].part, objection ? objection : "none");
    }
  }
  const struct label_log *log =
      LABEL_LOG("TUNER/stratus: calibrate open allreduce 64 ranks 4 nodes 2 nccl 1 cells ring.ll",
                "TUNER/stratus: calibrate open allreduce 64 ranks 4 nodes 0 nccl 1 cells pat.ll .");
  assert_int_equal(log->count, 0); /* cut off, or nonsense */
}

/* ---- resuming ---- */

static void take_fake_perf(const char *name) {
  char command[128];
  snprintf(command, sizeof command, "cp tests/unit/fake_perf $XDG_CONFIG_HOME/%s", name);
  assert_int_equal(tool_run(command), 0);
}

static int run_tool(const char *options) {
  char command[512];
  snprintf(command, sizeof command,
           "stratus calibrate -s s.jsonl -c allreduce -b 8 -n 4 -e %s -- ./all_reduce_perf",
           options);
  return tool_run_there(command);
}

/* The lines of a file in the tree that hold `part`. */
static int count_lines(const char *path, const char *part) {
  char full[TREE_PATH_MAX], line[2048];
  FILE *file = fopen(tree_path(&tool.tree, path, full), "r");
  assert_non_null(file);
  int count = 0;
  while (fgets(line, sizeof line, file)) {
    count += strstr(line, part) != NULL;
  }
  fclose(file);
  return count;
}

TOOL_TEST(what_is_there_is_not_measured_again) {
  take_fake_perf("all_reduce_perf");
  tree_write(&tool.tree, "busy", "1");
  TOOL_WARNS(run_tool("8 --rounds 1"), 0, /* although the first launch fails */
             "allreduce: 1 cells beside NCCL's own choice: 1 launches at most follow\n");
  assert_int_equal(count_lines("all_reduce_perf.log", "1 default"), 1);
  assert_int_equal(count_lines("all_reduce_perf.log", "1 tree.ll"), 1);
  assert_int_equal(count_lines("s.jsonl", "\"bytes\":8,"), 2); /* two cells */
  assert_int_equal(count_lines("s.jsonl", "\"default\":true"), 1);
  /* NCCL's own choice tells what is open; nothing else runs again. */
  assert_int_equal(run_tool("8 --rounds 1"), 0);
  assert_int_equal(count_lines("all_reduce_perf.log", ""), 3);
  assert_int_equal(count_lines("s.jsonl", ""), 2);
  assert_int_equal(run_tool("16 --rounds 1"), 0); /* one size more: only that one is tried */
  assert_int_equal(count_lines("s.jsonl", "\"bytes\":8,"), 2);
  assert_int_equal(count_lines("s.jsonl", "\"bytes\":16,"), 2);
  assert_int_equal(count_lines("all_reduce_perf.log", "tree.ll"), 2);
  /* More rounds go on behind those; another number of channels is another cell. */
  assert_int_equal(run_tool("16"), 0);
  assert_int_equal(count_lines("all_reduce_perf.log", "default"), 6);
  assert_int_equal(count_lines("all_reduce_perf.log", "tree.ll"), 4);
  assert_int_equal(count_lines("s.jsonl", ""), 12);
  assert_int_equal(run_tool("16 --rounds 1 --channels 0,2"), 0);
  assert_int_equal(count_lines("all_reduce_perf.log", "1 ring.ll@2"), 1);
  assert_int_equal(count_lines("all_reduce_perf.log", "1 tree.ll@2"), 1);
  assert_int_equal(count_lines("s.jsonl", ""), 16);
  /* A launch that fails leaves what there was. */
  write_script("all_reduce_perf", "echo no GPU here\nexit 3");
  assert_true(run_tool("32") != 0);
  assert_int_equal(count_lines("err", "no GPU here"), 2); /* tried twice */
  assert_int_equal(count_lines("s.jsonl", ""), 16);
}

/* Before a rank is started, files are named. */
TOOL_TEST(what_follows_is_said_first) {
  write_script("all_reduce_perf", "kill -TERM $PPID");
  TOOL_WARNS(tool_run_there("stratus calibrate -c allreduce -e 1G -f 4 -n 40 --rounds 3 -- "
                            "./all_reduce_perf"),
             1, "stratus: samples go to samples.jsonl after each launch, and /");
  tool_assert_contains(tool.errors,
                       "goes on by the same command\n"
                       "stratus: allreduce, NCCL's own choice, round 1 of 3: 14 sizes\n");
  tool_assert_contains(tool.errors, "./all_reduce_perf was ended: interrupted\n");
}

TOOL_TEST(a_second_signal_ends_who_is_deaf) {
  char survived[TREE_PATH_MAX];
  write_script("all_reduce_perf", "trap '' TERM\n"
                                  "for i in 1 2 3 4 5 6 7 8; do kill -TERM $PPID; sleep 1; done\n"
                                  "touch survived");
  TOOL_WARNS(run_tool("8"), 1, "./all_reduce_perf was ended: interrupted\n");
  assert_true(access(tree_path(&tool.tree, "survived", survived), F_OK) != 0);
}

/* A rank of another launcher would run a job beside those of the other ranks. */
TOOL_TEST(a_rank_is_told_what_to_do) {
  static const char *const places[][2] = {
    { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", "rank 3 of 4" },
    { "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", "rank 0 of 2" },
    { "PMI_RANK=1 PMI_SIZE=2", "rank 1 of 2" },
    { "RANK=1 WORLD_SIZE=2", "rank 1 of 2" },
  };
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    char command[256];
    snprintf(command, sizeof command, "%s stratus calibrate -- ./all_reduce_perf", places[i][0]);
    TOOL_WARNS(tool_run_there(command), 2, places[i][1]);
    tool_assert_contains(tool.errors, "start stratus once, with");
  }
}

/* The first call of each place warms up; a single long one does not count. */
TOOL_TEST(the_median_of_calls_counts) {
  char full[TREE_PATH_MAX], error[BENCH_JSON_ERROR_MAX];
  struct bench_json bench;
#define PLACE "{\"time\":300,\"nwrong\":2}"
  tree_write(&tool.tree, "x.json",
             "{\"results\":[{\"size\":0},{\"size\":8,\"out_of_place\":" PLACE ",\"in_place\":" PLACE
             ",\"out_of_place_per_iter\":{\"times_us\":[900,10,11,500]},"
             "\"in_place_per_iter\":{\"times_us\":[900,900,11,12]}}]}");
  tree_path(&tool.tree, "x.json", full);
  assert_int_equal(bench_json_read(full, PROFILE_ALLREDUCE, &bench, error), 0);
  assert_int_equal(bench.count, 1);
  assert_true(bench.rows[0].median_us == 11.5 && bench.rows[0].wrong == 4);
  assert_true(bench.rows[0].calls == 4 && bench.rows[0].mad_us == 0.5);
  assert_ptr_equal(bench_json_find(&bench, PROFILE_ALLREDUCE, 8), &bench.rows[0]);
  assert_null(bench_json_find(&bench, PROFILE_ALLREDUCE, 0));
  bench_json_free(&bench);
  /* Two places ran, and one tells its calls. */
  tree_write(&tool.tree, "x.json",
             "{\"results\":[{\"size\":8,\"out_of_place\":" PLACE ",\"in_place\":" PLACE
             ",\"out_of_place_per_iter\":{\"times_us\":[900,10,11,500]}}]}");
  assert_true(bench_json_read(full, PROFILE_ALLREDUCE, &bench, error) < 0);
  assert_non_null(strstr(error, "no times of single calls"));
}

/* nccl-tests without -J print their help, and some say that all is well. */
TOOL_TEST(nccl_tests_that_are_too_old) {
  write_script("all_reduce_perf", "echo 'invalid option -- J'");
  TOOL_WARNS(run_tool("8"), 1, "2.19.2");
}

/* ---- the examples of -h ---- */

static void run_example(const char *command) {
  char example[TOOL_LINE_MAX], line[TOOL_LINE_MAX + 32];
  tool_read_example(command, example);
  snprintf(line, sizeof line, "PATH=$PWD:$PATH; %s", example);
  int status = tool_run_there(line);
  if (status != 0) {
    fail_msg("%s: status %d: %s", line, status, tool.errors);
  }
}

TOOL_TEST(examples_run_as_printed) {
  write_script("mpirun", "[ \"$1\" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }\n"
                         "until [ \"${1%_perf}\" != \"$1\" ]; do shift; done\n"
                         "exec \"$@\"");
  take_fake_perf("all_reduce_perf");
  take_fake_perf("all_gather_perf");
  take_fake_perf("reduce_scatter_perf");
  tree_write(&tool.tree, "a.profile", "%s",
             json_text("{'schema': 2, 'id': 'a', 'tables': [{'coll': 'allreduce', 'nodes': 2, "
                       "'ppn': 8, 'rows': [{'bytes_lo': 1024, 'bytes_hi': 65536, "
                       "'algo': 'ring', 'proto': 'll'}]}]}"));
  run_example("calibrate");
  assert_int_equal(count_lines("s.jsonl", "\"nodes\":2"), 3 * 24 * 2 * 3);
  run_example("verify");
  assert_true(tool.output[0] != '\0');
}
