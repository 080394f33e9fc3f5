/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a tuner on the rows that match its communicator, logs what it found, and passes each call
 * to decide/. Without a row it counts the call and, where stratus' CollNet is configured, leaves it
 * out at some sizes (decide.h). */
#include "tuner_plugin/plugin/tuner.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "common/version.h"
#include "tuner_plugin/plugin/calibration.h"

#define UNTOUCHED "NCCL's own choice is untouched"

struct tuner {
  struct decide_tables tables;     /* no rows: leave every call to NCCL */
  bool has_share;                  /* of the profile cache */
  struct calibration *calibration; /* NULL: none */
  struct collnet_range collnet;    /* of calls without a row */
  bool meets_hosts;                /* its first calls are NCCL's own, see is_proof */
  bool is_unproven; /* atomic: hosts have not met yet, and have to be compared first */
  bool sees_groups; /* NCCL asks for chunks after each (v6) */
  uint64_t chosen;  /* atomic: calls for which the profile chose */
  uint64_t left;    /* atomic: all others; one addition for each call */
};

/* True once for each flag: only the first communicator of a process logs what is loaded. */
static bool is_first(bool *is_said) {
  return !__atomic_exchange_n(is_said, true, __ATOMIC_RELAXED);
}

static bool is_first_banner(void) {
  static bool is_said; /* atomic */
  return is_first(&is_said);
}

static void set_up_process(enum net_use net) {
  static bool is_set_up; /* atomic */
  log_set_threshold((enum log_level)param_enum(PARAM_LOG));
  /* If the job uses the net plugin, that one has already warned. */
  if (is_first(&is_set_up) && net != NET_USE_STRATUS) {
    param_warn_unknown(environ);
  }
}

/* Whoever sets NCCL_NET has chosen; else it costs a job its speed, and nothing else tells. */
static void say_lost(void) {
  static bool is_said; /* atomic */
  const char *chosen = getenv("NCCL_NET");
  if (is_first(&is_said)) {
    LOG_AT(chosen ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
           "NCCL does not send over stratus here%s%s, so its profile is left alone: " UNTOUCHED,
           chosen ? ": NCCL_NET=" : " (\"NET/Plugin\" with NCCL_DEBUG=INFO tells why)",
           chosen ? chosen : "");
  }
}

/* What happens to calls without a row. */
static const char *untouched(const struct tuner *tuner) {
  return tuner->collnet.most == 0 ? UNTOUCHED
                                  : UNTOUCHED ", but for CollNet at sizes where it does not pay";
}

static void say_idle(const struct tuner *tuner, int abi_version, const char *why) {
  if (is_first_banner()) {
    LOG_INFO("stratus " STRATUS_VERSION ", tuner interface v%d, %s: %s", abi_version, why,
             untouched(tuner));
  }
}

/* ---- the process's one profile: jobs open hundreds of communicators at once, and only the first
 * one pays for the file ---- */

