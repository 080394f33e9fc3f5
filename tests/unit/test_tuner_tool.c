/* SPDX-License-Identifier: Apache-2.0 */
/* stratus as people use it: the examples of -h run as printed, answers, exit statuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/json_text.h"
#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

#define EXAMPLE "tuner_plugin/profiles/example.profile"

UNIT_TEST(examples_run_as_printed) {
  static const char *const helps[] = { "show", "fit" };
  for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++) {
    char line[TOOL_LINE_MAX];
    tool_read_example(helps[i], line);
    assert_int_equal(tool_run(line), 0);
    assert_true(tool.output[0] != '\0' && tool.errors[0] == '\0');
  }
}

UNIT_TEST(wrong_use_is_status_2) {
  static const struct {
    const char *command, *says;
  } cases[] = {
    { "stratus show a b", "\"b\"" },
    { "stratus fit", "needs SAMPLES" },
    { "stratus fit /nowhere --id 'a\"b'",
      "--id: id takes letters, digits and . _ -, not \"a\\\"b\"" },
    { "stratus fit /nowhere --id ''", "--id: id takes letters, digits and . _ -, not \"\"" },
    { "stratus compare a", "needs A B" },
    { "stratus calibrate", "a command is wanted" },
    { "stratus calibrate -b 3X", "a size such as 64K" },
    { "stratus calibrate -c foo -- x_perf", "broadcast|reduce|allgather|reducescatter|allreduce" },
    { "stratus calibrate -- srun python", "end in _perf" },
    { "stratus calibrate -n 0 -- x_perf", "takes 2 to" },
    { "stratus calibrate -b 0 -- x_perf", "-b must be above 0" },
    { "stratus calibrate --channels x -- x_perf", "numbers from 0 to 64" },
    { "stratus calibrate --rounds 0 -- x_perf", "--rounds takes 1 to 99, not 0" },
    { "stratus verify", "--profile FILE" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_assert_wrong_use(cases[i].command, cases[i].says);
  }
}

/* What takes minutes is not begun when its result could not be kept. */
UNIT_TEST(files_are_tried_before_ranks_start) {
  assert_int_equal(tool_run("stratus calibrate -s /nowhere/s.jsonl -- ./no_such_perf"), 1);
  assert_string_equal(tool.errors, "stratus: /nowhere/s.jsonl cannot be written: No such file "
                                   "or directory\n");
}

UNIT_TEST(a_full_disk_is_told) {
  TOOL_WARNS(tool_run("stratus fit tests/data/samples/example.jsonl -o /dev/full"), 1,
             "stratus: /dev/full: No space left on device\n");
}

UNIT_TEST(a_directory_is_no_file_of_samples) {
  TOOL_WARNS(tool_run("stratus fit tests/data"), 1, "tests/data: cannot be read: Is a directory");
}

UNIT_TEST(a_bad_profile_is_told_with_its_place) {
  tree_write(&tool.tree, "bad.profile", "%s",
             json_text("{'schema': 2, 'id': 'x', 'tables': [{'coll': 'allreduce', 'nodes': 2, "
                       "'ppn': 1, 'rows': [{'bytes_lo': 1024, 'algo': 'ring', 'proto': "
                       "'ll256'}]}]}"));
  static const char *const commands[] = { "show", "verify -p" };
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    char command[256];
    snprintf(command, sizeof command, "stratus %s $XDG_CONFIG_HOME/bad.profile", commands[i]);
    TOOL_WARNS(tool_run(command), 1,
               "bad.profile: tables[0].rows[0].proto takes ll|ll128|simple, not \"ll256\"");
    snprintf(command, sizeof command, "stratus %s /nowhere/a.profile", commands[i]);
    TOOL_WARNS(tool_run(command), 1, "/nowhere/a.profile: cannot be read: No such file");
  }
}

UNIT_TEST(show_prints_all_of_it) {
  TOOL_SAYS(
      tool_run("stratus show " EXAMPLE), 0, "profile example, hash ",
      "used where STRATUS_PROFILE names it", "\"nccl_min\": 22105,\n", "\"flows\": 8",
      "{\"coll\": \"allreduce\", \"nodes\": 8, \"ppn\": 8, \"rows\": [\n",
      "{\"bytes_lo\": 65536, \"bytes_hi\": 4194304, \"algo\": \"tree\", \"proto\": \"simple\"}",
      "\"channels\": 8}");
}

