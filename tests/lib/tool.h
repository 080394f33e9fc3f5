/* SPDX-License-Identifier: Apache-2.0 */
/* tool: a tool that lies beside the tests (build/tests, build/bin), run as people run it, in a tree
 * of its own, where it finds no profile but those that the test wrote.
 * Owns: its tree, PATH and the variables that the tool reads, from tool_set_up to tool_tear_down.
 * Threads: the test's.  Blocks: while the tool runs.  Fails: the test. */
#ifndef TESTS_LIB_TOOL_H
#define TESTS_LIB_TOOL_H

#include "tests/lib/tree.h"

enum { TOOL_TEXT_MAX = 65536 };

struct tool {
  struct tree tree;
  char output[TOOL_TEXT_MAX], errors[TOOL_TEXT_MAX]; /* of the last command */
};

void tool_set_up(struct tool *tool);
void tool_tear_down(struct tool *tool);

/* Runs a command line as a shell would, where the test is; returns its exit status. */
int tool_run(struct tool *tool, const char *command);
/* The same in the tree. */
int tool_run_there(struct tool *tool, const char *command);

void tool_assert_contains(const char *text, const char *part);

#endif
