/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_all.h. */
#include "net_plugin/tools/doctor_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/plain.h"
#include "common/remote.h"

enum { VARIABLES_MAX = 256 };

/* Facts of doctor. Hosts that differ in one that must be equal have no job with each other. */
static const struct {
  const char *name, *meaning;
  bool must_be_equal;
} compared[] = {
  { "stratus", "release of stratus", true }, { "profile", "profile", true },
  { "secret", "job secret", true },          { "encryption", "encryption", true },
  { "nccl", "release of NCCL", false },      { "devices", "NICs", false },
  { "topology", "topology", false },
};
enum { COMPARED = sizeof compared / sizeof compared[0] };

struct cluster {
  struct remote_result *answers;
  json_t **told; /* what doctor said; NULL: no answer */
  int count;
  json_t *hosts, *differences; /* for --json */
  int sick, silent, different;
  bool is_json;
};

/* ---- asking ---- */

static bool starts_with_any(const char *text, const char *const *starts) {
  while (*starts && strncmp(text, *starts, strlen(*starts)) != 0) {
    starts++;
  }
  return *starts != NULL;
}

/* What the job's launcher would pass on, but for what would show in the list of processes: the
 * secret, and the tokens of a run of stratus-run --check or of stratus-coll. */
static bool is_passed_on(const char *variable) {
  static const char *const starts[] = { "NCCL_", "STRATUS_", "LD_LIBRARY_PATH=", NULL };
  static const char *const kept[] = { "STRATUS_SECRET=", "STRATUS_CHECK=", "STRATUS_COLL_", NULL };
  return starts_with_any(variable, starts) && !starts_with_any(variable, kept);
}

static void find_variables(const char *names[VARIABLES_MAX + 1]) {
  int count = 0;
  for (char **each = environ; *each && count < VARIABLES_MAX; each++) {
    char *name = is_passed_on(*each) ? strndup(*each, strcspn(*each, "=")) : NULL;
    if (name) {
      names[count++] = name;
    }
  }
  names[count] = NULL;
}

static void ask(struct cluster *cluster) {
  static const char *const arguments[] = { "doctor", "--here", NULL };
  const char *variables[VARIABLES_MAX + 1];
  find_variables(variables);
  const struct remote_command how = {
    .ssh = doctor_all_options.ssh,
    .tool = doctor_all_options.tool,
    .arguments = arguments,
    .variables = variables,
    .timeout_ns = doctor_all_options.timeout_ns,
  };
  remote_run_all(&how, cluster->answers, cluster->count);
  for (int i = 0; variables[i]; i++) {
    free((char *)variables[i]);
  }
  for (int i = 0; i < cluster->count; i++) {
    struct remote_result *answer = &cluster->answers[i];
    /* A login shell may have printed something before. */
    const char *start = strstr(answer->output, "{\"healthy\"");
    json_error_t error;
    if (!answer->why_not[0] && start) {
      cluster->told[i] = json_loads(start, JSON_DISABLE_EOF_CHECK, &error);
    }
    if (!answer->why_not[0] && !cluster->told[i]) {
      snprintf(answer->why_not, sizeof answer->why_not,
               "its output is not that of `%.200s doctor --here`", doctor_all_options.tool);
    }
    plain_text(answer->why_not); /* may be what ssh has written */
  }
}

/* ---- each host ---- */

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

/* In text from other hosts anything may stand. */
static void print_plain(const char *mark, const char *host, const char *text) {
  char *copy = strdup(text);
  printf("%-4s  %s: %s\n", mark, host, copy ? plain_text(copy) : "");
  free(copy);
}

static void print_findings(const struct cluster *cluster, int which) {
  json_t *findings = json_object_get(cluster->told[which], "findings"), *each;
  size_t i;
  json_array_foreach(findings, i, each) {
    if (strcmp(text_of(each, "finding"), "bad") == 0) {
      print_plain("BAD", cluster->answers[which].host, text_of(each, "text"));
    }
  }
}

static void judge_hosts(struct cluster *cluster) {
  for (int i = 0; i < cluster->count; i++) {
    const char *host = cluster->answers[i].host;
    json_t *told = cluster->told[i];
    bool is_healthy = json_is_true(json_object_get(told, "healthy"));
    cluster->silent += !told;
    cluster->sick += told && !is_healthy;
    json_array_append_new(cluster->hosts,
                          json_pack("{s:s, s:s, s:s, s:o}", "host", host, "verdict",
                                    !told        ? "no answer"
                                    : is_healthy ? "ok"
                                                 : "bad",
                                    "error", told ? "" : cluster->answers[i].why_not, "doctor",
                                    told ? json_incref(told) : json_null()));
    if (cluster->is_json) {
      continue;
    }
    if (!told) {
      print_plain("BAD", host, cluster->answers[i].why_not);
    } else if (is_healthy) {
      printf("ok    %s\n", host);
    } else {
      print_findings(cluster, i);
    }
  }
}

