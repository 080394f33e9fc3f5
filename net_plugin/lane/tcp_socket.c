/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_socket.h. */
#include "net_plugin/lane/tcp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "common/param.h"
#include "net_plugin/lane/host_nics.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/lane/tcp_address.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78 /* Linux 4.15 */
#endif
#define LOOPBACK_INDEX 1 /* of every network namespace */
#define ASTRAY_MAX 64    /* NICs; more are not noted */

int tcp_socket_open(int family) {
  int fd = DESCRIPTOR(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  return fd >= 0 ? fd : -errno;
}

static void set_int(int fd, int level, int option, int value, const char *name,
                    atomic_bool *is_told) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0 && !atomic_exchange(is_told, true)) {
    LOG_INFO("socket option %s=%d refused: %s; going on without", name, value, strerror(errno));
  }
}

/* Sandboxes and old kernels lack options: each costs speed or comfort, and is told once. */
#define SET_INT(fd, level, option, value)                                                          \
  do {                                                                                             \
    static atomic_bool is_told;                                                                    \
    set_int(fd, level, option, value, #option, &is_told);                                          \
  } while (0)

static void set_dscp(int fd, int family, int dscp) {
  if (dscp < 0) {
    return;
  }
  if (family == AF_INET6) {
    SET_INT(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
  } else {
    SET_INT(fd, IPPROTO_IP, IP_TOS, dscp << 2);
  }
}

static void set_congestion(int fd, const char *name) {
  if (*name && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0) {
    LOG_WARN_EVERY(TCP_WARN_INTERVAL_NS,
                   "congestion control %s refused: %s; the system's default is used "
                   "(sysctl net.ipv4.tcp_available_congestion_control lists what there is)",
                   name, strerror(errno));
  }
}

/* A path that takes no bytes, or an idle one that does not answer, should be noticed in seconds,
 * not in the kernel's fifteen minutes: another flow is dialled then, and the link judges how long
 * that is worth while. Not by TCP_USER_TIMEOUT: that also ends flows to a peer whose process is
 * stopped with full buffers, although its kernel answers every probe. Instead packets and probes
 * that get no answer are repeated often (since Linux 6.15), and the kernel gives up after fifteen
 * times. */
static void set_timeouts(int fd) {
  int most_ms = TCP_SEND_AGAIN_MS;
  setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof most_ms);
  SET_INT(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SET_INT(fd, IPPROTO_TCP, TCP_KEEPIDLE, TCP_PROBE_S);
  SET_INT(fd, IPPROTO_TCP, TCP_KEEPINTVL, TCP_PROBE_S);
  SET_INT(fd, IPPROTO_TCP, TCP_KEEPCNT, TCP_PROBES);
}

void tcp_socket_tune(int fd, int family, int dscp) {
  int buffer_bytes = (int)param_size(PARAM_SOCKET_BUFFER_BYTES);
  SET_INT(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SET_INT(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, TCP_UNSENT_BYTES);
  if (buffer_bytes) {
    SET_INT(fd, SOL_SOCKET, SO_SNDBUF, buffer_bytes);
    SET_INT(fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
  }
  set_timeouts(fd);
  set_congestion(fd, param_string(PARAM_TCP_CONGESTION));
  set_dscp(fd, family, dscp);
}

int tcp_socket_send_whole(int fd, const void *message, size_t bytes) {
  ssize_t n = send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}

bool tcp_socket_is_quiet(int fd) {
  uint8_t byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR);
}

static int set_device(int fd, const struct nic *nic) {
  socklen_t bytes = (socklen_t)strnlen(nic->name, sizeof nic->name);
  return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, nic->name, bytes) == 0 ? 0 : -errno;
}

bool tcp_socket_can_bind_device(const struct nic *nic) {
  int fd = tcp_socket_open(nic->address.ss_family);
  bool can_bind = nic->has_neighbours && fd >= 0 && set_device(fd, nic) == 0;
  if (fd >= 0) {
    descriptor_close(fd);
  }
  return can_bind;
}

int tcp_nic_flags(const struct nic *nic) {
  struct ifreq request = { 0 };
  memcpy(request.ifr_name, nic->name, sizeof request.ifr_name);
  int fd = tcp_socket_open(nic->address.ss_family);
  if (fd < 0) {
    return fd;
  }
  int error = ioctl(fd, SIOCGIFFLAGS, &request) == 0 ? 0 : -errno;
  descriptor_close(fd);
  return error ? error : (uint16_t)request.ifr_flags;
}

/* NICs whose packets were seen to come in through another one. A socket that is bound to such a NIC
 * does not get them, and the kernel resets their flow; with Linux's defaults for several NICs in
 * one subnet each ARP request of this host may change which NIC they come to. */
static atomic_uint astray[ASTRAY_MAX];

static void note_astray(unsigned index) {
  for (unsigned i = 0; i < ASTRAY_MAX; i++) {
    unsigned none = 0;
    if (atomic_compare_exchange_strong(&astray[i], &none, index) || none == index) {
      return;
    }
  }
}

static bool is_astray(unsigned index) {
  for (unsigned i = 0; i < ASTRAY_MAX; i++) {
    unsigned noted = atomic_load(&astray[i]);
    if (noted == index || noted == 0) {
      return noted != 0;
    }
  }
  return false;
}

/* Where two NICs are in one subnet, routing sends everything through the first, whatever the
 * source address is. What stays on this host, or has a better way, must not be held back. */
static void bind_device(int fd, const struct nic *nic, const struct sockaddr_storage *peer) {
  static atomic_bool has_told;
  if (!nic->has_neighbours || is_astray(nic->index) || route_find(nic, peer) != ROUTE_THROUGH) {
    return;
  }
  int error = set_device(fd, nic);
  if (error && !atomic_exchange(&has_told, true)) {
    LOG_TRACE("SO_BINDTODEVICE %s: %s; flows are bound by their source address alone", nic->name,
              strerror(-error));
  }
}

/* Duplicate address detection of it is in progress: for a second or two after a NIC came up nobody
 * may use it. */
static bool is_tentative(const struct sockaddr_storage *address) {
  unsigned flags;
  return address->ss_family == AF_INET6 && host_address_find(0, address, &flags) > 0 &&
         (flags & IFA_F_TENTATIVE) && !(flags & IFA_F_DADFAILED);
}

int tcp_socket_bind_nic(int fd, const struct nic *nic, const struct sockaddr_storage *peer) {
  int one = 1;
  /* The port is chosen at connect, when the kernel knows the peer: ports are not used up by
   * binding. */
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  struct sockaddr_storage source = nic->address;
  tcp_address_set_port(&source, 0);
  if (bind(fd, (const struct sockaddr *)&source, tcp_address_bytes(&source)) == 0) {
    bind_device(fd, nic, peer);
    return 0;
  }
  int error = -errno;
  if (error == -EADDRNOTAVAIL && is_tentative(&source)) {
    return error;
  }
  char text[INET6_ADDRSTRLEN] = "?";
  unsigned bytes;
  inet_ntop(source.ss_family, tcp_address_ip(&source, &bytes), text, sizeof text);
  LOG_WARN_EVERY(
      TCP_WARN_INTERVAL_NS, "cannot bind a flow to %s of %s: %s%s; routing chooses the NIC", text,
      nic->name, strerror(-error),
      error == -EADDRNOTAVAIL ? ", this host does not have this address any more: it was "
                                "taken away, or has moved to another host"
                              : "");
  return 0;
}

/* The interface through which the connection was opened; 0 if the kernel does not know. It keeps
 * that where packet options of a connection are read (inet_iif in tcp_v4_syn_recv_sock). */
static unsigned arrival_index(int fd, int family) {
  int one = 1;
  bool is_v6 = family == AF_INET6;
  int level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  union {
    struct cmsghdr align;
    char bytes[512];
  } options;
  socklen_t bytes = sizeof options;
  if (setsockopt(fd, level, is_v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &one, sizeof one) != 0 ||
      getsockopt(fd, level, is_v6 ? IPV6_2292PKTOPTIONS : IP_PKTOPTIONS, &options, &bytes) != 0) {
    return 0;
  }
  struct msghdr message = { .msg_control = &options, .msg_controllen = bytes };
  unsigned index = 0;
  for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level == level && is_v6 && each->cmsg_type == IPV6_PKTINFO) {
      index = (unsigned)((struct in6_pktinfo *)CMSG_DATA(each))->ipi6_ifindex;
    } else if (each->cmsg_level == level && !is_v6 && each->cmsg_type == IP_PKTINFO) {
      index = (unsigned)((struct in_pktinfo *)CMSG_DATA(each))->ipi_ifindex;
    }
  }
  return index;
}

