/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a profile, strictly: what is not understood is an error with its place. Lines
 * are taken apart in a copy of the text. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "common/quantity.h"

enum {
  TABLES_MAX = 1024, /* keeps the search for a second table of one kind short */
  SHOWN_MAX = 64,    /* of a word, in an error */
  US_MAX = 1000000000,
  PERCENT_MAX = 1000,
};

struct parser {
  const char *line_start;
  int line; /* from 1 */
  enum { BEFORE_SCHEMA, BEFORE_SECTIONS, IN_KEYS, IN_TABLE } state;
  enum profile_section section; /* while IN_KEYS */
  uint32_t sections_seen;       /* bit per section */
  uint32_t keys_seen;           /* bit per row of profile_keys */
  struct profile *profile;
  struct profile_error *error;
};

/* `at` is the place in the line, NULL for all of it. The first error stays: what is read after it
 * does not count. */
__attribute__((format(printf, 3, 4))) static int fail(struct parser *parser, const char *at,
                                                      const char *format, ...) {
  struct profile_error *error = parser->error;
  if (!error->text[0]) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->line = parser->line;
    error->column = at ? (int)(at - parser->line_start) + 1 : 0;
  }
  return -EINVAL;
}

static int status_of(const struct parser *parser) {
  return parser->error->text[0] ? -EINVAL : 0;
}

/* ---- words ---- */

static bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

/* Without the blanks around it. */
static char *trim(char *text) {
  while (is_blank(*text)) {
    text++;
  }
  for (char *end = text + strlen(text); end > text && is_blank(end[-1]);) {
    *--end = '\0';
  }
  return text;
}

/* Takes the next word off `line`; it is empty, at the end of the line, if there is none. */
static char *take_word(char **line) {
  char *word = *line + strspn(*line, " \t");
  *line = word + strcspn(word, " \t");
  if (**line) {
    *(*line)++ = '\0';
  }
  return word;
}

