/* SPDX-License-Identifier: Apache-2.0 */
/* Hello, challenge, proof, reply and handle from any bytes: what is accepted is within its limits,
 * safe to print, and survives the way out and in again. */
#include <errno.h>
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

static void check_params(const struct conn_params *params) {
  check_text(params->host, sizeof params->host);
  check_text(params->nic, sizeof params->nic);
  check_text(params->decision.choices, sizeof params->decision.choices);
}

static void try_prefix(const uint8_t *bytes) {
  enum handshake_kind kind = HANDSHAKE_KINDS;
  struct handshake_prefix prefix;
  memcpy(&prefix, bytes, sizeof prefix);
  int error = handshake_prefix_check(&prefix, &kind);
  if (error == 0) {
    FUZZ_CHECK(prefix.wire_version == HANDSHAKE_WIRE_VERSION && kind < HANDSHAKE_KINDS);
    FUZZ_CHECK(handshake_bytes(kind) <= sizeof(union handshake_message));
  } else if (error == -EPROTONOSUPPORT) {
    check_text(prefix.version, sizeof prefix.version);
  }
}

/* False: it is refused. What is accepted is what was sent, and would be sent so again. */
static bool is_accepted(const uint8_t *bytes, enum handshake_kind kind,
                        union handshake_message *message) {
  union handshake_message again;
  size_t count = handshake_bytes(kind);
  memcpy(message, bytes, sizeof *message);
  if (handshake_check(message, kind) != 0) {
    return false;
  }
  FUZZ_CHECK(memcmp(message, bytes, count) == 0);
  check_text(message->prefix.version, sizeof message->prefix.version);
  again = *message;
  handshake_finish(&again, kind);
  FUZZ_CHECK(memcmp((uint8_t *)&again + HANDSHAKE_PREFIX_BYTES, bytes + HANDSHAKE_PREFIX_BYTES,
                    count - HANDSHAKE_PREFIX_BYTES - sizeof(uint32_t)) == 0);
  FUZZ_CHECK(handshake_check(&again, kind) == 0);
  return true;
}

static void try_hello(const uint8_t *bytes) {
  union handshake_message message;
  const struct hello *hello = &message.hello;
  if (is_accepted(bytes, HANDSHAKE_HELLO, &message)) {
    FUZZ_CHECK(hello->params.lanes >= 1 && hello->params.lanes <= WIRE_MAX_LANES &&
               hello->lane < hello->params.lanes);
    FUZZ_CHECK(hello->epoch >= 1 && hello->params.eager_bytes <= hello->params.chunk_bytes);
    FUZZ_CHECK(hello->params.chunk_bytes <= WIRE_MAX_CHUNK_BYTES);
    check_params(&hello->params);
  }
}

static void try_challenge_and_proof(const uint8_t *bytes) {
  union handshake_message message;
  is_accepted(bytes, HANDSHAKE_CHALLENGE, &message);
  if (is_accepted(bytes, HANDSHAKE_PROOF, &message)) {
    FUZZ_CHECK(message.proof.offer.key < WIRE_REMOTE_KEYS);
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

static void try_reply(const uint8_t *bytes) {
  union handshake_message message;
  const struct reply *reply = &message.reply;
  if (!is_accepted(bytes, HANDSHAKE_REPLY, &message)) {
    return;
  }
  FUZZ_CHECK(reply->status < REPLY_STATUS_END);
  FUZZ_CHECK(reply->status != REPLY_ACCEPTED ||
             (reply->params.lanes >= 1 && reply->params.lanes <= WIRE_MAX_LANES &&
              reply->params.eager_bytes <= WIRE_MAX_CHUNK_BYTES));
  FUZZ_CHECK(reply_status_text(reply->status)[0] != '\0');
  try_learned(reply);
  check_params(&reply->params);
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

/* Makes what tells messages and versions from garbage, and the checksum, right: chance finds
 * neither. */
static void make_plausible(uint8_t *bytes, enum handshake_kind kind) {
  union handshake_message valid = { .hello = { .epoch = 0 } };
  size_t total = handshake_bytes(kind);
  handshake_finish(&valid, kind);
  memcpy(bytes, &valid, 8);
  bytes_put_le32(bytes + total - 4, hash_crc32c(0, bytes, total - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t valid_handle[HANDLE_BYTES], bytes[sizeof(union handshake_message)];
  struct handle handle = { .count = 1 };
  struct fuzz_input input = { data, size };
  handle_encode(&handle, valid_handle);
  fuzz_bytes(&input, bytes, sizeof bytes);
  for (enum handshake_kind kind = 0; kind <= HANDSHAKE_KINDS; kind++) {
    try_prefix(bytes);
    try_hello(bytes);
    try_challenge_and_proof(bytes);
    try_reply(bytes);
    if (kind < HANDSHAKE_KINDS) {
      make_plausible(bytes, kind);
    }
  }
  try_handle(bytes);
  memcpy(bytes, valid_handle, 6);
  try_handle(bytes);
  return 0;
}
