/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the environment into a table of values, row by row of common/param_table.h. */
#include "common/param.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/quantity.h"

enum param_type {
  PARAM_TYPE_BOOL,
  PARAM_TYPE_INT,
  PARAM_TYPE_SIZE,
  PARAM_TYPE_DURATION,
  PARAM_TYPE_ENUM,
  PARAM_TYPE_STRING,
  PARAM_TYPE_SECRET,
};

struct param_row {
  const char *name;
  enum param_type type;
  const char *default_text;
  const char *accepted;
  const char *unit;
  const char *plugin;
  const char *help;
};

#define PARAM_PLUGIN_NET "net"
#define PARAM_PLUGIN_TUNER "tuner"
#define PARAM_PLUGIN_BOTH "both"

static const struct param_row rows[PARAM_COUNT] = {
#define PARAM_ROW(name, type, default_text, accepted, unit, plugin, help)                          \
  {                                                                                                \
    "STRATUS_" #name, PARAM_TYPE_##type, default_text, accepted, unit, PARAM_PLUGIN_##plugin, help \
  },
  PARAM_TABLE(PARAM_ROW)
#undef PARAM_ROW
};

struct param_value {
  int64_t number; /* all types but strings; size and duration are checked to fit */
  char *string;   /* allocated; NULL stands for the default */
  bool is_set;
};

static struct param_value values[PARAM_COUNT];
static pthread_once_t values_once = PTHREAD_ONCE_INIT;

static const char name_prefix[] = "STRATUS_";
static const char test_prefix[] = "STRATUS_TEST_";

static bool is_text(const struct param_row *row) {
  return row->type == PARAM_TYPE_STRING || row->type == PARAM_TYPE_SECRET;
}

/* ---- parsing ---- */

/* The number that stands for `text` in this type. */
static int parse_number(const struct param_row *row, const char *text, int64_t *number) {
  uint64_t magnitude;
  bool flag;
  int result;
  switch (row->type) {
  case PARAM_TYPE_BOOL:
    result = quantity_parse_bool(text, &flag);
    *number = result == 0 && flag;
    return result;
  case PARAM_TYPE_INT:
    return quantity_parse_int(text, number);
  case PARAM_TYPE_SIZE:
    result = quantity_parse_size(text, &magnitude);
    break;
  case PARAM_TYPE_DURATION:
    result = quantity_parse_duration(text, &magnitude);
    break;
  case PARAM_TYPE_ENUM:
    *number = quantity_find_word(row->accepted, text);
    return *number < 0 ? -EINVAL : 0;
  default:
    return -EINVAL;
  }
  if (result < 0) {
    return result;
  }
  if (magnitude > INT64_MAX) {
    return -ERANGE;
  }
  *number = (int64_t)magnitude;
  return 0;
}

/* Whether the number lies in "0|4K..4M". The alternatives are our own text, so they parse; a unit
 * test loads every row. */
static bool is_number_accepted(const struct param_row *row, int64_t number) {
  if (row->accepted[0] == '\0' || row->type == PARAM_TYPE_ENUM) {
    return true;
  }
  char copy[128];
  snprintf(copy, sizeof copy, "%s", row->accepted);
  char *rest = copy;
  for (char *choice; (choice = strsep(&rest, "|"));) {
    char *dots = strstr(choice, "..");
    const char *high_text = dots ? dots + 2 : choice;
    if (dots) {
      *dots = '\0';
    }
    int64_t low = 0;
    int64_t high = -1;
    if (parse_number(row, choice, &low) == 0 && parse_number(row, high_text, &high) == 0 &&
        number >= low && number <= high) {
      return true;
    }
  }
  return false;
}

static const char *accepted_text(const struct param_row *row) {
  if (row->accepted[0] != '\0') {
    return row->accepted;
  }
  switch (row->type) {
  case PARAM_TYPE_BOOL:
    return "0|1";
  case PARAM_TYPE_STRING:
  case PARAM_TYPE_SECRET:
    return "any text";
  default:
    return "any number";
  }
}

