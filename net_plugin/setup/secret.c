/* SPDX-License-Identifier: Apache-2.0 */
/* See secret.h. */
#include "net_plugin/setup/secret.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "common/secret_file.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/settings.h"

/* Held while a file is read, which may be a FIFO that nobody has written to yet; taken before the
 * lock, never with it: holders of the engine lock take that. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. */
static bool is_present;
static uint8_t kept[AUTH_KEY_BYTES];

static int keep(const char *name, const void *text, size_t bytes) {
  static const char label[] = "stratus 2 job secret";
  if (bytes < SECRET_MIN) {
    LOG_WARN("the secret in %s has %zu characters and can be guessed by whoever reads NCCL's "
             "bootstrap; no connection is made. It must have %d at least; make one with: openssl "
             "rand -hex 32",
             name, bytes, SECRET_MIN);
    return -EACCES;
  }
  pthread_mutex_lock(&lock);
  hash_hmac_sha256(label, sizeof label, text, bytes, kept);
  is_present = true;
  pthread_mutex_unlock(&lock);
  return 0;
}

/* No secret is wanted (any more). */
static void forget(void) {
  pthread_mutex_lock(&lock);
  is_present = false;
  pthread_mutex_unlock(&lock);
}

static int take(const struct job_secret *secret, const char *path) {
  if (secret->bytes > 0) {
    return keep(secret->name, secret->text, (size_t)secret->bytes);
  }
  if (secret->bytes < 0) {
    LOG_WARN("cannot use STRATUS_SECRET_FILE=%s: %s; no connection is made. It must be a file of "
             "%d to %d bytes that this user can read",
             path, secret_file_error(secret->bytes), SECRET_MIN, SECRET_FILE_MAX - 1);
    return -EACCES;
  }
  forget();
  return 0;
}

int secret_load(void) {
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

const uint8_t *secret_get(uint8_t digest[AUTH_KEY_BYTES]) {
  pthread_mutex_lock(&lock);
  bool has_secret = is_present;
  memcpy(digest, kept, AUTH_KEY_BYTES);
  pthread_mutex_unlock(&lock);
  return has_secret ? digest : NULL;
}

const char *secret_differs_text(const char *peer_host, const char *peer_address, bool is_set_there,
                                char text[SECRET_TEXT_BYTES]) {
  uint8_t digest[AUTH_KEY_BYTES];
  bool is_set_here = secret_get(digest) != NULL;
  hash_wipe(digest, sizeof digest);
  const char *how = is_set_here && is_set_there ? "differs from the one of"
                    : is_set_here               ? "is set, but not on"
                                                : "is not set, but it is on";
  snprintf(text, SECRET_TEXT_BYTES,
           "the job secret (STRATUS_SECRET or STRATUS_SECRET_FILE) of this host, %s, %s %s (%s): "
           "no connection. Give every host the same, or none",
           settings_host_name(), how, peer_host, peer_address);
  return text;
}
