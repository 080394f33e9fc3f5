/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as files: reading, writing, identity. The text is understood in profile_parse.c. */
#include "common/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/hash.h"
#include "common/quantity.h"

/* ---- the keys of schema 1 ---- */

const char *const profile_section_names[PROFILE_SECTION_COUNT] = { "meta", "match", "net" };

#define TEXT_KEY(section, part, name, type)                                                        \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name),     \
        sizeof(((struct profile *)NULL)->part.name), 0, 0                                          \
  }
#define NUMBER_KEY(section, part, name, type, low, high)                                           \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name), 0,  \
        low, high                                                                                  \
  }

/* Ranges of [net] are those of the STRATUS_ variables of the same names. */
const struct profile_key profile_keys[] = {
  TEXT_KEY(META, meta, id, ID),
  TEXT_KEY(META, meta, created, ID),
  TEXT_KEY(META, meta, source, TEXT),
  NUMBER_KEY(META, meta, nccl_min, VERSION_MIN, 0, 0),
  NUMBER_KEY(META, meta, nccl_max, VERSION_MAX, 0, 0),
  TEXT_KEY(MATCH, fit, cloud, CLOUD),
  TEXT_KEY(MATCH, fit, instance_type, TEXT),
  TEXT_KEY(MATCH, fit, topology, TOPOLOGY),
  NUMBER_KEY(NET, net, flows, NUMBER, 1, 64),
  NUMBER_KEY(NET, net, chunk_bytes, SIZE, 4 << 10, 4 << 20),
  NUMBER_KEY(NET, net, speed_mbps, NUMBER, 1, 10000000),
};
const size_t profile_key_count = sizeof profile_keys / sizeof profile_keys[0];

/* ---- names ---- */

static const char *const collective_names[] = {
  "broadcast", "reduce", "allgather", "reducescatter", "allreduce",
};
static const char *const algorithm_names[] = {
  "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat",
};
static const char *const protocol_names[] = { "ll", "ll128", "simple" };

const char *profile_collective_name(enum profile_collective collective) {
  return collective < PROFILE_COLLECTIVE_COUNT ? collective_names[collective] : "?";
}

const char *profile_algorithm_name(enum profile_algorithm algorithm) {
  return algorithm < PROFILE_ALGORITHM_COUNT ? algorithm_names[algorithm] : "?";
}

const char *profile_protocol_name(enum profile_protocol protocol) {
  return protocol < PROFILE_PROTOCOL_COUNT ? protocol_names[protocol] : "?";
}

void profile_free(struct profile *profile) {
  for (size_t i = 0; i < profile->table_count; i++) {
    free(profile->tables[i].rows);
  }
  free(profile->tables);
  *profile = (struct profile){ 0 };
}

const struct profile_table *profile_find_table(const struct profile *profile,
                                               enum profile_collective collective, uint32_t nodes,
                                               uint32_t ppn) {
  for (size_t i = 0; i < profile->table_count; i++) {
    const struct profile_table *table = &profile->tables[i];
    if (table->collective == collective && table->nodes == nodes && table->ppn == ppn) {
      return table;
    }
  }
  return NULL;
}

const struct profile_row *profile_find_row(const struct profile_table *table, uint64_t bytes) {
  if (!table || table->row_count == 0) {
    return NULL;
  }
  /* To the last row that begins at or before the size; no branch depends on a comparison, as a
   * mispredicted one takes longer than all the rest. */
  const struct profile_row *row = table->rows;
  for (size_t left = table->row_count; left > 1;) {
    size_t half = left / 2;
    row = row[half].bytes_lo <= bytes ? row + half : row;
    left -= half;
  }
  return bytes >= row->bytes_lo && bytes < row->bytes_hi ? row : NULL;
}

const char *profile_error_format(const struct profile_error *error, char *text, size_t text_bytes) {
  char place[32] = "";
  if (error->line > 0 && error->column > 0) {
    snprintf(place, sizeof place, "%d:%d: ", error->line, error->column);
  } else if (error->line > 0) {
    snprintf(place, sizeof place, "%d: ", error->line);
  }
  const char *after_path = error->path[0] == '\0' ? "" : place[0] != '\0' ? ":" : ": ";
  snprintf(text, text_bytes, "%s%s%s%s", error->path, after_path, place, error->text);
  return text;
}

/* ---- reading ---- */

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
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  /* O_NONBLOCK: a path that names a FIFO must not stop the job. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int result = file < 0 ? -errno : read_open_file(file, out, error);
  if (file >= 0) {
    close(file);
  }
  if (result < 0) {
    snprintf(error->path, sizeof error->path, "%s", path);
    if (error->text[0] == '\0') {
      snprintf(error->text, sizeof error->text, "cannot be read: %s", strerror(-result));
    }
  }
  return result;
}

/* ---- writing ---- */

