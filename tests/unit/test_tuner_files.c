/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune import and verify: profiles made of rules, and asked for on hosts. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

/* ---- import ---- */

static int import(const char *text, const char *options) {
  char command[512];
  tree_write(&tool.tree, "rules.csv", "%s", text);
  snprintf(command, sizeof command, "stratus-tune import rules.csv %s -o rules.profile", options);
  return tool_run_there(command);
}

static void assert_explained(const char *call, const char *choice) {
  char command[512];
  snprintf(command, sizeof command, "stratus-tune explain -p rules.profile %s", call);
  TOOL_SAYS(tool_run_there(command), 0, choice);
}

static void assert_allreduce(const char *bytes, const char *choice) {
  char call[64];
  snprintf(call, sizeof call, "-c allreduce -n 2 -r 8 -b %s", bytes);
  assert_explained(call, choice);
}

/* As the example decides: the first rule that matches. */
UNIT_TEST(import_keeps_the_order_of_rules) {
  TOOL_WARNS(import("# a comment\n\n"
                    "allreduce,1024,2047,tree,ll,2,2,16\n"
                    "AllReduce, 0, 1048576, ring, LL128, -1, 2, 16\n"
                    "allreduce,0,4294967295,nvls_tree,simple,4,-1,-1,-1,-1\n"
                    "reduce,0,100,ring,simple,1,-1,8,-1,1\n",
                    ""),
             0, "1 rule for any number of nodes or ranks is applied",
             "rules.csv:6: 1 rule is left out, this one first: pipe_ops and");
  assert_allreduce("1024", "tree ll, at most 2 channels");
  assert_allreduce("2047", "tree ll, at most 2 channels");
  assert_allreduce("2048", "ring ll128, NCCL's number of channels");
  assert_allreduce("8", "ring ll128, NCCL's number");
  assert_allreduce("1M", "ring ll128");
  assert_allreduce("1048577", "nvlstree simple, at most 4 channels");
  assert_allreduce("16G", "nvlstree simple, at most 4 channels");
  assert_explained("-c reduce -n 2 -r 8 -b 8", "NCCL's own");
  /* for another shape, only what holds for any */
  assert_int_equal(import("allreduce,0,4095,tree,ll,2,2,16\nallreduce,0,-1,ring,simple,-1,-1,-1\n",
                          "--nodes 4 --ppn 8"),
                   0);
  assert_explained("-c allreduce -n 4 -r 8 -b 8", "ring simple");
  assert_allreduce("8", "tree ll");
}

UNIT_TEST(import_names_the_place) {
  static const struct {
    const char *text, *error;
  } cases[] = {
    { "allreduce,0,1\n", "rules.csv:1:1: a rule has 8 to 10 fields" },
    { "\nalltoall,0,1,ring,ll,1,1,1\n", "rules.csv:2:1: collective takes broadcast, reduce" },
    { "reduce,0,1,rink,ll,1,1,1\n", "rules.csv:1:12: algorithm takes tree, ring" },
    { "reduce,0,1,ring,LL64,1,1,1\n", "rules.csv:1:17: protocol takes ll, ll128, simple" },
    { "reduce,9,1,ring,ll,1,1,1\n", "rules.csv:1:10: max_bytes is below min_bytes" },
    { "reduce,0,1,ring,ll,65,1,1\n", "rules.csv:1:20: channels takes a number up to 64" },
    { "reduce,0,1,ring,ll,1,2,16666666\n", "rules.csv:1:24: ranks takes a number up to 1048576" },
    { "reduce,0,1,ring,ll,1,3,16\n", "16 ranks cannot be spread evenly over 3 nodes" },
    { "reduce,0,1,ring,ll,1,-1,-1\n", "with --nodes and --ppn" },
    { "# nothing\n", "no rule that could be imported" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    TOOL_WARNS(import(cases[i].text, ""), 1, cases[i].error);
  }
  TOOL_WARNS(import("reduce,0,1,ring,ll,1,4,-1\n", "--nodes 2 --ppn 8"), 1,
             "no rule of rules.csv applies to any of the named numbers");
  assert_int_equal(tool_run_there("stratus-tune import /nowhere/a.csv"), 1);
}

/* Files as people, scripts and spreadsheets leave them (tests/data/readers). */
static int import_reported(const char *name, const char *options) {
  char command[512];
  snprintf(command, sizeof command,
           "stratus-tune import tests/data/readers/rules/%s %s -o %s/rules.profile", name, options,
           tool.tree.root);
  return tool_run(command);
}

UNIT_TEST(import_takes_reported_files) {
  static const char *const good[] = { "bom.csv", "heading.csv", "empty-fields.csv" };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(import_reported(good[i], ""), 0);
    assert_string_equal(tool.errors, "");
    assert_allreduce("64", "tree ll, at most 2 channels");
    assert_allreduce("64K", "NCCL's own");
  }
  TOOL_WARNS(import_reported("uneven.csv", ""), 0,
             "uneven.csv:1:29: 17 ranks cannot be spread evenly over 2", "the rule is left out");
  assert_allreduce("64", "tree ll");
  TOOL_WARNS(import_reported("wildcards.csv", ""), 0,
             "2 rules for any number of nodes or ranks are applied",
             "wildcards.csv:2: the rule is left out: no such "
             "combination as its 4 nodes and any number of ranks");
  assert_explained("-c reduce -n 2 -r 8 -b 1G", "ring ll, at most 2 channels");
  TOOL_WARNS(import_reported("wildcards.csv", "--nodes 4 --ppn 2"), 0, "3 rules for any number");
  assert_explained("-c broadcast -n 4 -r 2 -b 8", "tree ll");
}

