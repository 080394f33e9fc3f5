/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h: words of lines, then the file, then facts of its items. */
#include "tests/coll/replay/workload.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ELEMENTS_MAX 1e11
#define US_MAX 1e9

const char *const workload_group_names[WORKLOAD_GROUPS] = {
  [WORKLOAD_ALL] = "all", [WORKLOAD_STAGES] = "stages", [WORKLOAD_COPIES] = "copies"
};

struct reader {
  struct workload *workload;
  double compute_scale, bytes_scale;
  const char *name;
  int line;
  char *rest; /* of the line */
  char *error;
  int status;
};

__attribute__((format(printf, 2, 3))) static void refuse(struct reader *r, const char *format,
                                                         ...) {
  va_list arguments;
  if (r->status)
    return;
  r->status = -EINVAL;
  int used = snprintf(r->error, WORKLOAD_ERROR_MAX, "%.300s:%d: ", r->name, r->line);
  va_start(arguments, format);
  vsnprintf(r->error + used, (size_t)(WORKLOAD_ERROR_MAX - used), format, arguments);
  va_end(arguments);
}

/* ---- words ---- */

/* The next word of the line; "" at its end. */
static char *next_word(struct reader *r) {
  static char none[1];
  for (char *word; (word = strsep(&r->rest, " \t"));) {
    if (*word)
      return word;
  }
  return none;
}

static double read_number(struct reader *r, const char *what, const char *word, double least,
                          double most) {
  char *end;
  double value = strtod(word, &end);
  if (end != word && !*end && value >= least && value <= most)
    return value;
  refuse(r, "%s: \"%s\", expected %.0f to %.0f", what, word, least, most);
  return least;
}

static uint64_t read_elements(struct reader *r, const char *word, int least) {
  double value = read_number(r, "elements", word, least, ELEMENTS_MAX);
  double scaled = value * r->bytes_scale + 0.5;
  return scaled < 1 ? value > 0 : (uint64_t)scaled;
}

static int find_group(const char *word) {
  for (int group = 0; group < WORKLOAD_GROUPS; group++) {
    if (!strcmp(workload_group_names[group], word))
      return group;
  }
  return -1;
}

static int find_type(const char *word) {
  return !strcmp(word, "float32")   ? ELEMENT_FLOAT
         : !strcmp(word, "float16") ? ELEMENT_HALF
                                    : element_find(word);
}

/* ---- lines ---- */

static void read_split(struct reader *r, struct workload_item *item, char *list) {
  for (char *word; (word = strsep(&list, ","));) {
    if (item->count == WORKLOAD_SPLIT_MAX) {
      refuse(r, "more than %d counts", WORKLOAD_SPLIT_MAX);
      return;
    }
    item->counts[item->count++] = read_elements(r, word, 0);
  }
}

/* ELEMENTS, or sends=N,N,... or receives=N,N,...; then a type and a group, if others than usual. */
static void read_collective(struct reader *r, struct workload_item *item) {
  char *word = next_word(r), *equals = strchr(word, '=');
  item->kind = WORKLOAD_COLLECTIVE;
  if (equals && item->operation == OPERATION_ALLTOALL) {
    *equals = '\0';
    item->is_received = !strcmp(word, "receives");
    if (!item->is_received && strcmp(word, "sends") != 0)
      refuse(r, "\"%s=\", expected sends= or receives=", word);
    read_split(r, item, equals + 1);
  } else {
    item->elements = read_elements(r, word, 1);
  }
  while (*(word = next_word(r))) {
    int type = find_type(word), group = find_group(word);
    if (type >= 0)
      item->type = (enum element_type)type;
    else if (group >= 0)
      item->group = (enum workload_group)group;
    else
      refuse(r, "\"%s\" is neither a type nor a group (all, stages, copies)", word);
  }
}

static void read_exchange(struct reader *r, struct workload_item *item) {
  item->kind = WORKLOAD_EXCHANGE;
  item->group = WORKLOAD_STAGES;
  item->operation = OPERATION_SENDRECV;
  item->peer = (int)read_number(r, "stage", next_word(r), 0, r->workload->stages - 1);
  item->sent = read_elements(r, next_word(r), 0);
  item->received = read_elements(r, next_word(r), 0);
  if (item->stage < 0 || item->stage == item->peer)
    refuse(r, "an exchange is of one stage with another: \"0: exchange 1 SENT RECEIVED\"");
}

/* What was started before the last `back` of those that all these ranks have started. */
static void read_wait(struct reader *r, struct workload_item *item, const char *word) {
  int back = *word ? (int)read_number(r, "wait", word, 0, 1000) : 0;
  item->kind = WORKLOAD_WAIT;
  for (size_t i = r->workload->count; i-- > 0;) {
    const struct workload_item *other = &r->workload->items[i];
    if (workload_communicates(other) && (other->stage < 0 || other->stage == item->stage) &&
        back-- == 0) {
      item->number = other->number;
      return;
    }
  }
  refuse(r, "nothing has been started to wait for");
}

