/* SPDX-License-Identifier: Apache-2.0 */
/* stratus compare: two outputs of nccl-tests, size by size. Columns are found by the table's
 * heading, which differs between releases; a row is the end of its line, as launchers write before
 * it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/plain.h"
#include "common/tools/commands.h"
#include "tuner_plugin/tools/limits.h"
#include "tuner_plugin/tools/tune.h"

enum { WORDS_MAX = 64, SERIES_MAX = 96, POINTS_MAX = 8192, PLACES = 2 };

static const char *const place_names[PLACES] = { "out of place", "in place" };

struct point {
  char series[SERIES_MAX]; /* "all_reduce float sum": what differs in nothing but size and place */
  int place;
  uint64_t bytes;
  double time_us, bus_gbs;
  bool is_wrong, is_paired;
};

struct side {
  char name; /* 'A' or 'B' */
  const char *path;
  size_t count, ranks, line, notes;
  /* Of the table that is being read. */
  int columns; /* 0: none */
  int time[PLACES], bus[PLACES], wrong[PLACES];
  bool is_open; /* its last line, the average, has not come */
  char operation[32];
  struct point points[POINTS_MAX];
};

static void note(struct side *side, const char *what, const char *line) {
  char text[COMPARE_LINE_MAX];
  snprintf(text, sizeof text, "%s", line);
  if (side->notes++ < COMPARE_NOTES_MAX) {
    printf("%c: line %zu: %s%s\n", side->name, side->line, what, plain_text(text));
  }
}

/* Column of the n-th such word, or -1. */
static int find_column(char **words, int count, const char *name, int n) {
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], name) == 0 && n-- == 0) {
      return i;
    }
  }
  return -1;
}

static void end_table(struct side *side) {
  if (side->columns && side->is_open) {
    note(side, "the run ended within its table", "");
  }
  side->columns = 0;
}

static int take_heading(struct side *side, char **words, int count) {
  end_table(side);
  for (int place = 0; place < PLACES; place++) {
    side->time[place] = find_column(words, count, "time", place);
    side->bus[place] = find_column(words, count, "busbw", place);
    side->wrong[place] = find_column(words, count, "#wrong", place);
  }
  side->columns = count + (find_column(words, count, "timestamp", 0) >= 0); /* two words */
  side->is_open = true;
  return side->time[1] >= 0 && side->bus[1] >= 0
             ? CLI_OK
             : cli_fail("%s:%zu: not two of time and busbw in the heading", side->path, side->line);
}

/* A time or a bandwidth; NAN if it is none. */
static double read_number(const char *word) {
  char *end;
  double value = strtod(word, &end);
  return *end == '\0' && isfinite(value) && value >= 0 ? value : (double)NAN;
}

static int take_row(struct side *side, char **words, const char *line) {
  for (int place = 0; place < PLACES; place++) {
    const char *wrong = side->wrong[place] < 0 ? "0" : words[side->wrong[place]];
    struct point point = { .place = place,
                           .bytes = strtoull(words[0], NULL, 10),
                           .time_us = read_number(words[side->time[place]]),
                           .bus_gbs = read_number(words[side->bus[place]]),
                           .is_wrong = strcmp(wrong, "N/A") != 0 && strcmp(wrong, "0") != 0 };
    if (strcmp(words[side->time[place]], "N/A") == 0 || point.bytes == 0 || point.time_us == 0) {
      continue; /* nothing was sent */
    }
    if (isnan(point.time_us) || isnan(point.bus_gbs)) {
      note(side, "left out: ", line);
      continue;
    }
    if (side->count == POINTS_MAX) {
      return cli_fail("%s:%zu: more than %d rows", side->path, side->line, POINTS_MAX / PLACES);
    }
    /* Between the number of elements and the first time: type, operation, root. */
    int length = snprintf(point.series, SERIES_MAX, "%s", side->operation);
    for (int i = 2; i < side->time[0] && length < SERIES_MAX; i++) {
      if (strcmp(words[i], "none") != 0 && strcmp(words[i], "-1") != 0) {
        length += snprintf(point.series + length, (size_t)(SERIES_MAX - length), " %s", words[i]);
      }
    }
    plain_text(point.series);
    side->points[side->count++] = point;
  }
  return CLI_OK;
}

/* What stands around tables: whose they are, and what went wrong. */
static void take_remark(struct side *side, const char *line) {
  const char *operation = strstr(line, "# Collective test starting: "), *rank;
  size_t number;
  if (operation) {
    sscanf(operation, "# Collective test starting: %31[a-z_]", side->operation);
    char *perf = strstr(side->operation, "_perf");
    *(perf ? perf : strchr(side->operation, '\0')) = '\0';
  }
  if ((rank = strstr(line, " Rank ")) && sscanf(rank, " Rank %zu", &number) == 1) {
    side->ranks = number >= side->ranks ? number + 1 : side->ranks;
  }
  side->is_open = side->is_open && !strstr(line, "# Avg bus bandwidth");
  if ((strcasestr(line, "failure") || strcasestr(line, "error") || strstr(line, "FAILED")) &&
      !strstr(line, " NCCL INFO ")) {
    note(side, "the run says: ", line);
  }
}

static bool is_row(char **words, int count) {
  return count >= 2 && words[0][strspn(words[0], "0123456789")] == '\0' &&
         words[1][strspn(words[1], "0123456789")] == '\0';
}