UNIT_TEST(import_reads_sizes_of_4_gib_and_more) {
  assert_int_equal(import_reported("over-4GiB.csv", ""), 0);
  assert_allreduce("4G", "ring simple");
  assert_allreduce("8589934591", "ring simple");
  assert_allreduce("8G", "tree simple");
  assert_allreduce("17179869183", "tree simple");
  assert_allreduce("16G", "NCCL's own");
  /* 4294967295 is for all sizes, but where another rule begins. */
  assert_int_equal(import("allreduce,0,4294967295,ring,ll,1,2,16\n"
                          "allreduce,8589934592,17179869183,tree,ll,1,2,16\n",
                          ""),
                   0);
  assert_allreduce("4294967295", "ring ll");
  assert_allreduce("4G", "ring ll");
  assert_allreduce("8G", "tree ll");
  assert_allreduce("16G", "ring ll");
  static const char *const all[] = { "-1", "18446744073709551615", "9223372036854775807" };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char rule[128];
    snprintf(rule, sizeof rule, "allreduce,4294967296,%s,ring,ll,1,2,16\n", all[i]);
    assert_int_equal(import(rule, ""), 0);
    assert_allreduce("4294967295", "NCCL's own");
    assert_allreduce("4T", "ring ll");
  }
  assert_int_equal(import("allreduce,8589934592,4294967295,ring,ll,1,2,16\n", ""), 0);
  assert_allreduce("16G", "ring ll");
  TOOL_WARNS(import("allreduce,0,18446744073709551616,ring,ll,1,2,16\n", ""), 1,
             "rules.csv:1:13: max_bytes takes a number up to");
}

UNIT_TEST(import_tells_of_conditions) {
  TOOL_WARNS(import_reported("all-conditions.csv", ""), 1,
             "all-conditions.csv:1: 2 rules are left out, this one first",
             "--ignore-conditions takes such rules for all calls",
             "no rule that could be imported");
  assert_int_equal(import_reported("all-conditions.csv", "--ignore-conditions"), 0);
  assert_allreduce("64", "tree ll, at most 2 channels");
  assert_allreduce("1M", "ring simple, at most 8 channels");
  static const char *const none[] = {
    ",-1", ",-1,-1", ",", ",,", ",-1,", ",,-1", ", ,\t", ",,,,,"
  };
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
    char rule[128];
    snprintf(rule, sizeof rule, "allreduce,0,65535,tree,ll,2,2,16%s\n", none[i]);
    assert_int_equal(import(rule, ""), 0);
    assert_allreduce("64", "tree ll");
  }
  static const char *const some[] = { ",1", ",-1,0", ",0", ",,1", ",1,-1" };
  for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
    char rule[128];
    snprintf(rule, sizeof rule, "allreduce,0,65535,tree,ll,2,2,16%s\n", some[i]);
    TOOL_WARNS(import(rule, ""), 1, "rules.csv:1: 1 rule is left out");
  }
}

