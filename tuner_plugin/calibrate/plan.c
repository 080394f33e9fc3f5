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

static int read_cell(struct reader *reader, const char *word, struct plan_entry *entry) {
  if (strcmp(word, "all") == 0) {
    entry->is_all = true;
    return 0;
  }
  if (strcmp(word, "default") == 0) {
    return 0;
  }
  size_t room = sizeof entry->cells / sizeof entry->cells[0];
  if (entry->cell_count == room) {
    return fail(reader, "more than %zu cells for one size", room);
  }
  if (plan_parse_cell(word, &entry->cells[entry->cell_count]) < 0) {
    return fail(reader,
                "\"%s\" is no cell; accepted: all, default, or as in tree.ll, ring.simple@2", word);
  }
  entry->cell_count++;
  return 0;
}

/* Calls `read` for each word up to one of `ends`. */
static int read_list(struct reader *reader, const char *text, const char *ends,
                     int (*read)(struct reader *reader, const char *word, struct plan_entry *entry),
                     struct plan_entry *entry) {
  for (;;) {
    char word[WORD_MAX];
    if (!take_word(text, ends, word, &text)) {
      return fail(reader, "too long: %.40s", text);
    }
    int result = read(reader, word, entry);
    if (result < 0 || *text != ',') {
      return result;
    }
    text++;
  }
}

/* ---- a collective and its sizes ---- */

static int read_size(struct reader *reader, const char *word, struct plan_entry *entry) {
  struct plan *plan = reader->plan;
  if (quantity_parse_size(word, &entry->bytes) < 0) {
    return fail(reader, "a size is wanted, as in 8, 64K, 4M, not \"%s\"", word);
  }
  if (plan->entry_count == PLAN_ENTRIES_MAX) {
    return fail(reader, "more than %d sizes", PLAN_ENTRIES_MAX);
  }
  if (plan_find(plan, (int)entry->collective, entry->bytes) >= 0) {
    return fail(reader, "%s of %llu bytes comes twice", profile_collective_name(entry->collective),
                (unsigned long long)entry->bytes);
  }
  plan->entries[plan->entry_count++] = *entry;
  return 0;
}

/* "allreduce:8,64K=*" */
static int read_collective(struct reader *reader, const char *text) {
  struct plan_entry entry = { 0 };
  char word[WORD_MAX];
  const char *sizes;
  if (!take_word(text, ":=/", word, &sizes) || *sizes != ':') {
    return fail(reader, "\"%.40s\": accepted: seed=, run=, channels=, or COLLECTIVE:SIZES=", text);
  }
  int collective = quantity_find_word(PROFILE_COLLECTIVE_WORDS, word);
  if (collective < 0) {
    return fail(reader, "\"%s\" is no collective; accepted: %s", word, PROFILE_COLLECTIVE_WORDS);
  }
  entry.collective = (enum profile_collective)collective;
  const char *cells = sizes + strcspn(sizes, "=/");
  if (*cells != '=') {
    return fail(reader, "%s: = and what to try are missing", word);
  }
  int result = read_list(reader, cells + 1, ",/", read_cell, &entry);
  return result < 0 ? result : read_list(reader, sizes + 1, ",=", read_size, &entry);
}

/* ---- settings ---- */

static int read_channels(struct reader *reader, const char *word, struct plan_entry *entry) {
  struct plan *plan = reader->plan;
  int64_t channels;
  (void)entry;
  if (quantity_parse_int(word, &channels) < 0 || channels < 0 || channels > PROFILE_CHANNELS_MAX ||
      plan->channel_count == PLAN_CHANNELS_MAX) {
    return fail(reader, "channels= takes up to %d numbers from 0 to %d", PLAN_CHANNELS_MAX,
                PROFILE_CHANNELS_MAX);
  }
  plan->channels[plan->channel_count++] = (uint16_t)channels;
  return 0;
}

