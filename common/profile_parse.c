/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a profile, strictly: what is not understood is an error with its place. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile_row.h"
#include "common/profile_scan.h"
#include "common/profile_schema.h"
#include "common/quantity.h"
#include "common/topology.h"

enum {
  TABLES_MAX = 1024, /* keeps the search for a second table of one kind short */
};

struct parser {
  struct scan scan;
  const char *rest; /* what has not been read */
  const char *end;
  enum { BEFORE_SCHEMA, BEFORE_SECTIONS, IN_KEYS, IN_TABLE } state;
  enum profile_section section; /* while IN_KEYS */
  uint32_t sections_seen;       /* bit per section */
  uint32_t keys_seen;           /* bit per row of profile_keys */
  struct profile *profile;
};

static int fail_memory(struct parser *parser) {
  scan_fail(&parser->scan, NULL, "out of memory");
  return -ENOMEM;
}

/* ---- values ---- */

static int check_id(struct parser *parser, const char *name, struct scan_span value) {
  for (size_t i = 0; i < value.length; i++) {
    if (!isalnum((unsigned char)value.at[i]) && !strchr("._-", value.at[i])) {
      return scan_fail(&parser->scan, value.at + i, "%s takes letters, digits and . _ -", name);
    }
  }
  return 0;
}

static int check_date(struct parser *parser, struct scan_span value) {
  static const char pattern[] = "dddd-dd-dd";
  bool is_good = value.length == sizeof pattern - 1;
  for (size_t i = 0; is_good && i < value.length; i++) {
    is_good = pattern[i] == 'd' ? isdigit((unsigned char)value.at[i]) : value.at[i] == pattern[i];
  }
  return is_good
             ? 0
             : scan_fail(&parser->scan, value.at,
                         "created takes a date such as 2026-08-01, not \"%.*s\"", SCAN_ARGS(value));
}

/* "0d5fc02a91e7, 77aa01c2be34" */
static int check_topology(struct parser *parser, struct scan_span value) {
  const char *end = value.at + value.length;
  for (const char *at = value.at; at <= end;) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    struct scan_span id = scan_trim((struct scan_span){ at, (size_t)((comma ? comma : end) - at) });
    if (!topology_is_id(id.at, id.length)) {
      return scan_fail(&parser->scan, id.at,
                       "topology takes fingerprints of %d digits 0-9 and a-f, as stratus doctor "
                       "shows them, not \"%.*s\"",
                       TOPOLOGY_ID_DIGITS, SCAN_ARGS(id));
    }
    at = comma ? comma + 1 : end + 1;
  }
  return 0;
}

static int parse_text(struct parser *parser, const struct profile_key *key, struct scan_span value,
                      char *field) {
  struct scan *scan = &parser->scan;
  scan_unquote(scan, &value);
  if (scan_trim(value).length == 0) {
    scan_fail(scan, value.at, "%s has no value", key->name);
  }
  if (key->type == PROFILE_KEY_ID) {
    check_id(parser, key->name, value);
  }
  if (key->type == PROFILE_KEY_DATE) {
    check_date(parser, value);
  }
  if (key->type == PROFILE_KEY_TOPOLOGY) {
    check_topology(parser, value);
  }
  if (!scan_copy(value, field, key->capacity)) {
    scan_fail(scan, value.at, "%s takes at most %" PRIu32 " bytes", key->name, key->capacity - 1);
  }
  return scan_status(scan);
}

/* The word is kept as the table spells it, whatever case the text has. */
static int parse_choice(struct parser *parser, const struct profile_key *key,
                        struct scan_span value, char *field) {
  scan_unquote(&parser->scan, &value);
  int place = scan_word(&parser->scan, value, key->name, key->words);
  snprintf(field, key->capacity, "%s", key->words[place]);
  return scan_status(&parser->scan);
}

static int parse_value(struct parser *parser, const struct profile_key *key,
                       struct scan_span value) {
  void *field = (char *)parser->profile + key->offset;
  switch (key->type) {
  case PROFILE_KEY_WORD:
    return parse_choice(parser, key, value, field);
  case PROFILE_KEY_VERSION_MIN:
    return scan_version(&parser->scan, value, key->name, 0, field);
  case PROFILE_KEY_VERSION_MAX:
    return scan_version(&parser->scan, value, key->name, PROFILE_VERSION_PATCH_MAX, field);
  case PROFILE_KEY_NUMBER:
    return scan_number(&parser->scan, value, key->name, key->low, key->high, false, field);
  case PROFILE_KEY_SIZE:
    return scan_number(&parser->scan, value, key->name, key->low, key->high, true, field);
  default:
    return parse_text(parser, key, value, field);
  }
}

/* ---- lines ---- */