/* ---- all of them ---- */

static const char *fact_of(const struct cluster *cluster, int which, const char *name) {
  return text_of(json_object_get(cluster->told[which], "facts"), name);
}

/* The value that most hosts have. */
static const char *most_common(const struct cluster *cluster, const char *name) {
  const char *best = "";
  int best_count = 0;
  for (int i = 0; i < cluster->count; i++) {
    int same = 0;
    for (int j = 0; j < cluster->count; j++) {
      same += cluster->told[i] && cluster->told[j] &&
              strcmp(fact_of(cluster, i, name), fact_of(cluster, j, name)) == 0;
    }
    if (same > best_count) {
      best_count = same;
      best = fact_of(cluster, i, name);
    }
  }
  return best;
}

static void compare(struct cluster *cluster) {
  for (int fact = 0; fact < COMPARED; fact++) {
    const char *common = most_common(cluster, compared[fact].name);
    for (int i = 0; i < cluster->count; i++) {
      const char *value = fact_of(cluster, i, compared[fact].name);
      if (!cluster->told[i] || strcmp(value, common) == 0) {
        continue;
      }
      char text[2560];
      snprintf(text, sizeof text, "%s differs: %s here, %s on most hosts", compared[fact].meaning,
               *value ? value : "unknown", *common ? common : "unknown");
      cluster->different += compared[fact].must_be_equal;
      json_array_append_new(cluster->differences,
                            json_pack("{s:s, s:s, s:s, s:s, s:b}", "host", cluster->answers[i].host,
                                      "fact", compared[fact].name, "value", value, "common", common,
                                      "must_be_equal", compared[fact].must_be_equal));
      if (!cluster->is_json) {
        print_plain(compared[fact].must_be_equal ? "BAD" : "note", cluster->answers[i].host, text);
      }
    }
  }
}

static int conclude(struct cluster *cluster) {
  bool is_good = cluster->sick == 0 && cluster->silent == 0 && cluster->different == 0;
  if (cluster->is_json) {
    json_t *all = json_pack("{s:b, s:O, s:O}", "healthy", is_good, "hosts", cluster->hosts,
                            "differences", cluster->differences);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
  } else if (is_good) {
    printf("%d host%s: a job can use stratus on all of them\n", cluster->count,
           cluster->count == 1 ? "" : "s");
  } else {
    printf("%d hosts: %d with problems, %d without an answer, %d differences that matter\n",
           cluster->count, cluster->sick, cluster->silent, cluster->different);
  }
  return is_good ? CLI_OK : CLI_FAILED;
}

static int check_arguments(char **hosts, int count) {
  if (count > REMOTE_HOSTS_MAX) {
    cli_fail("doctor --all: at most %d hosts", REMOTE_HOSTS_MAX);
    return CLI_USAGE;
  }
  if (doctor_all_options.timeout_ns == 0 || !*doctor_all_options.ssh) {
    cli_fail("doctor --all: --timeout above 0 and a command for --ssh are wanted");
    return CLI_USAGE;
  }
  for (int i = 0; i < count; i++) {
    if (!remote_is_host(hosts[i])) {
      cli_fail("doctor --all: \"%s\" is not a host: accepted are host names for ssh, local, and "
               "ns:NAME for a network namespace",
               hosts[i]);
      return CLI_USAGE;
    }
  }
  return CLI_OK;
}

int doctor_all(char **hosts, int count, bool is_json) {
  int status = check_arguments(hosts, count);
  if (status != CLI_OK) {
    return status;
  }
  struct cluster cluster = { .answers = calloc((unsigned)count, sizeof *cluster.answers),
                             .told = calloc((unsigned)count, sizeof(json_t *)),
                             .count = count,
                             .hosts = json_array(),
                             .differences = json_array(),
                             .is_json = is_json };
  if (!cluster.answers || !cluster.told || !cluster.hosts || !cluster.differences) {
    status = cli_fail("out of memory");
  } else {
    for (int i = 0; i < count; i++) {
      cluster.answers[i].host = hosts[i];
    }
    ask(&cluster);
    judge_hosts(&cluster);
    compare(&cluster);
    status = conclude(&cluster);
    for (int i = 0; i < count; i++) {
      json_decref(cluster.told[i]);
    }
  }
  json_decref(cluster.hosts);
  json_decref(cluster.differences);
  free(cluster.told);
  free(cluster.answers);
  return status;
}
