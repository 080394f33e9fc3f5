/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a profile, strictly: what is not understood is an error with its place; its file, and
 * what identifies it. A new key is one row in `keys` and one field in struct profile. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/hash.h"
#include "common/plain.h"
#include "common/profile.h"
#include "common/quantity.h"

enum {
  TABLES_MAX = 1024, /* keeps the search for a second table of one kind short */
  SHOWN_MAX = 64,    /* of a value, in an error */
};

enum section { ROOT, MATCH, NET, TABLE, ROW };

enum type {
  SCHEMA,   /* PROFILE_SCHEMA */
  NOTES,    /* anything */
  OBJECT,   /* of section `low` */
  TABLES,   /* an array of them */
  ROWS,     /* the same */
  TEXT,     /* char[high]; with `words` one of them */
  ID,       /* char[high]: letters, digits and . _ - */
  TOPOLOGY, /* char[high]: a fingerprint */
  WORD,     /* an enum: one of `words` */
  NUMBER,   /* uint32_t from `low` to `high` */
  WIDE,     /* uint64_t from `low` on */
};

struct key {
  enum section section;
  const char *name;
  enum type type;
  bool is_needed;
  size_t offset; /* in struct profile, profile_table or profile_row */
  uint32_t low, high;
  const char *words;
};

#define AT(type, name) offsetof(struct type, name)
#define CHARS(name) AT(profile, name), 0, sizeof(((struct profile *)NULL)->name)

/* Ranges of "net" are those of the STRATUS_ variables of the same names. */
static const struct key keys[] = {
  { ROOT, "schema", SCHEMA, true, 0, 0, 0, NULL },
  { ROOT, "id", ID, true, CHARS(meta.id), NULL },
  { ROOT, "created", ID, false, CHARS(meta.created), NULL },
  { ROOT, "source", TEXT, false, CHARS(meta.source), NULL },
  { ROOT, "nccl_min", NUMBER, false, AT(profile, meta.nccl_min), 1, 999999, NULL },
  { ROOT, "nccl_max", NUMBER, false, AT(profile, meta.nccl_max), 1, 999999, NULL },
  { ROOT, "match", OBJECT, false, 0, MATCH, 0, NULL },
  { ROOT, "net", OBJECT, false, 0, NET, 0, NULL },
  { ROOT, "tables", TABLES, false, 0, 0, 0, NULL },
  { ROOT, "notes", NOTES, false, 0, 0, 0, NULL },
  { MATCH, "cloud", TEXT, false, CHARS(fit.cloud), "aws|gcp|azure|alibaba|oci|tencent" },
  { MATCH, "instance_type", TEXT, false, CHARS(fit.instance_type), NULL },
  { MATCH, "topology", TOPOLOGY, false, CHARS(fit.topology), NULL },
  { NET, "flows", NUMBER, false, AT(profile, net.flows), 1, 64, NULL },
  { NET, "chunk_bytes", NUMBER, false, AT(profile, net.chunk_bytes), 4 << 10, 4 << 20, NULL },
  { NET, "speed_mbps", NUMBER, false, AT(profile, net.speed_mbps), 1, 10000000, NULL },
  { TABLE, "coll", WORD, true, AT(profile_table, collective), 0, 0, PROFILE_COLLECTIVE_WORDS },
  { TABLE, "nodes", NUMBER, true, AT(profile_table, nodes), 1, PROFILE_NODES_MAX, NULL },
  { TABLE, "ppn", NUMBER, true, AT(profile_table, ppn), 1, PROFILE_NODES_MAX, NULL },
  { TABLE, "rows", ROWS, true, 0, 0, 0, NULL },
  { ROW, "bytes_lo", WIDE, true, AT(profile_row, bytes_lo), 0, 0, NULL },
  { ROW, "bytes_hi", WIDE, false, AT(profile_row, bytes_hi), 1, 0, NULL },
  { ROW, "algo", WORD, true, AT(profile_row, cell.algorithm), 0, 0, PROFILE_ALGORITHM_WORDS },
  { ROW, "proto", WORD, true, AT(profile_row, cell.protocol), 0, 0, PROFILE_PROTOCOL_WORDS },
  { ROW, "channels", NUMBER, false, AT(profile_row, cell.channels), 0, PROFILE_CHANNELS_MAX, NULL },
  { ROW, "over_algo", WORD, false, AT(profile_row, over.algorithm), 0, 0, PROFILE_ALGORITHM_WORDS },
  { ROW, "over_proto", WORD, false, AT(profile_row, over.protocol), 0, 0, PROFILE_PROTOCOL_WORDS },
  { ROW, "default_ns", WIDE, false, AT(profile_row, default_ns), 1, 0, NULL },
  { ROW, "choice_ns", WIDE, false, AT(profile_row, choice_ns), 1, 0, NULL },
  { ROW, "noise_permille", NUMBER, false, AT(profile_row, noise_permille), 0, 10000, NULL },
};
enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

