/* SPDX-License-Identifier: Apache-2.0 */
/* Hello, challenge, proof, reply and handle from any bytes: what is accepted is within its limits,
 * safe to print, and survives the way out and in again. */
#include <netinet/in.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/peering_route.h"
#include "tests/fuzz/fuzz.h"

/* It goes into logs: terminated, without control characters. */
static void check_text(const char *text, size_t bytes) {
  FUZZ_CHECK(memchr(text, '\0', bytes) != NULL);
  for (; *text; text++) {
    FUZZ_CHECK(*text >= ' ' && *text <= '~');
  }
}

/* What tells the messages and the version from garbage, and the checksum: chance finds neither.
 */
static void make_plausible(uint8_t *bytes, size_t total, const uint8_t valid_prefix[8]) {
  memcpy(bytes, valid_prefix, 8);
  bytes_put_le32(bytes + total - 4, hash_crc32c(0, bytes, total - 4));
}

static void try_prefix(const uint8_t *bytes) {
  enum handshake_kind kind = HANDSHAKE_KINDS;
  struct handshake_prefix prefix;
  if (handshake_prefix_check(bytes, &kind, &prefix) == 0) {
    FUZZ_CHECK(prefix.wire_version == HANDSHAKE_WIRE_VERSION && kind < HANDSHAKE_KINDS);
    FUZZ_CHECK(handshake_bytes(kind) <= HANDSHAKE_MAX_BYTES);
  }
  check_text(prefix.version, sizeof prefix.version);
}

static void try_hello(const uint8_t bytes[HELLO_BYTES]) {
  struct hello hello, again;
  uint8_t encoded[HELLO_BYTES], twice[HELLO_BYTES];
  if (hello_decode(bytes, &hello) != 0) {
    return;
  }
  FUZZ_CHECK(hello.params.lanes >= 1 && hello.params.lanes <= WIRE_MAX_LANES &&
             hello.lane < hello.params.lanes);
  FUZZ_CHECK(hello.epoch >= 1 && hello.params.eager_bytes <= hello.params.chunk_bytes);
  FUZZ_CHECK(hello.params.chunk_bytes <= WIRE_MAX_CHUNK_BYTES);
  check_text(hello.prefix.version, sizeof hello.prefix.version);
  check_text(hello.params.host, sizeof hello.params.host);
  check_text(hello.params.nic, sizeof hello.params.nic);
  hello_encode(&hello, encoded);
  FUZZ_CHECK(hello_decode(encoded, &again) == 0);
  hello_encode(&again, twice);
  FUZZ_CHECK(memcmp(encoded, twice, HELLO_BYTES) == 0);
}

static void try_challenge_and_proof(const uint8_t bytes[PROOF_BYTES]) {
  struct challenge challenge;
  struct proof proof;
  uint8_t encoded[PROOF_BYTES];
  if (challenge_decode(bytes, &challenge) == 0) {
    check_text(challenge.prefix.version, sizeof challenge.prefix.version);
    challenge_encode(&challenge, encoded);
    FUZZ_CHECK(challenge_decode(encoded, &challenge) == 0);
  }
  if (proof_decode(bytes, &proof) == 0) {
    check_text(proof.prefix.version, sizeof proof.prefix.version);
    FUZZ_CHECK(proof.offer.bytes[LANE_OFFER_KEY] < WIRE_REMOTE_KEYS);
    proof_encode(&proof, encoded);
    FUZZ_CHECK(proof_decode(encoded, &proof) == 0);
  }
}

static void check_families(const struct sockaddr_storage *addresses, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    int family = addresses[i].ss_family;
    FUZZ_CHECK(family == AF_INET || family == AF_INET6);
  }
}

/* Whatever a reply lists: it is the bytes that it was made of, and has paths for NICs of both
 * families, each with an address that there is. */