/* "name=value": what is behind it, or NULL. */
static char *value_of(char *word, const char *name) {
  size_t length = strlen(name);
  return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static int parse_word(struct parser *parser, const char *word, const char *what,
                      const char *words) {
  int place = quantity_find_word(words, word);
  if (place < 0) {
    fail(parser, word, "%s takes %s, not \"%.*s\"", what, words, SHOWN_MAX, word);
  }
  return place < 0 ? 0 : place;
}

/* ---- numbers ---- */

static int parse_number(struct parser *parser, const char *word, const char *what, uint32_t low,
                        uint32_t high, uint32_t *number) {
  int64_t value = 0;
  if (quantity_parse_int(word, &value) < 0 || value < low || value > high) {
    return fail(parser, word, "%s takes a number from %" PRIu32 " to %" PRIu32 ", not \"%.*s\"",
                what, low, high, SHOWN_MAX, word);
  }
  *number = (uint32_t)value;
  return 0;
}

static int parse_size(struct parser *parser, const char *word, const struct profile_key *key,
                      uint32_t *bytes) {
  char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
  uint64_t value = 0;
  if (quantity_parse_size(word, &value) < 0 || value < key->low || value > key->high) {
    return fail(parser, word, "%s takes a size from %s to %s, not \"%.*s\"", key->name,
                quantity_format_size(key->low, low), quantity_format_size(key->high, high),
                SHOWN_MAX, word);
  }
  *bytes = (uint32_t)value;
  return 0;
}

/* A decimal with up to three places, as thousandths: "1.5" is 1500. */
static uint64_t parse_milli(struct parser *parser, const char *word, const char *what,
                            uint64_t high) {
  char *end = NULL;
  uint64_t value = isdigit((unsigned char)*word) ? strtoull(word, &end, 10) : 0;
  size_t places = end && *end == '.' ? strspn(end + 1, "0123456789") : 0;
  bool is_good = end && value <= high && places <= 3 && end[places + (places > 0)] == '\0';
  for (size_t i = 1; is_good && i <= 3; i++) {
    value = value * 10 + (i <= places ? (uint64_t)(end[i] - '0') : 0);
  }
  if (!is_good || value > high * 1000) {
    fail(parser, word,
         "%s takes a number from 0 to %" PRIu64 " with up to three decimals, not \"%.*s\"", what,
         high, SHOWN_MAX, word);
  }
  return is_good ? value : 0;
}

/* "2.21" or "2.21.5" as NCCL counts; without the third number, `patch`. */
static int parse_version(struct parser *parser, const char *word, const char *what, int patch,
                         int *version) {
  int numbers[3] = { 0, 0, patch };
  char more;
  size_t length = strlen(word);
  int count = sscanf(word, "%9d.%9d.%9d%c", &numbers[0], &numbers[1], &numbers[2], &more);
  bool is_good = length <= 10 && strspn(word, "0123456789.") == length && numbers[0] > 0 &&
                 (count == 2 || count == 3) && word[length - 1] != '.';
  for (int i = 0; i < 3; i++) {
    is_good = is_good && numbers[i] <= PROFILE_VERSION_PATCH_MAX;
  }
  if (!is_good) {
    return fail(parser, word, "%s takes a version such as 2.21 or 2.21.5, not \"%.*s\"", what,
                SHOWN_MAX, word);
  }
  *version = numbers[0] * 10000 + numbers[1] * 100 + numbers[2];
  return 0;
}

/* ---- keys ---- */

/* Takes the quotes off; a quote anywhere else is an error. */
static char *unquote(struct parser *parser, char *value) {
  size_t length = strlen(value);
  if (value[0] == '"' && (length < 2 || value[length - 1] != '"')) {
    fail(parser, value, "the quote is not closed at the end of the line");
  } else if (value[0] == '"') {
    value[length - 1] = '\0';
    value++;
  }
  char *quote = strchr(value, '"');
  if (quote) {
    fail(parser, quote, "a text cannot hold a double quote");
  }
  return value;
}

static int parse_text(struct parser *parser, const struct profile_key *key, char *value,
                      char *field) {
  static const char accepted[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-";
  value = unquote(parser, value);
  size_t good = strspn(value, accepted);
  if (value[strspn(value, " \t")] == '\0') {
    fail(parser, value, "%s has no value", key->name);
  } else if (key->type == PROFILE_KEY_ID && value[good]) {
    fail(parser, value + good, "%s takes letters, digits and . _ -", key->name);
  } else if (key->type == PROFILE_KEY_TOPOLOGY && !topology_is_id(value, strlen(value))) {
    fail(parser, value,
         "topology takes a fingerprint of %d digits 0-9 and a-f, as stratus doctor shows it, not "
         "\"%.*s\"",
         TOPOLOGY_ID_DIGITS, SHOWN_MAX, value);
  } else if (key->type == PROFILE_KEY_CLOUD) { /* kept in lower case */
    parse_word(parser, value, key->name, PROFILE_CLOUD_WORDS);
    for (char *at = value; *at; at++) {
      *at = (char)tolower((unsigned char)*at);
    }
  }
  if (strlen(value) >= key->capacity) {
    return fail(parser, value, "%s takes at most %" PRIu32 " bytes", key->name, key->capacity - 1);
  }
  strcpy(field, value);
  return status_of(parser);
}

static int parse_value(struct parser *parser, const struct profile_key *key, char *value) {
  void *field = (char *)parser->profile + key->offset;
  switch (key->type) {
  case PROFILE_KEY_VERSION_MIN:
    return parse_version(parser, value, key->name, 0, field);
  case PROFILE_KEY_VERSION_MAX:
    return parse_version(parser, value, key->name, PROFILE_VERSION_PATCH_MAX, field);
  case PROFILE_KEY_NUMBER:
    return parse_number(parser, value, key->name, key->low, key->high, field);
  case PROFILE_KEY_SIZE:
    return parse_size(parser, value, key, field);
  default:
    return parse_text(parser, key, value, field);
  }
}

/* Takes "key = value" apart; NULL: there is no "=". */
static char *split(char *line) {
  char *equals = strchr(line, '=');
  if (equals) {
    *equals = '\0';
    trim(line);
    return trim(equals + 1);
  }
  return NULL;
}

static int parse_schema(struct parser *parser, char *line) {
  char *value = split(line);
  if (!value || strcmp(line, "schema") != 0 || !*value) {
    return fail(parser, line, "a profile starts with \"schema = %d\"", PROFILE_SCHEMA);
  }
  if (strcmp(value, "1") != 0) {
    return fail(parser, value, "schema %.*s is not known; this version reads schema %d", SHOWN_MAX,
                value, PROFILE_SCHEMA);
  }
  parser->state = BEFORE_SECTIONS;
  return 0;
}

/* The names of the keys of the section, for an error. */
static const char *list_keys(enum profile_section section, char *text, size_t text_bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < profile_key_count; i++) {
    if (profile_keys[i].section == section && used < text_bytes) {
      int written =
          snprintf(text + used, text_bytes - used, "%s%s", used ? ", " : "", profile_keys[i].name);
      used += written > 0 ? (size_t)written : 0;
    }
  }
  return text;
}

static int parse_assignment(struct parser *parser, char *line) {
  char keys[320], *value = split(line);
  if (!value) {
    return fail(parser, line, "expected \"key = value\", not \"%.*s\"", SHOWN_MAX, line);
  }
  if (!*value) {
    return fail(parser, value - 1, "%.*s has no value", SHOWN_MAX, line);
  }
  for (size_t i = 0; i < profile_key_count; i++) {
    const struct profile_key *key = &profile_keys[i];
    if (key->section != parser->section || strcmp(line, key->name) != 0) {
      continue;
    }
    if (parser->keys_seen & (1U << i)) {
      return fail(parser, line, "%s is given twice", key->name);
    }
    parser->keys_seen |= 1U << i;
    return parse_value(parser, key, value);
  }
  return fail(parser, line, "[%s] has no key \"%.*s\"; it takes %s",
              profile_section_names[parser->section], SHOWN_MAX, line,
              list_keys(parser->section, keys, sizeof keys));
}

/* ---- tables ---- */

/* Room for one more item in an array that has a power of two places; NULL: out of memory. */
static void *grow(struct parser *parser, void *array, size_t count, size_t item_bytes) {
  bool is_full = (count & (count - 1)) == 0;
  void *grown = is_full ? reallocarray(array, count == 0 ? 1 : count * 2, item_bytes) : array;
  if (!grown) {
    fail(parser, NULL, "out of memory");
  }
  return grown;
}

/* "nodes=4" */
static void parse_table_number(struct parser *parser, char **line, const char *name,
                               uint32_t *number) {
  char *word = take_word(line), *value = value_of(word, name);
  if (value) {
    parse_number(parser, value, name, 1, PROFILE_NODES_MAX, number);
  } else {
    fail(parser, word, "expected %s=N, as in [table allreduce nodes=4 ppn=8]", name);
  }
}

static int open_table(struct parser *parser, const char *header, char *line) {
  struct profile *profile = parser->profile;
  struct profile_table table = { 0 };
  table.collective = (enum profile_collective)parse_word(parser, take_word(&line), "table",
                                                         PROFILE_COLLECTIVE_WORDS);
  parse_table_number(parser, &line, "nodes", &table.nodes);
  parse_table_number(parser, &line, "ppn", &table.ppn);
  char *more = take_word(&line);
  if (*more) {
    fail(parser, more, "nothing may follow ppn, not \"%.*s\"", SHOWN_MAX, more);
  }
  if (status_of(parser) < 0) {
    return -EINVAL;
  }
  if (profile_find_table(profile, table.collective, table.nodes, table.ppn)) {
    return fail(parser, header, "a second table for %s nodes=%" PRIu32 " ppn=%" PRIu32,
                profile_collective_name(table.collective), table.nodes, table.ppn);
  }
  if (profile->table_count == TABLES_MAX) {
    return fail(parser, header, "more than %d tables", TABLES_MAX);
  }
  void *tables = grow(parser, profile->tables, profile->table_count, sizeof table);
  if (!tables) {
    return -ENOMEM;
  }
  profile->tables = tables;
  profile->tables[profile->table_count++] = table;
  parser->state = IN_TABLE;
  return 0;
}

static int open_section(struct parser *parser, char *header) {
  char *end = header + strlen(header) - 1, *line = header + 1;
  if (*end != ']') {
    return fail(parser, header, "the section's name is not closed by ]");
  }
  *end = '\0';
  char *name = take_word(&line);
  if (strcmp(name, "table") == 0) {
    return open_table(parser, header, line);
  }
  for (unsigned section = 0; section < PROFILE_SECTION_COUNT; section++) {
    if (strcmp(name, profile_section_names[section]) != 0 || *take_word(&line)) {
      continue;
    }
    if (parser->sections_seen & (1U << section)) {
      return fail(parser, header, "a second section [%s]", profile_section_names[section]);
    }
    parser->sections_seen |= 1U << section;
    parser->section = (enum profile_section)section;
    parser->state = IN_KEYS;
    return 0;
  }
  return fail(parser, header,
              "unknown section; there are [meta], [match], [net] and [table COLL nodes=N ppn=P]");
}

/* ---- rows ---- */

/* bytes_lo or bytes_hi; `max` stands for the end of all sizes. */
static void parse_bytes(struct parser *parser, const char *word, const char *what, bool is_max_good,
                        uint64_t *bytes) {
  if (is_max_good && strcmp(word, "max") == 0) {
    *bytes = UINT64_MAX;
  } else if (quantity_parse_size(word, bytes) < 0) {
    fail(parser, word, "%s takes a size such as 64K%s, not \"%.*s\"", what,
         is_max_good ? " or max" : "", SHOWN_MAX, word);
  }
}

static void parse_cell(struct parser *parser, const char *algorithm, const char *protocol,
                       enum profile_algorithm *a, enum profile_protocol *p) {
  *a = (enum profile_algorithm)parse_word(parser, algorithm, "algo", PROFILE_ALGORITHM_WORDS);
  *p = (enum profile_protocol)parse_word(parser, protocol, "proto", PROFILE_PROTOCOL_WORDS);
}

/* "tree/simple" */
static void parse_over(struct parser *parser, char *value, struct profile_row *row) {
  char *slash = strchr(value, '/');
  if (!slash) {
    fail(parser, value, "over takes a cell such as tree/ll, not \"%.*s\"", SHOWN_MAX, value);
    return;
  }
  *slash = '\0';
  parse_cell(parser, value, slash + 1, &row->over_algorithm, &row->over_protocol);
}

/* What was measured, in this order; the noise may be missing. */
static void parse_measured(struct parser *parser, char *line, struct profile_row *row) {
  static const char *const names[] = { "over", "default_us", "choice_us", "noise_pct" };
  for (int i = 0; i < 4; i++) {
    char *word = take_word(&line), *value = value_of(word, names[i]);
    if (!*word && (i == 0 || i == 3)) {
      return;
    }
    if (!value) {
      fail(parser, word,
           "after channels a row takes over=, default_us=, choice_us= and noise_pct=, in this "
           "order, not \"%.*s\"",
           SHOWN_MAX, word);
      return;
    }
    if (i == 0) {
      row->is_measured = true;
      parse_over(parser, value, row);
      continue;
    }
    uint64_t milli = parse_milli(parser, value, names[i], i == 3 ? PERCENT_MAX : US_MAX);
    if (milli == 0 && i < 3) {
      fail(parser, value, "%s is more than 0", names[i]);
    }
    row->default_ns = i == 1 ? milli : row->default_ns;
    row->choice_ns = i == 2 ? milli : row->choice_ns;
    row->noise_permille = i == 3 ? (uint32_t)(milli / 100) : 0;
  }
  char *more = take_word(&line);
  if (*more) {
    fail(parser, more, "nothing may follow noise_pct, not \"%.*s\"", SHOWN_MAX, more);
  }
}

static int parse_row(struct parser *parser, char *line) {
  struct profile_table *table = &parser->profile->tables[parser->profile->table_count - 1];
  struct profile_row row = { 0 };
  char *words[5];
  for (int i = 0; i < 5; i++) {
    words[i] = take_word(&line);
    if (!*words[i]) {
      return fail(parser, words[i], "a row has five fields: bytes_lo bytes_hi algo proto channels");
    }
  }
  parse_bytes(parser, words[0], "bytes_lo", false, &row.bytes_lo);
  parse_bytes(parser, words[1], "bytes_hi", true, &row.bytes_hi);
  parse_cell(parser, words[2], words[3], &row.algorithm, &row.protocol);
  parse_number(parser, words[4], "channels", 0, PROFILE_CHANNELS_MAX, &row.channels);
  parse_measured(parser, line, &row);
  if (row.bytes_hi <= row.bytes_lo) {
    fail(parser, words[0], "bytes_hi must be greater than bytes_lo");
  } else if (table->row_count > 0 && row.bytes_lo < table->rows[table->row_count - 1].bytes_hi) {
    fail(parser, words[0],
         "the row overlaps the one before it, or comes before it: bytes_lo is below that row's "
         "bytes_hi");
  }
  if (status_of(parser) < 0) {
    return -EINVAL;
  }
  void *rows = grow(parser, table->rows, table->row_count, sizeof row);
  if (!rows) {
    return -ENOMEM;
  }
  table->rows = rows;
  table->rows[table->row_count++] = row;
  return 0;
}

/* ---- lines ---- */

/* Cuts off what follows a # at the start or behind a blank, outside of quotes. */
static void strip_comment(char *line) {
  bool is_quoted = false;
  for (char *at = line; *at; at++) {
    is_quoted ^= *at == '"';
    if (*at == '#' && !is_quoted && (at == line || is_blank(at[-1]))) {
      *at = '\0';
      return;
    }
  }
}

/* `length` bytes, and a NUL behind them. */
static int parse_line(struct parser *parser, char *line, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)line[i];
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return fail(parser, line + i, "byte 0x%02x is not text", byte);
    }
  }
  strip_comment(line);
  line = trim(line);
  if (!*line) {
    return 0;
  }
  if (parser->state == BEFORE_SCHEMA) {
    return parse_schema(parser, line);
  }
  if (line[0] == '[') {
    return open_section(parser, line);
  }
  if (parser->state == BEFORE_SECTIONS) {
    return fail(parser, line, "expected a section such as [meta]");
  }
  return parser->state == IN_TABLE ? parse_row(parser, line) : parse_assignment(parser, line);
}