/* ---- reading ---- */

struct reader {
  struct profile *profile;
  struct profile_error *error;
  char place[128]; /* "tables[0].rows[2].algo" */
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *reader, const char *format,
                                                      ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error->text, sizeof reader->error->text, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

/* What is taken in its place. */
__attribute__((format(printf, 3, 4))) static int refuse(struct reader *reader, const json_t *value,
                                                        const char *format, ...) {
  char accepted[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(accepted, sizeof accepted, format, arguments);
  va_end(arguments);
  char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  fail(reader, "%s takes %s, not %.*s", reader->place, accepted, SHOWN_MAX, shown ? shown : "this");
  free(shown);
  return -EINVAL;
}

static int fail_memory(struct reader *reader) {
  fail(reader, "out of memory");
  return -ENOMEM;
}

static int read_text(struct reader *reader, const struct key *key, const json_t *value,
                     char *field) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
  const char *text = json_string_value(value);
  size_t length = text ? strlen(text) : 0;
  bool is_good = text && text[strspn(text, " ")] && !strpbrk(text, "\"\\");
  for (size_t i = 0; i < length; i++) {
    is_good &= (unsigned char)text[i] >= ' ' && text[i] != '\x7f';
  }
  if (key->type == ID && (!is_good || text[strspn(text, letters)])) {
    return refuse(reader, value, "letters, digits and . _ -");
  }
  if (key->type == TOPOLOGY && (!is_good || !topology_is_id(text, length))) {
    return refuse(reader, value,
                  "a fingerprint of %d digits 0-9 and a-f, as stratus doctor shows it",
                  TOPOLOGY_ID_DIGITS);
  }
  if (key->words && (!is_good || quantity_find_word(key->words, text) < 0)) {
    return refuse(reader, value, "%s", key->words);
  }
  if (!is_good) {
    return refuse(reader, value, "a text without quotes, backslashes and control characters");
  }
  if (length >= key->high) {
    return fail(reader, "%s takes at most %" PRIu32 " bytes", reader->place, key->high - 1);
  }
  strcpy(field, text);
  return 0;
}

static int read_number(struct reader *reader, const struct key *key, const json_t *value,
                       void *field) {
  json_int_t given = json_integer_value(value), high = key->type == WIDE ? INT64_MAX : key->high;
  if (!json_is_integer(value) || given < key->low || given > high) {
    return refuse(reader, value, "a whole number from %" PRIu32 " to %lld", key->low,
                  (long long)high);
  }
  if (key->type == WIDE) {
    *(uint64_t *)field = (uint64_t)given;
  } else {
    *(uint32_t *)field = (uint32_t)given;
  }
  return 0;
}

static int read_word(struct reader *reader, const struct key *key, const json_t *value,
                     int *place) {
  const char *text = json_string_value(value);
  *place = text ? quantity_find_word(key->words, text) : -1;
  return *place >= 0 ? 0 : refuse(reader, value, "%s", key->words);
}

static int read_object(struct reader *reader, const json_t *object, enum section section,
                       void *base);

/* An item of the array at the place. */
static int read_item(struct reader *reader, const json_t *array, size_t index, enum section section,
                     void *base) {
  size_t length = strlen(reader->place);
  snprintf(reader->place + length, sizeof reader->place - length, "[%zu]", index);
  return read_object(reader, json_array_get(array, index), section, base);
}

static int check_row(struct reader *reader, const struct profile_table *table, const json_t *object,
                     struct profile_row *row) {
  static const char *const measured[] = { "over_algo", "over_proto", "default_ns", "choice_ns" };
  int given = 0;
  for (int i = 0; i < 4; i++) {
    given += json_object_get(object, measured[i]) != NULL;
  }
  row->is_measured = given == 4;
  row->bytes_hi = row->bytes_hi ? row->bytes_hi : UINT64_MAX;
  if (given % 4 != 0 || (given == 0 && json_object_get(object, "noise_permille"))) {
    return fail(reader,
                "%s: over_algo, over_proto, default_ns and choice_ns go together, and "
                "noise_permille with them",
                reader->place);
  }
  if (row->bytes_hi <= row->bytes_lo) {
    return fail(reader, "%s: bytes_hi must be greater than bytes_lo", reader->place);
  }
  if (table->row_count > 0 && row->bytes_lo < row[-1].bytes_hi) {
    return fail(reader,
                "%s overlaps the row before it, or comes before it: bytes_lo is below that row's "
                "bytes_hi",
                reader->place);
  }
  return 0;
}

static int read_rows(struct reader *reader, const json_t *array, struct profile_table *table) {
  size_t length = strlen(reader->place), count = json_array_size(array);
  if (!json_is_array(array)) {
    return refuse(reader, array, "an array of rows");
  }
  table->rows = calloc(count + 1, sizeof *table->rows);
  if (!table->rows) {
    return fail_memory(reader);
  }
  int result = 0;
  while (result == 0 && table->row_count < count) {
    struct profile_row *row = &table->rows[table->row_count];
    result = read_item(reader, array, table->row_count, ROW, row);
    result =
        result ? result : check_row(reader, table, json_array_get(array, table->row_count), row);
    table->row_count += result == 0;
    reader->place[length] = '\0';
  }
  return result;
}

static int read_tables(struct reader *reader, const json_t *array) {
  struct profile *profile = reader->profile;
  size_t length = strlen(reader->place), count = json_array_size(array);
  if (!json_is_array(array) || count > TABLES_MAX) {
    return refuse(reader, array, "an array of at most %d tables", TABLES_MAX);
  }
  profile->tables = calloc(count + 1, sizeof *profile->tables);
  if (!profile->tables) {
    return fail_memory(reader);
  }
  int result = 0;
  while (result == 0 && profile->table_count < count) {
    struct profile_table *table = &profile->tables[profile->table_count];
    result = read_item(reader, array, profile->table_count, TABLE, table);
    if (result == 0 && profile_find_table(profile, table->collective, table->nodes, table->ppn)) {
      result =
          fail(reader, "%s is a second table for %s, nodes %" PRIu32 ", ppn %" PRIu32,
               reader->place, profile_collective_name(table->collective), table->nodes, table->ppn);
    }
    profile->table_count++; /* also if it failed: its rows are to be freed */
    reader->place[length] = '\0';
  }
  return result;
}

static int read_value(struct reader *reader, const struct key *key, const json_t *value,
                      void *base) {
  void *field = (char *)base + key->offset;
  switch (key->type) {
  case SCHEMA:
    return json_integer_value(value) == PROFILE_SCHEMA
               ? 0
               : refuse(reader, value, "%d in this release", PROFILE_SCHEMA);
  case NOTES:
    return 0;
  case OBJECT:
    return read_object(reader, value, (enum section)key->low, base);
  case TABLES:
    return read_tables(reader, value);
  case ROWS:
    return read_rows(reader, value, base);
  case WORD:
    return read_word(reader, key, value, field);
  case NUMBER:
  case WIDE:
    return read_number(reader, key, value, field);
  default:
    return read_text(reader, key, value, field);
  }
}

static const struct key *find_key(enum section section, const char *name) {
  for (size_t i = 0; i < KEY_COUNT; i++) {
    if (keys[i].section == section && strcmp(keys[i].name, name) == 0) {
      return &keys[i];
    }
  }
  return NULL;
}

static int fail_key(struct reader *reader, enum section section, const char *name) {
  char known[256] = "";
  for (size_t i = 0, used = 0; i < KEY_COUNT; i++) {
    if (keys[i].section == section) {
      used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                               keys[i].name);
    }
  }
  return fail(reader, "%s has no key \"%.*s\"; it takes %s",
              reader->place[0] ? reader->place : "a profile", SHOWN_MAX, name, known);
}

