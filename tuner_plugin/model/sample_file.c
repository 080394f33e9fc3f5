/* SPDX-License-Identifier: Apache-2.0 */
/* Samples to lines of JSON and back; every value is checked, as a file may come from anywhere. */
#include "tuner_plugin/model/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"

/* ---- writing ---- */

bool sample_is_word(const char *text) {
  static const char accepted[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = strlen(text);
  return length < SAMPLE_WORD_MAX && strspn(text, accepted) == length;
}

size_t sample_format(const struct sample *sample, char *text, size_t text_bytes) {
  if (!sample_is_word(sample->run) || !sample_is_word(sample->topology) ||
      !isfinite(sample->median_us) || !isfinite(sample->mad_us)) {
    return 0;
  }
  int length = snprintf(
      text, text_bytes,
      "{\"schema\":%d,\"coll\":\"%s\",\"bytes\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"ppn\":%" PRIu32
      ",\"algo\":\"%s\",\"proto\":\"%s\",\"channels\":%" PRIu32 ",\"default\":%s,\"n\":%" PRIu32
      ",\"median_us\":%.3f,\"mad_us\":%.3f,\"time\":%" PRIu64
      ",\"nccl\":%d,\"run\":\"%s\",\"topology\":\"%s\"}\n",
      SAMPLE_SCHEMA, profile_collective_name(sample->collective), sample->bytes, sample->nodes,
      sample->ppn, profile_algorithm_name(sample->algorithm),
      profile_protocol_name(sample->protocol), sample->channels,
      sample->is_default ? "true" : "false", sample->n, sample->median_us, sample->mad_us,
      sample->time, sample->nccl, sample->run, sample->topology);
  return length > 0 && (size_t)length < text_bytes ? (size_t)length : 0;
}

/* If the last line does not begin like a sample, the user may have named the wrong file. */
static int mend_end(int file) {
  static const char begin[] = "{\"schema\":";
  char tail[SAMPLE_LINE_MAX];
  off_t end = lseek(file, 0, SEEK_END);
  off_t start = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
  ssize_t length = end < 0 ? -1 : pread(file, tail, sizeof tail, start);
  if (length <= 0) {
    return length == 0 ? 0 : -errno;
  }
  const char *newline = memrchr(tail, '\n', (size_t)length);
  const char *line = newline ? newline + 1 : tail;
  size_t left = (size_t)(tail + length - line);
  if (left == 0) {
    return 0;
  }
  if (line[left - 1] == '}') {
    return write(file, "\n", 1) == 1 ? 0 : -errno;
  }
  if (memcmp(line, begin, left < sizeof begin - 1 ? left : sizeof begin - 1) != 0) {
    return -EINVAL;
  }
  return ftruncate(file, end - (off_t)left) == 0 ? 0 : -errno;
}

static int open_end(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return file >= 0 ? file : -errno;
}

int sample_file_mend(const char *path) {
  int file = open_end(path), error = file < 0 ? file : mend_end(file);
  if (file >= 0) {
    close(file);
  }
  return error;
}

/* In one write, so that several writers do not mix. */
int sample_file_append(const char *path, const struct sample *samples, size_t count) {
  int file = open_end(path);
  if (file < 0) {
    return file;
  }
  size_t length = 0;
  char *text = calloc(count + 1, SAMPLE_LINE_MAX);
  for (size_t i = 0; text && i < count; i++) {
    length += sample_format(&samples[i], text + length, SAMPLE_LINE_MAX);
  }
  int error = !text ? -ENOMEM : write(file, text, length) == (ssize_t)length ? 0 : -errno;
  free(text);
  close(file);
  return error;
}

/* ---- reading ---- */

/* One line while it is read; the first thing that is wrong is kept. */
struct line {
  json_t *object;
  struct profile_error *error;
};

__attribute__((format(printf, 2, 3))) static void fail(struct line *line, const char *format, ...) {
  if (line->error->text[0] != '\0') {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line->error->text, sizeof line->error->text, format, arguments);
  va_end(arguments);
}

static int64_t take_integer(struct line *line, const char *key, bool is_needed, int64_t low,
                            int64_t high) {
  json_t *value = json_object_get(line->object, key);
  if (!value && !is_needed) {
    return 0;
  }
  if (!json_is_integer(value) || json_integer_value(value) < low ||
      json_integer_value(value) > high) {
    fail(line, "\"%s\" must be a whole number from %lld to %lld", key, (long long)low,
         (long long)high);
    return 0;
  }
  return json_integer_value(value);
}

static double take_time(struct line *line, const char *key, bool is_needed) {
  json_t *value = json_object_get(line->object, key);
  if (!value && !is_needed) {
    return 0;
  }
  double us = json_number_value(value);
  if (!json_is_number(value) || !isfinite(us) || us < 0 || (is_needed && us <= 0)) {
    fail(line, "\"%s\" must be microseconds%s", key, is_needed ? ", more than 0" : "");
    return 0;
  }
  return us;
}

static bool take_bool(struct line *line, const char *key) {
  json_t *value = json_object_get(line->object, key);
  if (value && !json_is_boolean(value)) {
    fail(line, "\"%s\" must be true or false", key);
  }
  return json_is_true(value);
}

static int take_name(struct line *line, const char *key, const char *words) {
  const char *text = json_string_value(json_object_get(line->object, key));
  int place = text ? quantity_find_word(words, text) : -EINVAL;
  if (place < 0) {
    fail(line, "\"%s\" must be one of %s", key, words);
    return 0;
  }
  return place;
}

static void take_word(struct line *line, const char *key, char word[SAMPLE_WORD_MAX]) {
  json_t *value = json_object_get(line->object, key);
  word[0] = '\0';
  if (!value) {
    return;
  }
  if (!json_is_string(value) || !sample_is_word(json_string_value(value))) {
    fail(line, "\"%s\" must be a text of letters, digits and . _ -, shorter than %d", key,
         SAMPLE_WORD_MAX);
    return;
  }
  strcpy(word, json_string_value(value));
}

static void take_topology(struct line *line, char topology[TOPOLOGY_ID_MAX]) {
  char word[SAMPLE_WORD_MAX];
  take_word(line, "topology", word);
  if (word[0] && !topology_is_id(word, strlen(word))) {
    fail(line, "\"topology\" must be %d digits 0-9 and a-f", TOPOLOGY_ID_DIGITS);
    word[0] = '\0';
  }
  snprintf(topology, TOPOLOGY_ID_MAX, "%.*s", TOPOLOGY_ID_DIGITS, word);
}

static void take_sample(struct line *line, struct sample *sample) {
  take_integer(line, "schema", true, SAMPLE_SCHEMA, SAMPLE_SCHEMA);
  *sample = (struct sample){
    .collective = (enum profile_collective)take_name(line, "coll", PROFILE_COLLECTIVE_WORDS),
    .bytes = (uint64_t)take_integer(line, "bytes", true, 0, INT64_MAX),
    .nodes = (uint32_t)take_integer(line, "nodes", true, 1, 1000000),
    .ppn = (uint32_t)take_integer(line, "ppn", true, 1, 1024),
    .algorithm = (enum profile_algorithm)take_name(line, "algo", PROFILE_ALGORITHM_WORDS),
    .protocol = (enum profile_protocol)take_name(line, "proto", PROFILE_PROTOCOL_WORDS),
    .channels = (uint32_t)take_integer(line, "channels", false, 0, PROFILE_CHANNELS_MAX),
    .is_default = take_bool(line, "default"),
    .n = (uint32_t)take_integer(line, "n", true, 1, UINT32_MAX),
    .median_us = take_time(line, "median_us", true),
    .mad_us = take_time(line, "mad_us", false),
    .time = (uint64_t)take_integer(line, "time", false, 0, INT64_MAX),
    .nccl = (int)take_integer(line, "nccl", false, 0, INT32_MAX),
  };
  take_word(line, "run", sample->run);
  take_topology(line, sample->topology);
}

int sample_file_add(struct sample_file *file, const struct sample *sample) {
  if ((file->count & (file->count - 1)) == 0) { /* full: a power of two places */
    size_t places = file->count == 0 ? 1 : file->count * 2;
    struct sample *samples = reallocarray(file->samples, places, sizeof *samples);
    if (!samples) {
      return -ENOMEM;
    }
    file->samples = samples;
  }
  file->samples[file->count++] = *sample;
  return 0;
}

static bool is_blank(const char *text) {
  return text[strspn(text, " \t\r\n")] == '\0';
}

static int read_line(struct sample_file *out, const char *text, size_t length,
                     struct profile_error *error) {
  if (is_blank(text)) {
    return 0;
  }
  json_error_t json_error;
  struct line line = { json_loads(text, JSON_REJECT_DUPLICATES, &json_error), error };
  if (!line.object && text[length - 1] != '\n') {
    return 0; /* its writer was interrupted */
  }
  if (!json_is_object(line.object)) {
    fail(&line, "is no JSON object%s%s", line.object ? "" : ": ",
         line.object ? "" : json_error.text);
    json_decref(line.object);
    return -EINVAL;
  }
  struct sample sample;
  take_sample(&line, &sample);
  json_decref(line.object);
  return error->text[0] == '\0' ? sample_file_add(out, &sample) : -EINVAL;
}

int sample_file_read(const char *path, struct sample_file *out, struct profile_error *error) {
  *error = (struct profile_error){ 0 };
  snprintf(error->path, sizeof error->path, "%s", path);
  FILE *file = fopen(path, "re");
  int result = file ? 0 : -errno;
  char *text = NULL;
  size_t room = 0;
  ssize_t length;
  while (result == 0 && (length = getline(&text, &room, file)) > 0) {
    error->line++;
    result = read_line(out, text, (size_t)length, error);
  }
  if (result == 0 && ferror(file)) {
    result = -EIO;
  }
  free(text);
  if (file) {
    fclose(file);
  }
  if (result < 0) {
    if (error->text[0] == '\0') {
      error->line = 0;
      snprintf(error->text, sizeof error->text, "cannot be read: %s", strerror(-result));
    }
    sample_file_free(out);
  }
  return result;
}

void sample_file_free(struct sample_file *file) {
  free(file->samples);
  *file = (struct sample_file){ 0 };
}
