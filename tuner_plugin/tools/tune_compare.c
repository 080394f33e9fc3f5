/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune compare: two outputs of nccl-tests, size by size. Columns and their units are found
 * by the table's heading, which differs between releases; a row is the end of its line, as
 * launchers write before it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plain.h"
#include "tuner_plugin/tools/limits.h"
#include "tuner_plugin/tools/tune.h"

enum { COLUMNS_MAX = 40, TEXT_MAX = 160, SERIES_MAX = 96, POINTS_MAX = 1 << 20, PLACES = 2 };

static const char *const place_names[PLACES] = { "out of place", "in place" };

struct point {
  char series[SERIES_MAX]; /* "all_reduce float sum": what differs in nothing but size and place */
  int place;
  uint64_t bytes;
  double time_us, bus_gbs;
  bool is_wrong, is_paired;
};

/* Of the table that is being read. */
struct table {
  int columns;           /* 0: none yet */
  int type, redop, root; /* columns; -1: it has none */
  int time[PLACES], bus[PLACES], wrong[PLACES];
  double time_us, bus_gbs; /* what 1 is in its units */
  char units[COLUMNS_MAX]; /* 't', 'b' or '-': the columns that have a unit, in order */
  int unit_count;
  bool is_open; /* its last line, the average, has not come */
};

struct side {
  char name; /* 'A' or 'B' */
  const char *path;
  struct point *points;
  size_t count;
  size_t ranks, line;
  size_t notes;
  char operation[32], last[TEXT_MAX], error[TEXT_MAX];
  size_t last_line, error_line;
  struct table table;
};

__attribute__((format(printf, 3, 4))) static void note(struct side *side, size_t line,
                                                       const char *format, ...) {
  char text[TEXT_MAX * 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  side->notes++;
  if (side->notes <= COMPARE_NOTES_MAX) {
    printf("%c: line %zu: %s\n", side->name, line, plain_text(text));
  }
}

/* ---- headings ---- */

static double unit_of(const char *word, const char *const names[], const double values[]) {
  for (int i = 0; names[i]; i++) {
    if (strcmp(word, names[i]) == 0) {
      return values[i];
    }
  }
  return 0;
}

static void take_heading(struct side *side, char **words, int count) {
  struct table *table = &side->table;
  int places[3] = { 0 };
  *table = (struct table){ .columns = count,
                           .type = -1,
                           .redop = -1,
                           .root = -1,
                           .time = { -1, -1 },
                           .bus = { -1, -1 },
                           .wrong = { -1, -1 },
                           .time_us = 1,
                           .bus_gbs = 1,
                           .is_open = true };
  for (int i = 0; i < count; i++) {
    const char *word = words[i];
    char unit = '-';
    if (strcmp(word, "type") == 0) {
      table->type = i;
    } else if (strcmp(word, "redop") == 0) {
      table->redop = i;
    } else if (strcmp(word, "root") == 0) {
      table->root = i;
    } else if ((strcmp(word, "time") == 0 || strcmp(word, "cputime") == 0) && places[0] < PLACES) {
      table->time[places[0]++] = i, unit = 't';
    } else if (strcmp(word, "busbw") == 0 && places[1] < PLACES) {
      table->bus[places[1]++] = i, unit = 'b';
    } else if (strcmp(word, "#wrong") == 0 && places[2] < PLACES) {
      table->wrong[places[2]++] = i;
    } else if (strcmp(word, "timestamp") == 0) {
      table->columns++; /* a date and a time */
    }
    if (strcmp(word, "type") != 0 && strcmp(word, "redop") != 0 && strcmp(word, "root") != 0 &&
        strcmp(word, "#wrong") != 0 && strcmp(word, "error") != 0 &&
        strcmp(word, "timestamp") != 0) {
      table->units[table->unit_count++] = unit;
    }
  }
}

/* "(B) (elements) (us) (GB/s) (GB/s) ...": CLI_OK, or CLI_FAILED after a message. */
static int take_units(struct side *side, char **words, int count) {
  static const char *const times[] = { "(ns)", "(us)", "(ms)", "(s)", NULL }, *const rates[] = {
    "(B/s)", "(KB/s)", "(MB/s)", "(GB/s)", "(TB/s)", NULL
  };
  static const double times_us[] = { 1e-3, 1, 1e3, 1e6 },
                      rates_gbs[] = { 1e-9, 1e-6, 1e-3, 1, 1e3 };
  struct table *table = &side->table;
  for (int i = 0; i < count && i < table->unit_count; i++) {
    double *value = table->units[i] == 't'   ? &table->time_us
                    : table->units[i] == 'b' ? &table->bus_gbs
                                             : NULL;
    const char *accepted = table->units[i] == 't' ? "(ns), (us), (ms), (s)" : "(B/s) to (TB/s)";
    if (value) {
      *value = value == &table->time_us ? unit_of(words[i], times, times_us)
                                        : unit_of(words[i], rates, rates_gbs);
    }
    if ((i == 0 && strcmp(words[i], "(B)") != 0) || (value && *value == 0)) {
      return cli_fail("%s:%zu: the heading has the unit %s where %s is read", side->path,
                      side->line, words[i], i == 0 ? "(B)" : accepted);
    }
  }
  return CLI_OK;
}

/* ---- rows ---- */

static bool is_number(const char *word) {
  return word[strspn(word, "0123456789")] == '\0';
}

/* A time or a bandwidth; NAN if it is none. */
static double read_number(const char *word) {
  char *end;
  double value = strtod(word, &end);
  return *end == '\0' && end != word && isfinite(value) && value >= 0 ? value : NAN;
}

static void name_series(const struct side *side, char **words, char series[SERIES_MAX]) {
  const struct table *table = &side->table;
  const int columns[] = { table->type, table->redop, table->root };
  int length = snprintf(series, SERIES_MAX, "%s", side->operation);
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    const char *word = columns[i] >= 0 ? words[columns[i]] : "none";
    if (strcmp(word, "none") != 0 && strcmp(word, "-1") != 0 && length < SERIES_MAX) {
      length += snprintf(series + length, (size_t)(SERIES_MAX - length), "%s%s%s",
                         length > 0 ? " " : "", columns[i] == table->root ? "root " : "", word);
    }
  }
  plain_text(series);
}

