/* SPDX-License-Identifier: Apache-2.0 */
/* See faulty_tool.h. */
#include "tests/lib/faulty_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fault_state.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tool.h"

enum { TIMED_OUT = 124, KILLED = 128 }; /* statuses of timeout(1) and the shell */

/* "STRATUS_TEST_FAULT=... ", "" for no fault. */
static void describe_fault(const char *flag, char text[TREE_PATH_MAX + 64]) {
  unsigned long k;
  struct failure failure = each_failure_pending(&k);
  text[0] = '\0';
  if (k > 0) {
    snprintf(text, TREE_PATH_MAX + 64, FAULT_VARIABLE "='%u %lu %d %s' ", (unsigned)failure.call, k,
             failure.error, flag);
  }
}

static bool read_flag(const char *path) {
  FILE *file = fopen(path, "r");
  bool is_set = file && fgetc(file) > 0;
  if (file) {
    fclose(file);
  }
  return is_set;
}

/* Its status is 126 or 127 where the shell could not start it, which no test wants either. */
void faulty_tool_run(const char *command, struct outcome *outcome) {
  char flag[TREE_PATH_MAX], fault[TREE_PATH_MAX + 64], line[TREE_PATH_MAX + 512];
  tree_write_bytes(&tool.tree, "flag", "", 1);
  describe_fault(tree_path(&tool.tree, "flag", flag), fault);
  snprintf(line, sizeof line, "%stimeout %d %s </dev/null", fault, FAULTY_TOOL_PATIENCE_S, command);
  int status = tool_run(line);
  outcome->stage = command;
  outcome->error = status;
  outcome->has_failed = read_flag(flag);
  outcome->is_told = strchr(tool.errors, '\n') != NULL;
  if (status == TIMED_OUT) {
    outcome->problem = "hung";
  } else if (status > KILLED) {
    outcome->problem = "crashed";
  } else if (strstr(tool.errors, "Sanitizer") || strstr(tool.errors, "runtime error:")) {
    outcome->problem = "a sanitizer reports";
  }
  if (outcome->problem || (status && !outcome->is_told)) {
    log_capture_keep(LOG_LEVEL_INFO, tool.errors);
  }
}
