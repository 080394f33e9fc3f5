/* SPDX-License-Identifier: Apache-2.0 */
/* tune_python: the subcommands that are Python start it: this process becomes the interpreter.
 * Owns: the words of its command line, until it runs.  Threads: the main thread.
 * Blocks: never.  Fails: tune_python_run returns CLI_FAILED after a message; else it does not
 * return. */
#ifndef TUNER_PLUGIN_TOOLS_TUNE_PYTHON_H
#define TUNER_PLUGIN_TOOLS_TUNE_PYTHON_H

#include <stddef.h>

enum { TUNE_PYTHON_OPTIONS_MAX = 24 }; /* words: more than any subcommand has */

struct tune_python {
  const char *directory;  /* of the scripts: below tuner_plugin/tools, installed in share/stratus */
  const char *subcommand; /* their first argument */
  const char *needs;      /* packages of Debian, for the message that there is no Python */
  const char *options[TUNE_PYTHON_OPTIONS_MAX];
  size_t option_count;
};

/* Nothing for a value of NULL. */
void tune_python_option(struct tune_python *python, const char *name, const char *value);
void tune_python_flag(struct tune_python *python, const char *name);

/* The path of this program. */
const char *tune_python_tool(void);

/* Runs DIRECTORY SUBCOMMAND OPTIONS... -- FILES... */
int tune_python_run(const struct tune_python *python, int file_count, char **files);

#endif
