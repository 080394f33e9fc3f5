/* SPDX-License-Identifier: Apache-2.0 */
/* The seven tables of functions that NCCL looks up by name, each a thin adapter onto
 * plugin/tuner.h. Further arguments of some versions (registered buffers, pipelined operations)
 * differ between ranks or are unrelated to the profile's rows, so they must not influence a choice
 * that all ranks have to share. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/fork_guard.h"
#include "common/log.h"
#include "common/nccl_version.h"
#include "tuner_plugin/abi/tuner_abi.h"
#include "tuner_plugin/plugin/tuner.h"

#define SHIMS_EXPORT __attribute__((visibility("default")))
#define SHIMS_NAME "stratus"

/* NCCL's logger; all communicators of a process get the same one. */
static nccl_logger_fn *nccl_logger;

static void sink_nccl(enum log_level level, const char *file, int line, const char *text) {
  nccl_logger_fn *logger = __atomic_load_n(&nccl_logger, __ATOMIC_ACQUIRE);
  logger((enum nccl_log_level)nccl_level((nccl_version_any_fn *)logger, level),
         NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_TUNING, file, line, "TUNER/" SHIMS_NAME ": %s", text);
}

/* NCCL calls an NVLink domain a node, and passes the same value to all ranks (v2.30.7-1
 * src/init.cc:878-880). */
static bool is_uneven(struct tuner_shape shape, const struct tuner_abi_nvl_domain_info *domains) {
  return domains && domains->nNvlDomains > 0 &&
         (domains->minRanksPerNvlDomain != domains->maxRanksPerNvlDomain ||
          (size_t)domains->nNvlDomains != shape.nodes);
}

/* Of this moment: NCCL starts a communicator's network before its tuner. The net plugin stays
 * mapped once it has been loaded, and counts who uses it (net_plugin/plugin/plugin.c). */
static enum net_use find_net_use(void) {
  void *plugin = dlopen("libnccl-net-stratus.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!plugin) {
    const char *asked = getenv("NCCL_NET_PLUGIN");
    return asked && strstr(asked, "stratus") ? NET_USE_LOST : NET_USE_OTHER;
  }
  const unsigned *users = dlsym(plugin, "stratus_net_users");
  enum net_use use =
      users && __atomic_load_n(users, __ATOMIC_RELAXED) > 0 ? NET_USE_STRATUS : NET_USE_LOST;
  dlclose(plugin);
  return use;
}

static enum nccl_result open_tuner(int abi_version, struct tuner_shape shape,
                                   nccl_logger_fn *logger, struct tuner **tuner) {
  if (fork_guard_refuses()) {
    return NCCL_INVALID_USAGE;
  }
  fork_guard_install();
  if (logger) {
    __atomic_store_n(&nccl_logger, logger, __ATOMIC_RELEASE);
    log_set_sink(sink_nccl);
  }
  struct tuner_host host = {
    .abi_version = abi_version,
    .nccl_version = nccl_version_find((nccl_version_any_fn *)logger),
    .net = find_net_use(),
  };
  *tuner = tuner_open(host, shape);
  return NCCL_SUCCESS;
}

static enum nccl_result destroy(void *context) {
  if (fork_guard_is_child()) {
    return NCCL_SUCCESS;
  }
  tuner_close(context);
  return NCCL_SUCCESS;
}

static enum nccl_result choose_by_costs(void *context, int coll, size_t bytes,
                                        tuner_abi_cost_table table, int algos, int protos,
                                        int *channels) {
  if (fork_guard_is_child()) {
    return NCCL_SUCCESS;
  }
  struct decide_costs costs = { .us = (float *)table, .algos = algos, .protos = protos };
  tuner_choose_by_costs(context, coll, bytes, costs, channels);
  return NCCL_SUCCESS;
}

/* ---- v1: NCCL 2.19, 2.20. No context, so the communicator of a call is unknown ---- */

/* Which stays with NCCL, so that a tuner only says so, and what is wrong with the profile. */
static enum nccl_result init_v1(size_t ranks, size_t nodes, nccl_logger_fn *logger) {
  struct tuner *tuner;
  enum nccl_result result =
      open_tuner(1, (struct tuner_shape){ ranks, nodes, false }, logger, &tuner);
  if (result == NCCL_SUCCESS) {
    tuner_close(tuner);
  }
  return result;
}

static enum nccl_result get_coll_info_v1(int coll, size_t bytes, int has_collnet, int has_nvls,
                                         int pipe_ops, int *algo, int *proto, int *channels) {
  /* Always left to NCCL. A choice needs the communicator's shape, and ranks that are in different
   * sets of communicators would guess differently: a hang. The interface also uses the number of
   * channels unchecked (v2.19.3-1 src/enqueue.cc:190-216 indexes channels the communicator may not
   * have). */
  (void)coll, (void)bytes, (void)has_collnet, (void)has_nvls, (void)pipe_ops;
  (void)algo, (void)proto, (void)channels;
  return NCCL_SUCCESS;
}

