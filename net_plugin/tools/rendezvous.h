/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: the plain TCP connection on which two tools find each other, since no NCCL does it
 * for them. Owns: nothing; the caller closes the sockets.  Threads: the main thread. Blocks: a
 * call, a read or a write up to RENDEZVOUS_TIMEOUT_NS, accepting for ever. Fails: with a message
 * and an exit status (common/cli.h); reading and writing with -errno. */
#ifndef NET_PLUGIN_TOOLS_RENDEZVOUS_H
#define NET_PLUGIN_TOOLS_RENDEZVOUS_H

#include <stddef.h>

#include "common/clock.h"

#define RENDEZVOUS_TIMEOUT_NS (30 * NS_PER_S)

/* "HOST", "HOST:PORT", "[fd00::1]:PORT" or a bare IPv6 address. */
enum { RENDEZVOUS_HOST_MAX = 256 };
struct rendezvous_address {
  char host[RENDEZVOUS_HOST_MAX]; /* empty: any address of this host */
  int port;
};
int rendezvous_parse(const char *text, int default_port, struct rendezvous_address *place);

/* `command`: what the other host should have been told to run, for the message. */
int rendezvous_connect(const struct rendezvous_address *place, const char *command, int *fd);
/* The same with somebody who may not be there yet. */
int rendezvous_connect_retrying(const struct rendezvous_address *place, int *fd);
int rendezvous_listen(const struct rendezvous_address *place, int *server);
int rendezvous_accept(int server, int *fd);

/* Calls that block on the socket give up after so long. Small messages leave at once. */
void rendezvous_set_timeout(int fd, uint64_t timeout_ns);

int rendezvous_write(int fd, const void *bytes, size_t count);
int rendezvous_read(int fd, void *bytes, size_t count); /* all of it, or -ECONNRESET at the end */

#endif