/* What only the whole text can tell. */
static int check_whole(struct parser *parser) {
  const struct profile_meta *meta = &parser->profile->meta;
  parser->line = 0;
  if (parser->state == BEFORE_SCHEMA) {
    return fail(parser, NULL, "a profile starts with \"schema = %d\"", PROFILE_SCHEMA);
  }
  if (meta->id[0] == '\0') {
    return fail(parser, NULL, "section [meta] with an id is missing");
  }
  if (meta->nccl_max != 0 && meta->nccl_max < meta->nccl_min) {
    return fail(parser, NULL, "nccl_max is below nccl_min");
  }
  return 0;
}

int profile_parse(const char *text, size_t text_bytes, struct profile *out,
                  struct profile_error *error) {
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  struct parser parser = { .profile = out, .error = error };
  if (text_bytes > PROFILE_FILE_MAX) {
    fail(&parser, NULL, "a profile has at most %d bytes", PROFILE_FILE_MAX);
    return -EFBIG;
  }
  char *copy = malloc(text_bytes + 1);
  if (!copy) {
    fail(&parser, NULL, "out of memory");
    return -ENOMEM;
  }
  memcpy(copy, text, text_bytes);
  int result = 0;
  for (char *line = copy, *end = copy + text_bytes, *next; result == 0 && line < end; line = next) {
    char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t length = newline ? (size_t)(newline - line) : (size_t)(end - line);
    next = line + length + 1;
    length -= length > 0 && line[length - 1] == '\r';
    line[length] = '\0';
    parser.line_start = line;
    parser.line++;
    result = parse_line(&parser, line, length);
  }
  if (result == 0) {
    result = check_whole(&parser);
  }
  free(copy);
  if (result < 0) {
    profile_free(out);
  }
  return result;
}
