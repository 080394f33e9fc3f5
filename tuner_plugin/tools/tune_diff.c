/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune diff: how two profiles differ, apart from spacing and comments: lines of their
 * canonical texts, section by section. Exit status as of diff(1): 0 the same, 1 different, 2
 * trouble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/tools/tune.h"

/* The lines of a canonical text that are not empty, each with the header of its section. */
struct lines {
  char *text;
  const char **at;
  const char **section;
  size_t count;
};

static int split(const struct profile *profile, struct lines *lines) {
  size_t bytes;
  FILE *to = open_memstream(&lines->text, &bytes);
  if (!to || profile_write(profile, to) != 0 || fclose(to) != 0) {
    return cli_fail("out of memory");
  }
  size_t most = 1;
  for (const char *c = lines->text; *c; c++) {
    most += *c == '\n';
  }
  lines->at = calloc(most, sizeof *lines->at);
  lines->section = calloc(most, sizeof *lines->section);
  if (!lines->at || !lines->section) {
    return cli_fail("out of memory");
  }
  const char *section = "";
  char *rest = lines->text;
  for (char *line; (line = strsep(&rest, "\n"));) {
    if (line[0] == '[') {
      section = line;
    } else if (line[0] != '\0' && line[0] != '#') {
      lines->at[lines->count] = line;
      lines->section[lines->count++] = section;
    }
  }
  return CLI_OK;
}

static void lines_free(struct lines *lines) {
  free(lines->text);
  free(lines->at);
  free(lines->section);
}

/* `line` NULL: any. */
static bool has_line(const struct lines *lines, const char *section, const char *line) {
  for (size_t i = 0; i < lines->count; i++) {
    if (strcmp(lines->section[i], section) == 0 && (!line || strcmp(lines->at[i], line) == 0)) {
      return true;
    }
  }
  return false;
}

/* What each has that the other has not; returns how many lines. */
static size_t tell_section(const struct lines *a, const struct lines *b, const char *section) {
  const struct lines *const both[] = { a, b };
  size_t count = 0;
  for (int side = 0; side < 2; side++) {
    const struct lines *mine = both[side];
    for (size_t i = 0; i < mine->count; i++) {
      if (strcmp(mine->section[i], section) != 0 ||
          has_line(both[1 - side], section, mine->at[i])) {
        continue;
      }
      if (count++ == 0) {
        printf("%s\n", section);
      }
      printf("%c %s\n", "-+"[side], mine -> at[i]);
    }
  }
  return count;
}

/* A line that begins a section. */
static bool is_first(const struct lines *lines, size_t i) {
  return i == 0 || lines->section[i] != lines->section[i - 1];
}

/* The sections of `a`, then those that only `b` has. */
static size_t tell_all(const struct lines *a, const struct lines *b) {
  size_t count = 0;
  for (size_t i = 0; i < a->count; i++) {
    count += is_first(a, i) ? tell_section(a, b, a->section[i]) : 0;
  }
  for (size_t i = 0; i < b->count; i++) {
    bool is_new = is_first(b, i) && !has_line(a, b->section[i], NULL);
    count += is_new ? tell_section(a, b, b->section[i]) : 0;
  }
  return count;
}

static int diff_profiles(const struct profile *a, const struct profile *b) {
  struct lines lines_a = { 0 }, lines_b = { 0 };
  size_t count = 0;
  int status = split(a, &lines_a);
  status = status == CLI_OK ? split(b, &lines_b) : status;
  if (status == CLI_OK) {
    count = tell_all(&lines_a, &lines_b);
    bool decides_alike = profile_decision_hash(a) == profile_decision_hash(b);
    printf("%s\n", count == 0      ? "the same"
                   : decides_alike ? "ranks with either choose alike"
                                   : "ranks with different ones refuse to connect");
  }
  lines_free(&lines_a);
  lines_free(&lines_b);
  return count > 0 ? CLI_FAILED : status;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)is_json;
  struct profile a, b;
  char path[PROFILE_PATH_MAX];
  if (tune_load(arguments[0], &a, path) != CLI_OK) {
    return CLI_USAGE;
  }
  int status = CLI_USAGE;
  if (tune_load(arguments[1], &b, path) == CLI_OK) {
    status = diff_profiles(&a, &b);
    profile_free(&b);
  }
  profile_free(&a);
  return status;
}

const struct cli_command tune_diff = {
  .name = "diff",
  .summary = "show how two profiles differ, and whether ranks with both would choose alike",
  .arguments = "A B",
  .min_arguments = 2,
  .max_arguments = 2,
  .example = "stratus-tune diff tuner_plugin/profiles/example.profile "
             "tuner_plugin/profiles/example.profile",
  .run = run,
};
