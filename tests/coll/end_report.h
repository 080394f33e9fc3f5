/* SPDX-License-Identifier: Apache-2.0 */
/* end_report: how --hosts learns that a run took place. Rank 0 says so in a line of its output,
 * once it has met all others at the end; a command that does something else, and ends well, does
 * not. The launcher prints rank 0's output without that line. Owns: the pipe between them, until
 * end_report_close.  Threads: one. Blocks: while standard output does.  Fails: end_report_open,
 * with -1 and errno. */
#ifndef COLL_END_REPORT_H
#define COLL_END_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The run that rank 0 reports. */
#define END_REPORT_VARIABLE "COLL_REPORT"

enum { END_REPORT_RUN_MAX = 17, END_REPORT_LINE_MAX = 65536 };

struct end_report {
  char run[END_REPORT_RUN_MAX];
  int output; /* of rank 0; -1: it has closed it */
  bool has_come;
  size_t length;                  /* of the line that has begun */
  char line[END_REPORT_LINE_MAX]; /* a longer one is printed in parts */
};

/* ---- in the launcher ---- */

/* Returns the end of the pipe that is to be rank 0's standard output. */
int end_report_open(struct end_report *report, const char *run);
/* Prints what has come; never waits for more. */
void end_report_relay(struct end_report *report);
/* Prints what is left. */
void end_report_close(struct end_report *report);

/* ---- in rank 0 ---- */

/* Takes the variable out of the environment, where the plugins would not know it. */
void end_report_take(void);
/* Nothing if there was none. */
void end_report_say(FILE *output);

#endif
