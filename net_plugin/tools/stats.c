/* SPDX-License-Identifier: Apache-2.0 */
/* stratus stats: statistics of the processes on this host that use the plugin. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/quantity.h"
#include "common/tools/commands.h"
#include "net_plugin/observe/stats_path.h"
#include "net_plugin/tools/document.h"
#include "net_plugin/tools/stats_print.h"
#include "net_plugin/tools/stats_source.h"

static struct {
  bool is_prometheus, has_flows, has_other_users;
  uint64_t watch_ns;
} options;

static const struct cli_option option_rows[] = {
  { "all", 0, CLI_FLAG, &options.has_other_users, NULL, "also processes of other users; needs root",
    0, 0 },
  { "flows", 0, CLI_FLAG, &options.has_flows, NULL, "also print a line for each flow", 0, 0 },
  { "prometheus", 0, CLI_FLAG, &options.is_prometheus, NULL, "print the text format of Prometheus",
    0, 0 },
  { "watch", 0, CLI_DURATION, &options.watch_ns, "TIME",
    "repeat every TIME, with the rates since the previous output", 0, 0 },
  { 0 },
};

static bool is_incomplete; /* what was printed last: a process has not answered */

/* An array with the document of each process; those that do not answer are left out. */
static json_t *list_documents(const struct stats_sources *sources) {
  json_t *processes = json_array();
  is_incomplete = false;
  for (size_t i = 0; i < sources->count; i++) {
    const struct stats_source *source = &sources->list[i];
    int error = source->error;
    if (source->document) {
      json_array_append(processes, source->document);
    } else if (error != -ENOENT && error != -ECONNREFUSED && error != -ENODATA &&
               error != -ECONNRESET) { /* these are just ending */
      is_incomplete = true;
      cli_fail("process %d (%s): %s", (int)source->pid, source->path, strerror(-error));
    }
  }
  return processes;
}

static void print_tables(const json_t *processes, const json_t *before) {
  size_t i;
  json_t *process;
  json_array_foreach(processes, i, process) {
    stats_table_print(process, document_counterpart(before, process, "id"), options.has_flows);
  }
}

static int fail_without_process(pid_t wanted) {
  char directory[STATS_PATH_MAX];
  stats_path_directory(directory);
  return wanted ? cli_fail("process %d has no statistics (looked in %s)", (int)wanted, directory)
                : cli_fail("no process of this user has statistics (looked in %s)", directory);
}

/* Prints once; *before becomes the current documents, for the next rates. */
static int print_once(pid_t wanted, bool is_json, json_t **before) {
  struct stats_sources sources;
  int status = CLI_OK;
  if (stats_sources_read(options.has_other_users, wanted, &sources) != 0) {
    stats_sources_free(&sources);
    return cli_fail("out of memory");
  }
  json_t *processes = list_documents(&sources);
  stats_sources_free(&sources);
  bool has_some = json_array_size(processes) > 0;
  if (options.is_prometheus) {
    stats_prometheus_print(processes, stdout);
  } else if (is_json) {
    status = document_print(json_pack("{s:O}", "processes", processes),
                            options.watch_ns ? JSON_COMPACT : JSON_INDENT(1));
  } else if (has_some) {
    print_tables(processes, *before);
  }
  if (!has_some && !is_incomplete && !options.is_prometheus && (wanted || !is_json)) {
    status = fail_without_process(wanted);
  }
  json_decref(*before);
  *before = processes;
  return fflush(stdout) == 0 ? status : CLI_FAILED; /* which cli_main tells */
}

static int run(int argument_count, char **arguments, bool is_json) {
  int64_t wanted = 0;
  if (argument_count &&
      (quantity_parse_int(arguments[0], &wanted) != 0 || wanted < 1 || wanted > 999999999)) {
    return cli_fail_usage("stats: '%s' is no process number", arguments[0]);
  }
  if (is_json && options.is_prometheus) {
    return cli_fail_usage("stats: give either --json or --prometheus");
  }
  if (options.has_other_users && geteuid() != 0) {
    return cli_fail("stats: --all needs root: the directories of other users are closed");
  }
  json_t *before = NULL;
  int status = print_once((pid_t)wanted, is_json, &before);
  while (status == CLI_OK && options.watch_ns) {
    struct timespec pause = clock_timespec(options.watch_ns);
    nanosleep(&pause, NULL);
    status = print_once((pid_t)wanted, is_json, &before);
  }
  json_decref(before);
  return status == CLI_OK && is_incomplete ? CLI_FAILED : status;
}

const struct cli_command command_stats = {
  .name = "stats",
  .summary = "show statistics of running processes: NICs, connections, flows, stalls",
  .arguments = "[PID]",
  .max_arguments = 1,
  .example = "stratus stats --json",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
