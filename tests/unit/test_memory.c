/* SPDX-License-Identifier: Apache-2.0 */
/* The registration cache. GPU memory that the CPU cannot address is a mapping without access; a
 * dma-buf that can be mapped is a memfd. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net_plugin/plugin/memory.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

enum { PAGE = 4096, BUFFER = 16 * PAGE };

static int set_up(void **context) {
  log_capture_start();
  return 0;
}

static int tear_down(void **context) {
  return memory_count() == 0 ? 0 : -1;
}

static void *map(int protection) {
  void *buffer = mmap(NULL, BUFFER, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(buffer, MAP_FAILED);
  return buffer;
}

UNIT_TEST_WITH(addressable_gpu_memory_is_counted_by_pages, set_up, tear_down) {
  char *buffer = map(PROT_READ | PROT_WRITE);
  const struct memory *whole, *part, *beyond;
  assert_int_equal(memory_register(buffer, 4 * PAGE, MEMORY_GPU, MEMORY_RECEIVED, &whole), 0);
  assert_int_equal(memory_register(buffer + 10, 100, MEMORY_GPU, MEMORY_RECEIVED, &part), 0);
  assert_ptr_not_equal(whole, part); /* each registration ends by itself */
  assert_ptr_equal(whole->range, part->range);
  assert_int_equal(memory_count(), 1);
  assert_int_equal(memory_register(buffer + 4 * PAGE - 1, 2, MEMORY_GPU, MEMORY_RECEIVED, &beyond),
                   0);
  assert_ptr_not_equal(whole->range, beyond->range);
  assert_int_equal(memory_count(), 2);
  assert_ptr_equal(memory_address(part, buffer + 10), buffer + 10);
  memory_deregister(whole);
  assert_int_equal(memory_count(), 2);
  memory_deregister(part);
  memory_deregister(beyond);
  assert_int_equal(memory_count(), 0);
  munmap(buffer, BUFFER);
}

UNIT_TEST_WITH(other_gpu_memory_is_refused, set_up, tear_down) {
  char *buffer = map(PROT_NONE);
  const struct memory *memory = NULL;
  assert_int_equal(memory_register(buffer, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory), -EFAULT);
  assert_null(memory);
  assert_true(log_capture_find("STRATUS_GPU_POINTERS") > 0);
  /* The last byte counts, too. */
  assert_int_equal(mprotect(buffer, PAGE, PROT_READ | PROT_WRITE), 0);
  assert_int_equal(memory_register(buffer, PAGE + 1, MEMORY_GPU, MEMORY_RECEIVED, &memory),
                   -EFAULT);
  assert_int_equal(memory_register(buffer, PAGE, (enum memory_type)9, MEMORY_RECEIVED, &memory),
                   -EINVAL);
  munmap(buffer, BUFFER);
}

static int make_dma_buf(void) {
  int fd = memfd_create("test-memory", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, BUFFER), 0);
  return fd;
}

/* The user's address cannot be touched; the bytes arrive through the mapping. */
UNIT_TEST_WITH(a_dma_buf_is_mapped, set_up, tear_down) {
  char *gpu = map(PROT_NONE);
  int fd = make_dma_buf();
  const uint64_t offset = PAGE + 100;
  const struct memory *memory, *inner;
  assert_int_equal(
      memory_register_dma_buf(gpu + 100, 2 * PAGE, offset, fd, MEMORY_RECEIVED, &memory), 0);
  strcpy(memory_address(memory, gpu + 100), "hello");
  char text[6] = "";
  assert_int_equal(pread(fd, text, 6, (off_t)offset), 6);
  assert_string_equal(text, "hello");
  /* A part of it is found again, with the same way to its bytes. */
  assert_int_equal(
      memory_register_dma_buf(gpu + 200, PAGE, offset + 100, fd, MEMORY_RECEIVED, &inner), 0);
  assert_ptr_equal(memory->range, inner->range);
  assert_int_equal(memory_count(), 1);
  const struct memory *outer = memory;
  /* Plain registration of the same range is another matter. */
  assert_int_equal(memory_register(gpu + 100, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory), -EFAULT);
  memory_deregister(outer);
  assert_int_equal(memory_count(), 1);
  memory_deregister(inner);
  close(fd);
  munmap(gpu, BUFFER);
}

UNIT_TEST_WITH(bytes_around_a_dma_buf_are_not_covered, set_up, tear_down) {
  char *gpu = map(PROT_NONE);
  int fd = make_dma_buf();
  const struct memory *first, *second;
  assert_int_equal(memory_register_dma_buf(gpu + 100, 1000, 100, fd, MEMORY_RECEIVED, &first), 0);
  assert_int_equal(memory_register_dma_buf(gpu, 1000, 0, fd, MEMORY_RECEIVED, &second), 0);
  assert_ptr_not_equal(first->range, second->range);
  memory_deregister(first);
  memory_deregister(second);
  close(fd);
  munmap(gpu, BUFFER);
}

UNIT_TEST_WITH(a_dma_buf_that_cannot_be_mapped_falls_back, set_up, tear_down) {
  char *buffer = map(PROT_READ | PROT_WRITE);
  int ends[2];
  assert_int_equal(pipe(ends), 0); /* has no mmap, like most exporters */
  const struct memory *memory;
  assert_int_equal(memory_register_dma_buf(buffer, PAGE, 0, ends[0], MEMORY_RECEIVED, &memory), 0);
  assert_ptr_equal(memory_address(memory, buffer), buffer);
  memory_deregister(memory);
  assert_int_equal(mprotect(buffer, PAGE, PROT_NONE), 0);
  assert_int_equal(memory_register_dma_buf(buffer, PAGE, 0, ends[0], MEMORY_RECEIVED, &memory),
                   -EFAULT);
  close(ends[0]);
  close(ends[1]);
  munmap(buffer, BUFFER);
}

static char *shared_buffer;

static void *register_and_release(void *argument) {
  for (int i = 0; i < 2000; i++) {
    const struct memory *memory;
    char *data = shared_buffer + (i % 16) * PAGE;
    if (memory_register(data, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory) ||
        memory_address(memory, data) != data) {
      return data;
    }
    memory_deregister(memory);
  }
  return NULL;
}

UNIT_TEST_WITH(threads_share_the_cache, set_up, tear_down) {
  shared_buffer = map(PROT_READ | PROT_WRITE);
  const struct memory *kept;
  assert_int_equal(memory_register(shared_buffer, 4 * PAGE, MEMORY_GPU, MEMORY_RECEIVED, &kept), 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, register_and_release, NULL), 0);
  }
  /* A handle is read while others come and go. */
  for (int i = 0; i < 10000; i++) {
    assert_ptr_equal(memory_address(kept, shared_buffer), shared_buffer);
  }
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  memory_deregister(kept);
  munmap(shared_buffer, BUFFER);
}
