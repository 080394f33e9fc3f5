/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the scripts of a subcommand beside this program, and becomes python3 on them. */
#include "tuner_plugin/tools/tune_python.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"

void tune_python_flag(struct tune_python *python, const char *name) {
  python->options[python->option_count++] = name;
}

void tune_python_option(struct tune_python *python, const char *name, const char *value) {
  if (value) {
    tune_python_flag(python, name);
    tune_python_flag(python, value);
  }
}

const char *tune_python_tool(void) {
  static char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return path;
}

/* Where the scripts are, relative to the tool: installed, or in build/bin of the source tree, or in
 * its build/san-address/bin. */
static int find_scripts(const struct tune_python *python, char script[PATH_MAX]) {
  static const char *const places[] = { "../share/stratus", "../../tuner_plugin/tools",
                                        "../../../tuner_plugin/tools" };
  const char *tool = tune_python_tool(), *slash = strrchr(tool, '/');
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

int tune_python_run(const struct tune_python *python, int file_count, char **files) {
  char script[PATH_MAX];
  if (find_scripts(python, script) != CLI_OK) {
    return CLI_FAILED;
  }
  /* -B: do not write into the scripts' directory. */
  const char *const head[] = { "python3", "-B", script, python->subcommand };
  size_t count = sizeof head / sizeof head[0];
  const char **words =
      calloc(count + python->option_count + 1 + (size_t)file_count + 1, sizeof *words);
  if (!words) {
    return cli_fail("out of memory");
  }
  memcpy(words, head, sizeof head);
  memcpy(words + count, python->options, python->option_count * sizeof *words);
  count += python->option_count;
  words[count++] = "--";
  for (int i = 0; i < file_count; i++) {
    words[count++] = files[i];
  }
  execvp(words[0], (char *const *)words);
  int error = errno;
  free(words);
  return error == ENOENT
             ? cli_fail("%s needs Python, and there is no python3 in PATH: apt-get install %s",
                        python->subcommand, python->needs)
             : cli_fail("python3 cannot be started: %s", strerror(error));
}
