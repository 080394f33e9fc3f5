/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemons of Open MPI and PRRTE on other hosts are started with. */
#include "common/tools/launch_agent.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static const char *const names[] = { "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN" };
static char why_not[LAUNCH_AGENT_WHY_MAX];

static void begin(const char *net, const char *home) {
  unsetenv("OMPI_MCA_orte_launch_agent");
  unsetenv("PRTE_MCA_prte_launch_agent");
  unsetenv("NCCL_TUNER_PLUGIN");
  setenv("NCCL_NET_PLUGIN", net, 1);
  setenv("HOME", home, 1);
  setenv("PATH", "/nonesuch", 1);
  setenv("SLURM_JOB_ID", "1", 1);
}

static void assert_agents(const char *of_4, const char *of_5) {
  assert_string_equal(getenv("OMPI_MCA_orte_launch_agent"), of_4);
  assert_string_equal(getenv("PRTE_MCA_prte_launch_agent"), of_5);
}

UNIT_TEST(variables_stand_before_the_daemon) {
  begin("stratus", "/nonesuch");
  assert_true(launch_agent_set(names, 2, NULL, why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus orted", "env NCCL_NET_PLUGIN=stratus prted");
  /* Once more, in a rank of that job. */
  assert_true(launch_agent_set(names, 2, NULL, why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus orted", "env NCCL_NET_PLUGIN=stratus prted");
}

UNIT_TEST(the_users_agent_stays) {
  begin("stratus", "/nonesuch");
  setenv("OMPI_MCA_orte_launch_agent", "valgrind orted", 1);
  assert_true(launch_agent_set(names, 1, NULL, why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus valgrind orted", "env NCCL_NET_PLUGIN=stratus prted");
}

/* A variable would hide it. */
UNIT_TEST(the_agent_of_a_file_stays) {
  struct tree home;
  tree_create(&home);
  tree_write(&home, ".openmpi/mca-params.conf",
             "# orte_launch_agent = no\norte_launch_agents = no\n"
             " orte_launch_agent = valgrind orted\n");
  tree_write(&home, ".prte/mca-params.conf", "prte_launch_agent=/opt/bin/prted\n");
  begin("stratus", home.root);
  assert_true(launch_agent_set(names, 1, NULL, why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus valgrind orted",
                "env NCCL_NET_PLUGIN=stratus /opt/bin/prted");
  tree_remove(&home);
}

/* A shell expands it on the other host; where a resource manager starts the daemon there is none.
 */
UNIT_TEST(the_library_path_is_the_other_hosts) {
  begin("stratus", "/nonesuch");
  assert_true(launch_agent_set(names, 1, "/opt/lib", why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus orted", "env NCCL_NET_PLUGIN=stratus prted");
  begin("stratus", "/nonesuch");
  unsetenv("SLURM_JOB_ID");
  assert_true(launch_agent_set(names, 1, "/opt/lib", why_not));
  assert_agents("env NCCL_NET_PLUGIN=stratus "
                "LD_LIBRARY_PATH=/opt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} orted",
                "env NCCL_NET_PLUGIN=stratus "
                "LD_LIBRARY_PATH=/opt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} prted");
}

UNIT_TEST(what_a_shell_would_read_is_not_passed_on) {
  static const char *const values[] = { "/a b/x.so", "/a$b/x.so", "/a;b/x.so", "/a'b/x.so" };
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    begin(values[i], "/nonesuch");
    assert_false(launch_agent_set(names, 1, NULL, why_not));
    assert_non_null(strstr(why_not, "NCCL_NET_PLUGIN has a blank or a sign that shells read"));
    assert_agents("env orted", "env prted");
  }
}

UNIT_TEST(an_agent_of_the_command_line_is_seen) {
  char *const with[] = { "mpirun", "--launch-agent", "orted", NULL };
  char *const by_key[] = { "mpirun", "--mca", "orte_launch_agent", "orted", NULL };
  char *const without[] = { "mpirun", "-np", "2", "train", NULL };
  assert_string_equal(launch_agent_overruled(with), "--launch-agent");
  assert_string_equal(launch_agent_overruled(by_key), "orte_launch_agent");
  assert_null(launch_agent_overruled(without));
}