static int take_row(struct side *side, char **words) {
  const struct table *table = &side->table;
  for (int place = 0; place < PLACES; place++) {
    if (table->time[place] < 0 || strcmp(words[table->time[place]], "N/A") == 0) {
      continue;
    }
    const char *wrong = table->wrong[place] < 0 ? "N/A" : words[table->wrong[place]];
    struct point point = { .place = place,
                           .bytes = strtoull(words[0], NULL, 10),
                           .time_us = read_number(words[table->time[place]]) * table->time_us,
                           .bus_gbs = read_number(words[table->bus[place]]) * table->bus_gbs,
                           .is_wrong = strcmp(wrong, "N/A") != 0 && strcmp(wrong, "0") != 0 };
    if (isnan(point.time_us) || isnan(point.bus_gbs)) {
      note(side, side->line, "%s left out: time %s, busbw %s", place_names[place],
           words[table->time[place]], words[table->bus[place]]);
      continue;
    }
    if (point.bytes == 0 || point.time_us == 0) {
      continue; /* nothing was sent */
    }
    if (side->count % 1024 == 0) {
      struct point *more = side->count < POINTS_MAX ? reallocarray(side->points, side->count + 1024,
                                                                   sizeof *side->points)
                                                    : NULL;
      if (!more) {
        return cli_fail("%s:%zu: too many rows", side->path, side->line);
      }
      side->points = more;
    }
    name_series(side, words, point.series);
    side->points[side->count++] = point;
  }
  return CLI_OK;
}

/* ---- files ---- */

static void end_table(struct side *side) {
  if (side->table.is_open && side->table.columns) {
    note(side, side->last_line, "the run ended within its table: %s", side->last);
  }
  side->table.columns = 0;
}

