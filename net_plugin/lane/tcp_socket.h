/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_socket: options of the sockets of lanes and listeners.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: negative errno
 * where stated; an option the kernel refuses costs one LOG_WARN and not the connection. */
#ifndef NET_PLUGIN_LANE_TCP_SOCKET_H
#define NET_PLUGIN_LANE_TCP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

/* A nonblocking, close-on-exec TCP socket, or negative errno. */
int tcp_socket_open(int family);
/* What every flow gets: no delay, bounded unsent bytes, dead-path detection, and what the
 * parameters set. dscp: -1 leaves it. */
void tcp_socket_tune(int fd, int family, int dscp);
/* Before connect: binds the socket to the NIC's address, so that routing can follow it, and to the
 * NIC itself, so that flows leave by it where another has a route, too. The latter only where a
 * route leads to the peer through it (ROUTE_THROUGH of route.h: not to this host itself), not for a
 * NIC without neighbours (loopback, dummy; or the caller has cleared it), and skipped where the
 * kernel refuses it (before Linux 5.7 it takes CAP_NET_RAW). -EADDRNOTAVAIL: not yet, duplicate
 * address detection of the address is in progress. Else 0, whatever could be bound. */
int tcp_socket_bind_nic(int fd, const struct nic *nic, const struct sockaddr_storage *peer);
/* Whether the latter works here, for this NIC. */
bool tcp_socket_can_bind_device(const struct nic *nic);
/* IFF_*. Negative errno: -ENODEV, it is gone, or they are not known. */
int tcp_nic_flags(const struct nic *nic);
/* After accept: the same, if the flow came in through the NIC that has the address; else one
 * LOG_WARN says what to set, and no flow of this process is bound to that NIC any more. */
void tcp_socket_bind_accepted(int fd, const struct nic *nic, const struct sockaddr_storage *peer);
/* Whether what a connected flow sends leaves through this NIC; true where the kernel does not tell.
 */
bool tcp_socket_leaves_through(int fd, const struct nic *nic);
/* Listens on the NIC's address within STRATUS_PORT_RANGE. The socket, or negative errno; *address
 * gets the port. */
int tcp_socket_listen(const struct nic *nic, struct sockaddr_storage *address);
/* A fresh socket takes a message of a handshake at once. 0, or negative errno. */
int tcp_socket_send_whole(int fd, const void *message, size_t bytes);
/* The peer is there and has said nothing: not closed, no byte to read. Takes none. */
bool tcp_socket_is_quiet(int fd);
/* Reads up to about `most` bytes into the buffer and drops them. True: the stream has ended. */
bool tcp_socket_drain(int fd, void *buffer, size_t bytes, size_t most);

#endif
