/* SPDX-License-Identifier: Apache-2.0 */
/* canary: the kernel hands out the highest gap that is large enough, so pieces smaller than what is
 * freed fill its place. Every word holds its own address, changed by a constant: data that is moved
 * from one piece to another is seen as well. */
#include "tests/coll/stress/canary.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/coll/message.h"

enum {
  PIECE_BYTES = 512 << 10, /* NCCL's buffers are of some hundred KiB up to some MiB */
  WORDS = PIECE_BYTES / 8,
  PIECES_MAX = 96,           /* 48 MiB: what a rank of a few channels frees */
  PIECES_WHILE_FREEING = 64, /* at most, by the thread */
  PAUSE_NS = 200 * 1000,     /* between two of them: short beside an abort's milliseconds */
};
static const uint64_t key = UINT64_C(0x5ca1ab1e0ddba11);

static struct {
  uint64_t *pieces[PIECES_MAX];
  int count;
  pthread_t thread;
  atomic_bool is_ending;
} canary;

static void map_piece(void) {
  uint64_t *piece =
      mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED)
    message_fail("out of memory");
  for (size_t i = 0; i < WORDS; i++)
    piece[i] = (uint64_t)(uintptr_t)&piece[i] ^ key;
  canary.pieces[canary.count++] = piece;
}

static void *run(void *unused) {
  const struct timespec pause = { .tv_nsec = PAUSE_NS };
  (void)unused;
  while (!atomic_load(&canary.is_ending) && canary.count < PIECES_WHILE_FREEING) {
    map_piece();
    nanosleep(&pause, NULL);
  }
  return NULL;
}

void canary_begin(void) {
  atomic_store(&canary.is_ending, false);
  int error = pthread_create(&canary.thread, NULL, run, NULL);
  if (error)
    message_fail("cannot start a thread: %s", strerror(error));
}

void canary_end(void) {
  atomic_store(&canary.is_ending, true);
  pthread_join(canary.thread, NULL);
}

void canary_fill(void) {
  while (canary.count < PIECES_MAX)
    map_piece();
}

static uint64_t check_piece(uint64_t *piece) {
  uint64_t changed = 0;
  for (size_t i = 0; i < WORDS; i++) {
    uint64_t difference = piece[i] ^ (uint64_t)(uintptr_t)&piece[i] ^ key;
    if (difference && !changed)
      message_write("memory that was freed was written to: 0x%016" PRIx64
                    " at %p, in a piece of %d bytes at "
                    "%p",
                    piece[i], (void *)&piece[i], PIECE_BYTES, (void *)piece);
    for (; difference; difference >>= 8)
      changed += (difference & 0xff) != 0;
  }
  return changed;
}

uint64_t canary_check(void) {
  uint64_t changed = 0;
  for (; canary.count; canary.count--) {
    uint64_t *piece = canary.pieces[canary.count - 1];
    changed += check_piece(piece);
    munmap(piece, PIECE_BYTES);
  }
  return changed;
}
