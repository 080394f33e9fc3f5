/* SPDX-License-Identifier: Apache-2.0 */
/* See check_socket.h. */
#include "common/tools/check_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/random.h"
#include "common/tools/limits.h"

/* Room for the events of ten thousand ranks that start at once, of 1 KiB each in the kernel. */
enum { RECEIVE_BYTES = 10 << 20, ADDRESSES_AT_MOST = 12 };

static char token[CHECK_TOKEN_CHARS + 1];

/* ---- setting up ---- */

static int open_socket(in_port_t *port) {
  int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_storage address = { .ss_family = AF_INET6 };
  int off = 0, room = RECEIVE_BYTES;
  if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
      bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in6)) != 0) {
    if (fd >= 0) {
      close(fd);
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.ss_family = AF_INET;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in)) != 0) {
      return -errno;
    }
  }
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  }
  socklen_t bytes = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
    return -errno;
  }
  *port = ((struct sockaddr_in *)&address)->sin_port; /* at the same place for IPv6 */
  return fd;
}

/* "10.0.0.1:4000"; false for an address that other hosts cannot use. */
static bool print_address(const struct ifaddrs *interface, in_port_t port, FILE *out) {
  const struct sockaddr *address = interface->ifa_addr;
  char text[INET6_ADDRSTRLEN];
  if (!address || !(interface->ifa_flags & IFF_UP)) {
    return false;
  }
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, sizeof text);
    fprintf(out, "%s:%u", text, (unsigned)ntohs(port));
    return true;
  }
  const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
  if (address->sa_family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(v6) || IN6_IS_ADDR_LOOPBACK(v6)) {
    return false;
  }
  inet_ntop(AF_INET6, v6, text, sizeof text);
  fprintf(out, "[%s]:%u", text, (unsigned)ntohs(port));
  return true;
}

static int set_variable(in_port_t port) {
  struct ifaddrs *interfaces = NULL;
  char *value = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&value, &bytes);
  if (!out || getifaddrs(&interfaces) != 0) {
    return -errno;
  }
  fprintf(out, "%s@", token);
  int count = 0;
  for (const struct ifaddrs *each = interfaces; each && count < ADDRESSES_AT_MOST;
       each = each->ifa_next) {
    if (print_address(each, port, out)) {
      fputc(',', out);
      count++;
    }
  }
  fclose(out);
  freeifaddrs(interfaces);
  value[strlen(value) - (count > 0)] = '\0'; /* the last comma */
  int rc = count == 0 ? -EADDRNOTAVAIL : setenv(CHECK_VARIABLE, value, 1) == 0 ? 0 : -errno;
  free(value);
  return rc;
}

int check_socket_open(void) {
  uint64_t drawn[2];
  in_port_t port = 0;
  int error = random_secret(drawn, sizeof drawn);
  if (error) {
    return error;
  }
  snprintf(token, sizeof token, "%016llx%016llx", (unsigned long long)drawn[0],
           (unsigned long long)drawn[1]);
  int fd = open_socket(&port);
  int rc = fd < 0 ? fd : set_variable(port);
  return rc < 0 ? rc : fd;
}

/* ---- events ---- */

enum { READ_MAX = 1024 }; /* datagrams; net.core.rmem_default holds some 300 */

void check_socket_read(int fd, struct verdict *verdict, uint64_t now_ns) {
  char bytes[CHECK_DATAGRAM_MAX];
  struct check_event event;
  ssize_t length = recv(fd, bytes, sizeof bytes, 0);
  /* So many at most, as somebody may send faster than this reads. */
  for (int i = 0; i < READ_MAX && length >= 0; i++, length = recv(fd, bytes, sizeof bytes, 0)) {
    if (check_event_parse(bytes, (size_t)length, token, &event)) {
      verdict_take(verdict, &event, now_ns);
    }
  }
}

/* ---- names ---- */

/* In a process of its own, as it may wait for name servers. */
static void look_up(const char *text, int answer) {
  struct sockaddr_storage address = { 0 };
  struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
  char name[NI_MAXHOST];
  socklen_t bytes = sizeof *v4;
  address.ss_family = AF_INET;
  if (inet_pton(AF_INET, text, &v4->sin_addr) != 1) {
    address.ss_family = AF_INET6;
    bytes = sizeof *v6;
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) {
      return;
    }
  }
  if (getnameinfo((struct sockaddr *)&address, bytes, name, sizeof name, NULL, 0, NI_NAMEREQD) ==
      0) {
    ssize_t ignored = write(answer, name, strlen(name));
    (void)ignored;
  }
}

const char *check_socket_name_of(const char *address) {
  static char name[NI_MAXHOST];
  int ends[2];
  if (pipe(ends) != 0) {
    return NULL;
  }
  pid_t child = fork();
  if (child == 0) {
    look_up(address, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  struct pollfd waiting = { .fd = ends[0], .events = POLLIN };
  ssize_t length = 0;
  if (child > 0 && poll(&waiting, 1, CHECK_NAME_MS) == 1) {
    length = read(ends[0], name, sizeof name - 1);
  }
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  name[length > 0 ? length : 0] = '\0';
  return length > 0 ? name : NULL;
}
