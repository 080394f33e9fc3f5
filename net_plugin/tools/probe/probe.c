/* SPDX-License-Identifier: Apache-2.0 */
/* stratus probe: measures the network between hosts and derives values for a profile. One host
 * is the coordinator; all hosts, including it, are agents: either hosts that run `stratus probe
 * --listen`, or processes started by a launcher. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/host_list.h"
#include "common/launcher.h"
#include "common/tools/commands.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/probe.h"
#include "net_plugin/tools/rendezvous.h"

#define PURPOSE "stratus probe"

static struct {
  bool is_listening, is_profile, has_no_sweep, wants_all;
  int64_t port;
  const char *root;
  uint64_t duration_ns;
} options = { .port = 29590, .duration_ns = 400 * NS_PER_MS };

static const struct cli_option option_rows[] = {
  { "listen", 0, CLI_FLAG, &options.is_listening, NULL,
    "run as one of the other hosts, for one probe", 0, 0 },
  { "port", 0, CLI_INT, &options.port, "N", "TCP port of the agents", 1, 65535 },
  { "root", 0, CLI_STRING, &options.root, "HOST[:PORT]",
    "address of rank 0; needed under mpirun, known under srun and torchrun", 0, 0 },
  { "time", 0, CLI_DURATION, &options.duration_ns, "TIME",
    "duration of each measurement between two hosts, after a warm-up of half of it", 0, 0 },
  { "all", 0, CLI_FLAG, &options.wants_all, NULL, "measure all pairs, also with more than 24 hosts",
    0, 0 },
  { "no-sweep", 0, CLI_FLAG, &options.has_no_sweep, NULL,
    "skip the sweep over flows and chunk sizes", 0, 0 },
  { "profile", 0, CLI_FLAG, &options.is_profile, NULL,
    "print a profile, for STRATUS_PROFILE, instead of tables", 0, 0 },
  { 0 },
};

/* ---- agents ---- */

static int be_agent(void) {
  struct rendezvous_address place = { .port = (int)options.port };
  struct rendezvous_server server;
  int fd, status = rendezvous_open(&server, PURPOSE, &place, "stratus probe HOST...");
  if (status != CLI_OK) {
    return status;
  }
  status = rendezvous_accept(&server, UINT64_MAX, &fd, NULL);
  rendezvous_close(&server);
  return status ? status : agent_run(fd);
}

/* The agent of this host runs in a child process. */
static int fork_agent(int *fd, pid_t *child) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return cli_fail("cannot make a socket: %s", strerror(errno));
  }
  *child = fork();
  if (*child == 0) {
    close(pair[0]);
    _exit(agent_run(pair[1]));
  }
  close(pair[1]);
  if (*child < 0) {
    close(pair[0]);
    return cli_fail("cannot start a process: %s", strerror(errno));
  }
  *fd = pair[0];
  return CLI_OK;
}

/* ---- the coordinator ---- */

static int coordinate(int *agents, unsigned count, bool is_json) {
  struct survey *survey = NULL;
  struct probe_report report = { 0 };
  const struct survey_plan plan = {
    .duration_ns = options.duration_ns,
    .rounds_max = count > SURVEY_ALL_PAIRS && !options.wants_all ? SURVEY_ROUNDS_SAMPLED : 0,
    .has_sweep = !options.has_no_sweep,
  };
  int status = survey_open(agents, count, &survey);
  status = status ? status : survey_run(survey, &plan, &report);
  if (status == CLI_OK) {
    status = is_json              ? report_json(&report)
             : options.is_profile ? report_profile(&report)
                                  : report_table(&report);
  }
  if (status == CLI_OK && findings_has_failed(&report)) {
    status = CLI_FAILED;
  }
  survey_close(survey, &report);
  return status;
}

static int run_with_own_agent(int agents[PROBE_HOSTS_MAX], unsigned count, bool is_json) {
  pid_t child = -1;
  int status = fork_agent(&agents[0], &child);
  if (status == CLI_OK) {
    status = coordinate(agents, count, is_json);
    waitpid(child, NULL, 0);
  }
  return status;
}

/* Where the agent of a host listens. */
static int find_agent(const struct host *host, struct rendezvous_address *place) {
  const char *address = host_address(host);
  if (host->kind == HOST_LOCAL || host->kind == HOST_COMMAND ||
      strlen(address) >= sizeof place->host) {
    return cli_fail_usage(
        "probe: %s: a name or an address is wanted, at which this host reaches it", host->name);
  }
  *place = (struct rendezvous_address){ .port = host->port ? host->port : (int)options.port };
  strcpy(place->host, address);
  return rendezvous_check_host(place->host);
}

/* In a list, the number of processes that a host takes does not matter. */
static int read_hosts(int argument_count, char **arguments, struct host_list *hosts) {
  char error[HOST_LIST_ERROR_MAX];
  for (int i = 0; i < argument_count; i++) {
    if (host_list_read(hosts, arguments[i], error) != 0) {
      return cli_fail_usage("probe: %s", error);
    }
  }
  if (hosts->count >= PROBE_HOSTS_MAX) {
    return cli_fail_usage("probe: at most %d other hosts", PROBE_HOSTS_MAX - 1);
  }
  return CLI_OK;
}

