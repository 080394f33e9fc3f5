/* SPDX-License-Identifier: Apache-2.0 */
/* stratus probe: measures the network between hosts. A launcher starts it on all of them; rank 0 is
 * the coordinator, and one rank of each host, also of that of rank 0, is an agent. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/launcher.h"
#include "common/tools/commands.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/probe.h"
#include "net_plugin/tools/rendezvous.h"

#define PURPOSE "stratus probe"
#define PORT 29590

static struct {
  const char *root;
  uint64_t duration_ns;
} options = { .duration_ns = 400 * NS_PER_MS };

static const struct cli_option option_rows[] = {
  { "root", 0, CLI_STRING, &options.root, "HOST[:PORT]",
    "address of rank 0; needed under mpirun, known under srun and torchrun", 0, 0 },
  { "time", 0, CLI_DURATION, &options.duration_ns, "TIME",
    "duration of each measurement between two hosts, after a warm-up of half of it", 0, 0 },
  { 0 },
};

/* ---- agents ---- */

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
  int status = survey_open(agents, count, &survey);
  status = status ? status : survey_run(survey, options.duration_ns, &report);
  if (status == CLI_OK) {
    status = is_json ? report_json(&report) : report_table(&report);
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

/* ---- ranks ---- */

/* What a rank says to rank 0. */
enum { RANK_AT = 0, TAKES_PART_AT = 4 };

/* A rank that has not come, and one that takes no part. */
enum { NOT_COME = -1, NO_PART = INT_MIN };

/* Takes in one rank; one per host takes part. */
static int gather_one(struct rendezvous_server *server, uint64_t until_ns, int size, int *ranks) {
  uint8_t hello[PEER_HELLO_BYTES];
  int fd, status = rendezvous_accept(server, until_ns, &fd, hello);
  if (status != CLI_OK) {
    return status;
  }
  uint32_t rank = bytes_get_le32(hello + RANK_AT);
  if (rank == 0 || rank >= (uint32_t)size || ranks[rank] != NOT_COME) {
    close(fd);
    return cli_fail("a process says that it is rank %u of %d: do two have the same rank?", rank,
                    size);
  }
  ranks[rank] = fd;
  if (hello[TAKES_PART_AT] != 1) {
    close(fd);
    ranks[rank] = NO_PART;
  }
  return CLI_OK;
}

/* Accepts every other rank. The agents are in the order of ranks. */
static int gather(const struct rendezvous_address *meeting, int size, int agents[PROBE_HOSTS_MAX],
                  unsigned *count) {
  struct rendezvous_server server;
  int status = rendezvous_open(&server, PURPOSE, meeting, NULL);
  if (status != CLI_OK) {
    return status;
  }
  int *ranks = calloc((size_t)size, sizeof *ranks);
  uint64_t until_ns = clock_now_ns() + PROBE_GATHER_NS;
  status = ranks ? CLI_OK : cli_fail("out of memory");
  for (int rank = 1; ranks && rank < size; rank++) {
    ranks[rank] = NOT_COME;
  }
  for (int rank = 1; rank < size && status == CLI_OK; rank++) {
    status = gather_one(&server, until_ns, size, ranks);
  }
  for (int rank = 1; ranks && rank < size; rank++) {
    if (ranks[rank] >= 0 && status == CLI_OK && *count < PROBE_HOSTS_MAX) {
      agents[(*count)++] = ranks[rank];
    } else if (ranks[rank] >= 0) {
      close(ranks[rank]);
    }
  }
  free(ranks);
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
  return rendezvous_parse(root, PORT, meeting);
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
  (void)argument_count, (void)arguments;
  struct launcher_place place;
  char error[256];
  if (options.duration_ns < NS_PER_MS || options.duration_ns > AGENT_DURATION_MAX_NS) {
    return cli_fail_usage("probe: --time takes 1ms to 60s");
  }
  int found = launcher_find(&place, error, sizeof error);
  if (found < 0) {
    return cli_fail_usage("probe: %s", error);
  }
  if (found == 0 || place.size < 2) {
    return cli_fail_usage("probe: start it on all hosts by mpirun, srun or torchrun, or with RANK, "
                          "WORLD_SIZE and MASTER_ADDR");
  }
  return probe_ranks(&place, is_json);
}

const struct cli_command command_probe = {
  .name = "probe",
  .summary = "measure the network between all hosts of a launcher: rates, round trips, outliers",
  .arguments = "",
  .example = "for rank in 0 1; do RANK=$rank WORLD_SIZE=2 stratus probe --root localhost & "
             "done; wait",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
