/* SPDX-License-Identifier: Apache-2.0 */
/* replay_load: splits the list, finds each file, makes each plan. */
#include "tuner_plugin/tools/coll/replay/replay_load.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/tools/coll/replay/deadlock.h"

static int no_memory(char *error) {
  snprintf(error, WORKLOAD_ERROR_MAX, "out of memory");
  return -ENOMEM;
}

static int make_plan(struct replay_part *part, const struct options *options, int ranks,
                     char *error) {
  const struct plan_settings settings = { .ranks = ranks,
                                          .compute_scale = options->compute_scale,
                                          .bytes_scale = options->bytes_scale,
                                          .bucket_bytes = options->bucket_bytes };
  int64_t count = plan_make(&part->workload, &settings, NULL, 0, error);
  if (count < 0)
    return (int)count;
  part->count = (size_t)count;
  part->items = calloc(part->count + 1, sizeof *part->items);
  if (!part->items)
    return no_memory(error);
  plan_make(&part->workload, &settings, part->items, part->count, error);
  part->sum = plan_sum(&part->workload, part->items, part->count, ranks, 0);
  return deadlock_check(&part->workload, part->items, part->count, ranks, error);
}

static int load_part(struct replay_part *part, const char *argument, const struct options *options,
                     int ranks, char *error) {
  char path[PATH_MAX];
  int result = workload_find(argument, path, error);
  if (result == 0)
    result = workload_read(&part->workload, path, error);
  if (result == 0 && ranks > 0)
    result = make_plan(part, options, ranks, error);
  return result;
}

int replay_load(struct replay *replay, const struct options *options, int ranks, char *error) {
  size_t parts = 1;
  for (const char *c = options->replay; *c; c++)
    parts += *c == ',';
  char *list = strdup(options->replay), *rest = list;
  *replay = (struct replay){ .ranks = ranks, .parts = calloc(parts, sizeof *replay->parts) };
  int result = list && replay->parts ? 0 : no_memory(error);
  for (char *argument; result == 0 && (argument = strsep(&rest, ",")); replay->part_count++)
    result = load_part(&replay->parts[replay->part_count], argument, options, ranks, error);
  free(list);
  if (result < 0)
    replay_unload(replay);
  return result;
}

void replay_unload(struct replay *replay) {
  for (size_t i = 0; i < replay->part_count; i++) {
    workload_free(&replay->parts[i].workload);
    free(replay->parts[i].items);
  }
  free(replay->parts);
  *replay = (struct replay){ 0 };
}

void replay_print(const struct replay *replay, FILE *to) {
  char text[PLAN_TEXT_MAX];
  for (size_t i = 0; i < replay->part_count; i++) {
    const struct replay_part *part = &replay->parts[i];
    fprintf(to, "workload %s %s %d %d\n", part->workload.name,
            workload_parallel_names[part->workload.parallel], part->workload.batch, replay->ranks);
    for (size_t item = 0; item < part->count; item++)
      fprintf(to, "%s\n", plan_text(&part->workload, &part->items[item], replay->ranks, text));
  }
}