static int read_setting(struct reader *reader, const char *name, const char *value) {
  struct plan *plan = reader->plan;
  char word[WORD_MAX];
  const char *end;
  int64_t number;
  if (strcmp(name, "channels") == 0) {
    plan->channel_count = 0;
    return read_list(reader, value, ",/", read_channels, NULL);
  }
  if (!take_word(value, "/", word, &end)) {
    return fail(reader, "%s=: too long", name);
  }
  if (quantity_parse_int(word, &number) < 0 || number < 0) {
    return fail(reader, "%s= takes a number, not \"%s\"", name, word);
  }
  if (strcmp(name, "seed") == 0) {
    plan->seed = (uint64_t)number;
    return 0;
  }
  plan->run = (uint32_t)number;
  return number >= 1 && number <= PLAN_RUN_MAX
             ? 0
             : fail(reader, "run= takes 1 to %d, not %s", PLAN_RUN_MAX, word);
}

int plan_parse(const char *text, struct plan_entry *entries, struct plan *plan,
               char error[PLAN_ERROR_MAX]) {
  struct reader reader = { plan, error };
  *plan = (struct plan){
    .run = PLAN_RUN,
    .channel_count = 1,
    .entries = entries,
  };
  for (;;) {
    char word[WORD_MAX];
    const char *next;
    bool is_setting = take_word(text, "=:/", word, &next) && *next == '=' &&
                      quantity_find_word("seed|run|channels", word) >= 0;
    int result =
        is_setting ? read_setting(&reader, word, next + 1) : read_collective(&reader, text);
    if (result < 0) {
      return result;
    }
    text += strcspn(text, "/");
    if (*text == '\0') {
      break;
    }
    text++;
  }
  return plan->entry_count > 0 ? 0 : fail(&reader, "no collective is named");
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
  if (!schedule_has_cell(set->cells, set->count, cell) && set->count < SCHEDULE_CELLS_MAX) {
    set->cells[set->count++] = cell;
  }
}

/* CollNet takes a number of channels as it is, also one that the communicator does not have. */
static bool can_bound_channels(unsigned algorithm) {
  return algorithm != PROFILE_COLLNET_DIRECT && algorithm != PROFILE_COLLNET_CHAIN;
}

static bool is_offered(struct schedule_cell cell, struct decide_costs costs, double cheapest) {
  double cost = (double)costs_at(costs, cell.algorithm, cell.protocol);
  return cost >= 0 && cost <= cheapest * SCHEDULE_COST_FACTOR_MAX &&
         (cell.channels == 0 || can_bound_channels(cell.algorithm));
}

static bool is_pruned(uint64_t bytes, struct schedule_cell cell, struct schedule_cell chosen,
                      double cost, double cheapest) {
  if (cell.algorithm == chosen.algorithm && cell.protocol == chosen.protocol) {
    return false;
  }
  return (cell.protocol == PROFILE_LL && bytes > PLAN_LL_BYTES) ||
         cost > cheapest * PLAN_COST_FACTOR;
}

void plan_open(const struct plan *plan, const struct plan_entry *entry, struct decide_costs costs,
               struct schedule_set *set) {
  struct costs_choice usual;
  *set = (struct schedule_set){ 0 };
  if (!costs_choose(costs, &usual) || usual.cell == COSTS_UNKNOWN_CELL) {
    return;
  }
  struct schedule_cell chosen = { .algorithm = (uint8_t)costs_cell_algorithm(usual.cell),
                                  .protocol = (uint8_t)costs_cell_protocol(usual.cell) };
  double cheapest = (double)usual.us;
  add_open(set, chosen);
  for (size_t i = 0; i < entry->cell_count; i++) {
    if (is_offered(entry->cells[i], costs, cheapest)) {
      add_open(set, entry->cells[i]);
    }
  }
  for (unsigned i = 0; entry->is_all && i < plan->channel_count * COSTS_CELLS; i++) {
    struct schedule_cell cell = { .algorithm = (uint8_t)costs_cell_algorithm(i % COSTS_CELLS),
                                  .protocol = (uint8_t)costs_cell_protocol(i % COSTS_CELLS),
                                  .channels = plan->channels[i / COSTS_CELLS] };
    double cost = (double)costs_at(costs, cell.algorithm, cell.protocol);
    if (is_offered(cell, costs, cheapest) &&
        !is_pruned(entry->bytes, cell, chosen, cost, cheapest)) {
      add_open(set, cell);
    }
  }
}