/* Constant while there is a share. */
static struct {
  pthread_mutex_t lock;
  size_t shares;
  int error;              /* of the load that the first share made; -ENOENT: there is none */
  struct profile profile; /* without rows that gain too little */
  char path[PROFILE_PATH_MAX];
  uint64_t hash; /* of all of it */
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A job that opens and closes communicators in a loop gets each warning once. */
static void warn_once(const struct profile_error *error) {
  static struct profile_error last;
  if (strcmp(last.text, error->text) != 0) {
    last = *error;
    LOG_WARN("%s; the job continues without it", error->text);
  }
}

static int load_profile(void) {
  struct profile_error error = { 0 };
  int result = profile_match_load(&cache.profile, cache.path, &error);
  if (result == 0) {
    cache.hash = profile_hash(&cache.profile); /* as the file has it */
    guard_drop_rows(&cache.profile);
    return 0;
  }
  /* It is normal that no profile fits this machine; it is an error if a named one is missing. */
  if (result != -ENOENT || param_is_set(PARAM_PROFILE)) {
    warn_once(&error);
    return result == -ENOENT ? -EINVAL : result;
  }
  return result;
}

/* To be returned by release_profile even after a failure. */
static int acquire_profile(void) {
  pthread_mutex_lock(&cache.lock);
  if (cache.shares++ == 0) {
    cache.error = load_profile();
  }
  int result = cache.error;
  pthread_mutex_unlock(&cache.lock);
  return result;
}

static void release_profile(void) {
  pthread_mutex_lock(&cache.lock);
  if (--cache.shares == 0 && cache.error == 0) {
    profile_free(&cache.profile);
  }
  pthread_mutex_unlock(&cache.lock);
}

/* ---- what there is for a communicator ---- */

/* v2 passes no costs, so cells that the user has ruled out cannot be recognised. */
static bool has_user_choice(void) {
  return getenv("NCCL_ALGO") || getenv("NCCL_PROTO");
}

/* Why this communicator's calls stay with NCCL although there is a profile, or NULL. */
static const char *find_objection(struct tuner_host host, struct tuner_shape shape) {
  if (!profile_match_is_nccl_in_range(&cache.profile.meta, host.nccl_version)) {
    return "it was made for other releases of NCCL";
  }
  if (host.abi_version == 1) {
    return "NCCL 2.19 and 2.20 do not pass the communicator of a call";
  }
  if (host.abi_version == 2 && has_user_choice()) {
    return "NCCL_ALGO or NCCL_PROTO is set";
  }
  /* Found by its topology, not named: another machine may find another one. */
  bool is_by_topology = cache.profile.fit.topology[0] && !param_string(PARAM_PROFILE)[0];
  if (is_by_topology && host.net != NET_USE_STRATUS) {
    return "it requires a topology, and only the stratus net plugin checks that all hosts have the "
           "same one (or set STRATUS_PROFILE to it on all hosts)";
  }
  if (shape.is_uneven) {
    return "nodes have different numbers of ranks";
  }
  return NULL;
}

static void attach_table(struct tuner *tuner, struct tuner_host host, struct tuner_shape shape) {
  const char *objection = find_objection(host, shape), *id = cache.profile.meta.id;
  if (is_first_banner()) {
    LOG_INFO("stratus " STRATUS_VERSION ", tuner interface v%d, profile %s, hash %016" PRIx64
             ", from %s%s%s%s%s",
             host.abi_version, id, cache.hash, cache.path, objection ? ": " : "",
             objection ? objection : "", objection ? ", " : "", objection ? untouched(tuner) : "");
  }
  if (objection) {
    return;
  }
  tuner->is_unproven = tuner->meets_hosts = host.net == NET_USE_STRATUS;
  tuner->sees_groups = host.abi_version >= 6;
  tuner->tables = decide_tables_of(&cache.profile, shape.ranks, shape.nodes);
  if (tuner->tables.row_count > 0) {
    LOG_INFO("%zu ranks on %zu nodes: %zu rows of profile %s match", shape.ranks, shape.nodes,
             tuner->tables.row_count, id);
  } else {
    LOG_INFO("%zu ranks on %zu nodes: no row of profile %s matches, %s", shape.ranks, shape.nodes,
             id, untouched(tuner));
  }
}

/* Other plugins' CollNet is left alone, and so is all without a cost table. */
static struct collnet_range find_collnet_range(struct tuner_host host, struct tuner_shape shape) {
  enum param_collnet mode = (enum param_collnet)param_enum(PARAM_COLLNET);
  if (mode == PARAM_COLLNET_OFF || host.net != NET_USE_STRATUS || host.abi_version < 3) {
    return (struct collnet_range){ 0 };
  }
  return collnet_range_of(shape.ranks, shape.nodes, mode != PARAM_COLLNET_FULL);
}

/* Calibration uses no profile: measurements must not depend on one. */
static void start_calibration(struct tuner *tuner, struct tuner_host host,
                              struct tuner_shape shape) {
  tuner->calibration = calibration_open(param_string(PARAM_CALIBRATE), host, shape);
  if (is_first_banner()) {
    LOG_INFO("stratus " STRATUS_VERSION ", tuner interface v%d, calibrating by STRATUS_CALIBRATE%s",
             host.abi_version, tuner->calibration ? "" : ", but not here: " UNTOUCHED);
  }
}

struct tuner *tuner_open(struct tuner_host host, struct tuner_shape shape) {
  set_up_process(host.net);

