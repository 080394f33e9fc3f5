/* SPDX-License-Identifier: Apache-2.0 */
/* meet: the plain TCP connection on which two tools find each other, since no NCCL does it for
 * them. Owns: nothing; the caller closes the sockets.  Threads: the main thread. Blocks: a call, a
 * read or a write up to MEET_PATIENCE_NS, accepting for ever. Fails: with a message and an exit
 * status (common/cli.h); reading and writing with -errno. */
#ifndef NET_PLUGIN_TOOLS_MEET_H
#define NET_PLUGIN_TOOLS_MEET_H

#include <stddef.h>

#include "common/clock.h"

#define MEET_PATIENCE_NS (30 * NS_PER_S)

/* "HOST", "HOST:PORT", "[fd00::1]:PORT" or a bare IPv6 address. */
enum { MEET_HOST_MAX = 256 };
struct meet_place {
  char host[MEET_HOST_MAX]; /* empty: any address of this host */
  int port;
};
int meet_parse(const char *text, int default_port, struct meet_place *place);

/* `command`: what the other host should have been told to run, for the message. */
int meet_call(const struct meet_place *place, const char *command, int *fd);
/* The same with somebody who may not be there yet. */
int meet_await(const struct meet_place *place, int *fd);
int meet_listen(const struct meet_place *place, int *server);
int meet_accept(int server, int *fd);

/* Calls that block on the socket give up after so long. Small messages leave at once. */
void meet_make_patient(int fd, uint64_t patience_ns);

int meet_write(int fd, const void *bytes, size_t count);
int meet_read(int fd, void *bytes, size_t count); /* all of it, or -ECONNRESET at the end */

#endif