/* What stands around tables: whose they are, and what went wrong. */
static void take_remark(struct side *side, const char *line) {
  static const char *const starts[] = { "# Collective test starting: ", "# Operation: " };
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    const char *found = strstr(line, starts[i]);
    if (found) {
      snprintf(side->operation, sizeof side->operation, "%s", found + strlen(starts[i]));
      side->operation[strcspn(side->operation, " \t\r")] = '\0';
      char *perf = strstr(side->operation, "_perf");
      *(perf ? perf : side->operation + strlen(side->operation)) = '\0';
    }
  }
  const char *rank = strstr(line, " Rank ");
  if (rank && strstr(line, " device ")) {
    size_t ranks = strtoul(rank + strlen(" Rank "), NULL, 10) + 1;
    side->ranks = side->ranks > ranks ? side->ranks : ranks;
  }
  side->table.is_open = side->table.is_open && !strstr(line, "# Avg bus bandwidth");
  bool is_failure =
      strcasestr(line, "failure") || strcasestr(line, "error") || strstr(line, "FAILED");
  if (is_failure && !strstr(line, " NCCL INFO ")) {
    snprintf(side->error, sizeof side->error, "%s", line);
    side->error_line = side->line;
  }
}

static int take_line(struct side *side, char *line) {
  char *words[COLUMNS_MAX + 1], *rest = NULL, copy[COMPARE_LINE_MAX];
  int count = 0, first = 0;
  line[strcspn(line, "\r\n")] = '\0';
  if (line[strspn(line, " \t")] == '\0' || strlen(line) >= sizeof copy) {
    return CLI_OK;
  }
  snprintf(side->last, sizeof side->last, "%s", line + strspn(line, " \t"));
  side->last_line = side->line;
  strcpy(copy, line);
  /* Of a longer line its end. */
  for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
    if (count > COLUMNS_MAX) {
      memmove(words, words + 1, COLUMNS_MAX * sizeof *words);
      count--;
    }
    words[count++] = word;
  }
  for (first = 0; first + 2 < count; first++) {
    if (strcmp(words[first], "size") == 0 && strcmp(words[first + 1], "count") == 0) {
      end_table(side);
      take_heading(side, words + first, count - first);
      return side->table.time[0] >= 0 && side->table.bus[0] >= 0
                 ? CLI_OK
                 : cli_fail("%s:%zu: the heading has no time or no busbw", side->path, side->line);
    }
    if (side->table.columns && words[first][0] == '(' &&
        strcmp(words[first + 1], "(elements)") == 0) {
      return take_units(side, words + first, count - first);
    }
  }
  first = count - side->table.columns;
  if (side->table.columns && first >= 0 && is_number(words[first]) && is_number(words[first + 1])) {
    return take_row(side, words + first);
  }
  if (side->table.columns && count >= 2 && is_number(words[0]) && is_number(words[1])) {
    note(side, side->line, "left out: a row of %d columns under a heading of %d", count,
         side->table.columns);
    return CLI_OK;
  }
  take_remark(side, line);
  return CLI_OK;
}

static int read_lines(struct side *side, FILE *file) {
  char *line = NULL;
  size_t size = 0;
  int result = CLI_OK;
  while (result == CLI_OK && getline(&line, &size, file) >= 0) {
    side->line++;
    result = take_line(side, line);
  }
  free(line);
  if (result == CLI_OK && ferror(file)) {
    result = cli_fail("%s: %s", side->path, strerror(errno));
  }
  if (result != CLI_OK) {
    return result;
  }
  end_table(side);
  if (side->error_line) {
    note(side, side->error_line, "the run says: %s", side->error);
  }
  if (side->notes > COMPARE_NOTES_MAX) {
    printf("%c: %zu more of these\n", side->name, side->notes - COMPARE_NOTES_MAX);
  }
  return side->count > 0 ? CLI_OK
                         : cli_fail("%s: no row of a table as nccl-tests print it (size, count, "
                                    "type, ... time, algbw, busbw)",
                                    side->path);
}