static int probe_hosts(int argument_count, char **arguments, bool is_json) {
  struct host_list hosts = { 0 };
  int agents[PROBE_HOSTS_MAX], status = read_hosts(argument_count, arguments, &hosts);
  unsigned count = 1;
  for (int i = 0; i < hosts.count && status == CLI_OK; i++) {
    struct rendezvous_address place;
    status = find_agent(&hosts.hosts[i], &place);
    status = status
                 ? status
                 : rendezvous_call(PURPOSE, &place, "stratus probe --listen", NULL, &agents[count]);
    count += status == CLI_OK;
  }
  host_list_free(&hosts);
  return status ? status : run_with_own_agent(agents, count, is_json);
}

/* ---- under a launcher ---- */

/* What a rank says to rank 0. */
enum { RANK_AT = 0, TAKES_PART_AT = 4 };

/* Takes in one rank; one per host takes part. */
static int gather_one(struct rendezvous_server *server, uint64_t until_ns, bool *has_come, int size,
                      int agents[PROBE_HOSTS_MAX], unsigned *count) {
  uint8_t hello[PEER_HELLO_BYTES];
  int fd, status = rendezvous_accept(server, until_ns, &fd, hello);
  if (status != CLI_OK) {
    return status;
  }
  uint32_t rank = bytes_get_le32(hello + RANK_AT);
  if (rank == 0 || rank >= (uint32_t)size || has_come[rank]) {
    close(fd);
    return cli_fail("a process says that it is rank %u of %d: do two have the same rank?", rank,
                    size);
  }
  has_come[rank] = true;
  if (hello[TAKES_PART_AT] == 1 && *count < PROBE_HOSTS_MAX) {
    agents[(*count)++] = fd;
  } else {
    close(fd);
  }
  return CLI_OK;
}

/* Accepts every other rank. */
static int gather(const struct rendezvous_address *meeting, int size, int agents[PROBE_HOSTS_MAX],
                  unsigned *count) {
  struct rendezvous_server server;
  int status = rendezvous_open(&server, PURPOSE, meeting, NULL);
  if (status != CLI_OK) {
    return status;
  }
  bool *has_come = calloc((size_t)size, sizeof *has_come);
  uint64_t until_ns = clock_now_ns() + PROBE_GATHER_NS;
  status = has_come ? CLI_OK : cli_fail("out of memory");
  for (int rank = 1; rank < size && status == CLI_OK; rank++) {
    status = gather_one(&server, until_ns, has_come, size, agents, count);
  }
  free(has_come);
  rendezvous_close(&server);
  return status;
}

/* Address of rank 0: from the user or the launcher. */
static int find_root(const struct launcher_place *place, struct rendezvous_address *meeting) {
  const char *root = options.root ? options.root : place->first_host;
  if (!*root) {
    return cli_fail_usage(
        "probe: %s does not provide the address of rank 0: give --root HOST[:PORT]",
        place->launcher);
  }
  return rendezvous_parse(root, (int)options.port, meeting);
}

static int probe_as_root(const struct launcher_place *place,
                         const struct rendezvous_address *meeting, bool is_json) {
  int agents[PROBE_HOSTS_MAX];
  unsigned count = 1;
  int status = gather(meeting, place->size, agents, &count);
  if (status == CLI_OK && count == 1) {
    return cli_fail("probe: all %d ranks are on this host; at least two hosts are needed",
                    place->size);
  }
  return status ? status : run_with_own_agent(agents, count, is_json);
}

static int probe_ranks(const struct launcher_place *place, bool is_json) {
  struct rendezvous_address meeting;
  int status = find_root(place, &meeting);
  if (status != CLI_OK) {
    return status;
  }
  if (place->rank == 0) {
    return probe_as_root(place, &meeting, is_json);
  }
  int fd;
  uint8_t hello[PEER_HELLO_BYTES] = { 0 };
  bytes_put_le32(hello + RANK_AT, (uint32_t)place->rank);
  hello[TAKES_PART_AT] = place->local_rank == 0;
  status = rendezvous_call(PURPOSE, &meeting, NULL, hello, &fd);
  if (status != CLI_OK || !hello[TAKES_PART_AT]) {
    status == CLI_OK ? close(fd) : 0;
    return status;
  }
  return agent_run(fd);
}

static int run(int argument_count, char **arguments, bool is_json) {
  struct launcher_place place;
  char error[256];
  if (options.duration_ns < NS_PER_MS || options.duration_ns > AGENT_DURATION_MAX_NS) {
    return cli_fail_usage("probe: --time takes 1ms to 60s");
  }
  bool is_told = options.is_listening || argument_count > 0;
  int found = is_told ? 0 : launcher_find(&place, error, sizeof error);
  if (found < 0) {
    return cli_fail_usage("probe: %s", error);
  }
  if (found > 0 && place.size > 1) {
    return probe_ranks(&place, is_json);
  }
  if (options.is_listening != (argument_count == 0)) {
    return cli_fail_usage(
        "probe: give either the HOSTs to probe or --listen, or start it by mpirun or srun");
  }
  return options.is_listening ? be_agent() : probe_hosts(argument_count, arguments, is_json);
}

const struct cli_command command_probe = {
  .name = "probe",
  .summary = "measure the network between hosts with this plugin, and write a profile",
  .arguments = "[HOST...]",
  .max_arguments = -1,
  .example = "export STRATUS_SECRET=$(openssl rand -hex 16); stratus probe --listen & sleep "
             "1; stratus probe localhost --no-sweep",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
