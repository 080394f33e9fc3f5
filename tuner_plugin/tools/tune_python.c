/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune report, compare and workload are Python, as plots are matplotlib's: this process
 * becomes python3 on their scripts, which lie beside it, with the options as they were read. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

/* ---- options ---- */

static struct {
  const char *output, *title, *collective;
  int format;
  bool is_in_place;
} report;

#define REPORT_ROWS                                                                                  \
  { "output",   'o',                                                                                 \
    CLI_STRING, &report.output,                                                                      \
    "FILE",     "output file; its extension .html, .md or .txt sets the format",                     \
    0,          0 },                                                                                 \
      { "format", 'f', CLI_WORD, &report.format, "auto|html|markdown|text", "what to write", 0, 0 }, \
      { "title", 't', CLI_STRING, &report.title, "TEXT", "heading of the page", 0, 0 }, {            \
    "coll", 'c', CLI_STRING, &report.collective, "NAME",                                             \
        "collective of tables that do not name it", 0, 0                                             \
  }

static const struct cli_option report_rows[] = {
  REPORT_ROWS,
  { "in-place", 0, CLI_FLAG, &report.is_in_place, NULL,
    "show in-place operations instead of out-of-place ones", 0, 0 },
  { 0 },
};

static const struct cli_option compare_rows[] = { REPORT_ROWS, { 0 } };

enum { RANKS_MAX = 1000000, BATCH_MAX = 1000000 };

static struct {
  const char *output, *name, *step, *skip;
  int64_t rank, batch, world;
  uint64_t step_ns;
  bool has_host_time;
} workload = { .rank = -1, .batch = 1 };

static const struct cli_option workload_rows[] = {
  { "output", 'o', CLI_STRING, &workload.output, "FILE", "write the workload to it", 0, 0 },
  { "name", 0, CLI_STRING, &workload.name, "NAME",
    "name of the workload, instead of the trace's file name", 0, 0 },
  { "step", 's', CLI_STRING, &workload.step, "N",
    "ProfilerStep#N, or repetition N; else one from the middle", 0, 0 },
  { "rank", 'r', CLI_INT, &workload.rank, "N",
    "which of several traces to take; -1: the lowest rank, or all where they differ", -1,
    RANKS_MAX },
  { "batch", 'b', CLI_INT, &workload.batch, "N",
    "samples of one rank in a step, for samples per second", 1, BATCH_MAX },
  { "world", 'w', CLI_INT, &workload.world, "N",
    "ranks of the job, where the trace does not say; 0: it does", 0, RANKS_MAX },
  { "step-time", 0, CLI_DURATION, &workload.step_ns, "TIME",
    "of a trace without times: computation of a step, spread evenly; 0: none", 0, 0 },
  { "host-time", 0, CLI_FLAG, &workload.has_host_time, NULL,
    "time in which the GPU waits for the host is computation, too", 0, 0 },
  { "skip", 0, CLI_STRING, &workload.skip, "NAMES", "leave these calls out, as in send,recv", 0,
    0 },
  { 0 },
};

/* ---- the command line of Python ---- */

enum { WORDS_MAX = 32 }; /* but for the files: more than any subcommand has */

struct python {
  const char *directory;  /* of the scripts: below tuner_plugin/tools, installed in share/stratus */
  const char *subcommand; /* their first argument */
  const char *needs;      /* packages of Debian, for the message that there is no Python */
  char *words[WORDS_MAX];
  size_t count;
};

/* Adds "--name", or "--name=value". */
static void add(struct python *python, const char *name, const char *value) {
  char *word = NULL;
  if (asprintf(&word, "--%s%s%s", name, value ? "=" : "", value ? value : "") >= 0 &&
      python->count < WORDS_MAX) {
    python->words[python->count++] = word;
  } else {
    free(word);
  }
}

/* As the scripts take them: times in microseconds. */
static void add_option(struct python *python, const struct cli_option *option) {
  char text[32];
  const char *word = option->argument;
  switch (option->type) {
  case CLI_FLAG:
    if (*(const bool *)option->value) {
      add(python, option->name, NULL);
    }
    return;
  case CLI_STRING:
    if (*(const char *const *)option->value) {
      add(python, option->name, *(const char *const *)option->value);
    }
    return;
  case CLI_WORD:
    for (int i = 0; i < *(const int *)option->value; i++) {
      word = strchr(word, '|') + 1;
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "|"), word);
    break;
  case CLI_DURATION:
    snprintf(text, sizeof text, "%.3f", (double)*(const uint64_t *)option->value / 1e3);
    break;
  default:
    snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)option->value);
  }
  add(python, option->name, text);
}

