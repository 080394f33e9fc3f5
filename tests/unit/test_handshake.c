/* SPDX-License-Identifier: Apache-2.0 */
/* handshake and handle: what is encoded comes back, and nothing else is accepted. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/handshake.h"
#include "tests/lib/unit.h"

static struct hello sample_hello(void) {
  struct hello hello = { .lane = 3,
                         .epoch = 7,
                         .params = { .lanes = 16,
                                     .chunk_bytes = 131072,
                                     .eager_bytes = 16384,
                                     .has_secret = 1,
                                     .process = 4711,
                                     .host = "host-a",
                                     .nic = "eth0",
                                     .decision = { 0x1234, 0x5678, 1, "NCCL_ALGO=ring" } },
                         .dscp = -1,
                         .is_first = 1 };
  memset(hello.listener, 0x11, TOKEN_BYTES);
  memset(hello.connection, 0x22, TOKEN_BYTES);
  memset(hello.nonce, 0x44, NONCE_BYTES);
  return hello;
}

/* Changes a byte and makes the checksum right again, as a hostile peer would. */
static void forge(uint8_t *bytes, size_t total, size_t at, uint8_t value) {
  bytes[at] = value;
  bytes_put_le32(bytes + total - 4, hash_crc32c(0, bytes, total - 4));
}

UNIT_TEST(reply_comes_back) {
  struct reply got, reply = { .status = REPLY_ACCEPTED,
                              .params = { .lanes = 16,
                                          .chunk_bytes = 131072,
                                          .eager_bytes = 4096,
                                          .wants_checksums = 1,
                                          .codec = 1,
                                          .ciphers = 1 << (LANE_CIPHERS - 1),
                                          .has_secret = 1,
                                          .process = 1,
                                          .host = "host-b",
                                          .nic = "eth1",
                                          .decision = { 0x4321, 0x8765, 2, "NCCL_PROTO=ll" } } };
  uint8_t bytes[REPLY_BYTES];
  reply_encode(&reply, bytes);
  assert_int_equal(reply_decode(bytes, &got), 0);
  uint8_t again[REPLY_BYTES];
  reply_encode(&got, again);
  assert_memory_equal(again, bytes, REPLY_BYTES);
  assert_string_equal(got.params.nic, "eth1");
  assert_int_equal(got.params.eager_bytes, 4096);
  assert_int_equal(got.params.wants_checksums, 1);
  assert_int_equal(got.params.ciphers, 1 << (LANE_CIPHERS - 1));
  assert_int_equal(got.params.codec, 1);
  assert_int_equal(got.params.decision.version, 2);
  assert_int_equal(got.params.decision.profile, 0x8765);
  assert_string_equal(got.params.decision.choices, "NCCL_PROTO=ll");
}

UNIT_TEST(challenge_and_proof_come_back) {
  struct challenge challenge = { 0 }, got_challenge;
  struct proof proof = { 0 }, got_proof;
  uint8_t challenge_bytes[CHALLENGE_BYTES], proof_bytes[PROOF_BYTES];
  memset(challenge.nonce, 0x66, NONCE_BYTES);
  memset(proof.handle, 0x77, MAC_BYTES);
  memset(proof.connection, 0x88, MAC_BYTES);
  challenge_encode(&challenge, challenge_bytes);
  assert_int_equal(challenge_decode(challenge_bytes, &got_challenge), 0);
  assert_memory_equal(got_challenge.nonce, challenge.nonce, NONCE_BYTES);
  proof_encode(&proof, proof_bytes);
  assert_int_equal(proof_decode(proof_bytes, &got_proof), 0);
  assert_memory_equal(got_proof.handle, proof.handle, MAC_BYTES);
  assert_memory_equal(got_proof.connection, proof.connection, MAC_BYTES);
  /* None passes for another. */
  uint8_t bytes[HANDSHAKE_MAX_BYTES] = { 0 };
  struct hello hello;
  struct reply reply;
  memcpy(bytes, proof_bytes, PROOF_BYTES);
  assert_int_equal(challenge_decode(bytes, &got_challenge), -EPROTO);
  assert_int_equal(hello_decode(bytes, &hello), -EPROTO);
  assert_int_equal(reply_decode(bytes, &reply), -EPROTO);
  memcpy(bytes, challenge_bytes, CHALLENGE_BYTES);
  assert_int_equal(proof_decode(bytes, &got_proof), -EPROTO);
}

