/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a plan, part by part, and says which cells it opens. */
#include "tuner_plugin/calibrate/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"

enum { WORD_MAX = 64 };

struct reader {
  struct plan *plan;
  char *error;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *reader, const char *format,
                                                      ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error, PLAN_ERROR_MAX, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

/* Takes the text up to one of `ends` or the end of it; *next is behind. False if it is too long. */
static bool take_word(const char *text, const char *ends, char word[WORD_MAX], const char **next) {
  size_t length = strcspn(text, ends);
  if (length >= WORD_MAX) {
    return false;
  }
  memcpy(word, text, length);
  word[length] = '\0';
  *next = text + length;
  return true;
}

/* ---- cells ---- */

static int parse_channels(const char *text, struct schedule_cell *cell) {
  int64_t channels;
  if (quantity_parse_int(text, &channels) < 0 || channels < 1 || channels > PROFILE_CHANNELS_MAX) {
    return -EINVAL;
  }
  cell->channels = (uint16_t)channels;
  return 0;
}

int plan_parse_cell(const char *text, struct schedule_cell *cell) {
  char word[WORD_MAX];
  const char *next;
  if (!take_word(text, ".", word, &next) || *next != '.') {
    return -EINVAL;
  }
  int algorithm = quantity_find_word(PROFILE_ALGORITHM_WORDS, word);
  if (!take_word(next + 1, "@", word, &next)) {
    return -EINVAL;
  }
  int protocol = quantity_find_word(PROFILE_PROTOCOL_WORDS, word);
  if (algorithm < 0 || protocol < 0) {
    return -EINVAL;
  }
  *cell = (struct schedule_cell){ .algorithm = (uint8_t)algorithm, .protocol = (uint8_t)protocol };
  return *next == '@' ? parse_channels(next + 1, cell) : 0;
}

const char *plan_format_cell(struct schedule_cell cell, char text[PLAN_CELL_TEXT_MAX]) {
  size_t length = (size_t)snprintf(text, PLAN_CELL_TEXT_MAX, "%s.%s",
                                   profile_algorithm_name((enum profile_algorithm)cell.algorithm),
                                   profile_protocol_name((enum profile_protocol)cell.protocol));
  if (cell.channels > 0) {
    snprintf(text + length, PLAN_CELL_TEXT_MAX - length, "@%u", (unsigned)cell.channels);
  }
  return text;
}

/* ---- parts: a name and a list of words ---- */

enum setting { SETTING_SEED, SETTING_RUN, SETTING_CHANNELS };
#define SETTING_WORDS "seed|run|channels"

static int read_setting(struct reader *reader, enum setting setting, const char *word) {
  static const struct {
    const char *name;
    int64_t low, high;
  } limits[] = { { "seed", 0, INT64_MAX },
                 { "run", 1, PLAN_RUN_MAX },
                 { "channels", 0, PROFILE_CHANNELS_MAX } };
  struct plan *plan = reader->plan;
  int64_t number;
  if (quantity_parse_int(word, &number) < 0 || number < limits[setting].low ||
      number > limits[setting].high) {
    return fail(reader, "%s= takes %lld to %lld, not \"%s\"", limits[setting].name,
                (long long)limits[setting].low, (long long)limits[setting].high, word);
  }
  if (setting == SETTING_SEED) {
    plan->seed = (uint64_t)number;
  } else if (setting == SETTING_RUN) {
    plan->run = (uint32_t)number;
  } else if (plan->channel_count == PLAN_CHANNELS_MAX) {
    return fail(reader, "channels= takes up to %d numbers", PLAN_CHANNELS_MAX);
  } else {
    plan->channels[plan->channel_count++] = (uint16_t)number;
  }
  return 0;
}

static int read_size(struct reader *reader, enum profile_collective collective, const char *word) {
  struct plan *plan = reader->plan;
  struct plan_entry entry = { .collective = collective };
  if (quantity_parse_size(word, &entry.bytes) < 0) {
    return fail(reader, "a size is wanted, as in 8, 64K, 4M, not \"%s\"", word);
  }
  if (plan->entry_count == PLAN_ENTRIES_MAX) {
    return fail(reader, "more than %d sizes", PLAN_ENTRIES_MAX);
  }
  if (plan_find(plan, (int)collective, entry.bytes) >= 0) {
    return fail(reader, "%s of %llu bytes comes twice", profile_collective_name(collective),
                (unsigned long long)entry.bytes);
  }
  plan->entries[plan->entry_count++] = entry;
  return 0;
}

/* "channels=0,2" or "allreduce:8,64K"; *text is behind it. */
static int read_part(struct reader *reader, const char **text) {
  char name[WORD_MAX] = "", word[WORD_MAX];
  const char *at = *text;
  bool is_name = take_word(at, "=:/", name, &at);
  int setting = *at == '=' ? quantity_find_word(SETTING_WORDS, name) : -1;
  int collective = *at == ':' ? quantity_find_word(PROFILE_COLLECTIVE_WORDS, name) : -1;
  if (!is_name || (setting < 0 && collective < 0)) {
    return fail(reader, "\"%.40s\": accepted: seed=, run=, channels=, or COLLECTIVE:SIZES of %s",
                *text, PROFILE_COLLECTIVE_WORDS);
  }
  if (setting == SETTING_CHANNELS) {
    reader->plan->channel_count = 0;
  }
  int result = 0;
  do {
    if (!take_word(at + 1, ",/", word, &at)) {
      return fail(reader, "too long: %.40s", at + 1);
    }
    result = setting >= 0 ? read_setting(reader, (enum setting)setting, word)
                          : read_size(reader, (enum profile_collective)collective, word);
  } while (result == 0 && *at == ',');
  *text = at;
  return result;
}

int plan_parse(const char *text, struct plan_entry *entries, struct plan *plan,
               char error[PLAN_ERROR_MAX]) {
  struct reader reader = { plan, error };
  *plan = (struct plan){ .run = PLAN_RUN, .channel_count = 1, .entries = entries };
  int result = read_part(&reader, &text);
  while (result == 0 && *text == '/') {
    text++;
    result = read_part(&reader, &text);
  }
  return result == 0 && plan->entry_count == 0 ? fail(&reader, "no collective is named") : result;
}

int plan_find(const struct plan *plan, int collective, uint64_t bytes) {
  for (size_t i = 0; i < plan->entry_count; i++) {
    if ((int)plan->entries[i].collective == collective && plan->entries[i].bytes == bytes) {
      return (int)i;
    }
  }
  return -1;
}

/* ---- what is open ---- */

static void add_open(struct schedule_set *set, struct schedule_cell cell) {
  for (size_t i = 0; i < set->count; i++) {
    if (schedule_is_same_cell(set->cells[i], cell)) {
      return;
    }
  }
  if (set->count < SCHEDULE_CELLS_MAX) {
    set->cells[set->count++] = cell;
  }
}

/* CollNet takes a number of channels as it is, also one that the communicator does not have. */
static bool can_bound_channels(unsigned algorithm) {
  return algorithm != PROFILE_COLLNET_DIRECT && algorithm != PROFILE_COLLNET_CHAIN;
}

void plan_open(const struct plan *plan, uint64_t bytes, struct decide_costs costs,
               struct schedule_set *set) {
  struct costs_choice usual;
  *set = (struct schedule_set){ 0 };
  if (!costs_choose(costs, &usual) || usual.cell == COSTS_UNKNOWN_CELL) {
    return;
  }
  add_open(set, (struct schedule_cell){ .algorithm = (uint8_t)costs_cell_algorithm(usual.cell),
                                        .protocol = (uint8_t)costs_cell_protocol(usual.cell) });
  for (unsigned i = 0; i < plan->channel_count * COSTS_CELLS; i++) {
    struct schedule_cell cell = { .algorithm = (uint8_t)costs_cell_algorithm(i % COSTS_CELLS),
                                  .protocol = (uint8_t)costs_cell_protocol(i % COSTS_CELLS),
                                  .channels = plan->channels[i / COSTS_CELLS] };
    double cost = (double)costs_at(costs, cell.algorithm, cell.protocol);
    bool is_usual = i % COSTS_CELLS == usual.cell;
    bool is_hopeless = (cell.protocol == PROFILE_LL && bytes > PLAN_LL_BYTES) ||
                       cost > (double)usual.us * PLAN_COST_FACTOR;
    if (cost >= 0 && (is_usual || !is_hopeless) &&
        (cell.channels == 0 || can_bound_channels(cell.algorithm))) {
      add_open(set, cell);
    }
  }
}
