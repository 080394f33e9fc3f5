/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_tool: a tool as a process in which the failure of each_failure.h happens: the programs in
 * build/tests/faulty, which are the tools with tests/lib/fault*.c between them and the C library.
 * Owns: its files in the tree of tool.h.  Threads: the test's.  Blocks: until the tool has ended,
 * at most FAULTY_TOOL_PATIENCE_S.  Fails: as told in the outcome. */
#ifndef TESTS_LIB_FAULTY_TOOL_H
#define TESTS_LIB_FAULTY_TOOL_H

#include "tests/lib/each_failure.h"

/* No tool waits for anything; a busy machine is slow. */
enum { FAULTY_TOOL_PATIENCE_S = 60 };

/* A command line as a shell takes it, whose first word is a tool. Its error is told if there is a
 * line on standard error. A crash, a leak and silence are problems. */
void faulty_tool_run(const char *command, struct outcome *outcome);

#endif
