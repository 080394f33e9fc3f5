/* SPDX-License-Identifier: Apache-2.0 */
/* The tools while each call fails in turn (each_failure.h): none crashes, hangs or leaks, and one
 * that does not succeed says why. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/faulty_tool.h"
#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

static const char *command;

static void run_command(struct outcome *outcome) {
  faulty_tool_run(command, outcome);
}

/* is_long: of each kind only some calls fail. */
static void survives(const char *line, bool is_long) {
  command = line;
  struct entry_point entry = {
    .name = line, .run = run_command, .arms_itself = true, .is_slow = is_long
  };
#ifdef __SANITIZE_ADDRESS__
  entry.is_slow = true; /* a process takes 0.1 s */
#endif
  assert_true(each_failure_of_all(&entry) > 0);
}

/* A port of ours for a moment. */
static unsigned find_port(void) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t bytes = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
  close(fd);
  return ntohs(address.sin_port);
}

/* Both processes of a measurement, which takes a second: the first `kinds` of the calls that it is
 * made of. %u is the port. */
static void pair_survives(const char *server, const char *client, size_t kinds) {
  static const struct failure failures[] = {
    { FAULT_ALLOCATION, ENOMEM }, { FAULT_RESOLVE, ENOMEM },     { FAULT_SOCKET, EMFILE },
    { FAULT_SEND, EPIPE },        { FAULT_RECEIVE, ECONNRESET }, { FAULT_LIBRARY, ENOENT },
  };
  static const char *const faulty[] = { "server", "client" };
  for (int i = 0; i < 2; i++) {
    char line[512], server_line[128], client_line[128];
    unsigned port = find_port();
    snprintf(server_line, sizeof server_line, server, port);
    snprintf(client_line, sizeof client_line, client, port);
    snprintf(line, sizeof line, "tests/lib/faulty_pair %s '%s' '%s'", faulty[i], server_line,
             client_line);
    command = line;
    struct entry_point entry = {
      .name = line, .run = run_command, .arms_itself = true, .is_slow = true
    };
    assert_true(each_failure(&entry, failures, kinds) > 0);
  }
}

/* Before those without faults, which tool_set_up finds. */
static int set_up(void **state) {
  char path[4096];
  tool_set_up(state);
  const char *found = getenv("PATH");
  snprintf(path, sizeof path, "%.*s/../tests/faulty/bin:%s", (int)strcspn(found, ":"), found,
           found);
  setenv("PATH", path, 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("STRATUS_SECRET", "0123456789abcdef", 1); /* an agent of probe listens on all addresses */
  setenv("STRATUS_STATS_DIR", tool.tree.root, 1);  /* no other process has statistics there */
  return 0;
}

#define TOOL_TEST(test) UNIT_TEST_WITH(test, set_up, tool_tear_down)

TOOL_TEST(stratus_net) {
  survives("stratus-net devices", false);
  survives("stratus-net params", false);
  survives("stratus-net stats --json", false);
  /* Its status is 1 where NCCL is not installed. */
  survives("sh -c 'stratus-net doctor || test $? -eq 1'", true);
}

/* Here and on both hosts, where it costs that host's answer. Without the calls whose failure makes
 * one end wait for the other. */
TOOL_TEST(stratus_net_doctor_all) {
  static const struct failure failures[] = {
    { FAULT_ALLOCATION, ENOMEM }, { FAULT_SOCKET, EMFILE },
    { FAULT_POLL, EINTR },        { FAULT_EPOLL_CREATE, EMFILE },
    { FAULT_EVENTFD, EMFILE },    { FAULT_OPEN, EACCES },
    { FAULT_READ, EIO },          { FAULT_INTERFACES, ENOMEM },
  };
  command = "sh -c 'stratus-net doctor --all --timeout 5s --ssh tests/lib/here localhost 127.0.0.1 "
            "|| test $? -eq 1'";
  struct entry_point entry = {
    .name = command, .run = run_command, .arms_itself = true, .is_slow = true
  };
  assert_true(each_failure(&entry, failures, sizeof failures / sizeof failures[0]) > 0);
}

TOOL_TEST(stratus_net_measures) {
  pair_survives("stratus-net perf --listen 127.0.0.1:%u --timeout 5s",
                "stratus-net perf 127.0.0.1:%u --count 4 --bytes 1K --timeout 5s", 6);
  pair_survives("stratus-net probe --listen --port %u",
                "stratus-net probe localhost --port %u --no-sweep --time 1ms", 2);
}

TOOL_TEST(stratus_tune) {
  survives("stratus-tune show tuner_plugin/profiles/example.profile", false);
}

TOOL_TEST(stratus_coll) {
  survives("stratus-coll --replay tuner_plugin/workloads/alexnet.json --replay-list 2", true);
}

TOOL_TEST(stratus_run_and_env) {
  survives("stratus-run true", false);
  survives("stratus-env", false);
  survives("sh -c 'NCCL_CONF_FILE=tests/data/nccl.conf stratus-run true'", true);
  survives("sh -c 'NCCL_CONF_FILE=tests/data/nccl.conf stratus-net params'", true);
}

/* With an argument, as in 'stratus_net', the tests of that name. */
int main(int argc, char **argv) {
  cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
  return unit_run(NULL, NULL);
}
