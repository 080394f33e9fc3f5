/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune verify: whether all hosts of a job would choose alike. The net plugin checks that at
 * connect; where only the tuner is installed, nothing else does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/choices.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/host_command.h"
#include "common/host_list.h"
#include "common/nccl_conf.h"
#include "common/param.h"
#include "common/plain.h"
#include "common/profile_match.h"
#include "common/remote.h"
#include "common/topology.h"
#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  bool is_here;
  const char *tool;
  const char *ssh;
  uint64_t timeout_ns;
} options = {
  .tool = "stratus-tune",
  .ssh = HOST_COMMAND_SSH,
  .timeout_ns = 30 * NS_PER_S,
};

static const struct cli_option option_rows[] = {
  { "here", 0, CLI_FLAG, &options.is_here, NULL,
    "print this host's profile, on one line, for srun, mpirun, pdsh", 0, 0 },
  { "tool", 0, CLI_STRING, &options.tool, "PATH", "path of stratus-tune on the hosts", 0, 0 },
  { "ssh", 0, CLI_STRING, &options.ssh, "COMMAND",
    "how to reach a host, as in COMMAND HOST WORDS...", 0, 0 },
  { "timeout", 0, CLI_DURATION, &options.timeout_ns, "TIME", "how long to wait for answers", 0, 0 },
  { 0 },
};

enum { VARIABLES_MAX = 64 }; /* those of choices.h, and a few of ours */

/* ---- this host ---- */

/* Everything that choices depend on, in one line, for `srun stratus-tune verify --here | sort |
 * uniq -c`. */
static int tell_here(void) {
  struct profile profile;
  struct profile_error error = { 0 };
  char path[PROFILE_PATH_MAX], decisions[TUNE_HASH_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX];
  char topology[TOPOLOGY_ID_MAX], choices[CHOICES_TEXT_MAX] = "";
  int result = profile_match_load(&profile, path, &error);
  bool is_absent = result == -ENOENT && !param_is_set(PARAM_PROFILE);
  if (result < 0 && !is_absent) {
    char text[sizeof error];
    return cli_fail("%s", profile_error_format(&error, text, sizeof text));
  }
  uint64_t id = result == 0 ? profile_decision_hash(&profile) : 0;
  snprintf(decisions, sizeof decisions, "%016" PRIx64, id);
  topology_identify(topology);
  if (result == 0 && choices_count(&profile)) {
    choices_list(&profile, choices);
  }
  json_t *told = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "decisions", decisions,
                           "decision_version", PROFILE_DECISION_VERSION, "stratus", STRATUS_VERSION,
                           "profile", result == 0 ? profile.meta.id : "none", "hash",
                           result == 0 ? tune_format_hash(&profile, hash) : "none", "path",
                           result == 0 ? path : "", "topology", topology, "variables", choices);
  if (result == 0) {
    profile_free(&profile);
  }
  int status = told && json_dumpf(told, stdout, JSON_COMPACT) == 0 ? CLI_OK : CLI_FAILED;
  json_decref(told);
  putchar('\n');
  return status == CLI_OK && fflush(stdout) == 0 ? CLI_OK : cli_fail("cannot write");
}

/* ---- other hosts ---- */

struct answer {
  const char *name;
  json_t *told;        /* NULL: it did not answer */
  const char *why_not; /* then */
};

/* A login shell may have printed something before. */
static void take_answer(struct remote_result *answer, struct answer *host) {
  const char *start = strstr(answer->output, "{\"decisions\"");
  json_error_t error;
  host->name = answer->host->name;
  host->told = NULL;
  if (!answer->why_not[0] && start) {
    host->told = json_loads(start, JSON_DISABLE_EOF_CHECK, &error);
  }
  if (!answer->why_not[0] && !json_is_object(host->told)) {
    json_decref(host->told);
    host->told = NULL;
    snprintf(answer->why_not, sizeof answer->why_not,
             "its output is not that of `%.200s verify --here`", options.tool);
  }
  host->why_not = answer->why_not;
}

/* ---- all of them ---- */

static const char *text_of(const struct answer *host, const char *name) {
  const char *text = json_string_value(json_object_get(host->told, name));
  return text ? text : "";
}

static bool has_same_text(const struct answer *a, const struct answer *b, const char *name) {
  return strcmp(text_of(a, name), text_of(b, name)) == 0;
}

static bool has_same_decisions(const struct answer *a, const struct answer *b) {
  return has_same_text(a, b, "decisions") &&
         json_equal(json_object_get(a->told, "decision_version"),
                    json_object_get(b->told, "decision_version"));
}

/* The one that others are compared with: the first that answered. */
static const struct answer *first_told(const struct answer *hosts, int count) {
  int first = 0;
  while (first < count - 1 && !hosts[first].told) {
    first++;
  }
  return &hosts[first];
}

static const char *verdict_of(const struct answer *first, const struct answer *host) {
  if (!host->told) {
    return "no answer";
  }
  return has_same_decisions(first, host) && has_same_text(first, host, "variables") ? "alike"
                                                                                    : "differs";
}

