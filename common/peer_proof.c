/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_proof.h. All parts of a text that is hashed have fixed sizes. */
#include "common/peer_proof.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/random.h"
#include "common/secret_file.h"

_Static_assert((int)PEER_KEY_BYTES == (int)HASH_SHA256_BYTES,
               "keys and proofs are SHA-256 digests");

enum { LABEL_BYTES = 16, MAGIC_BYTES = 8, KNOWN = 'y', REFUSED = 'n' };
static const char magic[MAGIC_BYTES + 1] = "STRPEER1";
static const char by_caller[LABEL_BYTES] = "caller", by_listener[LABEL_BYTES] = "listener";

/* ---- keys ---- */

void peer_key_of_token(const char *purpose, const void *token, size_t bytes, struct peer_key *key) {
  uint8_t root[PEER_KEY_BYTES];
  hash_hkdf_extract("stratus 2 tools", 15, token, bytes, root);
  hash_hkdf_expand(root, purpose, strlen(purpose), key->bytes, PEER_KEY_BYTES);
  hash_wipe(root, sizeof root);
  key->is_secret = bytes > 0;
}

static int short_secret(const char *name, char error[PEER_ERROR_MAX]) {
  snprintf(error, PEER_ERROR_MAX,
           "the secret in %s can be guessed: it must have %d characters at least; make one with: "
           "openssl rand -hex 32",
           name, SECRET_MIN);
  return -EACCES;
}

int peer_key_of_job(const char *purpose, struct peer_key *key, char error[PEER_ERROR_MAX]) {
  const char *path = getenv("STRATUS_SECRET_FILE");
  char read[SECRET_FILE_MAX];
  struct job_secret secret = job_secret_choose(getenv("STRATUS_SECRET"), path, read);
  int rc = 0;
  if (secret.bytes < 0) {
    snprintf(error, PEER_ERROR_MAX,
             "STRATUS_SECRET_FILE=%.128s: %s; a file of %d to %d bytes is wanted", path,
             secret_file_error(secret.bytes), SECRET_MIN, SECRET_FILE_MAX - 1);
    return (int)secret.bytes;
  }
  if (secret.bytes > 0 && secret.bytes < SECRET_MIN) {
    rc = short_secret(secret.name, error);
  } else {
    peer_key_of_token(purpose, secret.text, (size_t)secret.bytes, key);
  }
  hash_wipe(read, sizeof read);
  return rc;
}

bool peer_is_local(const struct sockaddr *address) {
  if (address->sa_family == AF_INET) {
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address->sa_family == AF_INET6) {
    const struct in6_addr *ip = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(ip) ||
           (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == IN_LOOPBACKNET);
  }
  return address->sa_family == AF_UNIX;
}

/* ---- proofs ---- */

int peer_make_challenge(uint8_t challenge[PEER_CHALLENGE_BYTES]) {
  memcpy(challenge, magic, MAGIC_BYTES);
  return random_secret(challenge + MAGIC_BYTES, PEER_NONCE_BYTES);
}

/* Over the challenge and the first `bytes` of what was answered or judged. */
static void prove(const struct peer_key *key, const char label[LABEL_BYTES],
                  const uint8_t challenge[PEER_CHALLENGE_BYTES], const uint8_t *said, size_t bytes,
                  uint8_t mac[PEER_KEY_BYTES]) {
  uint8_t text[LABEL_BYTES + PEER_CHALLENGE_BYTES + PEER_ANSWER_BYTES + 1];
  memcpy(text, label, LABEL_BYTES);
  memcpy(text + LABEL_BYTES, challenge, PEER_CHALLENGE_BYTES);
  memcpy(text + LABEL_BYTES + PEER_CHALLENGE_BYTES, said, bytes);
  hash_hmac_sha256(key->bytes, PEER_KEY_BYTES, text, LABEL_BYTES + PEER_CHALLENGE_BYTES + bytes,
                   mac);
}

static void prove_verdict(const struct peer_key *key, const uint8_t challenge[PEER_CHALLENGE_BYTES],
                          const uint8_t answer[PEER_ANSWER_BYTES], uint8_t mac[PEER_KEY_BYTES]) {
  uint8_t said[PEER_ANSWER_BYTES + 1];
  memcpy(said, answer, PEER_ANSWER_BYTES);
  said[PEER_ANSWER_BYTES] = KNOWN;
  prove(key, by_listener, challenge, said, sizeof said, mac);
}

bool peer_judge(const struct peer_key *key, const uint8_t challenge[PEER_CHALLENGE_BYTES],
                const uint8_t answer[PEER_ANSWER_BYTES], uint8_t verdict[PEER_VERDICT_BYTES]) {
  uint8_t mac[PEER_KEY_BYTES];
  size_t proven = PEER_ANSWER_BYTES - PEER_KEY_BYTES;
  prove(key, by_caller, challenge, answer, proven, mac);
  bool is_known = hash_is_equal(mac, answer + proven, PEER_KEY_BYTES);
  memset(verdict, 0, PEER_VERDICT_BYTES);
  verdict[0] = is_known ? KNOWN : REFUSED;
  if (is_known) {
    prove_verdict(key, challenge, answer, verdict + 1);
  }
  return is_known;
}

/* ---- on a connection ---- */

static int wait_for(struct pollfd *polled, nfds_t count, uint64_t deadline_ns) {
  uint64_t now_ns = clock_now_ns();
  if (now_ns >= deadline_ns) {
    return -ETIMEDOUT;
  }
  uint64_t left_ms = (deadline_ns - now_ns) / NS_PER_MS + 1;
  poll(polled, count, left_ms < 1000 ? (int)left_ms : 1000);
  return 0;
}

