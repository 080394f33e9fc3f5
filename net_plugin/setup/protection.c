/* SPDX-License-Identifier: Apache-2.0 */
/* See protection.h. */
#include "net_plugin/setup/protection.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "common/secret_file.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/setup/limits.h"

/* Held while a file is read, which may be a FIFO that nobody has written to yet; taken before the
 * lock, never with it: holders of the engine lock take that. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. */
static bool is_present;
static uint8_t kept[AUTH_KEY_BYTES];

static int take(const struct job_secret *secret, const char *path) {
  static const char label[] = "stratus 2 job secret";
  if (secret->bytes < 0) {
    LOG_WARN("cannot use STRATUS_SECRET_FILE=%s: %s; no connection is made. It must be a file of "
             "%d to %d bytes that this user can read",
             path, secret_file_error(secret->bytes), SECRET_MIN, SECRET_FILE_MAX - 1);
    return -EACCES;
  }
  if (secret->bytes > 0 && secret->bytes < SECRET_MIN) {
    LOG_WARN("the secret in %s has %zd characters and can be guessed by whoever reads NCCL's "
             "bootstrap; no connection is made. It must have %d at least; make one with: openssl "
             "rand -hex 32",
             secret->name, secret->bytes, SECRET_MIN);
    return -EACCES;
  }
  pthread_mutex_lock(&lock);
  is_present = secret->bytes > 0;
  if (is_present) {
    hash_hmac_sha256(label, sizeof label, secret->text, (size_t)secret->bytes, kept);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static int load_secret(void) {
  const char *text = param_string(PARAM_SECRET), *path = param_string(PARAM_SECRET_FILE);
  char read[SECRET_FILE_MAX];
  pthread_mutex_lock(&loading);
  if (*text && *path) {
    LOG_WARN_EVERY(SECRET_WARN_INTERVAL_NS,
                   "STRATUS_SECRET and STRATUS_SECRET_FILE are both set; STRATUS_SECRET counts");
  }
  struct job_secret secret = job_secret_choose(text, path, read);
  int error = take(&secret, path);
  if (secret.bytes == 0 && param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON) {
    LOG_WARN_EVERY(
        SECRET_WARN_INTERVAL_NS,
        "STRATUS_ENCRYPT=on without STRATUS_SECRET: whoever reads NCCL's bootstrap, which "
        "is in clear, can make the keys; set a job secret, too");
  }
  hash_wipe(read, sizeof read);
  pthread_mutex_unlock(&loading);
  return error;
}

int protection_check(void) {
  const char *refusal = param_refusal();
  if (refusal) {
    LOG_WARN("%s", refusal);
    return -EACCES;
  }
  if (param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON && !lane_crypto_ciphers()) {
    LOG_WARN("STRATUS_ENCRYPT=on, but OpenSSL's libcrypto cannot be used: %s; no connection is "
             "made. Install libcrypto.so.3 or libcrypto.so.1.1 (package libssl3 or openssl-libs), "
             "or unset STRATUS_ENCRYPT on every host",
             lane_crypto_library());
    return -EACCES;
  }
  return load_secret();
}

bool protection_has_secret(void) {
  pthread_mutex_lock(&lock);
  bool has_secret = is_present;
  pthread_mutex_unlock(&lock);
  return has_secret;
}

void protection_keys(const uint8_t secret[AUTH_SECRET_BYTES], const uint8_t connection[TOKEN_BYTES],
                     struct auth_keys *keys) {
  pthread_mutex_lock(&lock);
  auth_keys_derive(secret, is_present ? kept : NULL, connection, keys);
  pthread_mutex_unlock(&lock);
}

const char *protection_secret_differs(const struct conn_params *ours,
                                      const struct conn_params *theirs, const char *their_address,
                                      char text[PROTECTION_TEXT_BYTES]) {
  const char *how = ours->has_secret && theirs->has_secret ? "differs from the one of"
                    : ours->has_secret                     ? "is set, but not on"
                                                           : "is not set, but it is on";
  snprintf(text, PROTECTION_TEXT_BYTES,
           "the job secret (STRATUS_SECRET or STRATUS_SECRET_FILE) of this host, %s, %s %s (%s): "
           "no connection. Give every host the same, or none",
           ours->host, how, theirs->host, their_address);
  return text;
}
