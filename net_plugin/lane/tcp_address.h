/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_address: what an IPv4 or IPv6 address of a socket says.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_TCP_ADDRESS_H
#define NET_PLUGIN_LANE_TCP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

#define TCP_ADDRESS_TEXT 64

/* "10.0.0.1:4321" or "[fe80::1%eth0]:4321"; returns text. */
const char *tcp_address_text(const struct sockaddr_storage *address, char text[TCP_ADDRESS_TEXT]);
/* A link-local IPv6 address is reached through this NIC; others are left alone. */
void tcp_address_set_scope(struct sockaddr_storage *address, const struct nic *nic);
unsigned tcp_address_port(const struct sockaddr_storage *address);
void tcp_address_set_port(struct sockaddr_storage *address, unsigned port);
/* In the NIC's subnet, as far as that is known. */
bool tcp_address_is_near(const struct sockaddr_storage *address, const struct nic *nic);
/* The same host's, whatever the port and the scope. */
bool tcp_address_is_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* The IP address itself, without the port, and its bytes. */
const uint8_t *tcp_address_ip(const struct sockaddr_storage *address, unsigned *bytes);
socklen_t tcp_address_bytes(const struct sockaddr_storage *address);

#endif
