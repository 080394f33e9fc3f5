/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: names, rows, files, identity. The text is profile_json.c's. */
#include "common/profile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/hash.h"

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
