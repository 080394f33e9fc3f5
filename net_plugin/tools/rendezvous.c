/* SPDX-License-Identifier: Apache-2.0 */
/* Tries every address of a host name. */
#include "net_plugin/tools/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/quantity.h"
#include "net_plugin/tools/limits.h"

/* ---- names ---- */

/* Start of the port, or NULL: "host:1", "[::1]:1", but not "::1". */
static const char *find_port(const char *text) {
  const char *colon = strrchr(text, ':');
  if (text[0] == '[') {
    const char *end = strchr(text, ']');
    return end && end[1] == ':' ? end + 2 : NULL;
  }
  return colon && strchr(text, ':') == colon ? colon + 1 : NULL;
}

/* Every NIC has the network fe80::/10, so such an address alone leads nowhere. */
static int check_host(const char *host) {
  struct in6_addr address;
  if (inet_pton(AF_INET6, host, &address) == 1 && IN6_IS_ADDR_LINKLOCAL(&address)) {
    return cli_fail_usage(
        "%s is an address of one link: add this host's NIC that is on the link, as in %s%%eth0",
        host, host);
  }
  return CLI_OK;
}

int rendezvous_parse(const char *text, int default_port, struct rendezvous_address *place) {
  const char *port_text = find_port(text);
  size_t length = port_text ? (size_t)(port_text - text) - 1 : strlen(text);
  int64_t port = default_port;
  if (port_text && (quantity_parse_int(port_text, &port) != 0 || port < 1 || port > 65535)) {
    return cli_fail_usage("%s: a port is 1 to 65535", text);
  }
  if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
    text++;
    length -= 2;
  }
  if (length >= sizeof place->host) {
    return cli_fail_usage("a host name has at most %d characters", RENDEZVOUS_HOST_MAX - 1);
  }
  memcpy(place->host, text, length);
  place->host[length] = '\0';
  place->port = (int)port;
  return check_host(place->host);
}

static int resolve(const struct rendezvous_address *place, int flags, int family,
                   struct addrinfo **found) {
  char port[8];
  snprintf(port, sizeof port, "%d", place->port);
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags, .ai_family = family };
  int error = getaddrinfo(place->host[0] ? place->host : NULL, port, &hints, found);
  return error ? cli_fail("%s port %s: %s", place->host[0] ? place->host : "this host", port,
                          gai_strerror(error))
               : CLI_OK;
}

/* ---- sockets ---- */

