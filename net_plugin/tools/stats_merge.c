/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_merge.h. */
#include "net_plugin/tools/stats_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELP "# HELP "

struct stats_metric {
  char *head;    /* the HELP line */
  char *samples; /* all other lines; the first is the TYPE line */
  size_t bytes;
};

static size_t name_length(const char *head) {
  return strcspn(head + strlen(HELP), " \n") + strlen(HELP);
}

static struct stats_metric *stats_merge_find(struct stats_merge *merge, const char *head) {
  size_t length = name_length(head);
  for (size_t i = 0; i < merge->count; i++) {
    struct stats_metric *metric = &merge->metrics[i];
    if (name_length(metric->head) == length && strncmp(metric->head, head, length) == 0) {
      return metric;
    }
  }
  return NULL;
}

static struct stats_metric *make(struct stats_merge *merge, const char *head, size_t length) {
  struct stats_metric *larger =
      reallocarray(merge->metrics, merge->count + 1, sizeof *merge->metrics);
  if (!larger) {
    return NULL;
  }
  merge->metrics = larger;
  larger[merge->count] = (struct stats_metric){ .head = strndup(head, length) };
  return larger[merge->count].head ? &larger[merge->count++] : NULL;
}

/* A truncated answer may lack the last newline. */
static int append(struct stats_metric *metric, const char *lines, size_t length) {
  char *larger = realloc(metric->samples, metric->bytes + length + sizeof "\n");
  if (!larger) {
    return -ENOMEM;
  }
  metric->samples = larger;
  memcpy(larger + metric->bytes, lines, length);
  metric->bytes += length;
  if (length > 0 && larger[metric->bytes - 1] != '\n') {
    larger[metric->bytes++] = '\n';
  }
  larger[metric->bytes] = '\0';
  return 0;
}

/* The next HELP line at or after `text`, which is the start of a line; NULL: none. */
static const char *next_block(const char *text) {
  if (strncmp(text, HELP, strlen(HELP)) == 0) {
    return text;
  }
  const char *before = strstr(text, "\n" HELP);
  return before ? before + 1 : NULL;
}

int stats_merge_add(struct stats_merge *merge, const char *text) {
  const char *block = next_block(text), *line;
  while (block && (line = strchr(block, '\n'))) {
    const char *next = next_block(line++), *end = next ? next : line + strlen(line);
    struct stats_metric *metric = stats_merge_find(merge, block);
    if (!metric) {
      metric = make(merge, block, (size_t)(line - block));
    } else if (strncmp(line, "# TYPE ", strlen("# TYPE ")) == 0) {
      line += strcspn(line, "\n");
      line += *line == '\n';
    }
    if (!metric || append(metric, line, (size_t)(end - line)) != 0) {
      return -ENOMEM;
    }
    block = next;
  }
  return 0;
}

void stats_merge_print(const struct stats_merge *merge, FILE *to) {
  for (size_t i = 0; i < merge->count; i++) {
    fputs(merge->metrics[i].head, to);
    fputs(merge->metrics[i].samples, to);
  }
}

void stats_merge_free(struct stats_merge *merge) {
  for (size_t i = 0; i < merge->count; i++) {
    free(merge->metrics[i].head);
    free(merge->metrics[i].samples);
  }
  free(merge->metrics);
  *merge = (struct stats_merge){ 0 };
}
