/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_all.h. */
#include "net_plugin/tools/doctor_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/peer_proof.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/probe.h"

/* What a login shell may print before the agent begins. */
enum { TALK_MAX = 64 << 10 };

struct examined {
  const struct host *hosts[PROBE_HOSTS_MAX];
  int fds[PROBE_HOSTS_MAX];
  pid_t children[PROBE_HOSTS_MAX];
  unsigned count;
  doctor_paths_tell_fn *tell;
  void *context;
};

/* Reads up to where the agent begins. */
static int await_agent(int fd, uint64_t until_ns) {
  static const char begins[] = AGENT_BEGINS;
  size_t matched = 0;
  for (unsigned read = 0; read < TALK_MAX; read++) {
    char byte;
    int error = peer_move(fd, &byte, 1, false, until_ns);
    if (error) {
      return error;
    }
    matched = byte == begins[matched] ? matched + 1 : byte == begins[0];
    if (begins[matched] == '\0') {
      return 0;
    }
  }
  return -EPROTO;
}

static void tell_no_agent(const struct examined *all, const struct host *host, int error) {
  char text[256];
  snprintf(
      text, sizeof text,
      "its paths to other hosts were not looked at: no agent there: %s (what does \"stratus-net "
      "probe --here\" print on it? It needs this release)",
      strerror(-error));
  all->tell(all->context, host, false, text);
}

/* All at once; keeps those that begin. */
static void start_agents(const struct remote_command *how, const struct host *const *hosts,
                         unsigned count, struct examined *all) {
  uint64_t until_ns = clock_now_ns() + how->timeout_ns;
  if (count > PROBE_HOSTS_MAX) {
    char text[128];
    snprintf(text, sizeof text,
             "the paths of this and later hosts were not looked at: a probe takes %d",
             PROBE_HOSTS_MAX);
    all->tell(all->context, hosts[PROBE_HOSTS_MAX], false, text);
    count = PROBE_HOSTS_MAX;
  }
  for (unsigned i = 0; i < count; i++) {
    all->fds[i] = remote_talk(how, hosts[i], &all->children[i]);
  }
  for (unsigned i = 0; i < count; i++) {
    int fd = all->fds[i], error = fd < 0 ? fd : await_agent(fd, until_ns);
    if (error) {
      tell_no_agent(all, hosts[i], error);
    }
    if (error && fd >= 0) {
      close(fd);
      remote_hang_up(all->children[i]);
    }
    if (!error) {
      all->hosts[all->count] = hosts[i];
      all->children[all->count] = all->children[i];
      all->fds[all->count++] = fd;
    }
  }
}

static void tell_results(const struct examined *all, const struct probe_report *report) {
  char text[2 * HOST_NAME_MAX_BYTES + PROBE_ERROR_MAX];
  unsigned hosts = report->host_count;
  for (unsigned i = 0; i < report->device_count * hosts * hosts; i++) {
    unsigned device = i / (hosts * hosts), from = i / hosts % hosts, to = i % hosts;
    const struct probe_result *result = probe_at(report, device, from, to);
    if (result->error[0]) {
      snprintf(text, sizeof text, "%s to %s: %s", report->hosts[from].devices[device].name,
               all->hosts[to]->name, result->error);
      all->tell(all->context, all->hosts[from], result->is_black_hole, text);
    }
  }
}

void doctor_paths_check(const struct remote_command *how, const struct host *const *hosts,
                        unsigned count, doctor_paths_tell_fn *tell, void *context) {
  static struct examined all; /* too large for the stack */
  all = (struct examined){ .tell = tell, .context = context };
  start_agents(how, hosts, count, &all);
  struct survey *survey = NULL;
  struct probe_report report = { 0 };
  const struct survey_plan plan = {
    .rounds_max = all.count > SURVEY_ALL_PAIRS ? SURVEY_ROUNDS_SAMPLED : 0,
    .until_ns = clock_now_ns() + how->timeout_ns,
  };
  int status = survey_open(all.fds, all.count, &survey);
  status = status == 0 ? survey_run(survey, &plan, &report) : status;
  if (status != 0 && all.count > 0) {
    char text[512];
    snprintf(text, sizeof text, "paths between the hosts were not all looked at: %s",
             cli_first_failure());
    tell(context, all.hosts[0], false, text);
  }
  if (report.results) {
    tell_results(&all, &report);
  }
  survey_close(survey, &report);
  for (unsigned i = 0; i < all.count; i++) {
    remote_hang_up(all.children[i]);
  }
}
