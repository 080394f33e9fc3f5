/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the lines of the file to the text of a plan, and lets plan.c read it. */
#include "tuner_plugin/tools/calibrate/plan_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/hash.h"
#include "common/hex.h"

enum { TEXT_MAX = 1 << 16 };

/* Adds a line to the text, behind a slash; false if there is no room. */
static bool add_line(char *text, size_t *length, char *line) {
  line += strspn(line, " \t");
  size_t count = strcspn(line, "# \t\r\n");
  if (count == 0) {
    return true;
  }
  bool has_room = *length + count + 2 < TEXT_MAX;
  if (has_room) {
    *length += (size_t)snprintf(text + *length, TEXT_MAX - *length, "%s%.*s",
                                *length > 0 ? "/" : "", (int)count, line);
  }
  return has_room;
}

static int read_text(const char *path, char *text) {
  FILE *file = fopen(path, "re");
  if (!file) {
    return cli_fail("%s: %s", path, strerror(errno));
  }
  char *line = NULL;
  size_t room = 0, length = 0;
  bool is_short = true;
  while (is_short && getline(&line, &room, file) >= 0) {
    is_short = add_line(text, &length, line);
  }
  free(line);
  fclose(file);
  return is_short ? CLI_OK : cli_fail("%s: too long for one plan", path);
}

int plan_file_read(const char *path, struct plan_file *wanted) {
  *wanted = (struct plan_file){ 0 };
  char *text = calloc(1, TEXT_MAX), error[PLAN_ERROR_MAX];
  struct plan_entry *entries = calloc(PLAN_ENTRIES_MAX, sizeof *entries);
  int status = text && entries ? read_text(path, text) : cli_fail("out of memory");
  if (status == CLI_OK && plan_parse(text, entries, &wanted->plan, error) < 0) {
    status = cli_fail_usage("%s: %s", path, error);
  }
  if (status == CLI_OK) {
    uint8_t digest[HASH_SHA256_BYTES];
    hash_sha256(text, strlen(text), digest);
    hex_write(digest, (sizeof wanted->id - 1) / 2, wanted->id);
  } else {
    free(entries);
    wanted->plan = (struct plan){ 0 };
  }
  free(text);
  return status;
}

void plan_file_free(struct plan_file *wanted) {
  free(wanted->plan.entries);
  *wanted = (struct plan_file){ 0 };
}
