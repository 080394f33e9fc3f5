/* SPDX-License-Identifier: Apache-2.0 */
/* mmap with a page more on each side. */
#include "tests/lib/guarded.h"

#include <sys/mman.h>

#include "tests/lib/unit.h"

enum { PAGE = 4096 };

struct guarded guarded_make(size_t bytes) {
  size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  uint8_t *map =
      mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(map != MAP_FAILED);
  assert_int_equal(mprotect(map + PAGE, room, PROT_READ | PROT_WRITE), 0);
  return (struct guarded){ map + PAGE, room };
}

void guarded_free(struct guarded *guarded) {
  assert_int_equal(munmap(guarded->begin - PAGE, guarded->room + 2 * PAGE), 0);
}
