/* SPDX-License-Identifier: Apache-2.0 */
/* See secret.h. */
#include "net_plugin/setup/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "net_plugin/setup/settings.h"

#define MAX_BYTES 4096
/* Whoever reads the handle can try secrets at leisure, so it must not be guessable. */
#define MIN_BYTES 16
#define WARN_INTERVAL_NS (3600 * NS_PER_S)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_present;
static uint8_t kept[AUTH_KEY_BYTES];

static void warn_if_others_can_read(int fd, const char *path) {
  struct stat status;
  if (fstat(fd, &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    LOG_WARN_EVERY(WARN_INTERVAL_NS,
                   "STRATUS_SECRET_FILE=%s can be read by other users (mode %o): chmod 600 it",
                   path, (unsigned)status.st_mode & 07777);
  }
}

/* The file without the newlines at its end. Its size, or negative errno; a longer one is not what
 * the user meant. */
static ssize_t read_file(const char *path, char text[MAX_BYTES]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  warn_if_others_can_read(fd, path);
  ssize_t bytes = read(fd, text, MAX_BYTES);
  int error = errno;
  close(fd);
  if (bytes < 0) {
    return -error;
  }
  if (bytes == MAX_BYTES) {
    return -EFBIG;
  }
  while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) {
    bytes--;
  }
  return bytes == 0 ? -ENODATA : bytes;
}

static void keep(const char *name, const void *text, size_t bytes) {
  static const char label[] = "stratus 2 job secret";
  if (bytes < MIN_BYTES) {
    LOG_WARN_EVERY(WARN_INTERVAL_NS,
                   "%s has %zu characters and can be guessed by whoever reads NCCL's bootstrap; "
                   "make one with: openssl rand -hex 32",
                   name, bytes);
  }
  hash_hmac_sha256(label, sizeof label, text, bytes, kept);
  is_present = true;
}

static int load_file(const char *path) {
  char text[MAX_BYTES];
  ssize_t bytes = read_file(path, text);
  if (bytes < 0) {
    LOG_WARN("cannot use STRATUS_SECRET_FILE=%s: %s; no connection is made. It must be a file of "
             "1 to %d bytes that this user can read",
             path, bytes == -ENODATA ? "it is empty" : strerror((int)-bytes), MAX_BYTES - 1);
    return -EACCES;
  }
  keep("the secret in STRATUS_SECRET_FILE", text, (size_t)bytes);
  hash_wipe(text, sizeof text);
  return 0;
}

int secret_load(void) {
  const char *text = param_string(PARAM_SECRET), *path = param_string(PARAM_SECRET_FILE);
  int error = 0;
  pthread_mutex_lock(&lock);
  is_present = is_present && (*text || *path);
  if (*text) {
    if (*path) {
      LOG_WARN_EVERY(WARN_INTERVAL_NS,
                     "STRATUS_SECRET and STRATUS_SECRET_FILE are both set; STRATUS_SECRET counts");
    }
    keep("STRATUS_SECRET", text, strlen(text));
  } else if (*path) {
    error = load_file(path);
  }
  if (!error && !is_present && param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON) {
    LOG_WARN_EVERY(
        WARN_INTERVAL_NS,
        "STRATUS_ENCRYPT=on without STRATUS_SECRET: whoever reads NCCL's bootstrap, which "
        "is in clear, can make the keys; set a job secret, too");
  }
  pthread_mutex_unlock(&lock);
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
