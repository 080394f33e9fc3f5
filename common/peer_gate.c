/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_gate.h. Pending connections are in the order in which they came. */
#include "common/peer_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"

struct pending {
  int fd;
  size_t received;
  uint64_t deadline_ns;
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES];
};

struct peer_gate {
  int server, count;
  const struct peer_key *key;
  uint64_t refused;
  struct pending pending[PEER_GATE_PENDING];
};

struct peer_gate *peer_gate_new(int server, const struct peer_key *key) {
  struct peer_gate *gate = calloc(1, sizeof *gate);
  if (gate) {
    gate->server = server;
    gate->key = key;
    fcntl(server, F_SETFL, fcntl(server, F_GETFL) | O_NONBLOCK);
  }
  return gate;
}

uint64_t peer_gate_refused(const struct peer_gate *gate) {
  return gate->refused;
}

/* Takes it out of the list, and leaves the descriptor open. */
static void take_out(struct peer_gate *gate, int which) {
  memmove(&gate->pending[which], &gate->pending[which + 1],
          sizeof gate->pending[0] * (size_t)(gate->count - which - 1));
  gate->count--;
}

static void refuse(struct peer_gate *gate, int which) {
  close(gate->pending[which].fd);
  take_out(gate, which);
  gate->refused++;
}

void peer_gate_free(struct peer_gate *gate) {
  while (gate && gate->count > 0) {
    refuse(gate, gate->count - 1);
  }
  free(gate);
}

/* ---- new ones ---- */

static void begin(struct peer_gate *gate, int fd) {
  if (gate->count == PEER_GATE_PENDING) {
    refuse(gate, 0);
  }
  struct pending *pending = &gate->pending[gate->count++];
  *pending = (struct pending){ .fd = fd, .deadline_ns = clock_now_ns() + PEER_GATE_PROOF_NS };
  if (peer_make_challenge(pending->challenge) != 0 ||
      send(fd, pending->challenge, PEER_CHALLENGE_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) !=
          PEER_CHALLENGE_BYTES) {
    refuse(gate, gate->count - 1);
  }
}

static int accept_one(struct peer_gate *gate) {
  int fd = accept4(gate->server, NULL, NULL, SOCK_CLOEXEC);
  if (fd >= 0) {
    begin(gate, fd);
    return 0;
  }
  switch (errno) {
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case ENOMEM:
    if (gate->count > 0) {
      refuse(gate, 0);
    } else {
      poll(NULL, 0, PEER_GATE_NO_DESCRIPTOR_MS);
    }
    return 0;
  case EBADF:
  case EINVAL:
  case ENOTSOCK:
    return -errno;
  default: /* of the connection, not of the socket (accept(2)) */
    return 0;
  }
}

/* ---- those that are known ---- */

/* True when it is proven. *is_over: it is not pending any more. */
static bool hear(struct peer_gate *gate, struct pending *pending, bool *is_over) {
  uint8_t verdict[PEER_VERDICT_BYTES];
  ssize_t got = recv(pending->fd, pending->answer + pending->received,
                     PEER_ANSWER_BYTES - pending->received, MSG_DONTWAIT);
  pending->received += got > 0 ? (size_t)got : 0;
  *is_over = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (pending->received < PEER_ANSWER_BYTES) {
    *is_over = *is_over || clock_now_ns() >= pending->deadline_ns;
    return false;
  }
  *is_over = true;
  bool is_known = peer_judge(gate->key, pending->challenge, pending->answer, verdict);
  bool is_told = send(pending->fd, verdict, sizeof verdict, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                 (ssize_t)sizeof verdict;
  return is_known && is_told;
}

static bool find_proven(struct peer_gate *gate, int *fd, uint8_t hello[PEER_HELLO_BYTES]) {
  for (int i = 0; i < gate->count;) {
    struct pending *pending = &gate->pending[i];
    bool is_over;
    if (hear(gate, pending, &is_over)) {
      *fd = pending->fd;
      memcpy(hello, peer_hello_of(pending->answer), PEER_HELLO_BYTES);
      take_out(gate, i);
      return true;
    }
    if (is_over) {
      refuse(gate, i);
    } else {
      i++;
    }
  }
  return false;
}

static bool wait_for_any(struct peer_gate *gate, uint64_t until_ns) {
  struct pollfd poll_fds[PEER_GATE_PENDING + 1];
  uint64_t now_ns = clock_now_ns(), wake_ns = until_ns;
  for (int i = 0; i < gate->count; i++) {
    const struct pending *pending = &gate->pending[i];
    poll_fds[i] = (struct pollfd){ .fd = pending->fd, .events = POLLIN };
    wake_ns = pending->deadline_ns < wake_ns ? pending->deadline_ns : wake_ns;
  }
  poll_fds[gate->count] = (struct pollfd){ .fd = gate->server, .events = POLLIN };
  uint64_t left_ms = wake_ns > now_ns ? (wake_ns - now_ns) / NS_PER_MS + 1 : 0;
  int count = poll(poll_fds, (nfds_t)gate->count + 1,
                   left_ms < PEER_GATE_POLL_MS ? (int)left_ms : PEER_GATE_POLL_MS);
  return count > 0 && poll_fds[gate->count].revents;
}

int peer_gate_next(struct peer_gate *gate, uint64_t until_ns, int *fd,
                   uint8_t hello[PEER_HELLO_BYTES]) {
  for (;;) {
    if (find_proven(gate, fd, hello)) {
      return 0;
    }
    if (clock_now_ns() >= until_ns) {
      return -ETIMEDOUT;
    }
    int error = wait_for_any(gate, until_ns) ? accept_one(gate) : 0;
    if (error) {
      return error;
    }
  }
}
