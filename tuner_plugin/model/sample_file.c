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

/* Letters, digits and . _ - only, and short enough. Empty is a word. */
static bool is_word(const char *text) {
  static const char accepted[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = strlen(text);
  return length < SAMPLE_WORD_MAX && strspn(text, accepted) == length;
}

size_t sample_format(const struct sample *sample, char *text, size_t text_bytes) {
  if (!is_word(sample->run) || !is_word(sample->topology) || !isfinite(sample->median_us) ||
      !isfinite(sample->mad_us)) {
    return 0;
  }
  int length = snprintf(
      text, text_bytes,
      "{\"schema\":%d,\"coll\":\"%s\",\"bytes\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"ppn\":%" PRIu32
      ",\"algo\":\"%s\",\"proto\":\"%s\",\"channels\":%" PRIu32 ",\"default\":%s,\"n\":%" PRIu32
      ",\"median_us\":%.3f,\"mad_us\":%.3f,\"time\":%" PRIu64
      ",\"nccl\":%d,\"run\":\"%s\",\"topology\":\"%s\"}\n",
      SAMPLE_SCHEMA, profile_collective_name(sample->collective), sample->bytes, sample->nodes,
      sample->ppn, profile_algorithm_name(sample->cell.algorithm),
      profile_protocol_name(sample->cell.protocol), sample->cell.channels,
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
  ssize_t written = text ? write(file, text, length) : 0;
  int error = !text                      ? -ENOMEM
              : written < 0              ? -errno
              : (size_t)written < length ? -ENOSPC /* a part had room */
                                         : 0;
  free(text);
  close(file);
  return error;
}

/* ---- reading ---- */

__attribute__((format(printf, 2, 3))) static int fail(struct profile_error *error,
                                                      const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

static const char *const name_keys[] = { "coll", "algo", "proto" };
static const char *const name_words[] = { PROFILE_COLLECTIVE_WORDS, PROFILE_ALGORITHM_WORDS,
                                          PROFILE_PROTOCOL_WORDS };

static int take_sample(json_t *line, struct sample *sample, struct profile_error *error) {
  const char *names[3], *run = "", *topology = "";
  json_int_t schema, bytes, nodes, ppn, channels = 0, n, time = 0, nccl = 0;
  double median_us, mad_us = 0;
  int is_default = 0;
  json_error_t problem;
  if (json_unpack_ex(line, &problem, 0,
                     "{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s?I, s?b, s:I, s:F, s?F, s?I, s?I, s?s, "
                     "s?s}",
                     "schema", &schema, "coll", &names[0], "algo", &names[1], "proto", &names[2],
                     "bytes", &bytes, "nodes", &nodes, "ppn", &ppn, "channels", &channels,
                     "default", &is_default, "n", &n, "median_us", &median_us, "mad_us", &mad_us,
                     "time", &time, "nccl", &nccl, "run", &run, "topology", &topology) != 0) {
    return fail(error, "is no sample: %s", problem.text);
  }
  const struct {
    const char *key;
    json_int_t value, low, high;
  } numbers[] = {
    { "schema", schema, SAMPLE_SCHEMA, SAMPLE_SCHEMA },
    { "bytes", bytes, 0, INT64_MAX },
    { "nodes", nodes, 1, 1000000 },
    { "ppn", ppn, 1, 1024 },
    { "channels", channels, 0, PROFILE_CHANNELS_MAX },
    { "n", n, 1, UINT32_MAX },
    { "time", time, 0, INT64_MAX },
    { "nccl", nccl, 0, INT32_MAX },
  };
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (numbers[i].value < numbers[i].low || numbers[i].value > numbers[i].high) {
      return fail(error, "\"%s\" must be a whole number from %lld to %lld", numbers[i].key,
                  (long long)numbers[i].low, (long long)numbers[i].high);
    }
  }
  int places[3];
  for (int i = 0; i < 3; i++) {
    places[i] = quantity_find_word(name_words[i], names[i]);
    if (places[i] < 0) {
      return fail(error, "\"%s\" is none of %s", name_keys[i], name_words[i]);
    }
  }
  if (median_us <= 0 || mad_us < 0 || !is_word(run)) {
    return fail(error,
                "median_us is more than 0, mad_us not less, and run consists of letters, "
                "digits and . _ -, fewer than %d",
                SAMPLE_WORD_MAX);
  }
  if (*topology && !topology_is_id(topology, strlen(topology))) {
    return fail(error, "\"topology\" must be %d digits 0-9 and a-f", TOPOLOGY_ID_DIGITS);
  }
  *sample = (struct sample){
    .collective = (enum profile_collective)places[0],
    .cell = { (enum profile_algorithm)places[1], (enum profile_protocol)places[2],
              (uint32_t)channels },
    .bytes = (uint64_t)bytes,
    .nodes = (uint32_t)nodes,
    .ppn = (uint32_t)ppn,
    .is_default = is_default,
    .n = (uint32_t)n,
    .median_us = median_us,
    .mad_us = mad_us,
    .time = (uint64_t)time,
    .nccl = (int)nccl,
  };
  strcpy(sample->run, run);
  strcpy(sample->topology, topology);
  return 0;
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
  json_error_t problem;
  struct sample sample;
  json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
  if (!line && text[length - 1] != '\n') {
    return 0; /* its writer was interrupted */
  }
  int result =
      line ? take_sample(line, &sample, error) : fail(error, "is no JSON object: %s", problem.text);
  json_decref(line);
  return result == 0 ? sample_file_add(out, &sample) : result;
}

int sample_file_read(const char *path, struct sample_file *out, struct profile_error *error) {
  struct profile_error why;
  *error = (struct profile_error){ 0 };
  FILE *file = fopen(path, "re");
  int result = file ? 0 : -errno;
  char *text = NULL;
  size_t room = 0;
  ssize_t length;
  for (int line = 1; result == 0 && (length = getline(&text, &room, file)) > 0; line++) {
    result = read_line(out, text, (size_t)length, &why);
    if (result == -EINVAL) {
      snprintf(error->text, sizeof error->text, "%.*s:%d: %.500s", PROFILE_PATH_MAX, path, line,
               why.text);
    }
  }
  result = result == 0 && file && ferror(file) ? -errno : result;
  free(text);
  if (file) {
    fclose(file);
  }
  if (result < 0) {
    if (!error->text[0]) {
      snprintf(error->text, sizeof error->text, "%.*s: cannot be read: %s", PROFILE_PATH_MAX, path,
               strerror(-result));
    }
    sample_file_free(out);
  }
  return result;
}

void sample_file_free(struct sample_file *file) {
  free(file->samples);
  *file = (struct sample_file){ 0 };
}
