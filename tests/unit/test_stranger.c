/* SPDX-License-Identifier: Apache-2.0 */
/* What a stranger makes the listening side compute, who names a listener or a connection that he
 * has seen in somebody's hello, and knows no key. */
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/hash.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { STRANGERS = 20 };

static atomic_ulong hashes;

void __real_hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                             uint8_t digest[HASH_SHA256_BYTES]);
void __real_hash_hkdf_extract(const void *salt, size_t salt_bytes, const void *secret,
                              size_t secret_bytes, uint8_t key[HASH_SHA256_BYTES]);
void __real_hash_hkdf_expand(const uint8_t key[HASH_SHA256_BYTES], const void *info,
                             size_t info_bytes, void *out, size_t out_bytes);
void __wrap_hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                             uint8_t digest[HASH_SHA256_BYTES]);
void __wrap_hash_hkdf_extract(const void *salt, size_t salt_bytes, const void *secret,
                              size_t secret_bytes, uint8_t key[HASH_SHA256_BYTES]);
void __wrap_hash_hkdf_expand(const uint8_t key[HASH_SHA256_BYTES], const void *info,
                             size_t info_bytes, void *out, size_t out_bytes);

void __wrap_hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                             uint8_t digest[HASH_SHA256_BYTES]) {
  atomic_fetch_add(&hashes, 1);
  __real_hash_hmac_sha256(key, key_bytes, bytes, count, digest);
}

void __wrap_hash_hkdf_extract(const void *salt, size_t salt_bytes, const void *secret,
                              size_t secret_bytes, uint8_t key[HASH_SHA256_BYTES]) {
  atomic_fetch_add(&hashes, 1);
  __real_hash_hkdf_extract(salt, salt_bytes, secret, secret_bytes, key);
}

void __wrap_hash_hkdf_expand(const uint8_t key[HASH_SHA256_BYTES], const void *info,
                             size_t info_bytes, void *out, size_t out_bytes) {
  atomic_fetch_add(&hashes, 1);
  __real_hash_hkdf_expand(key, info, info_bytes, out, out_bytes);
}

static void strangers_cost_one_hash_each(const struct by_hand_caller *seen) {
  for (int i = 0; i < STRANGERS; i++) {
    struct by_hand_caller caller = *seen;
    uint8_t bytes[PROOF_BYTES];
    const struct proof none = { 0 };
    unsigned long before = atomic_load(&hashes);
    by_hand_greet(&caller);
    by_hand_take_challenge(&caller);
    assert_int_equal(atomic_load(&hashes), before); /* a hello makes us compute nothing */
    proof_encode(&none, bytes);
    by_hand_say(caller.fd, bytes, PROOF_BYTES, false);
    assert_true(recv(caller.fd, bytes, 1, 0) <= 0); /* rejected */
    assert_int_equal(atomic_load(&hashes), before + 1);
    close(caller.fd);
  }
}

LOG_CAPTURE_TEST(a_stranger_costs_one_hash) {
  struct nic nic = pair_loopback(AF_INET);
  struct handle handle;
  struct listener *listener;
  struct connection *connection = NULL;
  uint8_t bytes[HANDLE_BYTES];
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), 0);
  assert_int_equal(handle_decode(bytes, &handle), 0);
  struct by_hand_caller caller = by_hand_caller(&handle, NULL);
  strangers_cost_one_hash_each(&caller);
  assert_int_equal(listener_accept(listener, &connection), 0);
  assert_null(connection);
  /* An honest peer, and then strangers who pose as another lane of its connection. */
  by_hand_greet(&caller);
  by_hand_take_challenge(&caller);
  by_hand_prove(&caller);
  by_hand_reply(&caller);
  assert_int_equal(listener_accept(listener, &connection), 0);
  assert_non_null(connection);
  caller.hello.lane = 1;
  caller.hello.is_first = 0;
  strangers_cost_one_hash_each(&caller);
  connection_detach(connection);
  close(caller.fd);
  listener_close(listener);
  setup_stop();
}

UNIT_MAIN(NULL, NULL)