void rendezvous_set_timeout(int fd, uint64_t timeout_ns) {
  struct timeval timeout = { .tv_sec = (time_t)(timeout_ns / NS_PER_S),
                             .tv_usec = (suseconds_t)(timeout_ns % NS_PER_S / NS_PER_US) };
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int rendezvous_dial(const struct sockaddr *to, socklen_t bytes, const struct sockaddr *from,
                    uint64_t timeout_ns) {
  int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  rendezvous_set_timeout(fd, timeout_ns);
  if ((from && bind(fd, from, bytes) != 0) || connect(fd, to, bytes) != 0) {
    int error = errno == EINPROGRESS ? ETIMEDOUT : errno; /* SO_SNDTIMEO expired */
    close(fd);
    return -error;
  }
  return fd;
}

static int call_any(const struct addrinfo *found) {
  int fd = -EADDRNOTAVAIL;
  for (const struct addrinfo *it = found; it && fd < 0; it = it->ai_next) {
    fd = rendezvous_dial(it->ai_addr, it->ai_addrlen, NULL, RENDEZVOUS_TIMEOUT_NS);
  }
  return fd;
}

static int connect_to(const struct rendezvous_address *place, const char *command, int *fd) {
  struct addrinfo *found;
  uint64_t until_ns = clock_now_ns() + (command ? 0 : RENDEZVOUS_TIMEOUT_NS);
  int status = resolve(place, 0, AF_UNSPEC, &found);
  if (status != CLI_OK) {
    return status;
  }
  while ((*fd = call_any(found)) < 0 && clock_now_ns() < until_ns) {
    usleep(RENDEZVOUS_PAUSE_US);
  }
  freeaddrinfo(found);
  if (*fd >= 0) {
    return CLI_OK;
  }
  const char *why = strerror(-*fd);
  return command ? cli_fail("cannot reach %s port %d: %s; run `%s` there first", place->host,
                            place->port, why, command)
                 : cli_fail("no answer from %s port %d: %s", place->host, place->port, why);
}

static int listen_on(const struct addrinfo *address) {
  int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1,
      zero = 0;
  if (fd < 0) {
    return -errno;
  }
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address->ai_family == AF_INET6) { /* accepts IPv4 as well */
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  }
  if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

/* Without a host IPv6 is tried first: such a socket serves both families. */
static int listen_at(const struct rendezvous_address *place, int *server) {
  static const int families[] = { AF_INET6, AF_INET };
  int first = place->host[0] ? 1 : 0;
  *server = -EADDRNOTAVAIL;
  for (int i = first; i < 2 && *server < 0; i++) {
    struct addrinfo *found;
    int status = resolve(place, AI_PASSIVE, place->host[0] ? AF_UNSPEC : families[i], &found);
    if (status != CLI_OK) {
      return status;
    }
    for (const struct addrinfo *it = found; it && *server < 0; it = it->ai_next) {
      *server = listen_on(it);
    }
    freeaddrinfo(found);
  }
  return *server >= 0 ? CLI_OK
                      : cli_fail("cannot listen on port %d: %s", place->port, strerror(-*server));
}

/* ---- keys: of the job's secret ---- */

/* An empty host is any address. */
static int find_whether_local(const struct rendezvous_address *place, bool *is_local) {
  struct addrinfo *found = NULL;
  *is_local = place->host[0] != '\0';
  int status = *is_local ? resolve(place, 0, AF_UNSPEC, &found) : CLI_OK;
  if (status != CLI_OK) {
    return status;
  }
  for (const struct addrinfo *it = found; it; it = it->ai_next) {
    *is_local = *is_local && peer_is_local(it->ai_addr);
  }
  if (found) {
    freeaddrinfo(found);
  }
  return CLI_OK;
}

/* Without a secret `place` must be a loopback address. */
static int get_key(const char *purpose, const struct rendezvous_address *place,
                   struct peer_key *key) {
  char error[PEER_ERROR_MAX];
  bool is_local = false;
  if (peer_key_of_job(purpose, key, error) != 0) {
    return cli_fail_usage("%s", error);
  }
  int status = key->is_secret ? CLI_OK : find_whether_local(place, &is_local);
  return status != CLI_OK || key->is_secret || is_local
             ? status
             : cli_fail_usage(
                   "%s: without a secret only loopback addresses can be used: set "
                   "STRATUS_SECRET_FILE (or STRATUS_SECRET) to the same on all hosts, as made by "
                   "openssl rand -hex 32",
                   place->host[0] ? place->host : "every address of this host");
}

/* ---- who calls, and who waits ---- */

int rendezvous_call(const char *purpose, const struct rendezvous_address *place,
                    const char *command, const uint8_t hello[PEER_HELLO_BYTES], int *fd) {
  static const uint8_t nothing[PEER_HELLO_BYTES];
  struct peer_key key;
  int status = get_key(purpose, place, &key);
  status = status ? status : connect_to(place, command, fd);
  if (status != CLI_OK) {
    return status;
  }
  int error = peer_call(*fd, &key, hello ? hello : nothing, clock_now_ns() + RENDEZVOUS_TIMEOUT_NS);
  if (error == 0) {
    return CLI_OK;
  }
  close(*fd);
  if (error == -EACCES) {
    return cli_fail("the other side has another secret: set STRATUS_SECRET_FILE (or "
                    "STRATUS_SECRET) to the same on all hosts, or on none");
  }
  return error == -EPROTO ? cli_fail("the other side is not what was expected, or another release")
                          : cli_fail("the other side does not answer: %s", strerror(-error));
}

int rendezvous_open(struct peer_listener *listener, const char *purpose,
                    const struct rendezvous_address *place, const char *command) {
  const struct rendezvous_address any = { .port = place->port };
  listener->count = 0;
  int status = get_key(purpose, place, &listener->key);
  status = status ? status : listen_at(command ? place : &any, &listener->fd);
  if (status != CLI_OK) {
    return status;
  }
  if (command) {
    fprintf(stderr, "stratus: listening on port %d; on the other host: %s\n", place->port, command);
  }
  return CLI_OK;
}

int rendezvous_accept(struct peer_listener *listener, uint64_t until_ns, int *fd,
                      uint8_t hello[PEER_HELLO_BYTES]) {
  uint8_t unheard[PEER_HELLO_BYTES];
  int error = peer_accept(listener, until_ns, fd, hello ? hello : unheard);
  if (error == -ETIMEDOUT) {
    *fd = -1;
    return CLI_OK;
  }
  if (error) {
    return cli_fail("cannot accept a connection: %s", strerror(-error));
  }
  rendezvous_set_timeout(*fd, RENDEZVOUS_TIMEOUT_NS);
  return CLI_OK;
}
