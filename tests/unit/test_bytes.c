/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers at every alignment. */
#include "common/bytes.h"

#include "tests/lib/unit.h"

#include <pthread.h>
#include <sched.h>

UNIT_TEST(lowest_byte_comes_first_at_every_alignment) {
  for (size_t at = 0; at < 8; at++) {
    unsigned char room[17], *wire = room + at;
    memset(room, 0xa5, sizeof room);
    bytes_put_le64(wire, UINT64_C(0xf102030405060708));
    assert_memory_equal(wire, ((unsigned char[]){ 8, 7, 6, 5, 4, 3, 2, 0xf1, 0xa5 }), 9);
    assert_true(bytes_get_le64(wire) == UINT64_C(0xf102030405060708));
    bytes_put_le32(wire, 0xf1020304);
    assert_memory_equal(wire, ((unsigned char[]){ 4, 3, 2, 0xf1, 4 }), 5);
    assert_int_equal(bytes_get_le32(wire), 0xf1020304);
    bytes_put_le16(wire, 0xf102);
    assert_memory_equal(wire, ((unsigned char[]){ 2, 0xf1, 2 }), 3);
    assert_int_equal(bytes_get_le16(wire), 0xf102);
  }
}

UNIT_TEST(copies_at_every_alignment) {
  unsigned char from[96], to[96];
  for (size_t i = 0; i < sizeof from; i++) {
    from[i] = (unsigned char)(i * 7 + 3);
  }
  for (size_t at = 0; at < 16; at++) {
    for (size_t source = 0; source < 8; source++) {
      for (size_t count = 0; count <= 40; count++) {
        memset(to, 0xa5, sizeof to);
        bytes_copy_upwards(to + at, from + source, count);
        assert_memory_equal(to + at, from + source, count);
        assert_int_equal(to[at + count], 0xa5);
        assert_true(at == 0 || to[at - 1] == 0xa5);
      }
    }
  }
}

/* A line as NCCL's LL128 has them: its last word says that the others have come. */
enum { LINE_WORDS = 16, LINES = 50000 };
static uint64_t line[LINE_WORDS] __attribute__((aligned(128)));
static uint64_t line_seen; /* by the reader */

static void *line_reader(void *early) {
  for (uint64_t n = 1; n <= LINES; n++) {
    while (__atomic_load_n(&line[LINE_WORDS - 1], __ATOMIC_ACQUIRE) != n) {
      sched_yield();
    }
    for (int i = 0; i < LINE_WORDS - 1; i++) {
      *(unsigned *)early += __atomic_load_n(&line[i], __ATOMIC_RELAXED) != n;
    }
    __atomic_store_n(&line_seen, n, __ATOMIC_RELEASE);
  }
  return NULL;
}

UNIT_TEST(the_end_of_a_line_comes_last) {
  unsigned early = 0;
  pthread_t reader;
  assert_int_equal(pthread_create(&reader, NULL, line_reader, &early), 0);
  for (uint64_t n = 1; n <= LINES; n++) {
    uint64_t next[LINE_WORDS];
    for (int i = 0; i < LINE_WORDS; i++) {
      next[i] = n;
    }
    bytes_copy_upwards(line, next, sizeof next);
    while (__atomic_load_n(&line_seen, __ATOMIC_ACQUIRE) != n) {
      sched_yield();
    }
  }
  pthread_join(reader, NULL);
  assert_int_equal(early, 0);
}
