/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in where tools listen: an answer to a challenge, callers of a gate that say anything,
 * in pieces, and a listener that says anything. Nobody is let in whose proof is not that of the
 * key for this challenge and this hello, and no caller takes a listener for its own that does not
 * know the key. The target makes proofs where chance would not. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/peer_gate.h"
#include "tests/fuzz/fuzz.h"

enum { CALLERS = 4, STEPS_MAX = 64 };

static struct peer_key ours;

/* As peer_proof.h has it, written a second time. */
static void prove(const uint8_t challenge[PEER_CHALLENGE_BYTES],
                  uint8_t answer[PEER_ANSWER_BYTES]) {
  uint8_t text[16 + PEER_CHALLENGE_BYTES + PEER_NONCE_BYTES + PEER_HELLO_BYTES] = "caller";
  memcpy(text + 16, challenge, PEER_CHALLENGE_BYTES);
  memcpy(text + 16 + PEER_CHALLENGE_BYTES, answer, PEER_NONCE_BYTES + PEER_HELLO_BYTES);
  hash_hmac_sha256(ours.bytes, PEER_KEY_BYTES, text, sizeof text,
                   answer + PEER_NONCE_BYTES + PEER_HELLO_BYTES);
}

static void judge(struct fuzz_input *input) {
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES], changed[PEER_ANSWER_BYTES];
  uint8_t verdict[PEER_VERDICT_BYTES];
  fuzz_bytes(input, challenge, sizeof challenge);
  fuzz_bytes(input, answer, sizeof answer);
  FUZZ_CHECK(!peer_judge(&ours, challenge, answer, verdict));
  prove(challenge, answer);
  FUZZ_CHECK(peer_judge(&ours, challenge, answer, verdict));
  memcpy(changed, answer, sizeof changed);
  uint8_t bits = fuzz_u8(input);
  changed[fuzz_u8(input) % sizeof changed] ^= bits;
  FUZZ_CHECK(peer_judge(&ours, challenge, changed, verdict) == (bits == 0));
}

/* ---- a gate ---- */

struct caller {
  int fd; /* -1: none */
  size_t said;
  bool is_right;
  uint8_t answer[PEER_ANSWER_BYTES];
};

/* Said whole, and not let in yet. */
static struct {
  uint8_t hellos[STEPS_MAX][PEER_HELLO_BYTES];
  int count;
} proofs;

static void call(struct caller *caller, const struct sockaddr_un *address, socklen_t bytes) {
  *caller = (struct caller){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0) };
  FUZZ_CHECK(caller->fd >= 0);
  FUZZ_CHECK(connect(caller->fd, (const struct sockaddr *)address, bytes) == 0);
}

/* Hears the challenge, if the gate has said it, and makes the answer to it. */
static void make_answer(struct caller *caller, struct fuzz_input *input) {
  uint8_t challenge[PEER_CHALLENGE_BYTES];
  if (caller->said > 0 ||
      recv(caller->fd, challenge, sizeof challenge, MSG_DONTWAIT) != (ssize_t)sizeof challenge) {
    return;
  }
  caller->is_right = true;
  fuzz_bytes(input, caller->answer + PEER_NONCE_BYTES, 8);
  prove(challenge, caller->answer);
}

static void say_part(struct caller *caller, struct fuzz_input *input) {
  size_t left = PEER_ANSWER_BYTES - caller->said, part = fuzz_u8(input);
  part = part < left ? part : left;
  if (!caller->is_right) {
    fuzz_bytes(input, caller->answer + caller->said, part);
  }
  ssize_t sent =
      part ? send(caller->fd, caller->answer + caller->said, part, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
  caller->said += sent > 0 ? (size_t)sent : 0;
  if (sent > 0 && caller->is_right && caller->said == PEER_ANSWER_BYTES) {
    memcpy(proofs.hellos[proofs.count++], peer_hello_of(caller->answer), PEER_HELLO_BYTES);
  }
}

/* Each proof that was said whole lets in once. */
static void let_in(struct peer_gate *gate) {
  uint8_t hello[PEER_HELLO_BYTES];
  int fd, which;
  while (peer_gate_next(gate, clock_now_ns() + NS_PER_US, &fd, hello) == 0) {
    for (which = 0; which < proofs.count; which++) {
      if (memcmp(proofs.hellos[which], hello, PEER_HELLO_BYTES) == 0) {
        break;
      }
    }
    FUZZ_CHECK(which < proofs.count);
    memmove(proofs.hellos[which], proofs.hellos[--proofs.count], PEER_HELLO_BYTES);
    close(fd);
  }
}

static void step(struct fuzz_input *input, struct peer_gate *gate, struct caller callers[CALLERS],
                 const struct sockaddr_un *address, socklen_t bytes) {
  uint8_t what = fuzz_u8(input);
  struct caller *caller = &callers[what >> 4 & (CALLERS - 1)];
  if (caller->fd < 0) {
    call(caller, address, bytes);
  } else if ((what & 7) == 0) {
    close(caller->fd);
    caller->fd = -1;
  } else if ((what & 7) == 1) {
    make_answer(caller, input);
  } else if ((what & 7) < 5) {
    say_part(caller, input);
  } else {
    let_in(gate);
  }
}

static void open_gate(struct fuzz_input *input) {
  struct caller callers[CALLERS] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
  struct sockaddr_un address = { .sun_family = AF_UNIX }; /* the kernel chooses a name */
  socklen_t bytes = sizeof(sa_family_t);
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FUZZ_CHECK(bind(server, (struct sockaddr *)&address, bytes) == 0 && listen(server, 64) == 0);
  bytes = sizeof address;
  FUZZ_CHECK(getsockname(server, (struct sockaddr *)&address, &bytes) == 0);
  struct peer_gate *gate = peer_gate_new(server, &ours);
  proofs.count = 0;
  FUZZ_CHECK(gate != NULL);
  for (int i = 0; i < STEPS_MAX && input->left > 0; i++) {
    step(input, gate, callers, &address, bytes);
  }
  peer_gate_free(gate);
  close(server);
  for (int i = 0; i < CALLERS; i++) {
    if (callers[i].fd >= 0) {
      close(callers[i].fd);
    }
  }
}

/* ---- a caller ---- */

static void hear_listener(struct fuzz_input *input) {
  static const uint8_t hello[PEER_HELLO_BYTES];
  uint8_t said[PEER_CHALLENGE_BYTES + PEER_VERDICT_BYTES];
  int fds[2];
  FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  fuzz_bytes(input, said, sizeof said);
  if (fuzz_u8(input) & 1) {
    FUZZ_CHECK(peer_make_challenge(said) == 0);
  }
  FUZZ_CHECK(send(fds[1], said, sizeof said, 0) == (ssize_t)sizeof said);
  shutdown(fds[1], SHUT_WR);
  FUZZ_CHECK(peer_call(fds[0], &ours, hello, UINT64_MAX) != 0);
  close(fds[0]);
  close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  peer_key_of_token("fuzz", "0123456789abcdef", 16, &ours);
  switch (fuzz_u8(&input) % 3) {
  case 0:
    judge(&input);
    break;
  case 1:
    open_gate(&input);
    break;
  default:
    hear_listener(&input);
    break;
  }
  return 0;
}
