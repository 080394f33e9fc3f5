/* SPDX-License-Identifier: Apache-2.0 */
/* See faulty_tool.h. */
#include "tests/lib/faulty_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fault_state.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

enum { TIMED_OUT = 124, KILLED = 128 }; /* statuses of timeout(1) and the shell */

static void read_record(const char *path) {
  struct fault_record record;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fread(&record, sizeof record, 1, file), 1);
  fclose(file);
  fault_add(&record);
}

/* Its status is 126 or 127 where the shell could not start it, which no test wants either. */
void faulty_tool_run(const char *command, struct outcome *outcome) {
  static const struct fault_record nothing;
  char path[TREE_PATH_MAX], line[TREE_PATH_MAX + 512];
  unsigned long k;
  struct failure failure = each_failure_pending(&k);
  tree_write_bytes(&tool.tree, "record", &nothing, sizeof nothing);
  tree_path(&tool.tree, "record", path);
  snprintf(line, sizeof line, FAULT_VARIABLE "='%u %lu %d %s' timeout %d %s </dev/null",
           (unsigned)failure.call, k, failure.error, path, FAULTY_TOOL_PATIENCE_S, command);
  int status = tool_run(line);
  read_record(path);
  outcome->stage = command;
  outcome->error = status;
  outcome->is_told = strchr(tool.errors, '\n') != NULL;
  if (status == TIMED_OUT) {
    outcome->problem = "hung";
  } else if (status > KILLED) {
    outcome->problem = "crashed";
  } else if (strstr(tool.errors, "ERROR: AddressSanitizer") ||
             strstr(tool.errors, "ERROR: LeakSanitizer") ||
             strstr(tool.errors, "WARNING: ThreadSanitizer") ||
             strstr(tool.errors, "runtime error:")) {
    outcome->problem = "a sanitizer reports";
  }
  if (outcome->problem || (status && !outcome->is_told)) {
    log_capture_keep(LOG_LEVEL_INFO, tool.errors);
  }
}