UNIT_TEST(every_flipped_bit_is_noticed) {
  struct hello hello = sample_hello(), got;
  uint8_t bytes[HELLO_BYTES];
  hello_encode(&hello, bytes);
  for (size_t bit = 0; bit < HELLO_BYTES * 8; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_true(hello_decode(bytes, &got) < 0);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  assert_int_equal(hello_decode(bytes, &got), 0);
}

UNIT_TEST(other_versions_are_named) {
  struct hello hello = sample_hello(), got;
  uint8_t bytes[HELLO_BYTES];
  hello_encode(&hello, bytes);
  bytes[4] = HANDSHAKE_WIRE_VERSION + 1;
  memcpy(bytes + 8, "7.8.9", 6);
  assert_int_equal(hello_decode(bytes, &got), -EPROTONOSUPPORT);
  assert_int_equal(got.prefix.wire_version, HANDSHAKE_WIRE_VERSION + 1);
  assert_string_equal(got.prefix.version, "7.8.9");
}

UNIT_TEST(fields_out_of_range_are_refused) {
  struct {
    const char *what;
    size_t at;
    uint8_t value;
  } cases[] = {
#define AT(member) offsetof(struct hello, member)
    { "lane beyond lanes", AT(lane), 16 },
    { "no lanes", AT(params.lanes), 0 },
    { "65 lanes", AT(params.lanes), 65 },
    { "epoch 0", AT(epoch), 0 },
    { "chunk 16 MiB", AT(params.chunk_bytes) + 3, 1 },
    { "eager over chunk", AT(params.eager_bytes) + 3, 1 },
    { "dscp 64", AT(dscp), 64 },
    { "first 2", AT(is_first), 2 },
    { "checksums 2", AT(params.wants_checksums), 2 },
    { "9 target keys", AT(params.remote_keys), 9 },
    { "in clear as a cipher", AT(params.ciphers), 1 },
    { "secret 2", AT(params.has_secret), 2 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hello hello = sample_hello(), got;
    uint8_t bytes[HELLO_BYTES];
    hello_encode(&hello, bytes);
    forge(bytes, HELLO_BYTES, cases[i].at, cases[i].value);
    if (hello_decode(bytes, &got) != -EINVAL) {
      fail_msg("accepted: %s", cases[i].what);
    }
  }
}

/* The link that it would be for takes no smaller chunks. */
UNIT_TEST(chunks_that_the_link_cannot_take_are_refused) {
  static const uint32_t chunks[] = { 0, 1, 4095, 4096 };
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    struct hello hello = sample_hello(), got;
    uint8_t bytes[HELLO_BYTES];
    hello.params.chunk_bytes = chunks[i];
    hello.params.eager_bytes = 0;
    hello_encode(&hello, bytes);
    assert_int_equal(hello_decode(bytes, &got), chunks[i] < 4096 ? -EINVAL : 0);
    struct link_config config = { .role = LINK_RECEIVER,
                                  .policy = { .lanes = 1, .chunk_bytes = chunks[i] } };
    assert_int_equal(link_memory_bytes(&config) == 0, chunks[i] < 4096);
  }
}

UNIT_TEST(hostile_text_cannot_reach_the_log) {
  struct hello hello = sample_hello(), got;
  uint8_t bytes[HELLO_BYTES];
  memset(hello.params.host, '\n', sizeof hello.params.host);
  hello_encode(&hello, bytes);
  assert_int_equal(hello_decode(bytes, &got), 0);
  assert_int_equal(strlen(got.params.host), HOST_TEXT_BYTES - 1);
  assert_null(strchr(got.params.host, '\n'));
}

static struct handle sample_handle(void) {
  struct handle handle = { .count = 1 };
  struct sockaddr_in *in = (struct sockaddr_in *)&handle.addresses[0];
  memset(handle.listener, 0x33, TOKEN_BYTES);
  memset(handle.secret, 0x55, AUTH_SECRET_BYTES);
  *in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(4242) };
  return handle;
}

UNIT_TEST(foreign_handles_are_refused) {
  struct handle handle = sample_handle(), got;
  uint8_t bytes[HANDLE_BYTES];
  handle_encode(&handle, bytes);
  bytes[4] = HANDSHAKE_WIRE_VERSION + 1;
  assert_int_equal(handle_decode(bytes, &got), -EPROTONOSUPPORT);
  assert_int_equal(got.wire_version, HANDSHAKE_WIRE_VERSION + 1);
  handle.count = 0;
  handle_encode(&handle, bytes);
  assert_int_equal(handle_decode(bytes, &got), -EPROTO);
  memset(bytes, 0, sizeof bytes); /* NCCL's own Socket transport begins otherwise, too */
  assert_int_equal(handle_decode(bytes, &got), -EPROTO);
}