int peer_move(int fd, void *bytes, size_t count, bool is_send, uint64_t deadline_ns) {
  struct pollfd polled = { .fd = fd, .events = is_send ? POLLOUT : POLLIN };
  int error = 0;
  for (size_t done = 0; done < count && !error;) {
    char *at = (char *)bytes + done;
    ssize_t moved = is_send ? send(fd, at, count - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, at, count - done, MSG_DONTWAIT);
    if (moved > 0) {
      done += (size_t)moved;
    } else if (moved == 0) {
      error = -ECONNRESET;
    } else if (errno == EAGAIN || errno == EINTR) {
      error = wait_for(&polled, 1, deadline_ns);
    } else {
      error = -errno;
    }
  }
  return error;
}

/* ---- the listener ---- */

/* Takes in the next one of the socket's queue, if there is one. */
static int take_in(struct peer_listener *listener) {
  struct peer_caller *caller = &listener->callers[listener->count];
  int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) { /* what else fails is of the connection, which is gone (accept(2)) */
    bool is_ours = errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EMFILE ||
                   errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return is_ours ? -errno : 0;
  }
  *caller = (struct peer_caller){ .fd = fd, .until_ns = clock_now_ns() + PEER_PROOF_NS };
  int error = peer_make_challenge(caller->challenge);
  error = error ? error
                : peer_move(fd, caller->challenge, PEER_CHALLENGE_BYTES, true, caller->until_ns);
  if (error) {
    close(fd);
  } else {
    listener->count++;
  }
  return 0;
}

/* 1: its answer is whole; 0: not yet; -1: it will not be. */
static int hear(struct peer_caller *caller) {
  ssize_t got = recv(caller->fd, caller->answer + caller->heard, PEER_ANSWER_BYTES - caller->heard,
                     MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    return -1;
  }
  caller->heard += got > 0 ? (size_t)got : 0;
  return caller->heard == PEER_ANSWER_BYTES ? 1 : clock_now_ns() < caller->until_ns ? 0 : -1;
}

static bool let_in(const struct peer_key *key, const struct peer_caller *caller) {
  uint8_t verdict[PEER_VERDICT_BYTES];
  bool is_known = peer_judge(key, caller->challenge, caller->answer, verdict);
  return peer_move(caller->fd, verdict, sizeof verdict, true, caller->until_ns) == 0 && is_known;
}

/* Until somebody speaks or comes. */
static int wait_for_any(const struct peer_listener *listener, uint64_t until_ns) {
  struct pollfd polled[PEER_CALLERS_MAX + 1];
  bool has_room = listener->count < PEER_CALLERS_MAX;
  for (unsigned i = 0; i < listener->count; i++) {
    polled[i] = (struct pollfd){ .fd = listener->callers[i].fd, .events = POLLIN };
  }
  polled[listener->count] = (struct pollfd){ .fd = listener->fd, .events = POLLIN };
  return wait_for(polled, listener->count + has_room, until_ns);
}

int peer_accept(struct peer_listener *listener, uint64_t until_ns, int *fd,
                uint8_t hello[PEER_HELLO_BYTES]) {
  int error = 0;
  while (!error && (error = wait_for_any(listener, until_ns)) == 0) {
    for (unsigned i = listener->count; i-- > 0;) {
      int heard = hear(&listener->callers[i]);
      if (heard == 0) {
        continue;
      }
      const struct peer_caller caller = listener->callers[i];
      listener->callers[i] = listener->callers[--listener->count];
      if (heard > 0 && let_in(&listener->key, &caller)) {
        memcpy(hello, caller.answer + PEER_NONCE_BYTES, PEER_HELLO_BYTES);
        *fd = caller.fd;
        return 0;
      }
      close(caller.fd);
    }
    error = listener->count < PEER_CALLERS_MAX ? take_in(listener) : 0;
  }
  return error;
}

void peer_listener_close(struct peer_listener *listener) {
  for (unsigned i = 0; i < listener->count; i++) {
    close(listener->callers[i].fd);
  }
  close(listener->fd);
}

/* ---- the caller ---- */

static int judge_verdict(const struct peer_key *key, const uint8_t challenge[PEER_CHALLENGE_BYTES],
                         const uint8_t answer[PEER_ANSWER_BYTES],
                         const uint8_t verdict[PEER_VERDICT_BYTES]) {
  uint8_t mac[PEER_KEY_BYTES];
  if (verdict[0] == REFUSED) {
    return -EACCES;
  }
  prove_verdict(key, challenge, answer, mac);
  return verdict[0] == KNOWN && hash_is_equal(mac, verdict + 1, PEER_KEY_BYTES) ? 0 : -EPROTO;
}

int peer_call(int fd, const struct peer_key *key, const uint8_t hello[PEER_HELLO_BYTES],
              uint64_t deadline_ns) {
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES], verdict[PEER_VERDICT_BYTES];
  size_t proven = PEER_ANSWER_BYTES - PEER_KEY_BYTES;
  int error = peer_move(fd, challenge, sizeof challenge, false, deadline_ns);
  if (!error && memcmp(challenge, magic, MAGIC_BYTES) != 0) {
    return -EPROTO;
  }
  error = error ? error : random_secret(answer, PEER_NONCE_BYTES);
  if (error) {
    return error;
  }
  memcpy(answer + PEER_NONCE_BYTES, hello, PEER_HELLO_BYTES);
  prove(key, by_caller, challenge, answer, proven, answer + proven);
  error = peer_move(fd, answer, sizeof answer, true, deadline_ns);
  error = error ? error : peer_move(fd, verdict, sizeof verdict, false, deadline_ns);
  return error ? error : judge_verdict(key, challenge, answer, verdict);
}