  struct tuner *opened = calloc(1, sizeof *opened);
  if (!opened) {
    LOG_WARN("out of memory for a communicator's tuner: " UNTOUCHED);
    return NULL;
  }
  if (!param_bool(PARAM_TUNER)) {
    say_idle(opened, host.abi_version, "turned off by STRATUS_TUNER=0");
    return opened;
  }
  if (host.net == NET_USE_LOST) {
    say_lost();
    return opened;
  }
  if (param_is_set(PARAM_CALIBRATE)) {
    start_calibration(opened, host, shape);
    return opened;
  }
  int error = acquire_profile();
  opened->has_share = true;
  opened->collnet = find_collnet_range(host, shape);
  if (error == 0) {
    attach_table(opened, host, shape);
    return opened;
  }
  say_idle(opened, host.abi_version, error == -ENOENT ? "no profile" : "bad profile");
  return opened;
}

void tuner_close(struct tuner *tuner) {
  if (!tuner) {
    return;
  }
  if (tuner->tables.row_count > 0) {
    struct tuner_counts counts = tuner_get_counts(tuner);
    LOG_INFO("the profile chose for %" PRIu64 " of %" PRIu64 " calls%s", counts.chosen,
             counts.calls,
             tuner->meets_hosts ? "; the first are NCCL's own, as hosts compare profiles over them"
                                : "");
  }
  calibration_close(tuner->calibration);
  if (tuner->has_share) {
    release_profile();
  }
  free(tuner);
}

/* NCCL connects the ranks of an algorithm when a call first uses it (since 2.22), and only then
 * does the net plugin find out that hosts would choose differently; ranks that build a ring and a
 * tree never meet. So what a communicator calls first is NCCL's own choice, over which they do: all
 * of a group, as NCCL chooses for the whole of it before it connects the algorithms by their
 * numbers. Where a group ends only interface 6 shows, whose chunks are asked for after that; before
 * it is the first call alone. Every rank sees the same calls in the same order. */
static bool is_proof(struct tuner *tuner) {
  if (!__atomic_load_n(&tuner->is_unproven, __ATOMIC_RELAXED)) {
    return false;
  }
  return tuner->sees_groups || __atomic_exchange_n(&tuner->is_unproven, false, __ATOMIC_RELAXED);
}

static void count_call(struct tuner *tuner, bool is_chosen) {
  __atomic_fetch_add(is_chosen ? &tuner->chosen : &tuner->left, 1, __ATOMIC_RELAXED);
}

void tuner_choose_by_costs(struct tuner *tuner, int coll, size_t bytes, struct decide_costs costs,
                           int *channels) {
  if (!tuner) {
    return;
  }
  if (tuner->calibration) {
    count_call(tuner, calibration_choose(tuner->calibration, coll, bytes, costs, channels));
    return;
  }
  bool is_ours = tuner->tables.row_count > 0 && !is_proof(tuner) &&
                 decide_by_costs(&tuner->tables, coll, bytes, costs, channels);
  count_call(tuner, is_ours);
  if (!is_ours) {
    collnet_range_apply(&tuner->collnet, coll, bytes, costs);
  }
}

void tuner_choose_by_number(struct tuner *tuner, int coll, size_t bytes, int *algo, int *proto,
                            int *channels) {
  if (!tuner) {
    return;
  }
  count_call(tuner, decide_by_number(&tuner->tables, coll, bytes, algo, proto, channels));
}

void tuner_group_ends(struct tuner *tuner) {
  if (tuner && __atomic_load_n(&tuner->is_unproven, __ATOMIC_RELAXED)) {
    __atomic_store_n(&tuner->is_unproven, false, __ATOMIC_RELAXED);
  }
}

struct tuner_counts tuner_get_counts(const struct tuner *tuner) {
  uint64_t chosen = __atomic_load_n(&tuner->chosen, __ATOMIC_RELAXED);
  uint64_t left = __atomic_load_n(&tuner->left, __ATOMIC_RELAXED);
  return (struct tuner_counts){ .calls = chosen + left, .chosen = chosen };
}
