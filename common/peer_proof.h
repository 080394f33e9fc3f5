/* SPDX-License-Identifier: Apache-2.0 */
/* peer_proof: by which two processes of a tool prove to each other, on a connection that one of
 * them has just accepted, that they know the same key; neither shows it.
 *
 *   listener -> caller   challenge: magic, nonce
 *   caller -> listener   answer: nonce, hello, HMAC(key, "caller", challenge, nonce, hello)
 *   listener -> caller   verdict: a byte, HMAC(key, "listener", challenge, answer, byte)
 *
 * The caller proves first, so that whoever connects learns nothing to try secrets on. What follows
 * on the connection is in clear.
 *
 * Owns: a listener its sockets, until peer_listener_close; whoever holds a key wipes it
 * (hash_wipe). Threads: any, a listener one.  Blocks: peer_call, peer_move and peer_accept until
 * their deadline, peer_key_of_job on a file; nothing else.  Fails: as each function says. */
#ifndef COMMON_PEER_PROOF_H
#define COMMON_PEER_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
  PEER_KEY_BYTES = 32,
  PEER_NONCE_BYTES = 32,
  PEER_HELLO_BYTES = 160, /* what a caller says of itself, which its proof covers */
  PEER_CHALLENGE_BYTES = 8 + PEER_NONCE_BYTES,
  PEER_ANSWER_BYTES = PEER_NONCE_BYTES + PEER_HELLO_BYTES + PEER_KEY_BYTES,
  PEER_VERDICT_BYTES = 1 + PEER_KEY_BYTES,
  PEER_ERROR_MAX = 256,
  PEER_CALLERS_MAX = 64,
};

struct peer_key {
  uint8_t bytes[PEER_KEY_BYTES];
  bool is_secret; /* false: anybody knows it, so only addresses of this machine may be used */
};

/* From STRATUS_SECRET, else from the file STRATUS_SECRET_FILE; without both a key that anybody
 * knows. `purpose` keeps the keys of tools apart. Negative errno and a text in `error` for a file
 * that cannot be used. */
int peer_key_of_job(const char *purpose, struct peer_key *key, char error[PEER_ERROR_MAX]);
/* From a token that one of the two, or who started them, has drawn; of no bytes anybody knows it.
 */
void peer_key_of_token(const char *purpose, const void *token, size_t bytes, struct peer_key *key);

/* True for loopback addresses and Unix sockets. */
bool peer_is_local(const struct sockaddr *address);

/* The caller's part on a connected socket. 0; -EACCES: the listener has another key; -EPROTO: it is
 * something else, or does not know the key itself; -ETIMEDOUT; -ECONNRESET and others: worth
 * another try. */
int peer_call(int fd, const struct peer_key *key, const uint8_t hello[PEER_HELLO_BYTES],
              uint64_t deadline_ns);

/* Sends or receives all of it, without waiting beyond the deadline. 0; -ECONNRESET at the end of
 * the stream; -ETIMEDOUT; other negative errno. */
int peer_move(int fd, void *bytes, size_t count, bool is_send, uint64_t deadline_ns);

/* ---- who listens ---- */

/* Is heard at the same time as the others, and has PEER_PROOF_NS for its answer. */
struct peer_caller {
  int fd;
  uint64_t until_ns;
  size_t heard; /* bytes of the answer */
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES];
};
struct peer_listener {
  int fd; /* listens, and does not block */
  struct peer_key key;
  unsigned count;
  struct peer_caller callers[PEER_CALLERS_MAX]; /* more wait in the socket's queue */
};

/* The next caller that knows the key: a connection, which is then the caller's, with what its other
 * end said of itself. Those that do not are closed. 0; -ETIMEDOUT at `until_ns` (UINT64_MAX:
 * never); other negative errno if the listening socket fails, or descriptors or memory run out. */
int peer_accept(struct peer_listener *listener, uint64_t until_ns, int *fd,
                uint8_t hello[PEER_HELLO_BYTES]);
/* Closes the socket and the callers that are not through. */
void peer_listener_close(struct peer_listener *listener);

/* ---- of which, for tests ---- */

/* Negative errno without random numbers. */
int peer_make_challenge(uint8_t challenge[PEER_CHALLENGE_BYTES]);
/* True if the caller knows the key; in any case fills in what the caller is told. */
bool peer_judge(const struct peer_key *key, const uint8_t challenge[PEER_CHALLENGE_BYTES],
                const uint8_t answer[PEER_ANSWER_BYTES], uint8_t verdict[PEER_VERDICT_BYTES]);

#endif
