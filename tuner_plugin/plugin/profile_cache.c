/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, shares and frees the profile. */
#include "tuner_plugin/plugin/profile_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "tuner_plugin/decide/decide.h"

/* All of this is under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t share_count;
static int load_error; /* of the load that the first share made */
static struct profile profile;
static char profile_path[PROFILE_PATH_MAX];
static uint64_t hash;

/* A job that opens and closes communicators in a loop gets each warning once. */
static void warn_once(const struct profile_error *error) {
  static struct profile_error last;
  if (strcmp(last.text, error->text) != 0) {
    last = *error;
    LOG_WARN("%s; the job continues without it", error->text);
  }
}

static int load(void) {
  struct profile_error error = { 0 };
  int result = profile_match_load(&profile, profile_path, &error);
  if (result == 0) {
    hash = profile_hash(&profile); /* as the file has it */
    guard_drop_rows(&profile);
    return 0;
  }
  /* It is normal that no profile fits this machine; it is an error if a named one is missing. */
  if (result != -ENOENT || param_is_set(PARAM_PROFILE)) {
    warn_once(&error);
    return result == -ENOENT ? -EINVAL : result;
  }
  return result;
}

int profile_cache_acquire(struct profile_cache_view *view) {
  pthread_mutex_lock(&lock);
  if (share_count++ == 0) {
    load_error = load();
  }
  int result = load_error;
  if (result == 0) {
    *view = (struct profile_cache_view){
      .profile = &profile,
      .path = profile_path,
      .hash = hash,
      .is_by_topology = profile.fit.topology[0] && !param_string(PARAM_PROFILE)[0],
    };
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void profile_cache_release(void) {
  pthread_mutex_lock(&lock);
  if (--share_count == 0 && load_error == 0) {
    profile_free(&profile);
  }
  pthread_mutex_unlock(&lock);
}