static int read_object(struct reader *reader, const json_t *object, enum section section,
                       void *base) {
  size_t length = strlen(reader->place);
  const char *name;
  json_t *value;
  if (!json_is_object(object)) {
    return fail(reader, "%s must be a JSON object", length ? reader->place : "a profile");
  }
  json_object_foreach((json_t *)(uintptr_t)object, name, value) {
    const struct key *key = find_key(section, name);
    if (!key) {
      return fail_key(reader, section, name);
    }
    snprintf(reader->place + length, sizeof reader->place - length, "%s%s", length ? "." : "",
             name);
    int result = read_value(reader, key, value, base);
    if (result) {
      return result;
    }
    reader->place[length] = '\0';
  }
  for (size_t i = 0; i < KEY_COUNT; i++) {
    if (keys[i].section == section && keys[i].is_needed && !json_object_get(object, keys[i].name)) {
      return fail(reader, "%s%s%s is missing", reader->place, length ? "." : "", keys[i].name);
    }
  }
  return 0;
}

/* Where it is no JSON, jansson says so, with the place. */
static int read_json(struct reader *reader, const char *text, size_t text_bytes) {
  json_error_t problem;
  json_t *root = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &problem);
  if (!root && !problem.text[0]) {
    return fail_memory(reader);
  }
  if (!root) {
    char column[16] = ""; /* from 1; 0: the line as a whole */
    if (problem.column > 0) {
      snprintf(column, sizeof column, "%d:", problem.column);
    }
    return fail(reader, "%d:%s %s", problem.line, column, problem.text);
  }
  int result = read_object(reader, root, ROOT, reader->profile);
  json_decref(root);
  const struct profile_meta *meta = &reader->profile->meta;
  if (result == 0 && meta->nccl_max != 0 && meta->nccl_max < meta->nccl_min) {
    result = fail(reader, "nccl_max is below nccl_min");
  }
  return result;
}

