/* SPDX-License-Identifier: Apache-2.0 */
/* A fault of a process of its own, as a tool is (tests/lib/faulty_tool.h): which call fails is in
 * the environment, and whether it has is kept in a file, which outlives a crash. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/fault_state.h"

int __real_open(const char *path, int flags, ...);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

__attribute__((constructor)) static void set_fault(void) {
  const char *order = getenv(FAULT_VARIABLE);
  unsigned call;
  unsigned long k;
  int error;
  char path[128];
  if (!order || sscanf(order, "%u %lu %d %127s", &call, &k, &error, path) != 4 ||
      call >= FAULT_CALL_COUNT) {
    return;
  }
  int fd = __real_open(path, O_RDWR | O_CLOEXEC);
  void *record = fd < 0 ? MAP_FAILED
                        : __real_mmap(NULL, sizeof(struct fault_record), PROT_READ | PROT_WRITE,
                                      MAP_SHARED, fd, 0);
  if (record == MAP_FAILED) {
    fprintf(stderr, "%s: no file %s\n", FAULT_VARIABLE, path);
    _exit(1);
  }
  close(fd);
  fault_keep_in(record);
  fault_fail((enum fault_call)call, k, error);
}
