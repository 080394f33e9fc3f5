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

static char *buffer; /* of each test */

static int set_up(void **context) {
  log_capture_start();
  buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return buffer == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **context) {
  munmap(buffer, BUFFER);
  return memory_count() == 0 ? 0 : -1;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* The CPU cannot address this much of it any more. */
static void hide(size_t bytes) {
  assert_int_equal(mprotect(buffer, bytes, PROT_NONE), 0);
}

TEST(addressable_gpu_memory_is_counted_by_pages) {
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
}

TEST(other_gpu_memory_is_refused) {
  const struct memory *memory = NULL;
  hide(BUFFER);
  assert_int_equal(memory_register(buffer, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory), -EFAULT);
  assert_null(memory);
  assert_true(log_capture_find("STRATUS_GPU_POINTERS") > 0);
  /* The last byte counts, too. */
  assert_int_equal(mprotect(buffer, PAGE, PROT_READ | PROT_WRITE), 0);
  assert_int_equal(memory_register(buffer, PAGE + 1, MEMORY_GPU, MEMORY_RECEIVED, &memory),
                   -EFAULT);
  assert_int_equal(memory_register(buffer, PAGE, (enum memory_type)9, MEMORY_RECEIVED, &memory),
                   -EINVAL);
}

static int make_dma_buf(void) {
  int fd = memfd_create("test-memory", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, BUFFER), 0);
  return fd;
}

/* The user's address cannot be touched; the bytes arrive through the mapping. */
TEST(a_dma_buf_is_mapped) {
  hide(BUFFER);
  int fd = make_dma_buf();
  const uint64_t offset = PAGE + 100;
  const struct memory *memory, *inner;
  assert_int_equal(
      memory_register_dma_buf(buffer + 100, 2 * PAGE, offset, fd, MEMORY_RECEIVED, &memory), 0);
  strcpy(memory_address(memory, buffer + 100), "hello");
  char text[6] = "";
  assert_int_equal(pread(fd, text, 6, (off_t)offset), 6);
  assert_string_equal(text, "hello");
  /* A part of it is found again, with the same way to its bytes. */
  assert_int_equal(
      memory_register_dma_buf(buffer + 200, PAGE, offset + 100, fd, MEMORY_RECEIVED, &inner), 0);
  assert_ptr_equal(memory->range, inner->range);
  assert_int_equal(memory_count(), 1);
  const struct memory *outer = memory;
  /* Plain registration of the same range is another matter. */
  assert_int_equal(memory_register(buffer + 100, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory),
                   -EFAULT);
  memory_deregister(outer);
  assert_int_equal(memory_count(), 1);
  memory_deregister(inner);
  close(fd);
}

TEST(bytes_around_a_dma_buf_are_not_covered) {
  hide(BUFFER);
  int fd = make_dma_buf();
  const struct memory *first, *second;
  assert_int_equal(memory_register_dma_buf(buffer + 100, 1000, 100, fd, MEMORY_RECEIVED, &first),
                   0);
  assert_int_equal(memory_register_dma_buf(buffer, 1000, 0, fd, MEMORY_RECEIVED, &second), 0);
  assert_ptr_not_equal(first->range, second->range);
  memory_deregister(first);
  memory_deregister(second);
  close(fd);
}

TEST(a_dma_buf_that_cannot_be_mapped_falls_back) {
  int ends[2];
  assert_int_equal(pipe(ends), 0); /* has no mmap, like most exporters */
  const struct memory *memory;
  assert_int_equal(memory_register_dma_buf(buffer, PAGE, 0, ends[0], MEMORY_RECEIVED, &memory), 0);
  assert_ptr_equal(memory_address(memory, buffer), buffer);
  memory_deregister(memory);
  hide(PAGE);
  assert_int_equal(memory_register_dma_buf(buffer, PAGE, 0, ends[0], MEMORY_RECEIVED, &memory),
                   -EFAULT);
  close(ends[0]);
  close(ends[1]);
}

static void *register_and_release(void *argument) {
  for (int i = 0; i < 2000; i++) {
    const struct memory *memory;
    char *data = buffer + (i % 16) * PAGE;
    if (memory_register(data, PAGE, MEMORY_GPU, MEMORY_RECEIVED, &memory) ||
        memory_address(memory, data) != data) {
      return data;
    }
    memory_deregister(memory);
  }
  return NULL;
}

TEST(threads_share_the_cache) {
  const struct memory *kept;
  assert_int_equal(memory_register(buffer, 4 * PAGE, MEMORY_GPU, MEMORY_RECEIVED, &kept), 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, register_and_release, NULL), 0);
  }
  /* A handle is read while others come and go. */
  for (int i = 0; i < 10000; i++) {
    assert_ptr_equal(memory_address(kept, buffer), buffer);
  }
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  memory_deregister(kept);
}
