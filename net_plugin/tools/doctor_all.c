/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_all.h. */
#include "net_plugin/tools/doctor_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/host_list.h"
#include "common/plain.h"
#include "net_plugin/tools/document.h"
#include "net_plugin/tools/net_tool.h"

enum {
  VARIABLES_MAX = 256,
  ADDRESSES_OF_HOST = 16, /* DEVICE_PHYSICAL_MAX */
};

/* Facts of doctor. Hosts that differ in one that must be equal have no job with each other: NCCL's
 * bootstrap ends where releases differ. A host may know it in its containers only. */
static const struct {
  const char *name, *meaning;
  bool must_be_equal, may_be_unknown;
} compared[] = {
  { "stratus", "release of stratus", true, false }, { "profile", "profile", true, false },
  { "secret", "job secret", true, false },          { "encryption", "encryption", true, false },
  { "nccl", "release of NCCL", true, true },        { "devices", "NICs", false, false },
  { "topology", "topology", false, false },         { "mtu", "MTU of the NICs", false, false },
};
enum { COMPARED = sizeof compared / sizeof compared[0] };

struct cluster {
  struct remote_result *answers;
  json_t **told; /* what doctor said; NULL: no answer */
  int count;
  struct remote_command how;
  const char *variables[VARIABLES_MAX + 1]; /* of `how` */
  json_t *hosts, *differences, *paths;      /* for --json */
  int sick, silent, different, closed;
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
 * secret. */
static bool is_passed_on(const char *variable) {
  static const char *const starts[] = { "NCCL_", "STRATUS_", "LD_LIBRARY_PATH=", NULL };
  static const char *const kept[] = { "STRATUS_SECRET=", NULL };
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

static void set_command(struct cluster *cluster) {
  find_variables(cluster->variables);
  cluster->how = (struct remote_command){
    .ssh = doctor_all_options.ssh,
    .tool = doctor_all_options.tool,
    .variables = cluster->variables,
    .timeout_ns = doctor_all_options.timeout_ns,
  };
}

static void ask(struct cluster *cluster) {
  static const char *const arguments[] = { "doctor", "--here", NULL };
  cluster->how.arguments = arguments;
  remote_run_all(&cluster->how, cluster->answers, cluster->count);
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
      print_plain("BAD", cluster->answers[which].host->name, text_of(each, "text"));
    }
  }
}

