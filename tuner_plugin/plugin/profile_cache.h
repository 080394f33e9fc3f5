/* SPDX-License-Identifier: Apache-2.0 */
/* profile_cache: the process's one profile.
 * Owns: the profile, from the first acquire to the last release.
 * Threads: any; one lock.  Blocks: the first acquire reads files.
 * Fails: -ENOENT no profile; else what common/profile_match.h gives for a bad one, after one WARN.
 *
 * Jobs open hundreds of communicators at once; only the first one pays for the file. */
#ifndef TUNER_PLUGIN_PLUGIN_PROFILE_CACHE_H
#define TUNER_PLUGIN_PLUGIN_PROFILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

struct profile_cache_view {
  const struct profile *profile; /* without rows that gain too little */
  const char *path;
  uint64_t hash;       /* of all of it */
  bool is_by_topology; /* found by its topology, not named: another machine may find another one */
};

/* Takes a reference, to be returned by profile_cache_release even after a failure. On success
 * `view` is valid as long as the reference is held. */
int profile_cache_acquire(struct profile_cache_view *view);
void profile_cache_release(void);

#endif