/* "key = value"; false: there is no "=". */
static bool split_assignment(struct scan_span line, struct scan_span *name,
                             struct scan_span *value) {
  const char *equals = memchr(line.at, '=', line.length);
  size_t length = equals ? (size_t)(equals - line.at) : line.length - 1;
  *name = scan_trim((struct scan_span){ line.at, length });
  *value = scan_trim((struct scan_span){ line.at + length + 1, line.length - length - 1 });
  return equals;
}

static int parse_schema(struct parser *parser, struct scan_span line) {
  struct scan_span name;
  struct scan_span value;
  if (!split_assignment(line, &name, &value) || !scan_is(name, "schema") || value.length == 0) {
    return scan_fail(&parser->scan, line.at, "a profile starts with \"schema = %d\"",
                     PROFILE_SCHEMA);
  }
  if (!scan_is(value, "1")) {
    return scan_fail(&parser->scan, value.at,
                     "schema %.*s is not known; this version reads schema %d", SCAN_ARGS(value),
                     PROFILE_SCHEMA);
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

static int parse_assignment(struct parser *parser, struct scan_span line) {
  struct scan_span name;
  struct scan_span value;
  if (!split_assignment(line, &name, &value)) {
    return scan_fail(&parser->scan, line.at, "expected \"key = value\", not \"%.*s\"",
                     SCAN_ARGS(line));
  }
  if (value.length == 0) {
    return scan_fail(&parser->scan, strchr(line.at, '='), "%.*s has no value", SCAN_ARGS(name));
  }
  for (size_t i = 0; i < profile_key_count; i++) {
    const struct profile_key *key = &profile_keys[i];
    if (key->section != parser->section || !scan_is(name, key->name)) {
      continue;
    }
    if (parser->keys_seen & (1U << i)) {
      return scan_fail(&parser->scan, name.at, "%s is given twice", key->name);
    }
    parser->keys_seen |= 1U << i;
    return parse_value(parser, key, value);
  }
  char keys[320];
  return scan_fail(&parser->scan, name.at, "[%s] has no key \"%.*s\"; it takes %s",
                   profile_section_names[parser->section], SCAN_ARGS(name),
                   list_keys(parser->section, keys, sizeof keys));
}

/* Room for one more item in an array that has a power of two places. */
static void *grow(void *array, size_t count, size_t item_bytes) {
  bool is_full = (count & (count - 1)) == 0;
  if (!is_full) {
    return array;
  }
  return reallocarray(array, count == 0 ? 1 : count * 2, item_bytes);
}

/* "nodes=4" */
static int parse_table_number(struct parser *parser, struct scan_span *line, const char *name,
                              uint32_t *number) {
  struct scan_span word = scan_take_word(line);
  size_t prefix = strlen(name) + 1;
  if (word.length < prefix || memcmp(word.at, name, prefix - 1) != 0 ||
      word.at[prefix - 1] != '=') {
    return scan_fail(&parser->scan, word.at, "expected %s=N, as in [table allreduce nodes=4 ppn=8]",
                     name);
  }
  struct scan_span value = { word.at + prefix, word.length - prefix };
  return scan_number(&parser->scan, value, name, 1, PROFILE_NODES_MAX, false, number);
}

static int open_table(struct parser *parser, struct scan_span header, struct scan_span line) {
  struct profile *profile = parser->profile;
  struct profile_table table = { 0 };
  table.collective = (enum profile_collective)scan_word(&parser->scan, scan_take_word(&line),
                                                        "table", profile_collective_names);
  parse_table_number(parser, &line, "nodes", &table.nodes);
  parse_table_number(parser, &line, "ppn", &table.ppn);
  line = scan_trim(line);
  if (line.length > 0) {
    scan_fail(&parser->scan, line.at, "nothing may follow ppn, not \"%.*s\"", SCAN_ARGS(line));
  }
  if (scan_status(&parser->scan) < 0) {
    return -EINVAL;
  }
  if (profile_find_table(profile, table.collective, table.nodes, table.ppn)) {
    return scan_fail(&parser->scan, header.at,
                     "a second table for %s nodes=%" PRIu32 " ppn=%" PRIu32,
                     profile_collective_name(table.collective), table.nodes, table.ppn);
  }
  if (profile->table_count == TABLES_MAX) {
    return scan_fail(&parser->scan, header.at, "more than %d tables", TABLES_MAX);
  }
  void *tables = grow(profile->tables, profile->table_count, sizeof table);
  if (!tables) {
    return fail_memory(parser);
  }
  profile->tables = tables;
  profile->tables[profile->table_count++] = table;
  parser->state = IN_TABLE;
  return 0;
}

static int open_section(struct parser *parser, struct scan_span header) {
  if (header.at[header.length - 1] != ']') {
    return scan_fail(&parser->scan, header.at, "the section's name is not closed by ]");
  }
  struct scan_span line = { header.at + 1, header.length - 2 };
  struct scan_span name = scan_take_word(&line);
  if (scan_is(name, "table")) {
    return open_table(parser, header, line);
  }
  for (unsigned section = 0; section < PROFILE_SECTION_COUNT; section++) {
    if (!scan_is(name, profile_section_names[section]) || scan_trim(line).length > 0) {
      continue;
    }
    if (parser->sections_seen & (1U << section)) {
      return scan_fail(&parser->scan, header.at, "a second section [%s]",
                       profile_section_names[section]);
    }
    parser->sections_seen |= 1U << section;
    parser->section = (enum profile_section)section;
    parser->state = IN_KEYS;
    return 0;
  }
  return scan_fail(&parser->scan, header.at,
                   "unknown section; there are [meta], [match], [net] and "
                   "[table COLL nodes=N ppn=P]");
}

static int append_row(struct parser *parser, struct scan_span first, struct profile_row row) {
  struct profile_table *table = &parser->profile->tables[parser->profile->table_count - 1];
  if (row.bytes_hi <= row.bytes_lo) {
    return scan_fail(&parser->scan, first.at, "bytes_hi must be greater than bytes_lo");
  }
  if (table->row_count > 0 && row.bytes_lo < table->rows[table->row_count - 1].bytes_hi) {
    return scan_fail(&parser->scan, first.at,
                     "the row overlaps the one before it, or comes before it: "
                     "bytes_lo is below that row's bytes_hi");
  }
  void *rows = grow(table->rows, table->row_count, sizeof row);
  if (!rows) {
    return fail_memory(parser);
  }
  table->rows = rows;
  table->rows[table->row_count++] = row;
  return 0;
}

static int parse_row(struct parser *parser, struct scan_span line) {
  struct profile_row row;
  struct scan_span first = line;
  int result = profile_row_parse(&parser->scan, line, &row);
  return result < 0 ? result : append_row(parser, first, row);
}

static int check_bytes(struct parser *parser, struct scan_span line) {
  for (size_t i = 0; i < line.length; i++) {
    unsigned char byte = (unsigned char)line.at[i];
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return scan_fail(&parser->scan, line.at + i, "byte 0x%02x is not text", byte);
    }
  }
  return 0;
}

static int parse_line(struct parser *parser, struct scan_span line) {
  int result = check_bytes(parser, line);
  line = scan_trim(scan_strip_comment(line));
  if (result < 0 || line.length == 0) {
    return result;
  }
  if (parser->state == BEFORE_SCHEMA) {
    return parse_schema(parser, line);
  }
  if (line.at[0] == '[') {
    return open_section(parser, line);
  }
  if (parser->state == BEFORE_SECTIONS) {
    return scan_fail(&parser->scan, line.at, "expected a section such as [meta]");
  }
  return parser->state == IN_TABLE ? parse_row(parser, line) : parse_assignment(parser, line);
}

static struct scan_span take_line(struct parser *parser) {
  size_t left = (size_t)(parser->end - parser->rest);
  const char *newline = memchr(parser->rest, '\n', left);
  struct scan_span line = { parser->rest, newline ? (size_t)(newline - parser->rest) : left };
  parser->scan.line_start = line.at;
  parser->scan.line++;
  parser->rest = newline ? newline + 1 : parser->end;
  if (line.length > 0 && line.at[line.length - 1] == '\r') {
    line.length--;
  }
  return line;
}

/* What only the whole text can tell. */
static int check_whole(struct parser *parser) {
  const struct profile_meta *meta = &parser->profile->meta;
  if (parser->state == BEFORE_SCHEMA) {
    return scan_fail(&parser->scan, NULL, "a profile starts with \"schema = %d\"", PROFILE_SCHEMA);
  }
  if (meta->id[0] == '\0') {
    return scan_fail(&parser->scan, NULL, "section [meta] with an id is missing");
  }
  if (meta->nccl_max != 0 && meta->nccl_max < meta->nccl_min) {
    return scan_fail(&parser->scan, NULL, "nccl_max is below nccl_min");
  }
  return 0;
}

int profile_parse(const char *text, size_t text_bytes, struct profile *out,
                  struct profile_error *error) {
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  struct parser parser = {
    .rest = text,
    .end = text + text_bytes,
    .profile = out,
    .scan = { .line_start = text, .error = error },
  };
  int result = 0;
  if (text_bytes > PROFILE_FILE_MAX) {
    scan_fail(&parser.scan, NULL, "a profile has at most %d bytes", PROFILE_FILE_MAX);
    result = -EFBIG;
  }
  while (result == 0 && parser.rest < parser.end) {
    result = parse_line(&parser, take_line(&parser));
  }
  if (result == 0) {
    parser.scan.line = 0;
    result = check_whole(&parser);
  }
  if (result < 0) {
    profile_free(out);
  }
  return result;
}