#define RULE "allreduce,0,65535,tree,ll,2,2,16"

UNIT_TEST(import_takes_what_surrounds) {
  static const char *const texts[] = {
    "\xef\xbb\xbf" RULE "\r\n",
    "\xef\xbb\xbf# a comment\r\n\r\n" RULE "\r\n",
    "Collective_Type,Min_Bytes,Max_Bytes,Algorithm,Protocol,Channels,nNodes,nRanks\n" RULE,
    "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
    "regBuff\n" RULE ",-1,-1\n",
    "\"collective_type\",\"min_bytes\",\"max_bytes\",\"algorithm\",\"protocol\",\"channels\","
    "\"nNodes\",\"nRanks\"\n\"allreduce\",\"0\",\"65535\",\"tree\",\"ll\",\"2\",\"2\",\"16\"\n",
    "# head\r" RULE "\r# tail\r",
    ",,,,,,,,,\n" RULE ",,\n,,,,,,,,,\n",
    "  " RULE "  \n\t\n",
    RULE " # the small ones\n  # the end\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal(import(texts[i], ""), 0);
    assert_string_equal(tool.errors, "");
    assert_allreduce("64", "tree ll, at most 2 channels");
  }
  assert_int_equal(import("allgather,0,9,ring,ll,1,2,16\r" RULE "\n", ""), 0);
  assert_allreduce("64", "tree ll");
  assert_explained("-c allgather -n 2 -r 8 -b 8", "ring ll");
}

/* A bad rule costs itself; a heading in another order costs the file. */
UNIT_TEST(import_leaves_bad_rules_out) {
  static const struct {
    const char *text, *error;
  } cases[] = {
    { "allreduce,0,1,rink,ll,1,2,16\n" RULE "\n", "rules.csv:1:15: algorithm takes tree, ring" },
    { RULE "\nallreduce,,9,ring,ll,1,2,16\n", "rules.csv:2:11: field 2, minbytes, is empty" },
    { RULE "\nallreduce,0,9,ring,ll,1,2,\n", "rules.csv:2:1: a rule has 8 to 10 fields" },
    { RULE "\nallreduce,0,9,ring,ll,1,2,16,-1,-1,5\n", "rules.csv:2:1: a rule has 8 to 10" },
    { RULE "\nallreduce;0;9;ring;ll;1;2;16\n", "with commas between them, not semicolons" },
    { RULE "\nreduce,0,64K,ring,ll,1,2,16\n", "rules.csv:2:10: max_bytes takes a number" },
    { RULE "\nreduce,0,1e6,ring,ll,1,2,16\n", "rules.csv:2:10: max_bytes takes a number" },
    { RULE "\nreduce,0,9,ring,ll,1,0,16\n", "16 ranks cannot be spread evenly over 0 nodes" },
    { RULE "\nreduce,0,9,ring,ll,1,32,16\n", "16 ranks cannot be spread evenly over 32" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    TOOL_WARNS(import(cases[i].text, ""), 0, cases[i].error, "the rule is left out");
    assert_allreduce("64", "tree ll, at most 2 channels");
  }
  TOOL_WARNS(import("collective_type,max_bytes,min_bytes,algorithm,protocol,channels,nNodes,"
                    "nRanks\n" RULE "\n",
                    ""),
             1, "rules.csv:1:17: column 2 has to be minbytes");
  TOOL_WARNS(import("collective,size_bytes,algorithm,protocol,channels,nodes,ranks\n", ""), 1,
             "these are measurements for NVIDIA's optimize_config.py");
  static const char zero[] = RULE "\nall\0reduce,0,9,ring,ll,1,2,16\n";
  tree_write_bytes(&tool.tree, "rules.csv", zero, sizeof zero - 1);
  TOOL_WARNS(tool_run_there("stratus-tune import rules.csv -o rules.profile"), 0,
             "rules.csv:2: a zero byte: this is no text");
}

/* ---- verify ---- */

static const char *profile_of(const char *id) {
  static char text[256];
  snprintf(text, sizeof text,
           "schema = 1\n[meta]\nid = %s\n[table reduce nodes=2 ppn=1]\n1 %c ring ll 0\n", id,
           id[0] == 'o' ? '2' : '3');
  return text;
}

/* A tool that has one profile on the first host it is run on, and another on the second. */
UNIT_TEST(verify_tells_hosts_that_differ) {
  char command[1024];
  tree_write(&tool.tree, "one.profile", "%s", profile_of("one"));
  tree_write(&tool.tree, "two.profile", "%s", profile_of("two"));
  tree_write(&tool.tree, "differ",
             "#!/bin/sh\necho welcome\nif mkdir %s/taken 2>/dev/null; then p=one; else p=two; fi\n"
             "STRATUS_PROFILE=%s/$p.profile exec stratus-tune \"$@\"\n",
             tool.tree.root, tool.tree.root);
  snprintf(command, sizeof command,
           "chmod +x differ; stratus-tune verify --json --tool %s/differ local local",
           tool.tree.root);
  assert_int_equal(tool_run_there(command), 1);
  json_t *told = json_loads(tool.output, 0, NULL);
  assert_true(json_is_false(json_object_get(told, "alike")));
  json_t *hosts = json_object_get(told, "hosts");
  assert_int_equal(json_array_size(hosts), 2);
  json_t *second = json_array_get(hosts, 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(hosts, 0), "verdict")),
                      "alike");
  assert_string_equal(json_string_value(json_object_get(second, "verdict")), "differs");
  json_decref(told);
  snprintf(command, sizeof command, "rmdir taken; stratus-tune verify --tool %s/differ local local",
           tool.tree.root);
  TOOL_SAYS(tool_run_there(command), 1, "a job on these hosts could hang");
}

