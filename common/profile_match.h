/* SPDX-License-Identifier: Apache-2.0 */
/* profile_match: finds the profile that fits this machine.
 * Owns: nothing.  Threads: any.
 * Blocks: on the files.  Fails: -ENOENT where no profile fits; the errors of profile_read for the
 * profile that STRATUS_PROFILE names. A searched file that cannot be read is skipped with one WARN.
 *
 * Searched in this order, never in the current directory:
 *   1. the path in STRATUS_PROFILE, which is used whether it fits or not; a WARN where its topology
 *      is not this machine's
 *   2. $XDG_CONFIG_HOME/stratus/profiles, or ~/.config/stratus/profiles
 *   3. /etc/stratus/profiles.d
 *   4. share/stratus/profiles beside the lib or bin directory that holds this code
 * In the first directory with a *.profile that fits, the most specific one wins: a topology counts
 * more than cloud and instance type. Of equals the first by name wins, so hosts with the same files
 * find the same profile. */
#ifndef COMMON_PROFILE_MATCH_H
#define COMMON_PROFILE_MATCH_H

#include <stdbool.h>

#include "common/machine.h"
#include "common/profile.h"

/* -1 if a condition is not met, or the profile has none; else how specific it is. */
int profile_match_score(const struct profile_fit *fit, const struct machine *machine);

/* Whether the profile requires a topology, and it is this one. */
bool profile_match_has_topology(const struct profile_fit *fit, const char *topology);

/* Whether the release (as ncclGetVersion counts) is within the profile's; true for 0, unknown. */
bool profile_match_is_nccl_in_range(const struct profile_meta *meta, int nccl_version);

struct profile_search {
  const char *explicit_path;      /* NULL or empty: search */
  const char *const *directories; /* NULL at the end */
};

/* Finds and reads. `path` gets the file that was taken; on failure it is empty and `error` says
 * which file and why. */
int profile_match_find(const struct profile_search *search, const struct machine *machine,
                       struct profile *out, char path[PROFILE_PATH_MAX],
                       struct profile_error *error);

/* The same with the STRATUS_ variables, the directories above and this machine. */
int profile_match_load(struct profile *out, char path[PROFILE_PATH_MAX],
                       struct profile_error *error);

#endif
