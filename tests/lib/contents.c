/* SPDX-License-Identifier: Apache-2.0 */
/* See contents.h. */
#include "tests/lib/contents.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/quantity.h"
#include "common/random.h"

#define FILE_BYTES_MAX ((off_t)1 << 30)

/* Of what is invented: more than the caches of a processor core hold. */
#define CONTENTS_INVENTED_BYTES ((size_t)8 << 20)
/* Numbers that belong together, as the weights of one output do. */
#define CONTENTS_ROW_NUMBERS 512
/* How much rows and numbers differ. With these the codec makes bf16 1.364 and f32 1.154 times
 * shorter; the gradients of ResNet-18 become 1.364 and 1.156 times shorter (codec/README.md). */
#define CONTENTS_ROW_BITS 12
#define CONTENTS_NUMBER_BITS 4

/* A sum of twelve is close to a normal distribution of deviation 1. */
static float normal(uint64_t *random) {
  uint64_t sum = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t bits = random_next(random);
    sum += (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  }
  return (float)sum / 65536 - 6;
}

/* Whole numbers around 0 of deviation sqrt(bits) / 2. */
static int binomial(uint64_t *random, int bits) {
  return __builtin_popcountll(random_next(random) >> (64 - bits)) - bits / 2;
}

/* Gradients: normal numbers, whose deviation differs by row and by number. */
static void invent(uint8_t *bytes, size_t size, size_t width) {
  uint64_t random = 1;
  int row = 0;
  for (size_t i = 0; i < size / width; i++) {
    row = i % CONTENTS_ROW_NUMBERS == 0 ? binomial(&random, CONTENTS_ROW_BITS) : row;
    float number = ldexpf(normal(&random), row + binomial(&random, CONTENTS_NUMBER_BITS) - 14);
    uint32_t code;
    memcpy(&code, &number, sizeof code);
    code ^= (uint32_t)(random_next(&random) >> 48); /* bits that the sum did not reach */
    code = width == 2 ? code >> 16 : code;
    memcpy(bytes + i * width, &code, width);
  }
}

static void randomize(uint8_t *bytes, size_t size) {
  uint64_t random = 1;
  for (size_t at = 0; at < size; at += sizeof random) {
    uint64_t word = random_next(&random);
    memcpy(bytes + at, &word, sizeof word);
  }
}

static int read_file(struct contents *contents, const char *path, char error[CONTENTS_ERROR_MAX]) {
  struct stat status;
  FILE *file = fopen(path, "rb");
  int problem = !file || fstat(fileno(file), &status) != 0 ? errno : 0;
  if (!problem &&
      (!S_ISREG(status.st_mode) || status.st_size < 1 || status.st_size > FILE_BYTES_MAX)) {
    snprintf(error, CONTENTS_ERROR_MAX, "%s is no file of 1 byte to 1 GiB", path);
    fclose(file);
    return -EINVAL;
  }
  if (!problem) {
    contents->size = (size_t)status.st_size;
    contents->bytes = malloc(contents->size);
    errno = EIO; /* a file that became shorter */
    bool is_read = contents->bytes && fread(contents->bytes, contents->size, 1, file) == 1;
    problem = is_read ? 0 : errno;
  }
  if (file) {
    fclose(file);
  }
  if (problem) {
    snprintf(error, CONTENTS_ERROR_MAX, "%s, neither one of %s nor a file: %s", path,
             CONTENTS_WORDS, strerror(problem));
    contents_free(contents);
  }
  return -problem;
}

int contents_load(struct contents *contents, const char *what, char error[CONTENTS_ERROR_MAX]) {
  *contents = (struct contents){ 0 };
  int word = quantity_find_word(CONTENTS_WORDS, what);
  if (word < 0) {
    return read_file(contents, what, error);
  }
  contents->size = CONTENTS_INVENTED_BYTES;
  contents->bytes = calloc(1, CONTENTS_INVENTED_BYTES);
  if (!contents->bytes) {
    snprintf(error, CONTENTS_ERROR_MAX, "out of memory");
    return -ENOMEM;
  }
  if (word < 2) {
    invent(contents->bytes, contents->size, word == 0 ? 2 : 4);
  } else if (word == 2) {
    randomize(contents->bytes, contents->size);
  }
  return 0;
}

void contents_free(struct contents *contents) {
  free(contents->bytes);
  *contents = (struct contents){ 0 };
}

void contents_copy(const struct contents *contents, uint64_t offset, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    size_t at = (size_t)((offset + done) % contents->size);
    size_t part = contents->size - at < bytes - done ? contents->size - at : bytes - done;
    memcpy((uint8_t *)to + done, contents->bytes + at, part);
    done += part;
  }
}
