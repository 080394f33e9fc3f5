/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the environment into a table of values, row by row of common/param_table.h. */
#include "common/param.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/nccl_conf.h"
#include "common/quantity.h"
#include "common/version.h"

/* The consequence of a bad value. */
enum param_duty { PARAM_DUTY_PLAIN, PARAM_DUTY_PROTECTS };

struct param_row {
  const char *name;
  enum quantity_type type;
  const char *default_text;
  const char *accepted;
  const char *unit;
  enum param_duty duty;
  const char *help;
};

static const struct param_row rows[PARAM_COUNT] = {
#define PARAM_ROW(name, type, default_text, accepted, unit, plugin, duty, help)                    \
  { "STRATUS_" #name, QUANTITY_##type, default_text, accepted, unit, PARAM_DUTY_##duty, help },
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

/* Values quoted in it are truncated. */
enum { REFUSAL_MAX = 512 };
static char refusal[REFUSAL_MAX]; /* why connections are refused; empty: they are not */

static const char name_prefix[] = "STRATUS_";
static const char test_prefix[] = "STRATUS_TEST_";

static bool is_text(const struct param_row *row) {
  return row->type == QUANTITY_STRING || row->type == QUANTITY_SECRET;
}

/* ---- parsing ---- */

/* Whether the number lies in "0|4K..4M". The alternatives are our own text, so they parse; a unit
 * test loads every row. */
static bool is_number_accepted(const struct param_row *row, int64_t number) {
  if (row->accepted[0] == '\0' || row->type == QUANTITY_ENUM) {
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
    if (quantity_parse(row->type, NULL, choice, &low) == 0 &&
        quantity_parse(row->type, NULL, high_text, &high) == 0 && number >= low && number <= high) {
      return true;
    }
  }
  return false;
}

static const char *accepted_text(const struct param_row *row) {
  return row->type == QUANTITY_BOOL ? "0|1|off|on|no|yes|false|true"
         : row->accepted[0]         ? row->accepted
         : is_text(row)             ? "any text"
                                    : "any number";
}

/* Fills in `value` from the user's text; false if the text is bad. */
static bool parse_value(const struct param_row *row, const char *text, struct param_value *value) {
  if (is_text(row)) {
    value->string = strdup(text);
    return value->string != NULL;
  }
  int64_t number;
  if (quantity_parse(row->type, row->accepted, text, &number) < 0 ||
      !is_number_accepted(row, number)) {
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

/* Only the first reason is kept. */
static void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!refusal[0]) {
    vsnprintf(refusal, sizeof refusal, format, arguments);
  }
  va_end(arguments);
}

enum { ORIGIN_MAX = NCCL_CONF_WHERE_MAX + 16 };

/* " in FILE, line 3", where a tool has it from a file of NCCL's; else nothing. */
static const char *format_origin(const struct param_row *row, char text[ORIGIN_MAX]) {
  const struct nccl_conf_setting setting = nccl_conf_find(row->name);
  char where[NCCL_CONF_WHERE_MAX];
  nccl_conf_where(setting.file, setting.line, where);
  snprintf(text, ORIGIN_MAX, "%s%s", setting.file ? " in " : "", setting.file ? where : "");
  return text;
}

static void refuse_value(const struct param_row *row, const char *text) {
  static const char remedy[] = "This variable protects the job, so no connection is made until it "
                               "is corrected or unset";
  char quoted[QUOTE_MAX], origin[ORIGIN_MAX];
  if (!*text) {
    refuse("%s is set to nothing; it takes %s. %s", row->name, accepted_text(row), remedy);
  } else if (is_text(row)) {
    refuse("%s cannot be kept: out of memory. %s", row->name, remedy);
  } else {
    refuse("%s=%.*s%s is not accepted; it takes %s. %s", row->name, REFUSAL_MAX / 4,
           quote(text, quoted), format_origin(row, origin), accepted_text(row), remedy);
  }
}

static void load_row(const struct param_row *row, const char *text, struct param_value *value) {
  bool is_protecting = row->duty == PARAM_DUTY_PROTECTS;
  free(value->string);
  *value = (struct param_value){ 0 };
  if (!is_text(row)) {
    int result = quantity_parse(row->type, row->accepted, row->default_text, &value->number);
    assert(result == 0 && is_number_accepted(row, value->number));
    (void)result;
  }
  /* An empty variable counts as not set, as it does for NCCL; but a protecting one may be a
   * script's STRATUS_ENCRYPT=$MODE with MODE unset. */
  if (!text || (text[0] == '\0' && !is_protecting)) {
    return;
  }
  value->is_set = text[0] != '\0' && parse_value(row, text, value);
  if (value->is_set) {
    return;
  }
  if (is_protecting) {
    refuse_value(row, text);
    return;
  }
  char quoted[QUOTE_MAX], origin[ORIGIN_MAX];
  LOG_WARN("%s=%s%s is not accepted; it takes %s%s%s. The default, %s, is kept.", row->name,
           row->type == QUANTITY_SECRET ? "..." : quote(text, quoted), format_origin(row, origin),
           accepted_text(row), row->unit[0] ? " " : "", row->unit,
           row->default_text[0] ? row->default_text : "empty");
}

static void refuse_unknown_names(char *const *environment);

static void load_all(char *const *environment) {
  refusal[0] = '\0';
  for (int id = 0; id < PARAM_COUNT; id++) {
    load_row(&rows[id], find_in_environment(environment, rows[id].name), &values[id]);
  }
  refuse_unknown_names(environment);
}

static void load_process_environment(void) {
  load_all(environ);
}

/* Reads the process environment if no getter did so before. */
static void param_init(void) {
  pthread_once(&values_once, load_process_environment);
}

void param_load(char *const *environment) {
  param_init();
  load_all(environment);
}

/* ---- getters ---- */

static const struct param_value *value_of(enum param_id id, enum quantity_type type) {
  assert(id < PARAM_COUNT && rows[id].type == type);
  (void)type;
  param_init();
  return &values[id];
}

bool param_bool(enum param_id id) {
  return value_of(id, QUANTITY_BOOL)->number != 0;
}

int64_t param_int(enum param_id id) {
  return value_of(id, QUANTITY_INT)->number;
}

uint64_t param_size(enum param_id id) {
  return (uint64_t)value_of(id, QUANTITY_SIZE)->number;
}

uint64_t param_duration_ns(enum param_id id) {
  return (uint64_t)value_of(id, QUANTITY_DURATION)->number;
}

int param_enum(enum param_id id) {
  return (int)value_of(id, QUANTITY_ENUM)->number;
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

const char *param_refusal(void) {
  param_init();
  return refusal[0] ? refusal : NULL;
}

/* ---- unknown names ---- */

static bool is_known(const char *name, size_t length) {
  for (int id = 0; id < PARAM_COUNT; id++) {
    if (strlen(rows[id].name) == length && memcmp(rows[id].name, name, length) == 0) {
      return true;
    }
  }
  return false;
}

/* NULL: none resembles it, as more than a third of the part after STRATUS_ differs. */
static const char *nearest_name(const char *name, size_t length) {
  int best = 0;
  int best_distance = name_distance(name, length, rows[0].name, false);
  for (int id = 1; id < PARAM_COUNT; id++) {
    int distance = name_distance(name, length, rows[id].name, false);
    if (distance < best_distance) {
      best = id;
      best_distance = distance;
    }
  }
  const size_t part = strlen(rows[best].name) - (sizeof name_prefix - 1);
  return best_distance <= (int)part / 3 ? rows[best].name : NULL;
}

/* The length of an unknown STRATUS_ name at the start of "NAME=value"; 0: none. */
static size_t unknown_length(const char *variable) {
  size_t length = strcspn(variable, "=");
  bool is_unknown = strncmp(variable, name_prefix, sizeof name_prefix - 1) == 0 &&
                    strncmp(variable, test_prefix, sizeof test_prefix - 1) != 0 &&
                    !is_known(variable, length);
  return is_unknown ? length : 0;
}

/* The protecting variable that was probably meant by this unknown name; NULL: none.
 *
 * Either it is the nearest of all names and at most a third of the part after STRATUS_ is wrong, as
 * in CRYPT or SECRETFILE; or that part is contained in the unknown name with at most one wrong
 * letter, as in ENABLE_ENCRYPTION, and no other variable is as near. Being the nearest is not
 * enough: some name always is, and other programs may use the same prefix. */
static const char *meant_protection(const char *name, size_t length) {
  const size_t prefix = sizeof name_prefix - 1;
  const char *meant = NULL;
  int nearest = INT_MAX, part = INT_MAX, plain = INT_MAX;
  for (int id = 0; id < PARAM_COUNT; id++) {
    const char *known = rows[id].name;
    int distance = name_distance(name, length, known, false);
    if (rows[id].duty != PARAM_DUTY_PROTECTS) {
      plain = distance < plain ? distance : plain;
      continue;
    }
    int within = name_distance(name + prefix, length - prefix, known + prefix, true);
    part = within < part ? within : part;
    if (distance < nearest) {
      nearest = distance;
      meant = known;
    }
  }
  bool is_near = nearest <= plain && nearest <= (int)strlen(meant + prefix) / 3;
  return is_near || (part <= 1 && part < plain) ? meant : NULL;
}

static void refuse_unknown_names(char *const *environment) {
  for (; *environment; environment++) {
    size_t length = unknown_length(*environment);
    const char *meant = length ? meant_protection(*environment, length) : NULL;
    if (meant) {
      refuse("%.*s is not a variable of stratus; %s is, and protects the job, so no connection is "
             "made until the name is corrected or unset",
             (int)(length < REFUSAL_MAX / 4 ? length : REFUSAL_MAX / 4), *environment, meant);
    }
  }
}

int param_warn_unknown(char *const *environment) {
  int count = 0;
  for (; *environment; environment++) {
    size_t length = unknown_length(*environment);
    if (length && !meant_protection(*environment, length)) {
      const char *nearest = nearest_name(*environment, length);
      LOG_WARN("%.*s is not a variable of stratus " STRATUS_VERSION " and is ignored; %s%s",
               (int)length, *environment,
               nearest ? "the nearest is " : "unset it; stratus params lists what there is",
               nearest ? nearest : "");
      count++;
    }
  }
  return count;
}

/* ---- for people ---- */

static void format_value(enum param_id id, char *text, size_t text_bytes) {
  const struct param_row *row = &rows[id];
  const struct param_value *value = &values[id];
  char number[QUANTITY_TEXT_MAX];
  const char *string = row->type == QUANTITY_SECRET && value->string ? "hidden" : value->string;
  snprintf(text, text_bytes, "%s",
           !is_text(row) ? quantity_format(row->type, row->accepted, value->number, number)
           : string      ? string
                         : row->default_text);
}

void param_print(FILE *to) {
  param_init();
  for (int id = 0; id < PARAM_COUNT; id++) {
    char value[256], origin[ORIGIN_MAX];
    format_value((enum param_id)id, value, sizeof value);
    fprintf(to, "%-28s %-10s %s%s%s%s\n", rows[id].name, value[0] ? value : "-", rows[id].help,
            values[id].is_set ? " (set" : "",
            values[id].is_set ? format_origin(&rows[id], origin) : "",
            values[id].is_set ? ")" : "");
  }
}
