/* SPDX-License-Identifier: Apache-2.0 */
/* See contents.h. */
#include "tests/coll/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/coll/message.h"

struct contents contents_read(const char *path) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status))
    message_fail("--data: %s: %s", path, strerror(errno));
  size_t size = (size_t)status.st_size;
  void *bytes =
      S_ISREG(status.st_mode) ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (bytes == MAP_FAILED)
    message_fail("--data: %s is no file with bytes", path);
  close(fd);
  return (struct contents){ bytes, size };
}

void contents_copy(const struct contents *contents, size_t offset, void *to, size_t bytes) {
  for (size_t done = 0, part; done < bytes; done += part) {
    size_t at = (offset + done) % contents->size;
    part = contents->size - at < bytes - done ? contents->size - at : bytes - done;
    memcpy((char *)to + done, contents->bytes + at, part);
  }
}
