/* SPDX-License-Identifier: Apache-2.0 */
/* fork_guard: a child has neither the descriptors that were marked nor the mappings that were
 * named, and the parent keeps both. What the plugins make of it is in tests/abi/fork_host.c. */
#include "common/fork_guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "tests/lib/unit.h"

enum { PAGE = 4096, MAPPINGS = 40 };

static unsigned count_mappings(const char *name) {
  char line[1024];
  unsigned count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    count += strstr(line, name) != NULL;
  }
  if (maps) {
    fclose(maps);
  }
  return count;
}

UNIT_TEST(what_is_marked_and_named_is_gone_in_a_child) {
  SKIP_IF_EMULATED("/proc/self/maps is not the process's");
  char named[] = "/tmp/stratus-fork-XXXXXX", other[] = "/tmp/stratus-other-XXXXXX";
  int fd = DESCRIPTOR(mkstemp(named)), kept = mkstemp(other);
  assert_true(fd >= 0 && kept >= 0);
  assert_int_equal(ftruncate(fd, PAGE * MAPPINGS), 0);
  assert_int_equal(ftruncate(kept, PAGE), 0);
  /* Many lines, so that they do not come in one read; in an order in which the kernel merges none.
   */
  uint8_t *mapped[MAPPINGS];
  for (int i = 0; i < MAPPINGS; i++) {
    mapped[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE * i);
    assert_ptr_not_equal(mapped[i], MAP_FAILED);
    mapped[i][0] = 1;
  }
  assert_ptr_not_equal(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, kept, 0), MAP_FAILED);
  assert_true(descriptor_is_marked(fd));
  assert_int_equal(count_mappings(named), MAPPINGS);
  fork_guard_install();
  fork_guard_unmap("/tmp/stratus-fork-");
  pid_t child = fork();
  if (child == 0) {
    _exit(!fork_guard_is_child()       ? 1
          : count_mappings(named) != 0 ? 2
          : count_mappings(other) != 1 ? 3
          : fcntl(fd, F_GETFD) >= 0    ? 4
          : fcntl(kept, F_GETFD) < 0   ? 5
                                       : 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_false(fork_guard_is_child());
  assert_int_equal(count_mappings(named), MAPPINGS);
  for (int i = 0; i < MAPPINGS; i++) {
    assert_int_equal(mapped[i][0], 1);
  }
  assert_true(fcntl(fd, F_GETFD) >= 0);
  descriptor_close(fd);
  assert_false(descriptor_is_marked(fd));
  close(kept);
  unlink(named);
  unlink(other);
}
