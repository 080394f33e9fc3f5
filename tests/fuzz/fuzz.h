/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what the fuzz targets share: the input as a row of values, and checks.
 * Owns: nothing.  Threads: one.  Blocks: never.
 * Fails: a check that does not hold aborts, which is how libFuzzer knows that it found something.
 *
 * An input that is used up gives zeros, so every byte string is a whole program. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/link/link.h"

/* libFuzzer calls this once per input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FUZZ_CHECK(condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      dprintf(2, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                    \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

struct fuzz_input {
  const uint8_t *at;
  size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_input *input) {
  if (input->left == 0) {
    return 0;
  }
  input->left--;
  return *input->at++;
}

static inline uint16_t fuzz_u16(struct fuzz_input *input) {
  uint16_t low = fuzz_u8(input);
  return (uint16_t)(low | fuzz_u8(input) << 8);
}

static inline uint32_t fuzz_u32(struct fuzz_input *input) {
  uint32_t low = fuzz_u16(input);
  return low | (uint32_t)fuzz_u16(input) << 16;
}

static inline uint64_t fuzz_u64(struct fuzz_input *input) {
  uint64_t low = fuzz_u32(input);
  return low | (uint64_t)fuzz_u32(input) << 32;
}

/* Fills `bytes` bytes; what the input lacks is zero. */
static inline void fuzz_bytes(struct fuzz_input *input, void *to, size_t bytes) {
  size_t have = input->left < bytes ? input->left : bytes;
  if (have > 0) {
    memcpy(to, input->at, have);
  }
  memset((uint8_t *)to + have, 0, bytes - have);
  input->at += have;
  input->left -= have;
}

/* Reads every byte, so that a sanitizer sees which of them may not be read. */
static inline void fuzz_read_all(const void *data, size_t bytes) {
  static volatile uint8_t sum;
  for (size_t i = 0; i < bytes; i++) {
    sum = (uint8_t)(sum + ((const uint8_t *)data)[i]);
  }
}

/* Memory for a link, made once per size and zeroed again as link_init wants it, but for the
 * receiver's last part, which takes what nobody reads. Of the right size, so that a byte behind it
 * shows. */
static inline void *fuzz_link_memory(const struct link_config *config) {
  static struct {
    void *memory;
    size_t bytes;
  } known[128];
  size_t bytes = link_memory_bytes(config);
  size_t used = bytes - (config->role == LINK_RECEIVER ? WIRE_MAX_CHUNK_BYTES : 0);
  FUZZ_CHECK(bytes > 0);
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
    if (!known[i].memory) {
      known[i].memory = malloc(bytes);
      known[i].bytes = bytes;
      FUZZ_CHECK(known[i].memory != NULL);
    }
    if (known[i].bytes == bytes) {
      return memset(known[i].memory, 0, used);
    }
  }
  abort(); /* more configurations than are kept */
}

/* For log_set_sink: the text is looked at and forgotten. */
static inline void fuzz_swallow_log(enum log_level level, const char *file, int line,
                                    const char *text) {
  FUZZ_CHECK(strlen(text) < LOG_TEXT_MAX);
}

/* What a tool would print to stdout becomes text, until fuzz_printed. */
static inline FILE *fuzz_print_here(char **text, size_t *bytes) {
  FILE *before = stdout;
  stdout = open_memstream(text, bytes);
  FUZZ_CHECK(stdout != NULL);
  return before;
}

static inline void fuzz_printed(FILE *before) {
  fclose(stdout);
  stdout = before;
}

/* Whatever another host or process said, a terminal is not told to do anything by it. */
static inline void fuzz_check_visible(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    FUZZ_CHECK(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
  }
}

#endif
