/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune verify: whether all hosts of a job would choose alike. The net plugin checks that at
 * connect; where only the tuner is installed, nothing else does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/param.h"
#include "common/plain.h"
#include "common/profile_match.h"
#include "common/remote.h"
#include "common/topology.h"
#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

struct tune_verify_options tune_verify_options = {
  .tool = "stratus-tune",
  .ssh = REMOTE_SSH,
  .timeout_ns = 30 * NS_PER_S,
};

/* ---- this host ---- */

/* Everything that choices depend on, in one line, for `srun stratus-tune verify --here | sort |
 * uniq -c`. */
static int tell_here(void) {
  struct profile profile;
  struct profile_error error = { 0 };
  char path[PROFILE_PATH_MAX], decisions[TUNE_HASH_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX];
  char topology[TOPOLOGY_ID_MAX];
  int result = profile_match_load(&profile, path, &error);
  bool is_absent = result == -ENOENT && !param_is_set(PARAM_PROFILE);
  if (result < 0 && !is_absent) {
    char text[sizeof error];
    return cli_fail("%s", profile_error_format(&error, text, sizeof text));
  }
  uint64_t id = result == 0 ? profile_decision_hash(&profile) : 0;
  snprintf(decisions, sizeof decisions, "%016" PRIx64, id);
  topology_identify(topology);
  json_t *told = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s}", "decisions", decisions,
                           "decision_version", PROFILE_DECISION_VERSION, "stratus", STRATUS_VERSION,
                           "profile", result == 0 ? profile.meta.id : "none", "hash",
                           result == 0 ? tune_format_hash(&profile, hash) : "none", "path",
                           result == 0 ? path : "", "topology", topology);
  if (result == 0) {
    profile_free(&profile);
  }
  int status = told && json_dumpf(told, stdout, JSON_COMPACT) == 0 ? CLI_OK : CLI_FAILED;
  json_decref(told);
  putchar('\n');
  return status == CLI_OK && fflush(stdout) == 0 ? CLI_OK : cli_fail("cannot write");
}

/* ---- other hosts ---- */

struct host {
  const char *name;
  json_t *told;        /* NULL: it did not answer */
  const char *why_not; /* then */
};

/* A login shell may have printed something before. */
static void take_answer(struct remote_result *answer, struct host *host) {
  const char *start = strstr(answer->output, "{\"decisions\"");
  json_error_t error;
  host->name = answer->host;
  host->told = NULL;
  if (!answer->why_not[0] && start) {
    host->told = json_loads(start, JSON_DISABLE_EOF_CHECK, &error);
  }
  if (!answer->why_not[0] && !json_is_object(host->told)) {
    json_decref(host->told);
    host->told = NULL;
    snprintf(answer->why_not, sizeof answer->why_not,
             "its output is not that of `%.200s verify --here`", tune_verify_options.tool);
  }
  host->why_not = answer->why_not;
}

/* ---- all of them ---- */

static const char *text_of(const struct host *host, const char *name) {
  const char *text = json_string_value(json_object_get(host->told, name));
  return text ? text : "";
}

static bool is_same(const struct host *a, const struct host *b) {
  return strcmp(text_of(a, "decisions"), text_of(b, "decisions")) == 0 &&
         json_equal(json_object_get(a->told, "decision_version"),
                    json_object_get(b->told, "decision_version"));
}

/* Compared with the first that answered. */
static const char *verdict_of(const struct host *hosts, int count, int place) {
  int first = 0;
  while (first < count && !hosts[first].told) {
    first++;
  }
  if (!hosts[place].told) {
    return "no answer";
  }
  return is_same(&hosts[first], &hosts[place]) ? "alike" : "differs";
}

static void print_host(const struct host *host, const char *verdict) {
  printf("%-9s  %-24s  ", verdict, host->name);
  if (host->told) {
    char text[512];
    const char *topology = text_of(host, "topology");
    snprintf(text, sizeof text, "profile %s, hash %s, decisions %s, stratus %s, topology %s",
             text_of(host, "profile"), text_of(host, "hash"), text_of(host, "decisions"),
             text_of(host, "stratus"), topology[0] ? topology : "not known");
    puts(plain_text(text));
  } else {
    puts(host->why_not);
  }
}

