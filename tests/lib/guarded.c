/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of mmap, the first and the last of them without access. */
#include "tests/lib/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/unit.h"

static size_t page_bytes(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

struct guarded guarded_new(size_t bytes) {
  size_t page = page_bytes(), inside = (bytes + page - 1) / page * page;
  unsigned char *all = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(all != MAP_FAILED);
  assert_int_equal(mprotect(all + page, inside, PROT_READ | PROT_WRITE), 0);
  return (struct guarded){ all + page, all + page + inside };
}

void guarded_free(struct guarded *memory) {
  size_t page = page_bytes();
  munmap(memory->start - page, (size_t)(memory->end - memory->start) + 2 * page);
}