static void try_learned(const struct reply *reply) {
  struct sockaddr_storage list[ADDRESSES_MAX];
  unsigned count = addresses_of_reply(reply, list);
  FUZZ_CHECK(count <= ADDRESSES_MAX);
  check_families(list, count);
  for (unsigned i = 0; i < count; i++) {
    struct wire_address wire;
    address_to_wire(&list[i], &wire);
    FUZZ_CHECK(memcmp(&wire, &reply->addresses[i], sizeof wire) == 0);
  }
  if (count > 0) {
    struct peering_route route = {
      .nics = { { .prefix_bits = 24 }, { .prefix_bits = 64 }, { .prefix_bits = 64 } },
      .nic_count = 3,
    };
    route.nics[0].address.ss_family = AF_INET;
    route.nics[1].address = list[0];
    route.nics[2].address.ss_family = AF_INET6;
    peering_route_learn(&route, reply, (struct path){ 0, 0 });
    FUZZ_CHECK(route.home_count >= 1 && route.home_count <= route.path_count);
    FUZZ_CHECK(route.path_count <= 3 * count);
    for (unsigned i = 0; i < route.path_count; i++) {
      FUZZ_CHECK(route.paths[i].nic < 3 && route.paths[i].address < count);
    }
  }
}

static void try_reply(const uint8_t bytes[REPLY_BYTES]) {
  struct reply reply, again;
  uint8_t encoded[REPLY_BYTES], twice[REPLY_BYTES];
  if (reply_decode(bytes, &reply) != 0) {
    return;
  }
  FUZZ_CHECK(reply.status < REPLY_STATUS_END);
  FUZZ_CHECK(reply.status != REPLY_ACCEPTED ||
             (reply.params.lanes >= 1 && reply.params.lanes <= WIRE_MAX_LANES &&
              reply.params.eager_bytes <= WIRE_MAX_CHUNK_BYTES));
  FUZZ_CHECK(reply_status_text(reply.status)[0] != '\0');
  try_learned(&reply);
  check_text(reply.prefix.version, sizeof reply.prefix.version);
  check_text(reply.params.host, sizeof reply.params.host);
  check_text(reply.params.nic, sizeof reply.params.nic);
  reply_encode(&reply, encoded);
  FUZZ_CHECK(reply_decode(encoded, &again) == 0);
  reply_encode(&again, twice);
  FUZZ_CHECK(memcmp(encoded, twice, REPLY_BYTES) == 0);
}

static void try_handle(const uint8_t bytes[HANDLE_BYTES]) {
  struct handle handle, again;
  uint8_t encoded[HANDLE_BYTES], twice[HANDLE_BYTES];
  if (handle_decode(bytes, &handle) != 0) {
    return;
  }
  FUZZ_CHECK(handle.count >= 1 && handle.count <= ADDRESSES_MAX);
  check_families(handle.addresses, handle.count);
  FUZZ_CHECK(handle_encode(&handle, encoded) == handle.count);
  FUZZ_CHECK(handle_decode(encoded, &again) == 0);
  handle_encode(&again, twice);
  FUZZ_CHECK(memcmp(encoded, twice, HANDLE_BYTES) == 0);
  handle_set_pending(encoded, handle_pending(bytes));
  FUZZ_CHECK(handle_pending(encoded) == handle_pending(bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t valid_hello[HELLO_BYTES], valid_reply[REPLY_BYTES], valid_handle[HANDLE_BYTES];
  uint8_t valid_challenge[CHALLENGE_BYTES], valid_proof[PROOF_BYTES];
  struct hello hello = { 0 };
  struct challenge challenge = { 0 };
  struct proof proof = { 0 };
  struct reply reply = { 0 };
  struct handle handle = { .count = 1 };
  hello_encode(&hello, valid_hello);
  challenge_encode(&challenge, valid_challenge);
  proof_encode(&proof, valid_proof);
  reply_encode(&reply, valid_reply);
  handle_encode(&handle, valid_handle);

  struct fuzz_input input = { data, size };
  uint8_t bytes[HANDSHAKE_MAX_BYTES];
  fuzz_bytes(&input, bytes, sizeof bytes);
  try_prefix(bytes);
  try_hello(bytes);
  try_challenge_and_proof(bytes);
  try_reply(bytes);
  try_handle(bytes);
  make_plausible(bytes, HELLO_BYTES, valid_hello);
  try_prefix(bytes);
  try_hello(bytes);
  make_plausible(bytes, CHALLENGE_BYTES, valid_challenge);
  try_challenge_and_proof(bytes);
  make_plausible(bytes, PROOF_BYTES, valid_proof);
  try_challenge_and_proof(bytes);
  make_plausible(bytes, REPLY_BYTES, valid_reply);
  try_reply(bytes);
  memcpy(bytes, valid_handle, 6);
  try_handle(bytes);
  return 0;
}
