/* SPDX-License-Identifier: Apache-2.0 */
/* tool: a tool that lies beside the tests (build/tests, build/bin), run as people run it, in a tree
 * of its own, where it finds no profile but those that the test wrote.
 * Owns: its tree, PATH and the variables that the tool reads, from tool_set_up to tool_tear_down;
 * there is one at a time.
 * Threads: the test's.  Blocks: while the tool runs.  Fails: the test. */
#ifndef TESTS_LIB_TOOL_H
#define TESTS_LIB_TOOL_H

#include "tests/lib/tree.h"

enum { TOOL_TEXT_MAX = 65536 };

struct tool {
  struct tree tree;
  char output[TOOL_TEXT_MAX], errors[TOOL_TEXT_MAX]; /* of the last command */
};
extern struct tool tool;

/* For cmocka. */
int tool_set_up(void **state);
int tool_tear_down(void **state);

/* Runs a command line as a shell would, where the test is; returns its exit status. */
int tool_run(const char *command);
/* The same in the tree. */
int tool_run_there(const char *command);

/* The example in a subcommand's help, a line that a user may copy. */
enum { TOOL_LINE_MAX = 512 };
void tool_read_example(const char *command, char line[TOOL_LINE_MAX]);

void tool_assert_contains(const char *text, const char *part);
/* TOOL_SAYS(tool_run("stratus show"), 0, "profile a", "4 rows"): it ended with this status,
 * and its output holds these; TOOL_WARNS: its errors do. */
#define TOOL_SAYS(ended, status, ...)                                                              \
  tool_expect(ended, status, tool.output, (const char *const[]){ __VA_ARGS__, NULL })
#define TOOL_WARNS(ended, status, ...)                                                             \
  tool_expect(ended, status, tool.errors, (const char *const[]){ __VA_ARGS__, NULL })
void tool_expect(int ended, int status, const char *text, const char *const *parts);
/* The command line ends with status 2 and nothing but a complaint. */
void tool_assert_wrong_use(const char *command, const char *says);

#endif
