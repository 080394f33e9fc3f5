/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune verify and show: profiles asked for on hosts, and where they are found. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

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
