/* SPDX-License-Identifier: Apache-2.0 */
/* The counter, and the wrapped mappings; the other wrapped calls are in fault_calls.c. */
#include "tests/lib/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/fault_state.h"

static unsigned long countdown; /* 0: no fault is set */
static enum fault_call failing;
static int failing_error;
static bool has_failed, is_called[FAULT_CALL_COUNT]; /* since fault_forget */
static enum fault_call refused;
static int refused_error; /* of all calls of that kind; 0: of none */
static int refused_level, refused_option, option_error;
static size_t shortened;                   /* 0: not */
static size_t refused_least, refused_most; /* bytes of a mapping; most 0: none is refused */
static long mappings;

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __real_open(const char *path, int flags, ...);

void fault_fail(enum fault_call call, unsigned long k, int error) {
  __atomic_store_n(&countdown, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&has_failed, false, __ATOMIC_RELAXED);
  __atomic_store_n(&failing, call, __ATOMIC_RELAXED);
  __atomic_store_n(&failing_error, error, __ATOMIC_RELAXED);
  __atomic_store_n(&countdown, k, __ATOMIC_RELEASE);
}

void fault_forget(void) {
  has_failed = false;
  memset(is_called, 0, sizeof is_called);
}

bool fault_is_called(enum fault_call call) {
  return __atomic_load_n(&is_called[call], __ATOMIC_RELAXED);
}

void fault_shorten(size_t bytes) {
  __atomic_store_n(&shortened, bytes, __ATOMIC_RELAXED);
}

size_t fault_shortened(size_t bytes) {
  size_t most = __atomic_load_n(&shortened, __ATOMIC_RELAXED);
  return most > 0 && most < bytes ? most : bytes;
}

void fault_refuse(enum fault_call call, int error) {
  __atomic_store_n(&refused, call, __ATOMIC_RELAXED);
  __atomic_store_n(&refused_error, error, __ATOMIC_RELEASE);
}

void fault_refuse_option(int level, int option, int error) {
  __atomic_store_n(&refused_level, level, __ATOMIC_RELAXED);
  __atomic_store_n(&refused_option, option, __ATOMIC_RELAXED);
  __atomic_store_n(&option_error, error, __ATOMIC_RELEASE);
}

bool fault_is_refused(int level, int option) {
  int error = __atomic_load_n(&option_error, __ATOMIC_ACQUIRE);
  if (error && __atomic_load_n(&refused_level, __ATOMIC_RELAXED) == level &&
      __atomic_load_n(&refused_option, __ATOMIC_RELAXED) == option) {
    errno = error;
    return true;
  }
  return false;
}

void fault_refuse_mappings(size_t least, size_t most) {
  __atomic_store_n(&has_failed, false, __ATOMIC_RELAXED);
  __atomic_store_n(&refused_least, least, __ATOMIC_RELAXED);
  __atomic_store_n(&refused_most, most, __ATOMIC_RELEASE);
}

bool fault_clear(void) {
  __atomic_store_n(&countdown, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&refused_most, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&refused_error, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&option_error, 0, __ATOMIC_RELEASE);
  fault_shorten(0);
  return __atomic_load_n(&has_failed, __ATOMIC_RELAXED);
}

long fault_mappings(void) {
  return __atomic_load_n(&mappings, __ATOMIC_RELAXED);
}

/* For tests/unit/run, which compares with tests/unit/threaded. */
static void note_thread(void) {
  const char *path = getenv("STRATUS_TEST_THREADS");
  if (path) {
    close(__real_open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
}

bool fault_is_due(enum fault_call call) {
  if (call == FAULT_THREAD && !fault_is_called(call)) {
    note_thread();
  }
  __atomic_store_n(&is_called[call], true, __ATOMIC_RELAXED);
  int error = __atomic_load_n(&refused_error, __ATOMIC_ACQUIRE);
  if (error && __atomic_load_n(&refused, __ATOMIC_RELAXED) == call) {
    errno = error;
    return true;
  }
  unsigned long left = __atomic_load_n(&countdown, __ATOMIC_ACQUIRE);
  while (left > 0 && __atomic_load_n(&failing, __ATOMIC_RELAXED) == call) {
    if (__atomic_compare_exchange_n(&countdown, &left, left - 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      if (left == 1) {
        __atomic_store_n(&has_failed, true, __ATOMIC_RELAXED);
        errno = __atomic_load_n(&failing_error, __ATOMIC_RELAXED);
      }
      return left == 1;
    }
  }
  return false;
}

static bool is_refused(size_t bytes) {
  bool is_one = bytes <= __atomic_load_n(&refused_most, __ATOMIC_ACQUIRE) &&
                bytes >= __atomic_load_n(&refused_least, __ATOMIC_RELAXED);
  if (is_one) {
    __atomic_store_n(&has_failed, true, __ATOMIC_RELAXED);
    errno = ENOMEM;
  }
  return is_one;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  bool fails = is_refused(bytes) || fault_is_due(FAULT_ALLOCATION);
  void *mapped = fails ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED) {
    __atomic_add_fetch(&mappings, 1, __ATOMIC_RELAXED);
  }
  return mapped;
}

int __wrap_munmap(void *at, size_t bytes) {
  __atomic_sub_fetch(&mappings, 1, __ATOMIC_RELAXED);
  return __real_munmap(at, bytes);
}
