/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped allocators. */
#include "tests/lib/fault.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static unsigned long countdown; /* 0: no fault is set */
static bool has_failed;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_reallocarray(void *memory, size_t count, size_t bytes);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_reallocarray(void *memory, size_t count, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void fault_fail_allocation(unsigned long k) {
  __atomic_store_n(&has_failed, false, __ATOMIC_RELAXED);
  __atomic_store_n(&countdown, k, __ATOMIC_RELEASE);
}

bool fault_clear(void) {
  __atomic_store_n(&countdown, 0, __ATOMIC_RELEASE);
  return __atomic_load_n(&has_failed, __ATOMIC_RELAXED);
}

/* True for the one call that has to fail. */
static bool is_due(void) {
  unsigned long left = __atomic_load_n(&countdown, __ATOMIC_ACQUIRE);
  while (left > 0) {
    if (__atomic_compare_exchange_n(&countdown, &left, left - 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      if (left == 1) {
        __atomic_store_n(&has_failed, true, __ATOMIC_RELAXED);
        errno = ENOMEM;
      }
      return left == 1;
    }
  }
  return false;
}

void *__wrap_malloc(size_t bytes) {
  return is_due() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
  return is_due() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes) {
  return is_due() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t bytes) {
  return is_due() ? NULL : __real_reallocarray(memory, count, bytes);
}

char *__wrap_strdup(const char *text) {
  return is_due() ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
  return is_due() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return is_due() ? NULL : __real_aligned_alloc(alignment, bytes);
}