static void add(struct reader *r, const struct workload_item *item) {
  struct workload *w = r->workload;
  struct workload_item *more = reallocarray(w->items, w->count + 1, sizeof *more);
  if (!more) {
    r->status = -ENOMEM;
    snprintf(r->error, WORKLOAD_ERROR_MAX, "out of memory");
    return;
  }
  w->items = more;
  w->items[w->count++] = *item;
}

static void read_item(struct reader *r, const char *word, int stage, enum element_type type) {
  struct workload_item item = { .line = r->line, .stage = stage, .type = type };
  int operation = operation_find(word);
  if (operation == OPERATION_ALL_REDUCE || operation == OPERATION_ALL_GATHER ||
      operation == OPERATION_REDUCE_SCATTER || operation == OPERATION_ALLTOALL) {
    item.operation = (enum operation)operation;
    read_collective(r, &item);
  } else if (!strcmp(word, "exchange")) {
    read_exchange(r, &item);
  } else if (!strcmp(word, "wait")) {
    read_wait(r, &item, next_word(r));
  } else if (!strcmp(word, "compute")) {
    item.us = read_number(r, "microseconds", next_word(r), 0, US_MAX) * r->compute_scale;
  } else {
    refuse(r,
           "\"%s\" is none of batch, type, stages, compute, wait, exchange, all_reduce, "
           "all_gather, reduce_scatter, alltoall",
           word);
  }
  if (workload_communicates(&item))
    item.number = ++r->workload->numbers;
  add(r, &item);
}

static void read_line(struct reader *r, enum element_type *type) {
  char *word = next_word(r), *end;
  int stage = -1;
  if (!*word || *word == '#')
    return;
  if (!strcmp(word, "batch")) {
    r->workload->batch = (int)read_number(r, word, next_word(r), 1, 1000000);
  } else if (!strcmp(word, "stages")) {
    r->workload->stages = (int)read_number(r, word, next_word(r), 2, 64);
  } else if (!strcmp(word, "type")) {
    int found = find_type(next_word(r));
    *type = found < 0 ? ELEMENT_FLOAT : (enum element_type)found;
    if (found < 0)
      refuse(r, "type: float32, float16, bfloat16 or another of NCCL's is expected");
  } else {
    long number = strtol(word, &end, 10);
    if (end != word && !strcmp(end, ":")) {
      stage = (int)number;
      word = next_word(r);
      if (stage < 0 || stage >= r->workload->stages)
        refuse(r, "stage %d of %d", stage, r->workload->stages);
    }
    read_item(r, word, stage, *type);
  }
  word = next_word(r);
  if (*word)
    refuse(r, "\"%s\" is left over", word);
}

int workload_parse(struct workload *workload, const char *text, const char *name,
                   double compute_scale, double bytes_scale, char error[WORKLOAD_ERROR_MAX]) {
  struct reader r = { workload, compute_scale, bytes_scale, name, 0, NULL, error, 0 };
  enum element_type type = ELEMENT_FLOAT;
  const char *slash = strrchr(name, '/');
  char *copy = strdup(text), *lines = copy;
  *workload = (struct workload){ .batch = 1, .stages = 1 };
  snprintf(workload->name, sizeof workload->name, "%s", slash ? slash + 1 : name);
  char *dot = strrchr(workload->name, '.');
  if (dot && !strcmp(dot, ".txt"))
    *dot = '\0';
  while (!r.status && (r.rest = strsep(&lines, "\n"))) {
    r.line++;
    read_line(&r, &type);
  }
  if (!r.status && !workload->count)
    refuse(&r, "no line says what a step does");
  free(copy);
  if (r.status)
    workload_free(workload);
  return r.status;
}

/* tests/workloads, from a program in build/tests or below, or in a build directory with sanitizers.
 */
static void name_file(const char *argument, char path[PATH_MAX]) {
  static const char *const ups[] = { "../..", "../../..", "../../../.." };
  char program[PATH_MAX / 2];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  *strrchr(length > 0 ? program : strcpy(program, "/"), '/') = '\0';
  snprintf(path, PATH_MAX, "%s", argument);
  for (int i = 0; i < 3 && !strchr(argument, '/') && access(path, R_OK); i++)
    snprintf(path, PATH_MAX, "%s/%s/tests/workloads/%.200s.txt", program, ups[i], argument);
}