int profile_parse(const char *text, size_t text_bytes, struct profile *out,
                  struct profile_error *error) {
  struct reader reader = { .profile = out, .error = error };
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  if (text_bytes > PROFILE_FILE_MAX) {
    fail(&reader, "a profile has at most %d bytes", PROFILE_FILE_MAX);
    return -EFBIG;
  }
  int result = read_json(&reader, text, text_bytes);
  if (result < 0) {
    plain_text(error->text);
    profile_free(out);
  }
  return result;
}

/* ---- writing ---- */

/* The value without quotes; empty: it is not given. */
static void format_value(const struct key *key, const void *base, char text[PROFILE_TEXT_MAX]) {
  const void *field = (const char *)base + key->offset;
  const struct profile_row *row = base; /* of an optional WORD */
  uint64_t number = 0;
  text[0] = '\0';
  switch (key->type) {
  case TEXT:
  case ID:
  case TOPOLOGY:
    snprintf(text, PROFILE_TEXT_MAX, "%s", (const char *)field);
    break;
  case WORD:
    if (key->is_needed || row->is_measured) {
      quantity_format(QUANTITY_ENUM, key->words, *(const int *)field, text);
    }
    break;
  case SCHEMA:
  case NUMBER:
  case WIDE:
    number = key->type == SCHEMA ? PROFILE_SCHEMA
             : key->type == WIDE ? *(const uint64_t *)field
                                 : *(const uint32_t *)field;
    if (key->is_needed || (number > 0 && number < UINT64_MAX)) {
      snprintf(text, PROFILE_TEXT_MAX, "%" PRIu64, number);
    }
    break;
  default:
    break;
  }
}