void tcp_socket_bind_accepted(int fd, const struct nic *nic, const struct sockaddr_storage *peer) {
  unsigned index = arrival_index(fd, peer->ss_family);
  if (index == nic->index) {
    bind_device(fd, nic, peer);
    return;
  }
  char name[IF_NAMESIZE] = "?", text[TCP_ADDRESS_TEXT];
  if (index && index != LOOPBACK_INDEX && tcp_address_is_near(peer, nic) &&
      route_find(nic, peer) == ROUTE_THROUGH && host_link_name(index, name) == 0) {
    note_astray(nic->index);
    LOG_WARN_EVERY(
        TCP_WARN_INTERVAL_NS,
        "a flow from %s to the address of %s came in through %s: %s answers for both, "
        "so %s stays empty, and no flow is bound to it. With several NICs in one subnet set "
        "sysctl net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2",
        tcp_address_text(peer, text), nic->name, name, name, nic->name);
  }
}

bool tcp_socket_leaves_through(int fd, const struct nic *nic) {
  char name[IF_NAMESIZE] = "";
  struct sockaddr_storage from, to;
  socklen_t bytes = sizeof name, from_bytes = sizeof from, to_bytes = sizeof to;
  if (nic->has_host_address) {
    return true; /* or not: a hash of its ports says */
  }
  if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &bytes) == 0 && bytes > 0 && name[0]) {
    return strncmp(name, nic->name, sizeof name) == 0;
  }
  return getsockname(fd, (struct sockaddr *)&from, &from_bytes) != 0 ||
         getpeername(fd, (struct sockaddr *)&to, &to_bytes) != 0 ||
         route_is_through(nic->index, &from, &to);
}

