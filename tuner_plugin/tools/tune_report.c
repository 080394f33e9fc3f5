/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune report and compare: pass their options to tools/report, which is Python, as plots
 * are matplotlib's. This process becomes that one. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

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

/* Room for the interpreter, the script and all options; the files come after them. */
enum { WORDS_MAX = 20 };

struct words {
  const char **all;
  size_t count;
};

static void add_word(struct words *words, const char *word) {
  words->all[words->count++] = word;
}

static void add_option(struct words *words, const char *name, const char *value) {
  if (value) {
    add_word(words, name);
    add_word(words, value);
  }
}

static const char *own_path(char path[PATH_MAX]) {
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return path;
}

/* Where the scripts are, relative to the tool: installed, or in build/bin of the source tree, or in
 * its build/san-address/bin. */
static int find_script(const char *tool, char script[PATH_MAX]) {
  static const char *const places[] = { "../share/stratus/report",
                                        "../../tuner_plugin/tools/report",
                                        "../../../tuner_plugin/tools/report" };
  const char *slash = strrchr(tool, '/');
  int directory = slash ? (int)(slash - tool) : 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    char main_file[PATH_MAX + 16];
    int length = snprintf(script, PATH_MAX, "%.*s/%s", directory, tool, places[i]);
    snprintf(main_file, sizeof main_file, "%s/__main__.py", script);
    if (length < PATH_MAX && access(main_file, R_OK) == 0) {
      return CLI_OK;
    }
  }
  return cli_fail("the scripts that make reports are missing: %.*s/%s is not there; make install "
                  "puts them into PREFIX/share/stratus/report",
                  directory, tool, places[0]);
}

static int become_python(const char *what, int file_count, char **files, bool is_json) {
  char tool[PATH_MAX], script[PATH_MAX];
  if (find_script(own_path(tool), script) != CLI_OK) {
    return CLI_FAILED;
  }
  struct words words = { calloc(WORDS_MAX + (size_t)file_count + 1, sizeof *words.all), 0 };
  if (!words.all) {
    return cli_fail("out of memory");
  }
  add_word(&words, "python3");
  add_word(&words, "-B"); /* do not write into the scripts' directory */
  add_word(&words, script);
  add_word(&words, what);
  add_option(&words, "--tool", tool);
  add_option(&words, "--version-text", STRATUS_VERSION);
  add_option(&words, "--format", format_names[options.format]);
  add_option(&words, "--output", options.output);
  add_option(&words, "--title", options.title);
  add_option(&words, "--coll", options.collective);
  if (options.is_in_place) {
    add_word(&words, "--in-place");
  }
  if (is_json) {
    add_word(&words, "--json");
  }
  add_word(&words, "--");
  for (int i = 0; i < file_count; i++) {
    add_word(&words, files[i]);
  }
  execvp(words.all[0], (char *const *)words.all);
  int error = errno;
  free(words.all);
  return error == ENOENT
             ? cli_fail("%s needs Python, and there is no python3 in PATH: apt-get install python3 "
                        "python3-matplotlib",
                        what)
             : cli_fail("python3 cannot be started: %s", strerror(error));
}

int tune_report(int argument_count, char **arguments, bool is_json) {
  return become_python("report", argument_count, arguments, is_json);
}

int tune_compare(int argument_count, char **arguments, bool is_json) {
  if (argument_count % 2 != 0) {
    cli_fail("compare takes pairs of files: A B, or A B A B ... of runs that alternated");
    return CLI_USAGE;
  }
  return become_python("compare", argument_count, arguments, is_json);
}