static enum nccl_result destroy_v1(void) {
  return NCCL_SUCCESS;
}

/* ---- v2: NCCL 2.21;  v3: NCCL 2.22, 2.23;  v4: NCCL 2.24 to 2.27 ---- */

#define INIT(version)                                                                              \
  static enum nccl_result init_v##version(size_t ranks, size_t nodes, nccl_logger_fn *logger,      \
                                          void **context) {                                        \
    return open_tuner(version, (struct tuner_shape){ ranks, nodes, false }, logger,                \
                      (struct tuner **)context);                                                   \
  }
INIT(2)
INIT(3)
INIT(4)

static enum nccl_result get_coll_info_v2(void *context, int coll, size_t bytes, int has_collnet,
                                         int has_nvls, int pipe_ops, int *algo, int *proto,
                                         int *channels) {
  (void)has_collnet, (void)has_nvls, (void)pipe_ops;
  if (fork_guard_is_child()) {
    return NCCL_SUCCESS;
  }
  tuner_choose_by_number(context, coll, bytes, algo, proto, channels);
  return NCCL_SUCCESS;
}

static enum nccl_result get_coll_info_v3(void *context, int coll, size_t bytes, int pipe_ops,
                                         tuner_abi_cost_table table, int algos, int protos,
                                         int *channels) {
  (void)pipe_ops;
  return choose_by_costs(context, coll, bytes, table, algos, protos, channels);
}

/* The question is the same in versions 4 to 7. */
static enum nccl_result get_coll_info_v4(void *context, int coll, size_t bytes, int pipe_ops,
                                         tuner_abi_cost_table table, int algos, int protos,
                                         int is_registered, int *channels) {
  (void)pipe_ops, (void)is_registered;
  return choose_by_costs(context, coll, bytes, table, algos, protos, channels);
}

/* ---- v5: NCCL 2.28, 2.29;  v6: NCCL 2.30 to 2.32.3;  v7: NCCL 2.32.6 ---- */

#define INIT_WITH_DOMAINS(version)                                                                 \
  static enum nccl_result init_v##version(                                                         \
      void **context, uint64_t comm_id, size_t ranks, size_t nodes, nccl_logger_fn *logger,        \
      struct tuner_abi_nvl_domain_info *domains, void *constants) {                                \
    (void)comm_id, (void)constants;                                                                \
    struct tuner_shape shape = { ranks, nodes, false };                                            \
    shape.is_uneven = is_uneven(shape, domains);                                                   \
    return open_tuner(version, shape, logger, (struct tuner **)context);                           \
  }
INIT_WITH_DOMAINS(5)
INIT_WITH_DOMAINS(6)
INIT_WITH_DOMAINS(7)

/* NCCL's chunks are left alone; that it asks shows that a group's calls have been chosen for
 * (v2.30.7-1 src/enqueue.cc:2308). */
static enum nccl_result get_chunk_size_v6(void *context, int coll, size_t bytes, int algo,
                                          int proto, int channels, size_t *chunk_bytes) {
  (void)coll, (void)bytes, (void)algo, (void)proto, (void)channels, (void)chunk_bytes;
  if (!fork_guard_is_child()) {
    tuner_group_ends(context);
  }
  return NCCL_SUCCESS;
}

#define TABLE(init_version, get_version)                                                           \
  .name = SHIMS_NAME, .init = init_v##init_version, .getCollInfo = get_coll_info_v##get_version

SHIMS_EXPORT struct tuner_abi_v1 ncclTunerPlugin_v1 = { TABLE(1, 1), .destroy = destroy_v1 };
SHIMS_EXPORT struct tuner_abi_v2 ncclTunerPlugin_v2 = { TABLE(2, 2), .destroy = destroy };
SHIMS_EXPORT struct tuner_abi_v3 ncclTunerPlugin_v3 = { TABLE(3, 3), .destroy = destroy };
SHIMS_EXPORT struct tuner_abi_v4 ncclTunerPlugin_v4 = { TABLE(4, 4), .destroy = destroy };
SHIMS_EXPORT struct tuner_abi_v5 ncclTunerPlugin_v5 = { TABLE(5, 4), .finalize = destroy };
SHIMS_EXPORT struct tuner_abi_v6 ncclTunerPlugin_v6 = { TABLE(6, 4), .finalize = destroy,
                                                        .getChunkSize = get_chunk_size_v6 };
SHIMS_EXPORT struct tuner_abi_v6 ncclTunerPlugin_v7 = { TABLE(7, 4), .finalize = destroy,
                                                        .getChunkSize = get_chunk_size_v6 };
