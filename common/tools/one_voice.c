/* SPDX-License-Identifier: Apache-2.0 */
/* See one_voice.h. */
#include "common/tools/one_voice.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/tools/limits.h"

static int word = -1; /* the socket, of who has taken it */

/* Where the launcher does not name its job, its process on this host tells jobs apart. Returns the
 * bytes of the address. */
static socklen_t name_of(const struct launcher_place *place, struct sockaddr_un *address) {
  char parent[24];
  snprintf(parent, sizeof parent, "%ld", (long)getppid());
  *address = (struct sockaddr_un){ .sun_family = AF_UNIX }; /* a zero first: an abstract name */
  int length =
      snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "stratus-check.%lu.%.80s",
               (unsigned long)geteuid(), place->job[0] ? place->job : parent);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Anybody may take a name: only who is the same user counts. */
static bool is_held_by_us(int fd, const struct sockaddr_un *address, socklen_t bytes) {
  struct ucred holder;
  socklen_t length = sizeof holder;
  return connect(fd, (const struct sockaddr *)address, bytes) == 0 &&
         getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &length) == 0 && holder.uid == geteuid();
}

bool one_voice_take(const struct launcher_place *place) {
  struct sockaddr_un address;
  socklen_t bytes = name_of(place, &address);
  int fd = word < 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
  if (fd < 0) {
    return true;
  }
  if (bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, SOMAXCONN) == 0) {
    word = fd;
    return true;
  }
  bool is_said = is_held_by_us(fd, &address, bytes);
  close(fd);
  return !is_said;
}

void one_voice_hold(void) {
  struct timespec wait = clock_timespec(ONE_VOICE_HOLD_NS);
  if (word >= 0) {
    nanosleep(&wait, NULL);
  }
}