/* Which NCCL chooses by itself, beside a profile that decides. */
UNIT_TEST(verify_tells_variables_that_differ) {
  tree_write(&tool.tree, "one.profile", "%s", profile_of("one"));
  tree_write(&tool.tree, "flows.profile", "schema = 1\n[meta]\nid = f\n[net]\nflows = 4\n");
  tree_write(&tool.tree, "reach",
             "#!/bin/sh\nhost=$1; shift\nunset NCCL_PROTO; export NCCL_BUFFSIZE=4194304\n"
             "case $host in\nring) export NCCL_ALGO=Ring ;;\ntree) export NCCL_ALGO=Tree ;;\n"
             "esac\neval \"$@\"\n");
  TOOL_SAYS(tool_run_there("chmod +x reach; STRATUS_PROFILE=$PWD/one.profile "
                           "stratus-tune verify --ssh ./reach ring tree"),
            1, "differs    tree", "NCCL variables: NCCL_ALGO=tree here, NCCL_ALGO=ring on ring\n",
            "could hang: set NCCL's variables alike on every host, or on none\n");
  /* They count only where the profile decides. */
  TOOL_SAYS(tool_run_there("STRATUS_PROFILE=$PWD/flows.profile "
                           "stratus-tune verify --ssh ./reach ring tree"),
            0, "all hosts choose alike");
  /* As the job's launcher would, this shell's go to all hosts. */
  TOOL_SAYS(tool_run_there("NCCL_PROTO=LL STRATUS_PROFILE=$PWD/one.profile "
                           "stratus-tune verify --json --ssh ./reach far"),
            0, "\"variables\": \"NCCL_PROTO=ll NCCL_BUFFSIZE=4194304\"");
}

UNIT_TEST(verify_passes_the_users_profile_on) {
  TOOL_SAYS(tool_run_there("STRATUS_PROFILE=$PWD/one.profile stratus-tune verify local local"), 0,
            "profile one, hash ", "all hosts choose alike");
  TOOL_SAYS(tool_run_there("stratus-tune verify --tool false local"), 1, "no answer");
  assert_int_equal(tool_run_there("STRATUS_PROFILE=two.profile stratus-tune verify --here"), 0);
  json_t *told = json_loads(tool.output, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(told, "profile")), "two");
  assert_int_equal(strlen(json_string_value(json_object_get(told, "decisions"))), 16);
  json_decref(told);
  assert_int_equal(tool_run_there("STRATUS_PROFILE=nowhere.profile stratus-tune verify --here"), 1);
  TOOL_SAYS(tool_run_there("stratus-tune verify --here"), 0, "\"profile\":\"none\"");
}

