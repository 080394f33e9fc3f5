/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in where tools listen: an answer to a challenge, and a listener that says anything.
 * Nobody is let in whose proof is not that of the key for this challenge and this hello, and no
 * caller takes a listener for its own that does not know the key. The target makes proofs where
 * chance would not. */
#include <sys/socket.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/peer_proof.h"
#include "tests/fuzz/fuzz.h"

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
  if (fuzz_u8(&input) % 3 == 0) {
    judge(&input);
  } else {
    hear_listener(&input);
  }
  return 0;
}
