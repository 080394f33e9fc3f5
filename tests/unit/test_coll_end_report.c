/* SPDX-License-Identifier: Apache-2.0 */
/* How the launcher of --hosts learns that rank 0 has run, from its output. */
#include "tests/coll/end_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/unit.h"

#define RUN "0123456789abcdef"

static struct end_report report;
static char printed[2 * END_REPORT_LINE_MAX];

/* What the launcher prints of rank 0's output, in pieces of `step` bytes. */
static void relay(const char *output, size_t step) {
  FILE *to = tmpfile();
  assert_non_null(to);
  fflush(stdout);
  int saved = dup(STDOUT_FILENO), end = end_report_open(&report, RUN);
  assert_true(saved >= 0 && end >= 0 && dup2(fileno(to), STDOUT_FILENO) >= 0);
  for (size_t length = strlen(output), at = 0; at < length; at += step) {
    size_t piece = length - at < step ? length - at : step;
    assert_int_equal(write(end, output + at, piece), piece);
    end_report_relay(&report);
  }
  close(end);
  end_report_close(&report);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  rewind(to);
  printed[fread(printed, 1, sizeof printed - 1, to)] = '\0';
  fclose(to);
}

static void assert_relayed(const char *output, const char *wanted, bool has_come) {
  for (size_t step = 1; step < 100; step = 3 * step + 1) {
    relay(output, step);
    assert_string_equal(printed, wanted);
    assert_int_equal(report.has_come, has_come);
    assert_int_equal(report.output, -1);
  }
}

UNIT_TEST(the_report_is_not_printed) {
  assert_relayed("# table\n 8 2\nstratus-coll has run " RUN "\n", "# table\n 8 2\n", true);
  assert_relayed("a\n0: coll has run " RUN "\r\nb", "a\nb", true); /* srun --label, a tty */
  assert_relayed("coll has run " RUN, "", true);
}

UNIT_TEST(other_output_is_no_report) {
  assert_relayed("", "", false);
  assert_relayed("hello\n\nworld", "hello\n\nworld", false);
  assert_relayed("coll has run 0123456789abcdee\n", "coll has run 0123456789abcdee\n", false);
  assert_relayed("coll has run\n " RUN "\n", "coll has run\n " RUN "\n", false);
}

UNIT_TEST(long_lines_arrive) {
  static char line[END_REPORT_LINE_MAX + 100];
  memset(line, 'x', sizeof line - 1);
  line[END_REPORT_LINE_MAX - 1] = '\0';
  relay(line, 4096);
  assert_string_equal(printed, line);
  line[END_REPORT_LINE_MAX - 1] = 'x';
  relay(line, 4096);
  assert_string_equal(printed, line);
}

UNIT_TEST(rank_0_says_what_it_was_given) {
  char text[64] = "";
  FILE *output = fmemopen(text, sizeof text, "w");
  setenv(END_REPORT_VARIABLE, RUN, 1);
  end_report_take();
  assert_null(getenv(END_REPORT_VARIABLE));
  end_report_say(output);
  assert_string_equal(text, "coll has run " RUN "\n");
  fclose(output);
  memset(text, 0, sizeof text);
  output = fmemopen(text, sizeof text, "w");
  end_report_take();
  end_report_say(output);
  assert_string_equal(text, "");
  fclose(output);
}

UNIT_MAIN(NULL, NULL)