static void print_sum(int count, int different, int silent) {
  if (different > 0) {
    printf("a job on these hosts could hang: install the same profile and release; where machines "
           "differ, name the profile in STRATUS_PROFILE\n");
  } else if (silent > 0) {
    printf("%d of %d hosts did not answer\n", silent, count);
  } else {
    printf("all hosts choose alike\n");
  }
}

static int print_hosts(const struct host *hosts, int count, bool is_json) {
  json_t *list = json_array();
  int different = 0, silent = 0;
  for (int i = 0; i < count; i++) {
    const char *verdict = verdict_of(hosts, count, i);
    silent += !hosts[i].told;
    different += hosts[i].told && strcmp(verdict, "alike") != 0;
    if (!is_json) {
      print_host(&hosts[i], verdict);
    }
    json_array_append_new(
        list,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "host", hosts[i].name, "verdict", verdict,
                  "profile", text_of(&hosts[i], "profile"), "hash", text_of(&hosts[i], "hash"),
                  "decisions", text_of(&hosts[i], "decisions"), "topology",
                  text_of(&hosts[i], "topology"), "error", hosts[i].told ? "" : hosts[i].why_not));
  }
  int status = CLI_OK;
  if (is_json) {
    status = tune_print_json(
        json_pack("{s:b, s:O}", "alike", different == 0 && silent == 0, "hosts", list));
  } else {
    print_sum(count, different, silent);
  }
  json_decref(list);
  return different == 0 && silent == 0 ? status : CLI_FAILED;
}

static int verify(char **names, int count, bool is_json) {
  static const char *const variables[] = { "STRATUS_PROFILE", "STRATUS_PROFILE_STRICT",
                                           "STRATUS_INSTANCE_TYPE", "STRATUS_TOPOLOGY", NULL };
  static const char *const arguments[] = { "verify", "--here", NULL };
  const struct remote_command how = {
    .ssh = tune_verify_options.ssh,
    .tool = tune_verify_options.tool,
    .arguments = arguments,
    .variables = variables,
    .timeout_ns = tune_verify_options.timeout_ns,
  };
  struct remote_result *answers = calloc((unsigned)count, sizeof *answers);
  struct host *hosts = calloc((unsigned)count, sizeof *hosts);
  int status = answers && hosts ? CLI_OK : cli_fail("out of memory");
  for (int i = 0; status == CLI_OK && i < count; i++) {
    answers[i].host = names[i];
  }
  if (status == CLI_OK) {
    remote_run_all(&how, answers, count);
    for (int i = 0; i < count; i++) {
      take_answer(&answers[i], &hosts[i]);
    }
    status = print_hosts(hosts, count, is_json);
  }
  for (int i = 0; hosts && i < count; i++) {
    json_decref(hosts[i].told);
  }
  free(hosts);
  free(answers);
  return status;
}

int tune_verify(int argument_count, char **arguments, bool is_json) {
  if (tune_verify_options.is_here != (argument_count == 0)) {
    cli_fail("verify: give the HOSTs of the job, or --here");
    return CLI_USAGE;
  }
  if (tune_verify_options.is_here) {
    return tell_here();
  }
  if (argument_count > REMOTE_HOSTS_MAX) {
    cli_fail("verify: at most %d hosts", REMOTE_HOSTS_MAX);
    return CLI_USAGE;
  }
  if (tune_verify_options.timeout_ns == 0 || !*tune_verify_options.ssh) {
    cli_fail("verify: --timeout above 0 and a command for --ssh are wanted");
    return CLI_USAGE;
  }
  for (int i = 0; i < argument_count; i++) {
    if (!remote_is_host(arguments[i])) {
      cli_fail("verify: \"%s\" is not a host: accepted are host names for ssh, local, and ns:NAME "
               "for a network namespace",
               arguments[i]);
      return CLI_USAGE;
    }
  }
  return verify(arguments, argument_count, is_json);
}