static void format_version(int version, int open_patch, char *text, size_t text_bytes) {
  int patch = version % 100;
  int length = snprintf(text, text_bytes, "%d.%d", version / 10000, version / 100 % 100);
  if (patch != open_patch && length > 0) {
    snprintf(text + length, text_bytes - (size_t)length, ".%d", patch);
  }
}

bool profile_key_value(const struct profile *profile, const struct profile_key *key,
                       char text[PROFILE_TEXT_MAX]) {
  const char *field = (const char *)profile + key->offset;
  if (key->capacity > 0) {
    snprintf(text, PROFILE_TEXT_MAX, "%s", field);
    return field[0] != '\0';
  }
  uint32_t number;
  memcpy(&number, field, sizeof number);
  switch (key->type) {
  case PROFILE_KEY_VERSION_MIN:
    format_version((int)number, 0, text, PROFILE_TEXT_MAX);
    break;
  case PROFILE_KEY_VERSION_MAX:
    format_version((int)number, PROFILE_VERSION_PATCH_MAX, text, PROFILE_TEXT_MAX);
    break;
  case PROFILE_KEY_SIZE:
    quantity_format_size(number, text);
    break;
  default:
    snprintf(text, PROFILE_TEXT_MAX, "%" PRIu32, number);
  }
  return number != 0;
}

static void emit_sections(FILE *to, const struct profile *profile) {
  int section = -1;
  for (size_t i = 0; i < profile_key_count; i++) {
    const struct profile_key *key = &profile_keys[i];
    char value[PROFILE_TEXT_MAX];
    if (!profile_key_value(profile, key, value)) {
      continue;
    }
    if ((int)key->section != section) {
      section = (int)key->section;
      fprintf(to, "\n[%s]\n", profile_section_names[section]);
    }
    const char *quote = key->type == PROFILE_KEY_TEXT ? "\"" : "";
    fprintf(to, "%s = %s%s%s\n", key->name, quote, value, quote);
  }
}

/* "812.4" of 812400. */
enum { MILLI_TEXT_MAX = 32 };
static const char *format_milli(uint64_t milli, char text[MILLI_TEXT_MAX]) {
  snprintf(text, MILLI_TEXT_MAX, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
  size_t length = strlen(text);
  while (text[length - 1] == '0') {
    text[--length] = '\0';
  }
  if (text[length - 1] == '.') {
    text[length - 1] = '\0';
  }
  return text;
}

static void emit_measured(FILE *to, const struct profile_row *row) {
  char by_default[MILLI_TEXT_MAX], choice[MILLI_TEXT_MAX];
  fprintf(to, " over=%s/%s default_us=%s choice_us=%s", profile_algorithm_name(row->over_algorithm),
          profile_protocol_name(row->over_protocol), format_milli(row->default_ns, by_default),
          format_milli(row->choice_ns, choice));
  if (row->noise_permille > 0) {
    fprintf(to, " noise_pct=%" PRIu32 ".%" PRIu32, row->noise_permille / 10,
            row->noise_permille % 10);
  }
}

static void emit_table(FILE *to, const struct profile_table *table) {
  fprintf(to, "\n[table %s nodes=%" PRIu32 " ppn=%" PRIu32 "]\n",
          profile_collective_name(table->collective), table->nodes, table->ppn);
  fprintf(to, "# bytes_lo bytes_hi algo proto channels\n");
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    char low[QUANTITY_TEXT_MAX];
    char high[QUANTITY_TEXT_MAX] = "max";
    if (row->bytes_hi != UINT64_MAX) {
      quantity_format_size(row->bytes_hi, high);
    }
    fprintf(to, "%-10s %-10s %-13s %-6s %" PRIu32, quantity_format_size(row->bytes_lo, low), high,
            profile_algorithm_name(row->algorithm), profile_protocol_name(row->protocol),
            row->channels);
    if (row->is_measured) {
      emit_measured(to, row);
    }
    fprintf(to, "\n");
  }
}

int profile_write(const struct profile *profile, FILE *to) {
  fprintf(to, "schema = %d\n", PROFILE_SCHEMA);
  emit_sections(to, profile);
  for (size_t i = 0; i < profile->table_count; i++) {
    emit_table(to, &profile->tables[i]);
  }
  return fflush(to) != 0 || ferror(to) ? -EIO : 0;
}

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