static const char *own_path(void) {
  static char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return path;
}

/* Where the scripts are, relative to the tool: installed, or in build/bin of the source tree, or in
 * its build/san-address/bin. */
static int find_scripts(const struct python *python, char script[PATH_MAX]) {
  static const char *const places[] = { "../share/stratus", "../../tuner_plugin/tools",
                                        "../../../tuner_plugin/tools" };
  const char *tool = own_path(), *slash = strrchr(tool, '/');
  int beside = slash ? (int)(slash - tool) : 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    char main_file[PATH_MAX + 16];
    int length =
        snprintf(script, PATH_MAX, "%.*s/%s/%s", beside, tool, places[i], python->directory);
    snprintf(main_file, sizeof main_file, "%s/__main__.py", script);
    if (length < PATH_MAX && access(main_file, R_OK) == 0) {
      return CLI_OK;
    }
  }
  return cli_fail(
      "the scripts of stratus-tune %s are missing: %.*s/%s/%s is not there; make install "
      "puts them into PREFIX/share/stratus/%s",
      python->subcommand, beside, tool, places[0], python->directory, python->directory);
}

/* Becomes python3 -B DIRECTORY SUBCOMMAND OPTIONS... -- FILES... */
static int become(struct python *python, const struct cli_option *options, int file_count,
                  char **files) {
  char script[PATH_MAX];
  if (find_scripts(python, script) != CLI_OK) {
    return CLI_FAILED;
  }
  for (const struct cli_option *option = options; option->name; option++) {
    add_option(python, option);
  }
  /* -B: do not write into the scripts' directory. */
  const char *const head[] = { "python3", "-B", script, python->subcommand };
  size_t count = sizeof head / sizeof head[0];
  const char **words = calloc(count + python->count + 1 + (size_t)file_count + 1, sizeof *words);
  if (!words) {
    return cli_fail("out of memory");
  }
  memcpy(words, head, sizeof head);
  memcpy(words + count, python->words, python->count * sizeof *words);
  count += python->count;
  words[count++] = "--";
  memcpy(words + count, files, (size_t)file_count * sizeof *words);
  execvp(words[0], (char *const *)words);
  int error = errno;
  free(words);
  return error == ENOENT
             ? cli_fail("%s needs Python, and there is no python3 in PATH: apt-get install %s",
                        python->subcommand, python->needs)
             : cli_fail("python3 cannot be started: %s", strerror(error));
}

/* ---- the subcommands ---- */

static int become_report(const char *subcommand, const struct cli_option *options, int file_count,
                         char **files, bool is_json) {
  struct python python = { .directory = "report",
                           .subcommand = subcommand,
                           .needs = "python3 python3-matplotlib" };
  add(&python, "tool", own_path());
  add(&python, "version-text", STRATUS_VERSION);
  if (is_json) {
    add(&python, "json", NULL);
  }
  return become(&python, options, file_count, files);
}

static int run_report(int argument_count, char **arguments, bool is_json) {
  return become_report("report", report_rows, argument_count, arguments, is_json);
}

static int run_compare(int argument_count, char **arguments, bool is_json) {
  if (argument_count % 2 != 0) {
    return cli_fail_usage(
        "compare takes pairs of files: A B, or A B A B ... of runs that alternated");
  }
  return become_report("compare", compare_rows, argument_count, arguments, is_json);
}

static int run_workload(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct python python = { .directory = "trace", .subcommand = "workload", .needs = "python3" };
  return become(&python, workload_rows, argument_count, arguments);
}

const struct cli_command tune_report = {
  .name = "report",
  .summary = "plots and tables from the output of any of our tools: HTML, Markdown or text",
  .arguments = "[LABEL=]FILE...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus-tune report tests/data/report/samples.jsonl "
             "tests/data/report/chosen.profile --output build/report.html",
  .has_json = true,
  .options = report_rows,
  .run = run_report,
};

const struct cli_command tune_compare = {
  .name = "compare",
  .summary = "show where B is faster or slower than A; exit status 1 if it is slower anywhere",
  .arguments = "A B [A B]...",
  .min_arguments = 2,
  .max_arguments = -1,
  .example = "stratus-tune compare tests/data/report/coll-none.1.json "
             "tests/data/report/coll-stratus.1.json",
  .has_json = true,
  .options = compare_rows,
  .run = run_compare,
};

const struct cli_command tune_workload = {
  .name = "workload",
  .summary = "make a workload file for stratus-coll --replay from a trace of a job",
  .arguments = "TRACE...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus-tune workload tests/data/trace/ddp.json --output build/mine.json",
  .options = workload_rows,
  .run = run_workload,
};
