/* SPDX-License-Identifier: Apache-2.0 */
/* connect: addresses are resolved at each attempt, since a host may get its name late. */
#include "tests/coll/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/peer_proof.h"
#include "tests/coll/message.h"
#include "tests/coll/limits.h"

static const char *unix_path(const char *address) {
  return strncmp(address, "unix:", 5) ? NULL : address + 5;
}

/* Calls bind or connect on a new socket, which is -1 with errno if that fails. */
static int open_unix(const char *path, int flags,
                     int (*call)(int fd, const struct sockaddr *address, socklen_t length)) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  if (strlen(path) >= sizeof address.sun_path)
    message_fail("unix:%s: longer than %zu bytes", path, sizeof address.sun_path - 1);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (fd >= 0 && call(fd, (struct sockaddr *)&address, sizeof address)) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/* NULL if the name cannot be resolved (yet); a malformed address ends the process. A listener binds
 * to a numeric address; with a name, and `is_any`, to all addresses, as many machines resolve their
 * own name to 127.0.1.1, which other hosts cannot reach. */
static struct addrinfo *resolve(const char *address, bool is_listener, bool is_any) {
  char host[256], *name = host;
  const char *colon = strrchr(address, ':');
  if (!colon || colon == address || (size_t)(colon - address) >= sizeof host)
    message_fail("address %s: HOST:PORT or unix:PATH is wanted", address);
  snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
  size_t length = strlen(host);
  if (host[0] == '[' && host[length - 1] == ']') {
    host[length - 1] = '\0';
    name++;
  }
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_NUMERICSERV | (is_listener ? AI_PASSIVE : 0) };
  struct addrinfo *found = NULL;
  struct in6_addr number;
  bool is_number =
      inet_pton(AF_INET, name, &number) == 1 || inet_pton(AF_INET6, name, &number) == 1;
  int error = getaddrinfo(is_any && !is_number ? NULL : name, colon + 1, &hints, &found);
  if (error == EAI_NONAME && !is_listener)
    return NULL;
  if (error == EAI_SERVICE)
    message_fail("address %s: %s is no port number", address, colon + 1);
  if (error)
    message_fail("address %s: %s", address, gai_strerror(error));
  return found;
}

static int listen_unix(const char *path) {
  unlink(path); /* left behind by a run that was killed */
  mode_t mask = umask(0177);
  int fd = open_unix(path, 0, bind);
  if (fd < 0 || listen(fd, 128))
    message_fail("unix:%s: cannot listen: %s", path, strerror(errno));
  umask(mask);
  return fd;
}

static int listen_tcp(const char *address, bool is_local_only) {
  struct addrinfo *found = resolve(address, true, !is_local_only);
  int one = 1;
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
      bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 128))
    message_fail("%s: cannot listen: %s%s", address, strerror(errno),
                 errno == EADDRNOTAVAIL ? " (rank 0 is not on that host)" : "");
  freeaddrinfo(found);
  return fd;
}

int connect_listen(const char *address, bool is_local_only) {
  const char *path = unix_path(address);
  return path ? listen_unix(path) : listen_tcp(address, is_local_only);
}

bool connect_is_local(const char *address) {
  if (unix_path(address))
    return true;
  struct addrinfo *found = resolve(address, false, false);
  bool is_local = found != NULL;
  for (struct addrinfo *a = found; a; a = a->ai_next)
    is_local = is_local && peer_is_local(a->ai_addr);
  if (found)
    freeaddrinfo(found);
  return is_local;
}

/* Old enough that no process will listen on it any more. */
static bool is_left_behind(const char *path) {
  struct stat facts;
  if (lstat(path, &facts) || !S_ISSOCK(facts.st_mode) || facts.st_uid != getuid() ||
      time(NULL) - facts.st_mtime < CONNECT_SURELY_LISTENED_S)
    return false;
  int fd = open_unix(path, SOCK_NONBLOCK, connect);
  bool is_refused = fd < 0 && errno == ECONNREFUSED;
  if (fd >= 0)
    close(fd);
  return is_refused;
}

void connect_own_address(unsigned long long token, char *address, size_t size) {
  enum { DIRECTORY_MAX = 50 }; /* a socket's name has 107 bytes at most */
  const char *directory = getenv("TMPDIR");
  char pattern[DIRECTORY_MAX + 40];
  glob_t found;
  if (!directory || *directory != '/' || strlen(directory) > DIRECTORY_MAX)
    directory = "/tmp";
  snprintf(pattern, sizeof pattern, "%s/coll-%u-*", directory, (unsigned)getuid());
  if (!glob(pattern, 0, NULL, &found)) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      if (strlen(found.gl_pathv[i]) < sizeof((struct sockaddr_un *)NULL)->sun_path &&
          is_left_behind(found.gl_pathv[i]))
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
  }
  snprintf(address, size, "unix:%s/coll-%u-%llx", directory, (unsigned)getuid(), token);
}

void connect_forget(const char *address) {
  const char *path = unix_path(address);
  if (path)
    unlink(path);
}

/* A socket in a public directory could be somebody else's. */
static bool is_own(int fd) {
  struct ucred credentials;
  socklen_t size = sizeof credentials;
  return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) &&
         (credentials.uid == getuid() || credentials.uid == 0);
}

static int try_unix(const char *path) {
  int fd = open_unix(path, 0, connect);
  if (fd >= 0 && !is_own(fd))
    message_fail("unix:%s belongs to another user", path);
  return fd;
}

static int try_tcp(const char *address) {
  struct addrinfo *found = resolve(address, false, false);
  int fd = -1;
  for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
    /* A host that drops packets must not use up the whole time in one attempt. */
    unsigned timeout_ms = 3000;
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
      continue;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    if (connect(fd, a->ai_addr, a->ai_addrlen)) {
      close(fd);
      fd = -1;
      continue;
    }
    timeout_ms = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
  }
  if (found)
    freeaddrinfo(found);
  return fd;
}

int connect_to(const char *address, uint64_t timeout_ns) {
  uint64_t deadline_ns = clock_now_ns() + timeout_ns;
  const char *path = unix_path(address);
  for (;;) {
    int fd = path ? try_unix(path) : try_tcp(address);
    if (fd >= 0)
      return fd;
    if (clock_now_ns() > deadline_ns)
      message_fail("rank 0 does not listen at %s", address);
    usleep(20000);
  }
}

void connect_tune(int fd) {
  int one = 1; /* fails on a Unix socket, which needs neither */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}
