/* SPDX-License-Identifier: Apache-2.0 */
/* See tool.h. */
#include "tests/lib/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/unit.h"

struct tool tool;

static void read_all(const char *name, char text[TOOL_TEXT_MAX]) {
  char path[TREE_PATH_MAX];
  FILE *file = fopen(tree_path(&tool.tree, name, path), "r");
  assert_non_null(file);
  text[fread(text, 1, TOOL_TEXT_MAX - 1, file)] = '\0';
  fclose(file);
}

static int run_in(const char *directory, const char *command) {
  char line[2048];
  const char *root = tool.tree.root;
  int length = snprintf(line, sizeof line, "cd %s && { %s; } >%s/out 2>%s/err", directory, command,
                        root, root);
  assert_in_range(length, 1, sizeof line - 1);
  int status = system(line);
  read_all("out", tool.output);
  read_all("err", tool.errors);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int tool_run(const char *command) {
  return run_in(".", command);
}

int tool_run_there(const char *command) {
  return run_in(tool.tree.root, command);
}

/* PATH begins with build/bin from now on; with STRATUS_TEST_TOOLS instead, where those need an
 * emulator. */
static void use_path(void) {
  char self[512], path[2048];
  const char *tools = getenv("STRATUS_TEST_TOOLS");
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  snprintf(path, sizeof path, "%s%s:%s", tools ? "" : self, tools ? tools : "/../bin",
           getenv("PATH"));
  setenv("PATH", path, 1);
}

int tool_set_up(void **state) {
  tree_create(&tool.tree);
  use_path();
  setenv("XDG_CONFIG_HOME", tool.tree.root, 1);
  unsetenv("STRATUS_PROFILE");
  return 0;
}

int tool_tear_down(void **state) {
  tree_remove(&tool.tree);
  return 0;
}

void tool_read_example(const char *command, char line[TOOL_LINE_MAX]) {
  snprintf(line, TOOL_LINE_MAX, "stratus %s -h", command);
  assert_int_equal(tool_run(line), 0);
  assert_string_equal(tool.errors, "");
  snprintf(line, TOOL_LINE_MAX, "usage: stratus %s", command);
  tool_assert_contains(tool.output, line);
  const char *example = strstr(tool.output, "\nexample:\n  ");
  assert_non_null(example);
  example += strlen("\nexample:\n  ");
  snprintf(line, TOOL_LINE_MAX, "%.*s", (int)strcspn(example, "\n"), example);
}

void tool_assert_contains(const char *text, const char *part) {
  if (!strstr(text, part)) {
    fail_msg("\"%s\" is not in: %s", part, text);
  }
}

void tool_expect(int ended, int status, const char *text, const char *const *parts) {
  if (ended != status) {
    fail_msg("status %d, not %d: %s%s", ended, status, tool.output, tool.errors);
  }
  for (; *parts; parts++) {
    tool_assert_contains(text, *parts);
  }
}

void tool_assert_wrong_use(const char *command, const char *says) {
  static const char begins[] = "stratus: ";
  int status = tool_run(command);
  if (status != 2 || tool.output[0] != '\0' ||
      strncmp(tool.errors, begins, sizeof begins - 1) != 0 || !strstr(tool.errors, says)) {
    fail_msg("%s: status %d: %s%s", command, status, tool.output, tool.errors);
  }
}