static int read_side(struct side *side) {
  struct stat status;
  int fd = open(side->path,
                O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO: without waiting for its writer */
  if (fd < 0 || fstat(fd, &status) != 0) {
    int error = errno;
    if (fd >= 0) {
      close(fd);
    }
    return cli_fail("%s: %s", side->path, strerror(error));
  }
  FILE *file = S_ISREG(status.st_mode) ? fdopen(fd, "r") : NULL;
  if (!file) {
    close(fd);
    return cli_fail("%s: not a file; save the output in one", side->path);
  }
  int result = read_lines(side, file);
  fclose(file);
  return result;
}

/* ---- the comparison ---- */

static bool is_same(const struct point *a, const struct point *b) {
  return a->place == b->place && strcmp(a->series, b->series) == 0;
}

static struct point *find(struct side *side, const struct point *wanted) {
  for (size_t i = 0; i < side->count; i++) {
    struct point *point = &side->points[i];
    if (!point->is_paired && point->bytes == wanted->bytes && is_same(point, wanted)) {
      return point;
    }
  }
  return NULL;
}

struct sum {
  size_t count, faster, slower, wrong;
  double log_ratio;
};

static void print_row(const struct point *a, const struct point *b, struct sum *sum) {
  double ratio = b->time_us / a->time_us;
  const char *verdict = "same";
  if (a->is_wrong || b->is_wrong) {
    verdict = "wrong values", sum->wrong++;
  } else if (ratio > 1 + COMPARE_SAME) {
    verdict = "slower", sum->slower++;
  } else if (ratio < 1 / (1 + COMPARE_SAME)) {
    verdict = "faster", sum->faster++;
  }
  sum->count++;
  sum->log_ratio += log(ratio);
  printf("%12" PRIu64 " %12.2f %12.2f %9.3f %9.3f %8.3f  %s\n", b->bytes, a->time_us, b->time_us,
         a->bus_gbs, b->bus_gbs, ratio, verdict);
}

/* All rows of the series of this point of B's. */
static void print_series(struct side *a, struct side *b, size_t from, struct sum *sum) {
  const struct point *head = &b->points[from];
  bool has_heading = false;
  for (size_t i = from; i < b->count; i++) {
    struct point *mine = &b->points[i], *other;
    if (mine->is_paired || !is_same(mine, head) || !(other = find(a, mine))) {
      continue;
    }
    if (!has_heading) {
      printf("\n%s%s%s\n%12s %12s %12s %9s %9s %8s\n", head->series, head->series[0] ? ", " : "",
             place_names[head->place], "size (B)", "A (us)", "B (us)", "A (GB/s)", "B (GB/s)",
             "B / A");
      has_heading = true;
    }
    print_row(other, mine, sum);
    mine->is_paired = other->is_paired = true;
  }
}

static void print_unpaired(const struct side *side) {
  size_t count = 0;
  for (size_t i = 0; i < side->count; i++) {
    count += !side->points[i].is_paired;
  }
  if (count > 0) {
    printf("%zu row%s of %c ha%s no match\n", count, count == 1 ? "" : "s", side->name,
           count == 1 ? "s" : "ve");
  }
}

static int compare(struct side *a, struct side *b) {
  int result = read_side(a);
  result = result == CLI_OK ? read_side(b) : result;
  if (result != CLI_OK) {
    return result;
  }
  struct sum sum = { 0 };
  for (size_t i = 0; i < b->count; i++) {
    print_series(a, b, i, &sum);
  }
  if (sum.count == 0) {
    return cli_fail(
        "nothing in common: A begins with %s of %" PRIu64 " B, B with %s of %" PRIu64 " B",
        a->points[0].series, a->points[0].bytes, b->points[0].series, b->points[0].bytes);
  }
  printf("\n%zu rows: B is faster in %zu, slower in %zu, has wrong values (or A has) in %zu; same: "
         "within %g %%\nB's time / A's, geometric mean: %.3f\n",
         sum.count, sum.faster, sum.slower, sum.wrong, COMPARE_SAME * 100,
         exp(sum.log_ratio / (double)sum.count));
  print_unpaired(a);
  print_unpaired(b);
  if (a->ranks != b->ranks) {
    printf("A ran on %zu ranks, B on %zu\n", a->ranks, b->ranks);
  }
  return sum.slower || sum.wrong || a->notes || b->notes || a->ranks != b->ranks ? CLI_FAILED
                                                                                 : CLI_OK;
}

static int run_compare(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)is_json;
  struct side a = { .name = 'A', .path = arguments[0] }, b = { .name = 'B', .path = arguments[1] };
  int result = compare(&a, &b);
  free(a.points);
  free(b.points);
  return result;
}

const struct cli_command tune_compare = {
  .name = "compare",
  .summary =
      "two outputs of nccl-tests, size by size; exit status 1 if B is slower or a run failed",
  .arguments = "A B",
  .min_arguments = 2,
  .max_arguments = 2,
  .example = "stratus-tune compare tests/data/compare/socket.txt tests/data/compare/stratus.txt",
  .run = run_compare,
};