/* STRATUS_PORT_RANGE, or 0..0: any port. */
static void port_range(unsigned *low, unsigned *high) {
  const char *text = param_string(PARAM_PORT_RANGE);
  char first[6] = "", last[6] = "", rest;
  *low = *high = 0;
  if (!*text) {
    return;
  }
  if (sscanf(text, "%5[0-9]-%5[0-9]%c", first, last, &rest) == 2) {
    *low = (unsigned)atoi(first);
    *high = (unsigned)atoi(last);
  }
  if (*low == 0 || *low > *high || *high > 65535) {
    LOG_WARN_EVERY(TCP_WARN_INTERVAL_NS,
                   "STRATUS_PORT_RANGE=%s is not low-high within 1..65535, as in 20000-20999; the "
                   "kernel chooses ports",
                   text);
    *low = *high = 0;
  }
}

/* Binds to the NIC's address, which may be tentative: nobody connects there before it is not. */
static int bind_listener(int fd, const struct sockaddr_storage *address) {
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (const struct sockaddr *)address, tcp_address_bytes(address)) == 0) {
    return 0;
  }
  int error = -errno;
  if (error == -EADDRNOTAVAIL && is_tentative(address) &&
      setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof one) == 0 &&
      bind(fd, (const struct sockaddr *)address, tcp_address_bytes(address)) == 0) {
    error = 0;
  }
  return error;
}

/* A socket that listens at this port, 0: at any; or a negative errno. */
static int listen_at(const struct nic *nic, unsigned port, struct sockaddr_storage *address) {
  int fd = tcp_socket_open(nic->address.ss_family);
  if (fd < 0) {
    return fd;
  }
  *address = nic->address;
  tcp_address_set_port(address, port);
  socklen_t bytes = sizeof *address;
  int error = bind_listener(fd, address);
  if (!error && (listen(fd, TCP_LISTEN_BACKLOG) != 0 ||
                 getsockname(fd, (struct sockaddr *)address, &bytes) != 0)) {
    error = -errno;
  }
  if (error) {
    descriptor_close(fd);
    return error;
  }
  return fd;
}

/* A socket for each port: several processes can bind the same one, of which all but one find out
 * when they listen, and a socket is bound only once. */
int tcp_socket_listen(const struct nic *nic, struct sockaddr_storage *address) {
  unsigned low, high;
  port_range(&low, &high);
  int fd = -EADDRINUSE;
  for (unsigned port = low; port <= high && fd == -EADDRINUSE; port++) {
    fd = listen_at(nic, port, address);
  }
  if (fd < 0) {
    const char *to_do = fd == -EADDRINUSE ? "; all its ports are in use: widen it" : "";
    LOG_WARN("cannot listen on %s%s%s: %s%s", nic->name, low ? " within STRATUS_PORT_RANGE=" : "",
             low ? param_string(PARAM_PORT_RANGE) : "", strerror(-fd), low ? to_do : "");
  }
  return fd;
}

bool tcp_socket_drain(int fd, void *buffer, size_t bytes, size_t most) {
  for (size_t dropped = 0; dropped < most;) {
    ssize_t n = recv(fd, buffer, bytes, MSG_DONTWAIT);
    if (n <= 0) {
      return n == 0 || (errno != EAGAIN && errno != EINTR);
    }
    dropped += (size_t)n;
  }
  return false;
}
