/* SPDX-License-Identifier: Apache-2.0 */
/* See end_report.h. */
#include "tests/coll/end_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT_TEXT "coll has run "

static char run_to_report[END_REPORT_RUN_MAX];

int end_report_open(struct end_report *report, const char *run) {
  int ends[2];
  report->output = -1;
  report->has_come = false;
  report->length = 0;
  snprintf(report->run, sizeof report->run, "%s", run);
  if (pipe2(ends, O_CLOEXEC))
    return -1;
  /* Of this end only: rank 0 may wait. */
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK)) {
    close(ends[0]);
    close(ends[1]);
    return -1;
  }
  report->output = ends[0];
  return ends[1];
}

/* A launcher in between may put something before it, as `srun --label` does. */
static bool is_report(const struct end_report *report) {
  char wanted[sizeof REPORT_TEXT + END_REPORT_RUN_MAX];
  int length = snprintf(wanted, sizeof wanted, REPORT_TEXT "%s", report->run);
  return memmem(report->line, report->length, wanted, (size_t)length) != NULL;
}

static void end_line(struct end_report *report) {
  if (is_report(report))
    report->has_come = true;
  else
    fwrite(report->line, 1, report->length, stdout);
  report->length = 0;
}

void end_report_relay(struct end_report *report) {
  char bytes[4096];
  ssize_t got = 0;
  while (report->output >= 0 && (got = read(report->output, bytes, sizeof bytes)) > 0) {
    for (ssize_t i = 0; i < got; i++) {
      report->line[report->length++] = bytes[i];
      if (bytes[i] == '\n' || report->length == sizeof report->line)
        end_line(report);
    }
  }
  bool is_over = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (report->output >= 0 && is_over) {
    close(report->output);
    report->output = -1;
  }
  fflush(stdout);
}

void end_report_close(struct end_report *report) {
  end_report_relay(report);
  end_line(report);
  fflush(stdout);
  if (report->output >= 0)
    close(report->output);
  report->output = -1;
}

void end_report_take(void) {
  const char *run = getenv(END_REPORT_VARIABLE);
  snprintf(run_to_report, sizeof run_to_report, "%s", run ? run : "");
  unsetenv(END_REPORT_VARIABLE);
}

void end_report_say(FILE *output) {
  if (*run_to_report)
    fprintf(output, REPORT_TEXT "%s\n", run_to_report);
  fflush(output);
}
