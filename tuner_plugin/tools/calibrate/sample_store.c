/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of samples, repairs its end, and appends to it. */
#include "tuner_plugin/tools/calibrate/sample_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"

static int sample_store_fail(const struct sample_store *store) {
  return cli_fail("%s cannot be written: %s", store->path, strerror(errno));
}

static int read_samples(struct sample_store *store) {
  struct profile_error error;
  int result = sample_file_read(store->path, &store->samples, &error);
  char text[sizeof error];
  store->written = store->samples.count;
  return result == 0 || result == -ENOENT
             ? CLI_OK
             : cli_fail("%s", profile_error_format(&error, text, sizeof text));
}

/* A last line without a newline is complete, or its writer was interrupted. If it does not begin
 * like a sample, the file is left alone: the user may have named the wrong file. */
static int mend_end(struct sample_store *store) {
  static const char begin[] = "{\"schema\":";
  char tail[SAMPLE_LINE_MAX];
  off_t end = lseek(store->file, 0, SEEK_END);
  off_t start = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
  ssize_t length = end < 0 ? -1 : pread(store->file, tail, sizeof tail, start);
  if (length <= 0) {
    return length == 0 ? CLI_OK : sample_store_fail(store);
  }
  const char *newline = memrchr(tail, '\n', (size_t)length);
  const char *line = newline ? newline + 1 : tail;
  size_t left = (size_t)(tail + length - line);
  if (left == 0) {
    return CLI_OK;
  }
  if (line[left - 1] == '}') {
    return write(store->file, "\n", 1) == 1 ? CLI_OK : sample_store_fail(store);
  }
  if (memcmp(line, begin, left < sizeof begin - 1 ? left : sizeof begin - 1) != 0) {
    return cli_fail("%s: its last line is no sample", store->path);
  }
  return ftruncate(store->file, end - (off_t)left) == 0 ? CLI_OK : sample_store_fail(store);
}

int sample_store_open(struct sample_store *store, const char *path) {
  *store = (struct sample_store){ .path = path, .file = -1 };
  int status = read_samples(store);
  if (status != CLI_OK) {
    return status;
  }
  store->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return store->file >= 0 ? mend_end(store) : sample_store_fail(store);
}

int sample_store_add(struct sample_store *store, const struct sample *sample) {
  return sample_file_add(&store->samples, sample) == 0 ? CLI_OK : cli_fail("out of memory");
}

/* In one write, so that several writers do not mix. */
int sample_store_flush(struct sample_store *store) {
  size_t count = store->samples.count - store->written, length = 0;
  if (count == 0) {
    return CLI_OK;
  }
  char *text = calloc(count, SAMPLE_LINE_MAX);
  for (size_t i = 0; text && i < count; i++) {
    length +=
        sample_format(&store->samples.samples[store->written + i], text + length, SAMPLE_LINE_MAX);
  }
  bool is_written = text && write(store->file, text, length) == (ssize_t)length;
  free(text);
  store->written += is_written ? count : 0;
  return is_written ? CLI_OK : sample_store_fail(store);
}

void sample_store_close(struct sample_store *store) {
  if (store->path && store->file >= 0) {
    close(store->file);
  }
  sample_file_free(&store->samples);
  *store = (struct sample_store){ 0 };
}
