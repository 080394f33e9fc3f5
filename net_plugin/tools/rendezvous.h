/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: the TCP connection between two processes of a tool, in place of NCCL's bootstrap.
 * Owns: nothing; the caller closes the sockets.  Threads: the main thread. Blocks: connecting,
 * reading and writing up to RENDEZVOUS_TIMEOUT_NS, accepting without limit. Fails: with a message
 * and an exit status (common/cli.h); reading and writing with -errno. */
#ifndef NET_PLUGIN_TOOLS_RENDEZVOUS_H
#define NET_PLUGIN_TOOLS_RENDEZVOUS_H

#include <stddef.h>

#include "common/peer_gate.h"

/* "HOST", "HOST:PORT", "[fd00::1]:PORT" or a bare IPv6 address. */
enum { RENDEZVOUS_HOST_MAX = 256 };
struct rendezvous_address {
  char host[RENDEZVOUS_HOST_MAX]; /* empty: any address of this host */
  int port;
};
int rendezvous_parse(const char *text, int default_port, struct rendezvous_address *place);
/* Wrong use: a link-local address that does not say on which NIC. */
int rendezvous_check_host(const char *host);

/* `command`: what must run on the other host, for the error message; NULL: it will listen soon, so
 * try again until the time is over. */
int rendezvous_connect(const struct rendezvous_address *place, const char *command, int *fd);
int rendezvous_listen(const struct rendezvous_address *place, int *server);

/* The caller's proof on a new connection (common/peer_proof.h); `fd` is closed if it fails. */
int rendezvous_prove(const struct peer_key *key, const uint8_t hello[PEER_HELLO_BYTES], int fd);
/* The next connection of `gate` that is proven; NULL: out of memory. */
int rendezvous_accept_proven(struct peer_gate *gate, uint64_t until_ns, int *fd,
                             uint8_t hello[PEER_HELLO_BYTES]);

/* ---- keys: of the job's secret ----
 *
 * CLI_USAGE with a message if it cannot be used. */

/* Who waits for callers from other hosts. Without a secret it draws one, which becomes
 * STRATUS_SECRET of this process, and writes to standard error how to give it to the caller, whose
 * command is `command`; not if it listens on loopback addresses only. */
int rendezvous_listener_key(const char *purpose, const struct rendezvous_address *place,
                            const char *command, struct peer_key *key);
/* Who calls. Without a secret it must be a loopback address. */
int rendezvous_caller_key(const char *purpose, const struct rendezvous_address *place,
                          struct peer_key *key);

/* Sets the time limit of blocking calls and TCP_NODELAY. */
void rendezvous_set_timeout(int fd, uint64_t timeout_ns);

int rendezvous_write(int fd, const void *bytes, size_t count);
int rendezvous_read(int fd, void *bytes, size_t count); /* all of it, or -ECONNRESET at the end */

#endif
