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

static bool has_line(const struct lines *lines, const char *section, const char *line) {
  for (size_t i = 0; i < lines->count; i++) {
    if (strcmp(lines->section[i], section) == 0 && strcmp(lines->at[i], line) == 0) {
      return true;
    }
  }
  return false;
}

/* Lines of `mine` that `other` has not, in this section; as text, or into `list`. */
static size_t tell_section(const struct lines *mine, const struct lines *other, const char *section,
                           char mark, json_t *list) {
  size_t count = 0;
  for (size_t i = 0; i < mine->count; i++) {
    if (strcmp(mine->section[i], section) != 0 || has_line(other, section, mine->at[i])) {
      continue;
    }
    count++;
    if (list) {
      json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "in", mark == '-' ? "a" : "b",
                                            "section", section, "line", mine->at[i]));
    } else if (mark) {
      printf("%c %s\n", mark, mine->at[i]);
    }
  }
  return count;
}

/* All sections that `first` has, and those that only `second` has, if it is their turn. */
static size_t diff_print(const struct lines *a, const struct lines *b, const struct lines *whose,
                         bool is_second, json_t *list) {
  size_t count = 0;
  const char *last = NULL;
  for (size_t i = 0; i < whose->count; i++) {
    const char *section = whose->section[i];
    bool is_new = !last || strcmp(last, section) != 0;
    bool is_told = false;
    for (size_t j = 0; is_second && is_new && j < a->count; j++) {
      is_told |= strcmp(a->section[j], section) == 0;
    }
    last = section;
    if (!is_new || is_told ||
        tell_section(a, b, section, 0, NULL) + tell_section(b, a, section, 0, NULL) == 0) {
      continue;
    }
    if (!list) {
      printf("%s\n", section);
    }
    count += tell_section(a, b, section, '-', list);
    count += tell_section(b, a, section, '+', list);
  }
  return count;
}

static int diff_profiles(const struct profile *a, const struct profile *b, bool is_json) {
  struct lines lines_a = { 0 }, lines_b = { 0 };
  char hash_a[TUNE_HASH_TEXT_MAX], hash_b[TUNE_HASH_TEXT_MAX];
  bool decides_alike = profile_decision_hash(a) == profile_decision_hash(b);
  json_t *list = is_json ? json_array() : NULL;
  int status = split(a, &lines_a);
  status = status == CLI_OK ? split(b, &lines_b) : status;
  size_t count = 0;
  if (status == CLI_OK) {
    count = diff_print(&lines_a, &lines_b, &lines_a, false, list);
    count += diff_print(&lines_a, &lines_b, &lines_b, true, list);
  }
  if (status == CLI_OK && is_json) {
    status = tune_print_json(json_pack(
        "{s:s, s:s, s:b, s:O}", "hash_a", tune_format_hash(a, hash_a), "hash_b",
        tune_format_hash(b, hash_b), "decides_alike", decides_alike, "differences", list));
  } else if (status == CLI_OK) {
    printf("%s\n", count == 0      ? "the same"
                   : decides_alike ? "ranks with either choose alike"
                                   : "ranks with different ones refuse to connect");
  }
  json_decref(list);
  lines_free(&lines_a);
  lines_free(&lines_b);
  return status == CLI_OK && count > 0 ? CLI_FAILED : status;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count;
  struct profile a, b;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(arguments[0], &a, path);
  if (status != CLI_OK) {
    return CLI_USAGE;
  }
  status = tune_load(arguments[1], &b, path);
  if (status == CLI_OK) {
    status = diff_profiles(&a, &b, is_json);
    profile_free(&b);
  } else {
    status = CLI_USAGE;
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
  .has_json = true,
  .run = run,
};