static void judge_hosts(struct cluster *cluster) {
  for (int i = 0; i < cluster->count; i++) {
    const char *host = cluster->answers[i].host->name;
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

/* The value that most hosts have, of those that know it where not all need to. */
static const char *most_common(const struct cluster *cluster, int fact) {
  const char *name = compared[fact].name;
  const char *best = "";
  int best_count = 0;
  for (int i = 0; i < cluster->count; i++) {
    int same = 0;
    if (compared[fact].may_be_unknown && !*fact_of(cluster, i, name)) {
      continue;
    }
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

static void tell_difference(struct cluster *cluster, int which, const char *fact,
                            const char *common, bool must_be_equal, bool is_bad, const char *text) {
  const char *host = cluster->answers[which].host->name;
  cluster->different += is_bad;
  json_array_append_new(cluster->differences,
                        json_pack("{s:s, s:s, s:s, s:s, s:b}", "host", host, "fact", fact, "value",
                                  fact_of(cluster, which, fact), "common", common, "must_be_equal",
                                  must_be_equal));
  if (!cluster->is_json) {
    print_plain(is_bad ? "BAD" : "note", host, text);
  }
}

static void compare(struct cluster *cluster) {
  for (int fact = 0; fact < COMPARED; fact++) {
    const char *common = most_common(cluster, fact);
    for (int i = 0; i < cluster->count; i++) {
      const char *value = fact_of(cluster, i, compared[fact].name);
      if (!cluster->told[i] || strcmp(value, common) == 0) {
        continue;
      }
      bool matters = compared[fact].must_be_equal && !(compared[fact].may_be_unknown && !*value);
      char text[2560];
      snprintf(text, sizeof text, "%s differs: %s here, %s on most hosts", compared[fact].meaning,
               *value ? value : "unknown", *common ? common : "unknown");
      tell_difference(cluster, i, compared[fact].name, common, matters, matters, text);
    }
  }
}

/* ---- addresses ---- */

/* "eth0 10.0.0.1", and of which host. */
struct address {
  const char *text; /* up to a comma */
  size_t length, name_length;
  int host;
};

static bool is_same_address(const struct address *a, const struct address *b) {
  size_t length = a->length - a->name_length;
  return length == b->length - b->name_length &&
         memcmp(a->text + a->name_length, b->text + b->name_length, length) == 0;
}

static void tell_same_address(struct cluster *cluster, const struct address *here,
                              const struct address *there) {
  char text[1024];
  snprintf(
      text, sizeof text,
      "%.*s is an address of %.200s, too (%.*s), so these hosts do not reach each other there: "
      "name the NICs between the hosts in NCCL_SOCKET_IFNAME",
      (int)here->length, here->text, cluster->answers[there->host].host->name,
      (int)there->name_length, there->text);
  tell_difference(cluster, here->host, "addresses", "", false, true, text);
}

static size_t list_addresses(const struct cluster *cluster, int host, struct address *list) {
  size_t count = 0;
  const char *at = fact_of(cluster, host, "addresses");
  while (*at && count < ADDRESSES_OF_HOST) {
    struct address found = { at, strcspn(at, ","), strcspn(at, " "), host };
    if (found.name_length < found.length) {
      list[count++] = found;
    }
    at += found.length + strspn(at + found.length, ", ");
  }
  return count;
}

/* Bridges of containers have the same address everywhere. Each host is told of the first other one
 * that has an address of its own. */
static void compare_addresses(struct cluster *cluster) {
  struct address here[ADDRESSES_OF_HOST], there[ADDRESSES_OF_HOST];
  for (int i = 0; i < cluster->count; i++) {
    size_t own = list_addresses(cluster, i, here);
    bool is_told = false;
    for (int j = 0; j < cluster->count && !is_told; j++) {
      const char *machine = fact_of(cluster, i, "machine");
      if (j == i || strcmp(machine, fact_of(cluster, j, "machine")) == 0) {
        continue;
      }
      size_t others = list_addresses(cluster, j, there);
      for (size_t k = 0; k < own * others && !is_told; k++) {
        if (is_same_address(&here[k / others], &there[k % others])) {
          tell_same_address(cluster, &here[k / others], &there[k % others]);
          is_told = true;
        }
      }
    }
  }
}

/* ---- paths ---- */

static void tell_path(void *context, const struct host *from, bool matters, const char *text) {
  struct cluster *cluster = context;
  cluster->closed += matters;
  json_array_append_new(cluster->paths, json_pack("{s:s, s:s, s:b}", "host", from->name, "text",
                                                  text, "matters", matters));
  if (!cluster->is_json) {
    print_plain(matters ? "BAD" : "note", from->name, text);
  }
}

/* Between hosts that have answered. */
static void check_paths(struct cluster *cluster) {
  static const char *const arguments[] = { "probe", "--here", NULL };
  const struct host **hosts = calloc((unsigned)cluster->count, sizeof *hosts);
  unsigned count = 0;
  for (int i = 0; hosts && i < cluster->count; i++) {
    if (cluster->told[i]) {
      hosts[count++] = cluster->answers[i].host;
    }
  }
  cluster->how.arguments = arguments;
  if (count > 1) {
    doctor_paths_check(&cluster->how, hosts, count, tell_path, cluster);
  }
  free(hosts);
}

static int conclude(struct cluster *cluster) {
  bool is_good =
      cluster->sick == 0 && cluster->silent == 0 && cluster->different == 0 && cluster->closed == 0;
  if (cluster->is_json) {
    json_t *all = json_pack("{s:b, s:O, s:O, s:O}", "healthy", is_good, "hosts", cluster->hosts,
                            "differences", cluster->differences, "paths", cluster->paths);
    return document_print(all, JSON_INDENT(2)) == CLI_OK && is_good ? CLI_OK : CLI_FAILED;
  }
  if (is_good) {
    printf("%d host%s: a job can use stratus on all of them\n", cluster->count,
           cluster->count == 1 ? "" : "s");
  } else {
    printf("%d hosts: %d with problems, %d without an answer, %d differences that matter, %d paths "
           "that long packets do not pass\n",
           cluster->count, cluster->sick, cluster->silent, cluster->different, cluster->closed);
  }
  return is_good ? CLI_OK : CLI_FAILED;
}

/* CLI_USAGE after a message. */
static int read_hosts(char **arguments, int count, struct host_list *hosts) {
  char error[HOST_LIST_ERROR_MAX];
  if (doctor_all_options.timeout_ns == 0 || !*doctor_all_options.ssh) {
    return cli_fail_usage("doctor --all: --timeout above 0 and a command for --ssh are wanted");
  }
  for (int i = 0; i < count; i++) {
    if (host_list_read(hosts, arguments[i], error) != 0) {
      return cli_fail_usage("doctor --all: %s", error);
    }
  }
  return CLI_OK;
}

static int examine(const struct host_list *hosts, bool is_json) {
  int status = CLI_OK, count = hosts->count;
  struct cluster cluster = { .answers = calloc((unsigned)count, sizeof *cluster.answers),
                             .told = calloc((unsigned)count, sizeof(json_t *)),
                             .count = count,
                             .hosts = json_array(),
                             .differences = json_array(),
                             .paths = json_array(),
                             .is_json = is_json };
  if (!cluster.answers || !cluster.told || !cluster.hosts || !cluster.differences ||
      !cluster.paths) {
    status = cli_fail("out of memory");
  } else {
    for (int i = 0; i < count; i++) {
      cluster.answers[i].host = &hosts->hosts[i];
    }
    set_command(&cluster);
    ask(&cluster);
    judge_hosts(&cluster);
    compare(&cluster);
    compare_addresses(&cluster);
    check_paths(&cluster);
    status = conclude(&cluster);
    for (int i = 0; i < count; i++) {
      json_decref(cluster.told[i]);
    }
  }
  json_decref(cluster.hosts);
  for (int i = 0; cluster.variables[i]; i++) {
    free((char *)cluster.variables[i]);
  }
  json_decref(cluster.differences);
  json_decref(cluster.paths);
  free(cluster.told);
  free(cluster.answers);
  return status;
}

int doctor_all(char **arguments, int count, bool is_json) {
  struct host_list hosts = { 0 };
  int status = read_hosts(arguments, count, &hosts);
  status = status ? status : examine(&hosts, is_json);
  host_list_free(&hosts);
  return status;
}