/* Fills in `value` from the user's text; false if the text is bad. */
static bool parse_value(const struct param_row *row, const char *text, struct param_value *value) {
  if (is_text(row)) {
    value->string = strdup(text);
    return value->string != NULL;
  }
  int64_t number;
  if (parse_number(row, text, &number) < 0 || !is_number_accepted(row, number)) {
    return false;
  }
  value->number = number;
  return true;
}

static const char *find_in_environment(char *const *environment, const char *name) {
  size_t length = strlen(name);
  for (; *environment; environment++) {
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
      return *environment + length + 1;
    }
  }
  return NULL;
}

static void load_row(const struct param_row *row, const char *text, struct param_value *value) {
  free(value->string);
  *value = (struct param_value){ 0 };
  if (!is_text(row)) {
    int result = parse_number(row, row->default_text, &value->number);
    assert(result == 0 && is_number_accepted(row, value->number));
    (void)result;
  }
  /* An empty variable counts as not set, as it does for NCCL. */
  if (!text || text[0] == '\0') {
    return;
  }
  value->is_set = parse_value(row, text, value);
  if (!value->is_set) {
    LOG_WARN("%s=%s is not accepted; it takes %s%s%s. The default, %s, is kept.", row->name,
             row->type == PARAM_TYPE_SECRET ? "..." : text, accepted_text(row),
             row->unit[0] ? " " : "", row->unit,
             row->default_text[0] ? row->default_text : "empty");
  }
}

static void load_all(char *const *environment) {
  for (int id = 0; id < PARAM_COUNT; id++) {
    load_row(&rows[id], find_in_environment(environment, rows[id].name), &values[id]);
  }
}

static void load_process_environment(void) {
  load_all(environ);
}

void param_init(void) {
  pthread_once(&values_once, load_process_environment);
}

void param_load(char *const *environment) {
  param_init();
  load_all(environment);
}

/* ---- getters ---- */

static const struct param_value *value_of(enum param_id id, enum param_type type) {
  assert(id < PARAM_COUNT && rows[id].type == type);
  (void)type;
  param_init();
  return &values[id];
}

bool param_bool(enum param_id id) {
  return value_of(id, PARAM_TYPE_BOOL)->number != 0;
}

int64_t param_int(enum param_id id) {
  return value_of(id, PARAM_TYPE_INT)->number;
}

uint64_t param_size(enum param_id id) {
  return (uint64_t)value_of(id, PARAM_TYPE_SIZE)->number;
}

uint64_t param_duration_ns(enum param_id id) {
  return (uint64_t)value_of(id, PARAM_TYPE_DURATION)->number;
}

int param_enum(enum param_id id) {
  return (int)value_of(id, PARAM_TYPE_ENUM)->number;
}

const char *param_string(enum param_id id) {
  assert(id < PARAM_COUNT && is_text(&rows[id]));
  const struct param_value *value = value_of(id, rows[id].type);
  return value->string ? value->string : rows[id].default_text;
}

bool param_is_set(enum param_id id) {
  assert(id < PARAM_COUNT);
  param_init();
  return values[id].is_set;
}

const char *param_name(enum param_id id) {
  assert(id < PARAM_COUNT);
  return rows[id].name;
}

/* ---- unknown names ---- */

enum { NAME_MAX_COMPARED = 64 };

static int min3(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

/* Levenshtein distance of the two names; what is over NAME_MAX_COMPARED bytes is not looked at. */
static int edit_distance(const char *a, size_t a_length, const char *b) {
  int row[NAME_MAX_COMPARED + 1];
  size_t b_length = strnlen(b, NAME_MAX_COMPARED);
  a_length = a_length < NAME_MAX_COMPARED ? a_length : NAME_MAX_COMPARED;
  for (size_t j = 0; j <= b_length; j++) {
    row[j] = (int)j;
  }
  for (size_t i = 1; i <= a_length; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= b_length; j++) {
      int above = row[j];
      int replace = diagonal + (a[i - 1] != b[j - 1]);
      row[j] = min3(above + 1, row[j - 1] + 1, replace);
      diagonal = above;
    }
  }
  return row[b_length];
}

