/* SPDX-License-Identifier: Apache-2.0 */
/* See handed_over.h. */
#include "tests/coll/handed_over.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/coll/message.h"

bool handed_over_add(struct handed_over *all, const char *name, const char *value) {
  size_t room = sizeof all->text - all->length;
  if (!value)
    return true;
  int bytes = snprintf(all->text + all->length, room, "%s=%s", name, value);
  if (bytes < 0 || (size_t)bytes >= room)
    return false;
  all->length += (size_t)bytes + 1;
  return true;
}

int handed_over_pipe(const struct handed_over *all) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return -1;
  ssize_t written = write(ends[1], all->text, all->length);
  close(ends[1]);
  if (written == (ssize_t)all->length)
    return ends[0];
  close(ends[0]);
  errno = EIO;
  return -1;
}

static void take_one(char *entry) {
  char *equals = strchr(entry, '=');
  if (equals && (!strncmp(entry, "STRATUS_", 8) || !strncmp(entry, "COLL_", 5) ||
                 !strncmp(entry, "NCCL_", 5))) {
    *equals = '\0';
    setenv(entry, equals + 1, 1);
  }
}

void handed_over_take(void) {
  static char text[HANDED_OVER_MAX + 1]; /* ends with a null character, whatever comes */
  const char *is_set = getenv(HANDED_OVER_STDIN);
  size_t length = 0;
  ssize_t got = 1;
  if (!is_set || !*is_set)
    return;
  while (length < HANDED_OVER_MAX && (got > 0 || (got < 0 && errno == EINTR))) {
    got = read(STDIN_FILENO, text + length, HANDED_OVER_MAX - length);
    length += got > 0 ? (size_t)got : 0;
  }
  for (char *entry = text; entry < text + length;) {
    char *next = entry + strlen(entry) + 1;
    take_one(entry);
    entry = next;
  }
  unsetenv(HANDED_OVER_STDIN);
  if (!freopen("/dev/null", "r", stdin))
    message_fail("/dev/null: %s", strerror(errno));
}
