/* SPDX-License-Identifier: Apache-2.0 */
/* A read-write lock: making and closing descriptors takes it for reading, fork() for writing. */
#include "common/descriptor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"

enum { WORD_BITS = 64, WORDS = DESCRIPTORS_MAX / WORD_BITS };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Atomic uint64_t marks[WORDS];
/* This thread timed out and continues without the lock. */
static __thread bool is_without_lock;

/* By the time of day: locks that wait by another clock are newer than the oldest glibc (Makefile).
 */
static struct timespec wait_end(void) {
  return clock_time_of_day_in(DESCRIPTOR_WAIT_NS);
}

void descriptor_begin(void) {
  int kept = errno;
  is_without_lock = false;
  if (pthread_rwlock_tryrdlock(&lock) != 0) {
    struct timespec end = wait_end();
    is_without_lock = pthread_rwlock_timedrdlock(&lock, &end) != 0;
  }
  errno = kept;
}

void descriptor_end(void) {
  int kept = errno;
  if (!is_without_lock) {
    pthread_rwlock_unlock(&lock);
  }
  errno = kept;
}

static uint64_t bit_of(int fd) {
  return UINT64_C(1) << (fd % WORD_BITS);
}

void descriptor_mark(int fd) {
  if (fd >= 0 && fd < DESCRIPTORS_MAX) {
    atomic_fetch_or(&marks[fd / WORD_BITS], bit_of(fd));
  }
}

void descriptor_unmark(int fd) {
  if (fd >= 0 && fd < DESCRIPTORS_MAX) {
    atomic_fetch_and(&marks[fd / WORD_BITS], ~bit_of(fd));
  }
}

int descriptor_made(int fd) {
  descriptor_mark(fd);
  descriptor_end();
  return fd;
}

void descriptor_close(int fd) {
  descriptor_begin();
  descriptor_unmark(fd);
  close(fd);
  descriptor_end();
}

bool descriptor_is_marked(int fd) {
  return fd >= 0 && fd < DESCRIPTORS_MAX && (atomic_load(&marks[fd / WORD_BITS]) & bit_of(fd)) != 0;
}

ssize_t descriptor_read(int fd, void *bytes, size_t room) {
  size_t length = 0;
  ssize_t got;
  do {
    got = read(fd, (char *)bytes + length, room - length);
    length += got > 0 ? (size_t)got : 0;
  } while ((got > 0 && length < room) || (got < 0 && errno == EINTR));
  return got < 0 ? -errno : (ssize_t)length;
}

/* ---- fork, in the order of its handlers ---- */

static __thread bool is_fork_without_lock;

void descriptor_before_fork(void) {
  struct timespec end = wait_end();
  is_fork_without_lock = pthread_rwlock_timedwrlock(&lock, &end) != 0;
}

void descriptor_after_fork(void) {
  if (!is_fork_without_lock) {
    pthread_rwlock_unlock(&lock);
  }
}

void descriptor_close_in_child(void) {
  for (int word = 0; word < WORDS; word++) {
    for (uint64_t left = atomic_exchange(&marks[word], 0); left; left &= left - 1) {
      close(word * WORD_BITS + __builtin_ctzll(left));
    }
  }
}