/* Behind `before`; false: none is given, and nothing was written. */
static bool emit_keys(FILE *to, const char *before, enum section section, const void *base,
                      const char *between) {
  bool has_any = false;
  for (size_t i = 0; i < KEY_COUNT; i++) {
    const struct key *key = &keys[i];
    char value[PROFILE_TEXT_MAX] = "";
    if (key->section == section) {
      format_value(key, base, value);
    }
    if (value[0]) {
      bool is_bare = key->type == SCHEMA || key->type == NUMBER || key->type == WIDE;
      const char *quote = is_bare ? "" : "\"";
      fprintf(to, "%s\"%s\": %s%s%s", has_any ? between : before, key->name, quote, value, quote);
      has_any = true;
    }
  }
  return has_any;
}

int profile_write(const struct profile *profile, FILE *to) {
  emit_keys(to, "{", ROOT, profile, ",\n ");
  fputs(emit_keys(to, ",\n \"match\": {", MATCH, profile, ", ") ? "}" : "", to);
  fputs(emit_keys(to, ",\n \"net\": {", NET, profile, ", ") ? "}" : "", to);
  for (size_t i = 0; i < profile->table_count; i++) {
    const struct profile_table *table = &profile->tables[i];
    emit_keys(to, i == 0 ? ",\n \"tables\": [\n  {" : "]},\n  {", TABLE, table, ", ");
    fputs(", \"rows\": [", to);
    for (size_t j = 0; j < table->row_count; j++) {
      emit_keys(to, j == 0 ? "\n   {" : ",\n   {", ROW, &table->rows[j], ", ");
      fputs("}", to);
    }
  }
  fputs(profile->table_count > 0 ? "]}]}\n" : "}\n", to);
  return fflush(to) != 0 ? -errno : ferror(to) ? -EIO : 0;
}

/* ---- files ---- */

/* Reads and parses an open file; -errno of the file system sets no text. */
static int read_open_file(int file, struct profile *out, struct profile_error *error) {
  struct stat status;
  if (fstat(file, &status) < 0) {
    return -errno;
  }
  if (!S_ISREG(status.st_mode)) {
    return S_ISDIR(status.st_mode) ? -EISDIR : -ENODEV;
  }
  /* One byte more than allowed, so that the parser sees what is too long. */
  char *text = malloc(PROFILE_FILE_MAX + 1);
  if (!text) {
    return -ENOMEM;
  }
  ssize_t length = descriptor_read(file, text, PROFILE_FILE_MAX + 1);
  int result = length < 0 ? (int)length : profile_parse(text, (size_t)length, out, error);
  free(text);
  return result;
}

int profile_read(const char *path, struct profile *out, struct profile_error *error) {
  struct profile_error why = { 0 };
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  /* O_NONBLOCK: a path that names a FIFO must not stop the job. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int result = file < 0 ? -errno : read_open_file(file, out, &why);
  if (file >= 0) {
    close(file);
  }
  if (result < 0) {
    if (!why.text[0]) {
      snprintf(why.text, sizeof why.text, "cannot be read: %s", strerror(-result));
    }
    bool has_line = isdigit((unsigned char)why.text[0]);
    snprintf(error->text, sizeof error->text, "%.*s%s%.500s", PROFILE_PATH_MAX, path,
             has_line ? ":" : ": ", why.text);
  }
  return result;
}

/* ---- identity ---- */

uint64_t profile_hash(const struct profile *profile) {
  uint8_t digest[HASH_SHA256_BYTES];
  char *text = NULL;
  size_t bytes;
  uint64_t id = 0;
  FILE *to = open_memstream(&text, &bytes);
  bool is_written = to && profile_write(profile, to) == 0;
  if (to && fclose(to) == 0 && is_written) {
    hash_sha256(text, bytes, digest);
    /* Big-endian, so that the number in a log is the start of the digest as sha256sum shows it. */
    for (int i = 0; i < 8; i++) {
      id = id << 8 | digest[i];
    }
  }
  free(text);
  return id;
}

uint64_t profile_decision_hash(const struct profile *profile) {
  struct profile decisive = *profile;
  decisive.meta = (struct profile_meta){ 0 };
  decisive.fit = (struct profile_fit){ 0 };
  decisive.net = (struct profile_net){ 0 };
  uint64_t hash = profile_hash(&decisive);
  const struct profile nothing = { 0 };
  return hash == profile_hash(&nothing) ? 0 : hash;
}
