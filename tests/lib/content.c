/* SPDX-License-Identifier: Apache-2.0 */
/* See content.h. */
#include "tests/lib/content.h"

#include <pthread.h>
#include <string.h>

#include "tests/lib/unit.h"

/* The byte at `at` is at * 31 + at / STEP. So what lies STEP further is 31 * STEP + 1 = 102 more,
 * which takes 128 steps to come round in a byte. */
enum { STEP = 251, MESSAGES = 128 };

enum { PLAIN, CODABLE };

static uint8_t tables[2][CONTENT_MAX + STEP * MESSAGES];
static unsigned used = PLAIN;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
  for (size_t at = 0; at < sizeof tables[PLAIN]; at++) {
    tables[PLAIN][at] = (uint8_t)(at * 31 + at / STEP);
    tables[CODABLE][at] = at % 4 == 3 ? 60 : tables[PLAIN][at];
  }
}

void content_set_codable(bool is_codable) {
  used = is_codable ? CODABLE : PLAIN;
}

static const uint8_t *content_of(uint64_t message, size_t bytes) {
  assert_true(bytes <= CONTENT_MAX);
  pthread_once(&once, make_tables);
  return tables[used] + STEP * (message % MESSAGES);
}

void content_fill(uint64_t message, uint8_t *buffer, size_t bytes) {
  memcpy(buffer, content_of(message, bytes), bytes);
}

size_t content_differs(uint64_t message, const uint8_t *buffer, size_t bytes) {
  const uint8_t *content = content_of(message, bytes);
  size_t at = 0;
  if (memcmp(buffer, content, bytes) == 0) {
    return bytes;
  }
  while (buffer[at] == content[at]) {
    at++;
  }
  return at;
}
