/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last launch of each size and its undecided cells; writes plans. */
#include "tuner_plugin/tools/calibrate/launch_plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct launch_plan_size *launch_plan_find(struct launch_plan *launch_plan, uint64_t bytes) {
  for (size_t i = 0; i < launch_plan->count; i++) {
    if (launch_plan->sizes[i].bytes == bytes) {
      return &launch_plan->sizes[i];
    }
  }
  return NULL;
}

void launch_plan_begin(struct launch_plan *launch_plan, const uint64_t *sizes, size_t count) {
  launch_plan->count = count < PLAN_ENTRIES_MAX ? count : PLAN_ENTRIES_MAX;
  for (size_t i = 0; i < launch_plan->count; i++) {
    launch_plan->sizes[i] = (struct launch_plan_size){ .bytes = sizes[i] };
  }
}

static void add_cell(struct plan_entry *entry, struct schedule_cell cell) {
  if (!schedule_has_cell(entry->cells, entry->cell_count, cell) &&
      entry->cell_count < SCHEDULE_CELLS_MAX - 1) {
    entry->cells[entry->cell_count++] = cell;
  }
}

void launch_plan_add(struct launch_plan *launch_plan, int64_t launch,
                     const struct label_entry *entry, const struct label_times *times) {
  struct launch_plan_size *size = launch_plan_find(launch_plan, entry->bytes);
  if (!size) {
    return;
  }
  size->launch = launch;
  size_t kept[SCHEDULE_CELLS_MAX];
  size->contested = (struct plan_entry){ .collective = entry->collective, .bytes = entry->bytes };
  pruning_add(&size->pruning, times);
  size_t count = pruning_kept(&size->pruning, kept);
  for (size_t i = 0; i < count; i++) {
    add_cell(&size->contested, size->pruning.cells[kept[i]].cell);
  }
}

/* ---- samples ---- */

int64_t launch_plan_launch_of(const char *run, const char *id) {
  size_t length = strlen(id);
  const char *last = strrchr(run, '-');
  bool is_ours = strncmp(run, id, length) == 0 && run[length] == '-' && last > run + length;
  return is_ours ? strtoll(last + 1, NULL, 10) : 0;
}

void launch_plan_name_run(const char *id, uint64_t time, int64_t launch,
                          char run[SAMPLE_WORD_MAX]) {
  snprintf(run, SAMPLE_WORD_MAX, "%s-%" PRIu64 "-%" PRId64, id, time, launch);
}

/* NCCL's own choice is the first cell, whether it has a sample or not. */
static void add_sample(struct label_times *times, const struct sample *sample) {
  if (!sample->is_default && times->count == SCHEDULE_CELLS_MAX) {
    return;
  }
  size_t place = sample->is_default ? 0 : times->count++;
  times->cells[place] = (struct label_cell){
    .cell = { .algorithm = (uint8_t)sample->algorithm,
              .protocol = (uint8_t)sample->protocol,
              .channels = (uint16_t)sample->channels },
    .count = sample->n,
    .summary = { sample->median_us, sample->mad_us },
  };
}

static bool is_of(const struct launch_plan *launch_plan, const struct sample *sample,
                  uint64_t bytes) {
  return sample->collective == launch_plan->collective && sample->bytes == bytes;
}

/* The last run that measured the size in this launch, or NULL. */
static const char *find_run(const struct launch_plan *launch_plan, const struct sample_file *file,
                            const char *id, uint64_t bytes, int64_t launch) {
  for (size_t i = file->count; i-- > 0;) {
    const struct sample *sample = &file->samples[i];
    if (is_of(launch_plan, sample, bytes) && launch_plan_launch_of(sample->run, id) == launch) {
      return sample->run;
    }
  }
  return NULL;
}

static void resume(struct launch_plan *launch_plan, const struct sample_file *file, const char *run,
                   uint64_t bytes, int64_t launch) {
  struct label_entry entry = { .collective = launch_plan->collective, .bytes = bytes };
  struct label_times times = { .count = 1 };
  for (size_t i = 0; i < file->count; i++) {
    const struct sample *sample = &file->samples[i];
    if (is_of(launch_plan, sample, bytes) && strcmp(sample->run, run) == 0) {
      add_sample(&times, sample);
    }
  }
  launch_plan_add(launch_plan, launch, &entry, &times);
}