int workload_read(struct workload *workload, const char *argument, double compute_scale,
                  double bytes_scale, char error[WORKLOAD_ERROR_MAX]) {
  enum { FILE_BYTES_MAX = 1 << 20 };
  char path[PATH_MAX], *text = calloc(FILE_BYTES_MAX, 1);
  *workload = (struct workload){ 0 };
  name_file(argument, path);
  FILE *file = text ? fopen(path, "re") : NULL;
  int status = file ? 0 : -errno;
  if (file && fread(text, 1, FILE_BYTES_MAX - 1, file) == FILE_BYTES_MAX - 1)
    status = -EFBIG;
  if (file)
    fclose(file);
  if (status)
    snprintf(error, WORKLOAD_ERROR_MAX,
             "workload %.200s: %s (a file of lines, or a name of one in "
             "tests/workloads)",
             argument, strerror(-status));
  else
    status = workload_parse(workload, text, path, compute_scale, bytes_scale, error);
  free(text);
  return status;
}

void workload_free(struct workload *workload) {
  free(workload->items);
  *workload = (struct workload){ 0 };
}

/* ---- facts ---- */

struct workload_place workload_place(const struct workload *w, enum workload_group group, int ranks,
                                     int rank) {
  int copy = rank / w->stages, stage = rank % w->stages;
  if (group == WORKLOAD_STAGES)
    return (struct workload_place){ w->stages, stage, copy };
  if (group == WORKLOAD_COPIES)
    return (struct workload_place){ ranks / w->stages, copy, stage };
  return (struct workload_place){ ranks, rank, 0 };
}

int workload_check(const struct workload *w, int ranks, char error[WORKLOAD_ERROR_MAX]) {
  if (ranks % w->stages) {
    snprintf(error, WORKLOAD_ERROR_MAX, "%s: %d stages need a multiple of %d ranks, not %d",
             w->name, w->stages, w->stages, ranks);
    return -EINVAL;
  }
  for (size_t i = 0; i < w->count; i++) {
    const struct workload_item *item = &w->items[i];
    int parts = workload_place(w, item->group, ranks, 0).ranks;
    if (item->count % (unsigned)parts == 0)
      continue;
    snprintf(error, WORKLOAD_ERROR_MAX, "%s:%d: %u counts, expected a multiple of %d ranks",
             w->name, item->line, item->count, parts);
    return -EINVAL;
  }
  return 0;
}

uint64_t workload_part(const struct workload_item *item, int part, int parts) {
  unsigned run = item->count / (unsigned)parts;
  uint64_t sum = 0;
  for (unsigned i = 0; i < run; i++)
    sum += item->counts[(unsigned)part * run + i];
  return sum;
}

/* Of an uneven alltoall: one side is the same for all ranks, of the other each has a multiple. */
static struct operation_counts split_counts(const struct workload_item *item, int ranks) {
  size_t sum = 0, largest = 0;
  for (int part = 0; part < ranks; part++) {
    size_t count = workload_part(item, part, ranks);
    sum += count;
    largest = count > largest ? count : largest;
  }
  size_t other = largest * (size_t)ranks;
  return (struct operation_counts){ .call = sum,
                                    .send = item->is_received ? other : sum,
                                    .recv = item->is_received ? sum : other,
                                    .bytes = sum * element_infos[item->type].size_bytes };
}

struct operation_counts workload_counts(const struct workload *w, const struct workload_item *item,
                                        int ranks) {
  unsigned size = element_infos[item->type].size_bytes;
  int parts = workload_place(w, item->group, ranks, 0).ranks;
  uint64_t larger = item->sent > item->received ? item->sent : item->received;
  if (item->kind == WORKLOAD_EXCHANGE)
    return (struct operation_counts){
      .call = item->sent, .send = item->sent, .recv = item->received, .bytes = larger * size
    };
  if (item->count)
    return split_counts(item, parts);
  bool is_shared = item->operation != OPERATION_ALL_REDUCE;
  uint64_t share = (item->elements + (uint64_t)parts - 1) / (uint64_t)parts;
  return operation_count_call(item->operation, is_shared ? share : item->elements, size, parts);
}

struct workload_sum workload_sum(const struct workload *w, int ranks) {
  struct workload_sum sum = { 0 };
  for (size_t i = 0; i < w->count; i++) {
    const struct workload_item *item = &w->items[i];
    if (!workload_communicates(item))
      continue;
    struct operation_counts counts = workload_counts(w, item, ranks);
    uint64_t room = (counts.send > counts.recv ? counts.send : counts.recv) *
                    element_infos[item->type].size_bytes;
    sum.buffer_bytes = room > sum.buffer_bytes ? room : sum.buffer_bytes;
    sum.bytes += workload_applies(w, item, 0) ? counts.bytes : 0;
    sum.collectives += workload_applies(w, item, 0);
  }
  return sum;
}