/* One stand-in for ssh, and hosts that cannot answer in every way. */
UNIT_TEST(verify_says_why_a_host_is_silent) {
  tree_write(
      &tool.tree, "reach",
      "#!/bin/sh\nhost=$1; shift\ncase $host in\n"
      "good) eval \"$@\" ;;\n"
      "closed) echo first >&2; echo 'ssh: connect to host closed: refused' >&2; exit 255 ;;\n"
      "without) echo 'sh: 1: stratus-tune: not found' >&2; exec env no-such-stratus-tune ;;\n"
      "chatty) echo 'welcome {to} me' ;;\n"
      "painter) printf 'a\\033]0;b\\007\\377c\\n' >&2; exit 3 ;;\n"
      "liar) echo '{\"decisions\":\"\\u001b[2J\"}' ;;\n"
      "asleep) echo $$ >%s/asleep; sleep 300 & wait ;;\n"
      "killed) kill -9 $$ ;;\nesac\n",
      tool.tree.root);
  TOOL_SAYS(tool_run_there(
                "chmod +x reach; stratus-tune verify --ssh './reach ' --timeout 2s good closed "
                "without,chatty asleep killed good"),
            1, "alike      good ",
            "no answer  closed                    ssh: connect to host closed: refused; "
            "status 255\n",
            "no answer  without                   there is no stratus-tune "
            "there; give its path with --tool",
            "no answer  chatty                    its output is not that",
            "no answer  asleep                    no answer within 2s",
            "no answer  killed                    ended by signal 9",
            "5 of 6 hosts did not answer");
  assert_int_equal(tool_run_there("! kill -0 $(cat asleep)"),
                   0); /* ended with all it had started */
  /* What they say commands no terminal, and JSON can hold it. */
  TOOL_SAYS(tool_run_there("stratus-tune verify --ssh './reach ' painter liar"), 1,
            " a?]0;b??c; status 3\n", "decisions ?[2J,");
  assert_null(strchr(tool.output, '\033'));
  TOOL_SAYS(tool_run_there("stratus-tune verify --json --ssh './reach ' painter"), 1,
            "\"a?]0;b??c; status 3\"");
  TOOL_SAYS(tool_run_there("stratus-tune verify --ssh ./no-such-ssh good"), 1,
            "no-such-ssh: No such file");
  assert_int_equal(tool_run_there("stratus-tune verify --ssh '' good"), 2);
  assert_int_equal(tool_run_there("stratus-tune verify --timeout 0 good"), 2);
}

/* ---- where profiles are found ---- */

/* As `make install` lays them out; what the user has comes first. */
UNIT_TEST(packaged_profiles_lie_beside_the_program) {
  SKIP_IF_EMULATED("a copy of the tool is not beside its profiles");
  tree_write(&tool.tree, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
  tree_write(&tool.tree, "sys/class/dmi/id/product_name", "p4d.24xlarge\n");
  tree_make_directory(&tool.tree, "bin");
  tree_make_directory(&tool.tree, "share/stratus");
  assert_int_equal(tool_run_there("cp $(command -v stratus-tune) bin/"), 0);
  char command[1024], directory[512];
  assert_non_null(getcwd(directory, sizeof directory));
  snprintf(command, sizeof command, "ln -s %s/tuner_plugin/profiles share/stratus/profiles",
           directory);
  assert_int_equal(tool_run_there(command), 0);
  TOOL_SAYS(tool_run_there("bin/stratus-tune show"), 0, "profile aws-p4d, hash ");
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=p5.48xlarge bin/stratus-tune show"), 0,
            "profile aws-p5, hash ");
  TOOL_SAYS(tool_run_there("STRATUS_INSTANCE_TYPE=gcp:a3-megagpu-8g bin/stratus-tune show"), 0,
            "profile gcp-a3-mega, hash ");
  tree_write(&tool.tree, "stratus/profiles/mine.profile",
             "schema = 1\n[meta]\nid = mine\n[match]\ncloud = aws\n");
  TOOL_SAYS(tool_run_there("bin/stratus-tune show"), 0, "profile mine, hash ");
}

UNIT_MAIN(tool_set_up, tool_tear_down)