static bool is_known(const char *name, size_t length) {
  for (int id = 0; id < PARAM_COUNT; id++) {
    if (strlen(rows[id].name) == length && memcmp(rows[id].name, name, length) == 0) {
      return true;
    }
  }
  return false;
}

static const char *nearest_name(const char *name, size_t length) {
  int best = 0;
  int best_distance = edit_distance(name, length, rows[0].name);
  for (int id = 1; id < PARAM_COUNT; id++) {
    int distance = edit_distance(name, length, rows[id].name);
    if (distance < best_distance) {
      best = id;
      best_distance = distance;
    }
  }
  return rows[best].name;
}

int param_warn_unknown(char *const *environment) {
  int count = 0;
  for (; *environment; environment++) {
    const char *name = *environment;
    size_t length = strcspn(name, "=");
    if (strncmp(name, name_prefix, sizeof name_prefix - 1) != 0 ||
        strncmp(name, test_prefix, sizeof test_prefix - 1) == 0 || is_known(name, length)) {
      continue;
    }
    LOG_WARN("%.*s is not a variable of stratus and is ignored; the nearest is %s.", (int)length,
             name, nearest_name(name, length));
    count++;
  }
  return count;
}

/* ---- documents ---- */

static void format_value(enum param_id id, char *text, size_t text_bytes) {
  const struct param_row *row = &rows[id];
  const struct param_value *value = &values[id];
  char number[QUANTITY_TEXT_MAX];
  switch (row->type) {
  case PARAM_TYPE_STRING:
    snprintf(text, text_bytes, "%s", value->string ? value->string : row->default_text);
    break;
  case PARAM_TYPE_SECRET:
    snprintf(text, text_bytes, "%s", value->string ? "hidden" : "");
    break;
  case PARAM_TYPE_SIZE:
    snprintf(text, text_bytes, "%s", quantity_format_size((uint64_t)value->number, number));
    break;
  case PARAM_TYPE_DURATION:
    snprintf(text, text_bytes, "%s", quantity_format_duration((uint64_t)value->number, number));
    break;
  case PARAM_TYPE_ENUM: {
    const char *word = row->accepted;
    for (int64_t skip = value->number; skip > 0; skip--) {
      word += strcspn(word, "|") + 1;
    }
    snprintf(text, text_bytes, "%.*s", (int)strcspn(word, "|"), word);
    break;
  }
  default:
    snprintf(text, text_bytes, "%" PRId64, value->number);
  }
}

static void print_list(FILE *to) {
  for (int id = 0; id < PARAM_COUNT; id++) {
    char value[256];
    format_value(id, value, sizeof value);
    fprintf(to, "%-28s %-10s %s%s\n", rows[id].name, value[0] ? value : "-", rows[id].help,
            values[id].is_set ? " (set)" : "");
  }
}

/* In a Markdown table a bar ends the cell, so the alternatives are separated by commas. */
static void print_alternatives(FILE *to, const char *accepted) {
  for (; *accepted; accepted++) {
    if (*accepted == '|') {
      fputs("`, `", to);
    } else {
      fputc(*accepted, to);
    }
  }
}

static void print_accepted(FILE *to, const struct param_row *row) {
  if (is_text(row)) {
    fputs("text", to);
    return;
  }
  fputc('`', to);
  print_alternatives(to, accepted_text(row));
  fprintf(to, "`%s%s", row->unit[0] ? " " : "", row->unit);
}

static void print_markdown(FILE *to) {
  fputs("| variable | default | accepted | read by | meaning |\n", to);
  fputs("|---|---|---|---|---|\n", to);
  for (int id = 0; id < PARAM_COUNT; id++) {
    const struct param_row *row = &rows[id];
    const char *quote = row->default_text[0] ? "`" : "";
    fprintf(to, "| `%s` | %s%s%s | ", row->name, quote, row->default_text, quote);
    print_accepted(to, row);
    fprintf(to, " | %s | %s |\n", row->plugin, row->help);
  }
}

void param_print(FILE *to, enum param_format format) {
  param_init();
  if (format == PARAM_FORMAT_MARKDOWN) {
    print_markdown(to);
  } else {
    print_list(to);
  }
}
