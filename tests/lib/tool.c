/* SPDX-License-Identifier: Apache-2.0 */
/* See tool.h. */
#include "tests/lib/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/unit.h"

static void read_all(const struct tool *tool, const char *name, char text[TOOL_TEXT_MAX]) {
  char path[TREE_PATH_MAX];
  FILE *file = fopen(tree_path(&tool->tree, name, path), "r");
  assert_non_null(file);
  text[fread(text, 1, TOOL_TEXT_MAX - 1, file)] = '\0';
  fclose(file);
}

static int run_in(struct tool *tool, const char *directory, const char *command) {
  char line[2048];
  const char *root = tool->tree.root;
  int length = snprintf(line, sizeof line, "cd %s && { %s; } >%s/out 2>%s/err", directory, command,
                        root, root);
  assert_in_range(length, 1, sizeof line - 1);
  int status = system(line);
  read_all(tool, "out", tool->output);
  read_all(tool, "err", tool->errors);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int tool_run(struct tool *tool, const char *command) {
  return run_in(tool, ".", command);
}

int tool_run_there(struct tool *tool, const char *command) {
  return run_in(tool, tool->tree.root, command);
}

/* PATH begins with build/bin from now on. */
static void use_path(void) {
  char self[512], path[2048];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  snprintf(path, sizeof path, "%s/../bin:%s", self, getenv("PATH"));
  setenv("PATH", path, 1);
}

void tool_set_up(struct tool *tool) {
  tree_create(&tool->tree);
  use_path();
  setenv("STRATUS_SYSFS_ROOT", tool->tree.root, 1);
  setenv("XDG_CONFIG_HOME", tool->tree.root, 1);
  unsetenv("STRATUS_PROFILE");
}

void tool_tear_down(struct tool *tool) {
  tree_remove(&tool->tree);
}

void tool_assert_contains(const char *text, const char *part) {
  if (!strstr(text, part)) {
    fail_msg("\"%s\" is not in: %s", part, text);
  }
}