/* Which variables of NCCL differ, where they do. */
static void print_variables(const struct answer *first, const struct answer *host) {
  char here[CHOICES_DIFFERENCE_MAX], there[CHOICES_DIFFERENCE_MAX];
  const char *ours = text_of(host, "variables"), *theirs = text_of(first, "variables");
  if (host->told && !has_same_text(first, host, "variables")) {
    choices_difference(ours, theirs, here, sizeof here);
    choices_difference(theirs, ours, there, sizeof there);
    printf("%-9s  %-24s  NCCL variables: %s here, ", "", host->name, plain_text(here));
    printf("%s on %s\n", plain_text(there), first->name);
  }
}

static void print_host(const struct answer *host, const char *verdict) {
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

/* Hosts that did not answer, and those that are not as the first one that did. */
struct sum {
  int silent, other_decisions, other_variables;
};

static bool is_alike(const struct sum *sum) {
  return sum->other_decisions == 0 && sum->other_variables == 0;
}

static void print_sum(const struct sum *sum, int count) {
  if (!is_alike(sum)) {
    printf("a job on these hosts could hang: %s%s%s\n",
           sum->other_decisions ? "install the same profile and release; where machines differ, "
                                  "name the profile in STRATUS_PROFILE"
                                : "",
           sum->other_decisions && sum->other_variables ? "; " : "",
           sum->other_variables ? "set NCCL's variables alike on every host, or on none" : "");
  } else if (sum->silent > 0) {
    printf("%d of %d hosts did not answer\n", sum->silent, count);
  } else {
    printf("all hosts choose alike\n");
  }
}

static json_t *host_as_json(const struct answer *host, const char *verdict) {
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "host", host->name, "verdict",
                   verdict, "profile", text_of(host, "profile"), "hash", text_of(host, "hash"),
                   "decisions", text_of(host, "decisions"), "variables", text_of(host, "variables"),
                   "topology", text_of(host, "topology"), "error", host->told ? "" : host->why_not);
}

static int print_hosts(const struct answer *hosts, int count, bool is_json) {
  json_t *list = json_array();
  const struct answer *first = first_told(hosts, count);
  struct sum sum = { 0 };
  for (int i = 0; i < count; i++) {
    const struct answer *host = &hosts[i];
    const char *verdict = verdict_of(first, host);
    sum.silent += !host->told;
    sum.other_decisions += host->told && !has_same_decisions(first, host);
    sum.other_variables += host->told && !has_same_text(first, host, "variables");
    if (!is_json) {
      print_host(host, verdict);
      print_variables(first, host);
    }
    json_array_append_new(list, host_as_json(host, verdict));
  }
  bool is_good = is_alike(&sum) && sum.silent == 0;
  int status = CLI_OK;
  if (is_json) {
    status = tune_print_json(json_pack("{s:b, s:O}", "alike", is_good, "hosts", list));
  } else {
    print_sum(&sum, count);
  }
  json_decref(list);
  return is_good ? status : CLI_FAILED;
}

/* What the job's launcher would pass on. */
static void list_variables(const char *variables[VARIABLES_MAX + 1]) {
  static const char *const ours[] = { "STRATUS_PROFILE", "STRATUS_PROFILE_STRICT",
                                      "STRATUS_INSTANCE_TYPE", "STRATUS_TOPOLOGY", NULL };
  static const char *const *const lists[] = { ours, choices_names };
  int count = 0;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    for (const char *const *name = lists[i]; *name && count < VARIABLES_MAX; name++) {
      variables[count++] = *name;
    }
  }
  variables[count] = NULL;
}

static int verify(const struct host_list *list, bool is_json) {
  const char *variables[VARIABLES_MAX + 1];
  static const char *const arguments[] = { "verify", "--here", NULL };
  const struct remote_command how = {
    .ssh = options.ssh,
    .tool = options.tool,
    .arguments = arguments,
    .variables = variables,
    .timeout_ns = options.timeout_ns,
  };
  list_variables(variables);
  nccl_conf_withdraw(); /* each host reads its own files */
  int count = list->count;
  struct remote_result *answers = calloc((unsigned)count, sizeof *answers);
  struct answer *hosts = calloc((unsigned)count, sizeof *hosts);
  int status = answers && hosts ? CLI_OK : cli_fail("out of memory");
  for (int i = 0; status == CLI_OK && i < count; i++) {
    answers[i].host = &list->hosts[i];
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

static int run(int argument_count, char **arguments, bool is_json) {
  if (options.is_here != (argument_count == 0)) {
    return cli_fail_usage("verify: give the HOSTs of the job, or --here");
  }
  if (options.is_here) {
    return tell_here();
  }
  if (options.timeout_ns == 0 || !*options.ssh) {
    return cli_fail_usage("verify: --timeout above 0 and a command for --ssh are wanted");
  }
  struct host_list hosts = { 0 };
  char error[HOST_LIST_ERROR_MAX];
  int status = CLI_OK;
  for (int i = 0; i < argument_count && status == CLI_OK; i++) {
    if (host_list_read(&hosts, arguments[i], error) != 0) {
      status = cli_fail_usage("verify: %s", error);
    }
  }
  status = status == CLI_OK ? verify(&hosts, is_json) : status;
  host_list_free(&hosts);
  return status;
}

const struct cli_command tune_verify = {
  .name = "verify",
  .summary = "check through ssh whether hosts have the same profile and variables of NCCL, and "
             "so choose alike",
  .arguments = "[HOST...]",
  .max_arguments = -1,
  .example = "stratus-tune verify local local",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
