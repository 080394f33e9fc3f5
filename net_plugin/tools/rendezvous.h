/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: the TCP connection between two processes of a tool, in place of NCCL's bootstrap.
 * Owns: nothing; the caller closes the sockets.  Threads: the main thread. Blocks: connecting up to
 * RENDEZVOUS_TIMEOUT_NS, accepting without limit. Fails: with a message and an exit status
 * (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_RENDEZVOUS_H
#define NET_PLUGIN_TOOLS_RENDEZVOUS_H

#include "common/peer_proof.h"

/* "HOST", "HOST:PORT", "[fd00::1]:PORT" or a bare IPv6 address. */
enum { RENDEZVOUS_HOST_MAX = 256 };
struct rendezvous_address {
  char host[RENDEZVOUS_HOST_MAX]; /* empty: any address of this host */
  int port;
};
int rendezvous_parse(const char *text, int default_port, struct rendezvous_address *place);

/* ---- who calls, and who waits ----
 *
 * Both prove that they know the job's secret (common/peer_proof.h); CLI_USAGE if there is none, but
 * for loopback addresses. */

/* Who calls, and says `hello` with the proof (NULL: nothing). `command`: what must run on the other
 * host, for the error message; NULL: it will listen soon, so try again until the time is over. */
int rendezvous_call(const char *purpose, const struct rendezvous_address *place,
                    const char *command, const uint8_t hello[PEER_HELLO_BYTES], int *fd);

/* Who waits at `place`, and says so on standard error with the `command` of the caller; NULL: the
 * first rank of a job, which others know as `place`: it waits at every address, and says nothing.
 */
int rendezvous_open(struct peer_listener *listener, const char *purpose,
                    const struct rendezvous_address *place, const char *command);
/* The next caller; what it says is for `hello` (NULL: nobody). *fd is negative if none has come. */
int rendezvous_accept(struct peer_listener *listener, uint64_t until_ns, int *fd,
                      uint8_t hello[PEER_HELLO_BYTES]);

/* Connects, from an address of the same family (NULL: any). The socket, or negative errno. */
int rendezvous_dial(const struct sockaddr *to, socklen_t bytes, const struct sockaddr *from,
                    uint64_t timeout_ns);

/* Sets the time limit of blocking calls and TCP_NODELAY. */
void rendezvous_set_timeout(int fd, uint64_t timeout_ns);

#endif
