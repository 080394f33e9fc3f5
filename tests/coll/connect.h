/* SPDX-License-Identifier: Apache-2.0 */
/* connect: sockets for "HOST:PORT", "[IPV6]:PORT" and "unix:PATH".
 * Owns: nothing; the caller closes what it is given.  Threads: any.
 * Blocks: connect_to until the other side listens or time is up.  Fails: ends the process with a
 * message that names the address. */
#ifndef COLL_CONNECT_H
#define COLL_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for Unix sockets, and for names and numbers that are loopback addresses only. */
bool connect_is_local(const char *address);
/* `is_local_only`: a name stands for its own addresses, not for all of this host. */
int connect_listen(const char *address, bool is_local_only);
int connect_to(const char *address, uint64_t timeout_ns);

/* "unix:PATH" for a run on one machine; the token makes it unique. Removes stale sockets of this
 * user's earlier runs that were killed before all ranks had connected. */
void connect_own_address(unsigned long long token, char *address, size_t size);

/* Removes a Unix socket's file after listening; nothing for TCP. */
void connect_forget(const char *address);

/* Sets TCP_NODELAY and keepalive. */
void connect_tune(int fd);

#endif