void launch_plan_resume(struct launch_plan *launch_plan, const struct sample_file *file,
                        const char *id) {
  for (size_t i = 0; i < launch_plan->count; i++) {
    uint64_t bytes = launch_plan->sizes[i].bytes;
    for (int64_t launch = 1; launch <= launch_plan->rounds; launch++) {
      const char *run = find_run(launch_plan, file, id, bytes, launch);
      if (run) {
        resume(launch_plan, file, run, bytes, launch);
      }
    }
  }
}

/* ---- plans ---- */

static void append(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...) {
  size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, room - length, format, arguments);
  va_end(arguments);
}

enum { CELLS_TEXT_MAX = SCHEDULE_CELLS_MAX * PLAN_CELL_TEXT_MAX };

/* "all", or "default,ring.ll,tree.simple@2" */
static void write_entry(const struct plan_entry *entry, char cells[CELLS_TEXT_MAX]) {
  strcpy(cells, entry->is_all ? "all" : "default");
  for (size_t i = 0; i < entry->cell_count; i++) {
    char cell[PLAN_CELL_TEXT_MAX];
    append(cells, CELLS_TEXT_MAX, ",%s", plan_format_cell(entry->cells[i], cell));
  }
}

static bool is_close(uint64_t a, uint64_t b) {
  return a / LAUNCH_PLAN_CLOSE <= b && b / LAUNCH_PLAN_CLOSE <= a;
}

/* The undecided cells of a size, and the fastest cells of sizes close by, if NCCL offers them here.
 */
static struct plan_entry share_leaders(const struct launch_plan *launch_plan,
                                       const struct launch_plan_size *size) {
  struct plan_entry entry = size->contested;
  for (size_t i = 0; i < launch_plan->count; i++) {
    const struct plan_entry *other = &launch_plan->sizes[i].contested;
    if (is_close(size->bytes, launch_plan->sizes[i].bytes) && other->cell_count > 0 &&
        pruning_find(&size->pruning, other->cells[0])) {
      add_cell(&entry, other->cells[0]);
    }
  }
  return entry;
}

/* What a size tries in this launch; false: nothing. */
static bool write_cells(const struct launch_plan *launch_plan, const struct launch_plan_size *size,
                        int64_t launch, char cells[CELLS_TEXT_MAX]) {
  if (size->launch != launch - 1) {
    return false;
  }
  static const struct plan_entry every = { .is_all = true };
  bool is_unknown =
      size->pruning.launches == 0; /* too few calls for NCCL's own choice to have one */
  struct plan_entry contested = share_leaders(launch_plan, size);
  write_entry(is_unknown ? &every : &contested, cells);
  return is_unknown || size->contested.cell_count > 0;
}

size_t launch_plan_format(const struct launch_plan *launch_plan, int64_t launch, uint64_t *sizes,
                          char *plan, size_t plan_bytes) {
  char cells[CELLS_TEXT_MAX];
  size_t count = 0;
  for (size_t i = 0; i < launch_plan->count; i++) {
    uint64_t bytes = launch_plan->sizes[i].bytes;
    if (!write_cells(launch_plan, &launch_plan->sizes[i], launch, cells)) {
      continue;
    }
    if (sizes) {
      sizes[count] = bytes;
    }
    count++;
    if (plan) {
      append(plan, plan_bytes, "/%s:%" PRIu64 "=%s",
             profile_collective_name(launch_plan->collective), bytes, cells);
    }
  }
  return count;
}

size_t launch_plan_count_due(const struct launch_plan *launch_plan) {
  size_t count = 0;
  for (int64_t launch = 1; launch <= launch_plan->rounds; launch++) {
    count += launch_plan_format(launch_plan, launch, NULL, NULL, 0);
  }
  return count;
}
