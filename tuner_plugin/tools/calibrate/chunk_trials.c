/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the fastest cells of each size, and lists the chunk sizes to try with them. */
#include "tuner_plugin/tools/calibrate/chunk_trials.h"

#include <string.h>

/* A cell that is this much slower than the fastest will not be the fastest by its chunks. */
static const double hopeless = 1.25;

static struct chunk_trials_size *find_or_add(struct chunk_trials *trials, uint64_t bytes) {
  for (size_t i = 0; i < trials->count; i++) {
    if (trials->sizes[i].bytes == bytes) {
      return &trials->sizes[i];
    }
  }
  return trials->count < PLAN_ENTRIES_MAX ? &trials->sizes[trials->count++] : NULL;
}

/* NCCL's own number of channels may be one that was asked for, too. */
static bool has_site(const struct chunk_trials_size *size, const struct chunks_site *site) {
  for (size_t i = 0; i < size->count; i++) {
    if (size->sites[i].algorithm == site->algorithm && size->sites[i].protocol == site->protocol &&
        size->sites[i].own.channels == site->own.channels) {
      return true;
    }
  }
  return false;
}

/* Microseconds of each cell whose chunk is NCCL's own and known; 0 of the others. */
static void list_times(const struct label_entry *entry, const struct label_times *times,
                       double us[SCHEDULE_CELLS_MAX]) {
  for (size_t i = 0; i < times->count; i++) {
    const struct label_cell *cell = &times->cells[i];
    bool is_known = cell->count > 0 && cell->cell.chunk == 0 && entry->own[i].channels > 0;
    us[i] = is_known ? cell->summary.median_us : 0;
  }
}

/* The place of the least that is not 0, or `count`. */
static size_t find_least(const double *us, size_t count) {
  size_t least = count;
  for (size_t i = 0; i < count; i++) {
    if (us[i] > 0 && (least == count || us[i] < us[least])) {
      least = i;
    }
  }
  return least;
}

void chunk_trials_add(struct chunk_trials *trials, const struct label_entry *entry,
                      const struct label_times *times, size_t cells) {
  struct chunk_trials_size *size = entry->is_chunk_known ? find_or_add(trials, entry->bytes) : NULL;
  if (!size) {
    return;
  }
  *size = (struct chunk_trials_size){ .bytes = entry->bytes };
  for (size_t i = 0; i < times->count; i++) {
    uint32_t *slot = &trials->slots[times->cells[i].cell.algorithm][times->cells[i].cell.protocol];
    *slot = entry->own[i].chunk > *slot ? entry->own[i].chunk : *slot;
  }
  double us[SCHEDULE_CELLS_MAX], least_us = 0;
  list_times(entry, times, us);
  cells = cells < CHUNK_TRIALS_CELLS_MAX ? cells : CHUNK_TRIALS_CELLS_MAX;
  for (size_t i; size->count < cells && (i = find_least(us, times->count)) < times->count;) {
    least_us = least_us > 0 ? least_us : us[i];
    if (us[i] > hopeless * least_us) {
      break;
    }
    us[i] = 0;
    struct chunks_site site = {
      .collective = entry->collective,
      .algorithm = (enum profile_algorithm)times->cells[i].cell.algorithm,
      .protocol = (enum profile_protocol)times->cells[i].cell.protocol,
      .bytes = entry->bytes,
      .ranks = entry->ranks,
      .own = entry->own[i],
    };
    if (!has_site(size, &site)) {
      size->sites[size->count++] = site;
    }
  }
}

static void append(char *text, struct schedule_cell cell) {
  char word[PLAN_CELL_TEXT_MAX];
  strcat(strcat(text, text[0] ? "," : ""), plan_format_cell(cell, word));
}

bool chunk_trials_format(const struct chunk_trials *trials, size_t place,
                         char text[CHUNK_TRIALS_TEXT_MAX]) {
  const struct chunk_trials_size *size = &trials->sizes[place];
  text[0] = '\0';
  for (size_t i = 0; i < size->count; i++) {
    struct chunks_site site = size->sites[i];
    uint32_t chunks[CHUNKS_TRIED_MAX];
    site.slot = trials->slots[site.algorithm][site.protocol];
    size_t count = chunks_around(&site, chunks);
    struct schedule_cell cell = {
      .algorithm = (uint8_t)site.algorithm,
      .protocol = (uint8_t)site.protocol,
      .channels = (uint16_t)site.own.channels,
    };
    if (count > 0) {
      append(text, cell); /* what the chunks are compared with, in the same launch */
    }
    for (size_t k = 0; k < count; k++) {
      cell.chunk = chunks[k];
      append(text, cell);
    }
  }
  return text[0] != '\0';
}