static int take_line(struct side *side, char *line) {
  char *words[WORDS_MAX], *rest = NULL, copy[COMPARE_LINE_MAX];
  int count = 0;
  line[strcspn(line, "\r\n")] = '\0';
  snprintf(copy, sizeof copy, "%s", line);
  for (char *word = strtok_r(copy, " \t", &rest); word && count < WORDS_MAX;
       word = strtok_r(NULL, " \t", &rest)) {
    words[count++] = word;
  }
  int heading = find_column(words, count, "size", 0), row = count - side->columns;
  if (heading >= 0 && find_column(words, count, "count", 0) == heading + 1) {
    return take_heading(side, words + heading, count - heading);
  }
  if (side->columns && row >= 0 && is_row(words + row, count - row)) {
    return take_row(side, words + row, line);
  }
  if (side->columns && is_row(words, count)) {
    note(side, "left out, as it has other columns than the heading: ", line);
  } else {
    take_remark(side, line);
  }
  return CLI_OK;
}

static int read_side(struct side *side) {
  FILE *file = fopen(side->path, "re");
  char *line = NULL;
  size_t size = 0;
  int result = file ? CLI_OK : cli_fail("%s: %s", side->path, strerror(errno));
  while (result == CLI_OK && getline(&line, &size, file) >= 0) {
    side->line++;
    result = take_line(side, line);
  }
  if (result == CLI_OK && ferror(file)) {
    result = cli_fail("%s: %s", side->path, strerror(errno));
  }
  free(line);
  if (file) {
    fclose(file);
  }
  end_table(side);
  return result != CLI_OK || side->count > 0
             ? result
             : cli_fail("%s: no row of a table as nccl-tests print it (size, count, type, ... "
                        "time, algbw, busbw)",
                        side->path);
}

/* ---- the comparison ---- */

struct sum {
  size_t count, faster, slower, wrong;
  double log_ratio;
};

static struct point *find_partner(struct side *side, const struct point *wanted) {
  for (struct point *point = side->points; point < side->points + side->count; point++) {
    if (!point->is_paired && point->bytes == wanted->bytes && point->place == wanted->place &&
        strcmp(point->series, wanted->series) == 0) {
      point->is_paired = true;
      return point;
    }
  }
  return NULL;
}

static void print_pair(const struct point *a, const struct point *b, struct sum *sum) {
  double ratio = b->time_us / a->time_us;
  bool is_wrong = a->is_wrong || b->is_wrong;
  bool is_slower = !is_wrong && ratio > 1 + COMPARE_SAME;
  bool is_faster = !is_wrong && ratio < 1 / (1 + COMPARE_SAME);
  sum->count++;
  sum->wrong += is_wrong;
  sum->slower += is_slower;
  sum->faster += is_faster;
  sum->log_ratio += log(ratio);
  const char *verdict = is_slower ? "slower" : is_faster ? "faster" : "same";
  printf("%12" PRIu64 " %12.2f %12.2f %9.3f %9.3f %8.3f  %s\n", b->bytes, a->time_us, b->time_us,
         a->bus_gbs, b->bus_gbs, ratio, is_wrong ? "wrong values" : verdict);
}

/* All rows of B, with A's. */
static void print_place(struct side *a, const struct side *b, int place, struct sum *sum) {
  const char *series = NULL;
  for (const struct point *mine = b->points; mine < b->points + b->count; mine++) {
    const struct point *other = mine->place == place ? find_partner(a, mine) : NULL;
    if (other && (!series || strcmp(series, mine->series) != 0)) {
      series = mine->series;
      printf("\n%s, %s\n%12s %12s %12s %9s %9s %8s\n", series, place_names[place], "size (B)",
             "A (us)", "B (us)", "A (GB/s)", "B (GB/s)", "B / A");
    }
    if (other) {
      print_pair(other, mine, sum);
    }
  }
}

static int run_compare(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)is_json;
  static struct side a = { .name = 'A' }, b = { .name = 'B' };
  struct sum sum = { 0 };
  a.path = arguments[0];
  b.path = arguments[1];
  if (read_side(&a) != CLI_OK || read_side(&b) != CLI_OK) {
    return CLI_FAILED;
  }
  for (int place = 0; place < PLACES; place++) {
    print_place(&a, &b, place, &sum);
  }
  if (sum.count == 0) {
    return cli_fail("nothing in common: A begins with %s of %" PRIu64 " B, B with %s of %" PRIu64
                    " B",
                    a.points[0].series, a.points[0].bytes, b.points[0].series, b.points[0].bytes);
  }
  printf("\n%zu rows: B is faster in %zu, slower in %zu, has wrong values (or A has) in %zu; same: "
         "within %g %%\nB's time / A's, geometric mean: %.3f\n",
         sum.count, sum.faster, sum.slower, sum.wrong, COMPARE_SAME * 100,
         exp(sum.log_ratio / (double)sum.count));
  printf("rows without a match: %zu of A, %zu of B; ranks: %zu, %zu\n", a.count - sum.count,
         b.count - sum.count, a.ranks, b.ranks);
  bool is_worse = sum.slower || sum.wrong || a.notes || b.notes || a.ranks != b.ranks;
  return is_worse ? CLI_FAILED : CLI_OK;
}

const struct cli_command command_compare = {
  .name = "compare",
  .summary =
      "two outputs of nccl-tests, size by size; exit status 1 if B is slower or a run failed",
  .arguments = "A B",
  .min_arguments = 2,
  .max_arguments = 2,
  .example = "stratus compare tests/data/compare/socket.txt tests/data/compare/stratus.txt",
  .run = run_compare,
};
