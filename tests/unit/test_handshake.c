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

/* It is sent, and arrives: what the other side makes of it. */
static int pass(union handshake_message *message, enum handshake_kind kind) {
  handshake_finish(message, kind);
  return handshake_check(message, kind);
}

/* Changes a byte and makes the checksum right again, as a hostile peer would. */
static void forge(union handshake_message *message, size_t total, size_t at, uint8_t value) {
  uint8_t *bytes = (uint8_t *)message;
  bytes[at] = value;
  bytes_put_le32(bytes + total - 4, hash_crc32c(0, bytes, total - 4));
}

UNIT_TEST(a_message_arrives_as_it_was_sent) {
  const struct reply reply = { .status = REPLY_ACCEPTED,
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
  const struct hello hello = sample_hello();
  union handshake_message got = { .reply = reply };
  const size_t rest = HANDSHAKE_PREFIX_BYTES; /* but for prefix and checksum */
  assert_int_equal(pass(&got, HANDSHAKE_REPLY), 0);
  assert_memory_equal((uint8_t *)&got + rest, (const uint8_t *)&reply + rest,
                      REPLY_BYTES - rest - 4);
  got.hello = hello;
  assert_int_equal(pass(&got, HANDSHAKE_HELLO), 0);
  assert_memory_equal((uint8_t *)&got + rest, (const uint8_t *)&hello + rest,
                      HELLO_BYTES - rest - 4);
}

UNIT_TEST(none_passes_for_another) {
  for (enum handshake_kind kind = 0; kind < HANDSHAKE_KINDS; kind++) {
    union handshake_message sent = { .hello = sample_hello() };
    if (kind != HANDSHAKE_HELLO) {
      memset(&sent, 0, sizeof sent);
    }
    sent.reply.status = kind == HANDSHAKE_REPLY ? REPLY_UNKNOWN : sent.reply.status;
    handshake_finish(&sent, kind);
    for (enum handshake_kind wanted = 0; wanted < HANDSHAKE_KINDS; wanted++) {
      union handshake_message got = sent;
      assert_int_equal(handshake_check(&got, wanted), wanted == kind ? 0 : -EPROTO);
    }
  }
}

UNIT_TEST(every_flipped_bit_is_noticed) {
  union handshake_message sent = { .hello = sample_hello() };
  handshake_finish(&sent, HANDSHAKE_HELLO);
  for (size_t bit = 0; bit < HELLO_BYTES * 8; bit++) {
    union handshake_message got = sent;
    ((uint8_t *)&got)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_true(handshake_check(&got, HANDSHAKE_HELLO) < 0);
  }
  assert_int_equal(handshake_check(&sent, HANDSHAKE_HELLO), 0);
}

UNIT_TEST(other_versions_are_named) {
  union handshake_message got = { .hello = sample_hello() };
  enum handshake_kind kind;
  handshake_finish(&got, HANDSHAKE_HELLO);
  got.prefix.wire_version = HANDSHAKE_WIRE_VERSION + 1;
  memset(got.prefix.version, '\n', sizeof got.prefix.version);
  memcpy(got.prefix.version, "7.8.9", 5);
  assert_int_equal(handshake_prefix_check(&got.prefix, &kind), -EPROTONOSUPPORT);
  assert_string_equal(got.prefix.version, "7.8.9??????????");
  assert_int_equal(handshake_check(&got, HANDSHAKE_HELLO), -EPROTONOSUPPORT);
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
    union handshake_message got = { .hello = sample_hello() };
    handshake_finish(&got, HANDSHAKE_HELLO);
    forge(&got, HELLO_BYTES, cases[i].at, cases[i].value);
    if (handshake_check(&got, HANDSHAKE_HELLO) != -EINVAL) {
      fail_msg("accepted: %s", cases[i].what);
    }
  }
  union handshake_message proof = { .proof = { .offer.key = WIRE_REMOTE_KEYS } };
  assert_int_equal(pass(&proof, HANDSHAKE_PROOF), -EINVAL);
  const struct reply replies[] = { { .status = REPLY_STATUS_END },
                                   { .status = REPLY_REFUSED, .params.has_secret = 2 },
                                   { .status = REPLY_REFUSED, .connect_port = 1 },
                                   { .status = REPLY_REFUSED, .offer.kind = 1 },
                                   { .status = REPLY_REFUSED, .offer.key = WIRE_REMOTE_KEYS },
                                   { .status = REPLY_ACCEPTED } };
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    union handshake_message got = { .reply = replies[i] };
    assert_int_equal(pass(&got, HANDSHAKE_REPLY), -EINVAL);
  }
}

/* The link that it would be for takes no smaller chunks. */
UNIT_TEST(chunks_that_the_link_cannot_take_are_refused) {
  static const uint32_t chunks[] = { 0, 1, 4095, 4096 };
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    union handshake_message got = { .hello = sample_hello() };
    got.hello.params.chunk_bytes = chunks[i];
    got.hello.params.eager_bytes = 0;
    assert_int_equal(pass(&got, HANDSHAKE_HELLO), chunks[i] < 4096 ? -EINVAL : 0);
    struct link_config config = { .role = LINK_RECEIVER,
                                  .policy = { .lanes = 1, .chunk_bytes = chunks[i] } };
    assert_int_equal(link_memory_bytes(&config) == 0, chunks[i] < 4096);
  }
}

/* Not of an honest peer, whose own texts are made plain; nor of a hostile one. */
UNIT_TEST(hostile_text_cannot_reach_the_log) {
  const size_t texts[] = { AT(params.host), AT(params.nic), AT(params.decision.choices),
                           offsetof(struct handshake_prefix, version) };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    union handshake_message got = { .hello = sample_hello() };
    handshake_finish(&got, HANDSHAKE_HELLO);
    forge(&got, HELLO_BYTES, texts[i], '\n');
    assert_int_equal(handshake_check(&got, HANDSHAKE_HELLO), -EPROTO);
  }
  union handshake_message got = { .hello = sample_hello() };
  memset(got.hello.params.host, '\n', sizeof got.hello.params.host);
  assert_int_equal(pass(&got, HANDSHAKE_HELLO), 0);
  assert_int_equal(strlen(got.hello.params.host), HOST_TEXT_BYTES - 1);
  assert_null(strchr(got.hello.params.host, '\n'));
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
