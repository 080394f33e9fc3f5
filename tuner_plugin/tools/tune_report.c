/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune report and compare: pass their options to tools/report, which is Python, as plots
 * are matplotlib's. */
#include "common/version.h"
#include "tuner_plugin/tools/tune.h"
#include "tuner_plugin/tools/tune_python.h"

#define FORMATS "auto|html|markdown|text"
static const char *const format_names[] = { "auto", "html", "markdown", "text" };

static struct {
  const char *output, *title, *collective;
  int format; /* which of FORMATS */
  bool is_in_place;
} options;

#define OUTPUT_ROW                                                                                 \
  {                                                                                                \
    .name = "output", .letter = 'o', .type = CLI_STRING, .value = &options.output,                 \
    .argument = "FILE", .help = "output file; its extension .html, .md or .txt sets the format"    \
  }
#define FORMAT_ROW                                                                                 \
  {                                                                                                \
    .name = "format", .letter = 'f', .type = CLI_WORD, .value = &options.format,                   \
    .argument = FORMATS, .help = "what to write"                                                   \
  }
#define TITLE_ROW                                                                                  \
  {                                                                                                \
    .name = "title", .letter = 't', .type = CLI_STRING, .value = &options.title,                   \
    .argument = "TEXT", .help = "heading of the page"                                              \
  }
#define COLLECTIVE_ROW                                                                             \
  {                                                                                                \
    .name = "coll", .letter = 'c', .type = CLI_STRING, .value = &options.collective,               \
    .argument = "NAME", .help = "collective of tables that do not name it"                         \
  }

const struct cli_option tune_report_options[] = {
  OUTPUT_ROW,
  FORMAT_ROW,
  TITLE_ROW,
  COLLECTIVE_ROW,
  { .name = "in-place",
    .type = CLI_FLAG,
    .value = &options.is_in_place,
    .help = "show in-place operations instead of out-of-place ones" },
  { 0 },
};

const struct cli_option tune_compare_options[] = {
  OUTPUT_ROW, FORMAT_ROW, TITLE_ROW, COLLECTIVE_ROW, { 0 },
};

static int become_python(const char *what, int file_count, char **files, bool is_json) {
  struct tune_python python = { .directory = "report",
                                .subcommand = what,
                                .needs = "python3 python3-matplotlib" };
  tune_python_option(&python, "--tool", tune_python_tool());
  tune_python_option(&python, "--version-text", STRATUS_VERSION);
  tune_python_option(&python, "--format", format_names[options.format]);
  tune_python_option(&python, "--output", options.output);
  tune_python_option(&python, "--title", options.title);
  tune_python_option(&python, "--coll", options.collective);
  if (options.is_in_place) {
    tune_python_flag(&python, "--in-place");
  }
  if (is_json) {
    tune_python_flag(&python, "--json");
  }
  return tune_python_run(&python, file_count, files);
}

int tune_report(int argument_count, char **arguments, bool is_json) {
  return become_python("report", argument_count, arguments, is_json);
}

int tune_compare(int argument_count, char **arguments, bool is_json) {
  if (argument_count % 2 != 0) {
    return cli_fail_usage(
        "compare takes pairs of files: A B, or A B A B ... of runs that alternated");
  }
  return become_python("compare", argument_count, arguments, is_json);
}