/* A row that gains less than 3 %, or less than twice its noise, is not used. */
UNIT_TEST(show_tells_rows_that_do_not_hold) {
#define ROW(low, high, ns, noise)                                                                  \
  "{'bytes_lo': " low ", 'bytes_hi': " high ", 'algo': 'ring', 'proto': 'll', "                    \
  "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 100000, 'choice_ns': " ns                \
  ", 'noise_permille': " noise "}"
  tree_write(&tool.tree, "weak.profile", "%s",
             json_text("{'schema': 2, 'id': 'x', 'tables': [{'coll': 'reduce', 'nodes': 2, "
                       "'ppn': 1, 'rows': [" ROW("1", "2", "90000", "10") "," ROW(
                           "2", "3", "98000", "1") "," ROW("3", "4", "90000", "90") "]}]}"));
  TOOL_SAYS(
      tool_run("stratus show $XDG_CONFIG_HOME/weak.profile"), 0,
      "too little: reduce, 2 nodes x 1 ranks, from 2 bytes on, 98.0 us where tree ll took 100.0\n",
      "too little: reduce, 2 nodes x 1 ranks, from 3 bytes on, 90.0 us where tree ll took 100.0\n");
  assert_null(strstr(tool.output, "from 1 bytes on"));
}

UNIT_TEST(show_finds_the_named_one_or_says_so) {
  TOOL_WARNS(tool_run("stratus show"), 1, "no profile fits this machine");
  TOOL_SAYS(tool_run("STRATUS_PROFILE=" EXAMPLE " stratus show"), 0, "profile example");
}

/* As `make install` lays them out; what the user has comes first. */
UNIT_TEST(packaged_profiles_lie_beside_the_program) {
  SKIP_IF_EMULATED("a copy of the tool is not beside its profiles");
  tree_make_directory(&tool.tree, "bin");
  tree_make_directory(&tool.tree, "share/stratus");
  assert_int_equal(tool_run_there("cp $(command -v stratus) bin/"), 0);
  char command[1024], directory[512];
  assert_non_null(getcwd(directory, sizeof directory));
  snprintf(command, sizeof command, "ln -s %s/tuner_plugin/profiles share/stratus/profiles",
           directory);
  assert_int_equal(tool_run_there(command), 0);
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=aws:p4d.24xlarge bin/stratus show"), 0,
            "profile aws-p4d, hash ");
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=aws:p5.48xlarge bin/stratus show"), 0,
            "profile aws-p5, hash ");
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=gcp:a3-megagpu-8g bin/stratus show"), 0,
            "profile gcp-a3-mega, hash ");
  tree_write(&tool.tree, "stratus/profiles/mine.profile",
             "{\"schema\": 2, \"id\": \"mine\", \"match\": {\"cloud\": \"aws\"}}");
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=aws:p5.48xlarge bin/stratus show"), 0,
            "profile mine, hash ");
}

UNIT_TEST(fit_makes_a_profile_that_show_tells_about) {
  TOOL_SAYS(tool_run("stratus fit tests/data/samples/example.jsonl --id fitted-here -o "
                     "$XDG_CONFIG_HOME/fitted.profile"),
            0, "110 samples, 2 collectives and shapes");
  TOOL_SAYS(tool_run("stratus show $XDG_CONFIG_HOME/fitted.profile"), 0, "profile fitted-here",
            "{\"coll\": \"allreduce\", \"nodes\": 2, \"ppn\": 1", "\"over_algo\": ");
  TOOL_WARNS(tool_run("stratus fit " EXAMPLE), 1, "example.profile:1: is no JSON object");
}

/* Measured on one kind of machine, the profile asks for it; two kinds do not go together. */
UNIT_TEST(fit_asks_for_the_topology_of_the_samples) {
#define ON(id) "sed 's/^{/{\"topology\":\"" id "\",/' tests/data/samples/example.jsonl"
  TOOL_SAYS(tool_run(ON("0d5fc02a91e7") " >$XDG_CONFIG_HOME/a; " ON(
                "43d74c2872d9") " >$XDG_CONFIG_HOME/b; stratus fit $XDG_CONFIG_HOME/a"),
            0, "\"match\": {\"topology\": \"0d5fc02a91e7\"}");
  assert_int_equal(tool_run("stratus fit tests/data/samples/example.jsonl"), 0);
  assert_null(strstr(tool.output, "topology"));
  TOOL_SAYS(tool_run("stratus fit $XDG_CONFIG_HOME/a tests/data/samples/example.jsonl"), 0,
            "\"match\": {\"topology\": \"0d5fc02a91e7\"}");
  tool_assert_contains(tool.errors, "110 of 220 samples name no topology, and are taken to be of");
  TOOL_WARNS(tool_run("stratus fit $XDG_CONFIG_HOME/a $XDG_CONFIG_HOME/b"), 1,
             "0d5fc02a91e7 and 43d74c2872d9: a profile is for one");
  assert_int_equal(tool_run("stratus fit $XDG_CONFIG_HOME/b -o $XDG_CONFIG_HOME/b.profile"), 0);
  TOOL_SAYS(tool_run("STRATUS_TOPOLOGY=43d74c2872d9 stratus show "
                     "$XDG_CONFIG_HOME/b.profile"),
            0, "it is for this machine's topology");
  TOOL_SAYS(tool_run("stratus show $XDG_CONFIG_HOME/b.profile"), 0,
            "it is for another topology than this machine's");
}

UNIT_MAIN(tool_set_up, tool_tear_down)
