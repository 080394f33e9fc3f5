/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_abi: the binary layouts of NCCL's tuner plugin interface, versions 1 to 7.
 * Owns: nothing; types only.  Threads: any.  Blocks: never.  Fails: at compile time.
 *
 * Declared here, so that the plugin builds without NCCL's headers. Sources, in NVIDIA/nccl:
 *   v1  v2.19.3-1 src/include/nccl_tuner.h:15-49               NCCL 2.19, 2.20
 *   v2  v2.21.5-1 src/include/nccl_tuner.h:15-54               NCCL 2.21
 *   v3  v2.22.3-1 src/include/nccl_tuner.h:15-56               NCCL 2.22, 2.23
 *   v4  v2.30.7-1 src/include/plugin/tuner/tuner_v4.h:13-54    NCCL 2.24 to 2.27
 *   v5  v2.30.7-1 src/include/plugin/tuner/tuner_v5.h:13-84    NCCL 2.28, 2.29
 *   v6  v2.30.7-1 src/include/plugin/tuner/tuner_v6.h:15-81    NCCL 2.30 to 2.32.3
 *   v7  2449986   src/include/plugin/tuner/tuner_v7.h:13-118   NCCL 2.32.6
 *   logger     v2.30.7-1 src/include/nccl_common.h:27-59 (values unchanged since v2.19.3-1)
 *   functions  v2.30.7-1 src/include/nccl_common.h:73-90 (0 to 4 unchanged since v2.19.3-1)
 * Releases newer than a version's own still call it when the plugin offers nothing newer. */
#ifndef TUNER_PLUGIN_ABI_TUNER_ABI_H
#define TUNER_PLUGIN_ABI_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

/* ncclResult_t is an int-sized enumeration. Every release ends the communicator or the collective
 * on anything but success (v2.30.7-1 src/init.cc:1641 and src/enqueue.cc:2147 wrap the calls in
 * NCCLCHECK), so invalid usage is returned only where the user asked for a fatal error. */
enum tuner_abi_result { TUNER_ABI_SUCCESS = 0, TUNER_ABI_INVALID_USAGE = 5 };

/* ncclDebugLogLevel and the two ncclDebugLogSubSys bits that a tuner logs under. */
enum tuner_abi_log_level {
  TUNER_ABI_LOG_WARN = 2,
  TUNER_ABI_LOG_INFO = 3,
  TUNER_ABI_LOG_TRACE = 5,
};
enum tuner_abi_log_subsystem { TUNER_ABI_LOG_INIT = 0x1, TUNER_ABI_LOG_TUNING = 0x40 };

typedef void (*tuner_abi_logger)(int level, unsigned long subsystems, const char *file, int line,
                                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Shared by versions 5 to 7. */
struct tuner_abi_nvl_domain_info {
  int domain_count;
  int min_ranks_per_domain;
  int max_ranks_per_domain;
};

enum {
  TUNER_ABI_ALGO_COUNT = 7,
  TUNER_ABI_PROTO_COUNT = 3,
  TUNER_ABI_HW_LINK_COUNT = 3,
  TUNER_ABI_COMPCAP_COUNT = 4,    /* to Blackwell */
  TUNER_ABI_COMPCAP_COUNT_V7 = 5, /* to Rubin */
  TUNER_ABI_SCALE_COUNT = 3,
};

/* Constants of NCCL's cost model, microseconds and GB/s, writable by a tuner. stratus never does:
 * they feed more than collective tuning (v2.30.7-1 src/sym_kernels.cc:197). v7 knows one GPU
 * generation more. */
#define TUNER_ABI_CONSTANTS(name, generations)                                                     \
  struct name {                                                                                    \
    double base_latency_us[TUNER_ABI_ALGO_COUNT][TUNER_ABI_PROTO_COUNT];                           \
    double hw_latency_us[TUNER_ABI_HW_LINK_COUNT][TUNER_ABI_ALGO_COUNT][TUNER_ABI_PROTO_COUNT];    \
    double ll_max_gbs[generations][TUNER_ABI_SCALE_COUNT];                                         \
    double ring_ll128_channel_max_gbs[generations][TUNER_ABI_SCALE_COUNT];                         \
    double tree_ll128_channel_max_gbs[generations][TUNER_ABI_SCALE_COUNT];                         \
    double tree_channel_max_gbs[generations][TUNER_ABI_SCALE_COUNT];                               \
    double nvls_tree_channel_max_gbs[generations][TUNER_ABI_SCALE_COUNT];                          \
  }
TUNER_ABI_CONSTANTS(tuner_abi_constants, TUNER_ABI_COMPCAP_COUNT);
TUNER_ABI_CONSTANTS(tuner_abi_constants_v7, TUNER_ABI_COMPCAP_COUNT_V7);

/* NCCL passes `float[algos][protos]` cast to `float **`; it is one flat block, never a pointer
 * array (v2.30.7-1 src/enqueue.cc:2137,2147). */
typedef float **tuner_abi_cost_table;

struct tuner_abi_v1 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, tuner_abi_logger logger);
  int (*get_coll_info)(int coll, size_t bytes, int has_collnet, int has_nvls, int pipe_ops,
                       int *algo, int *proto, int *channels);
  int (*destroy)(void);
};

struct tuner_abi_v2 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, tuner_abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int has_collnet, int has_nvls,
                       int pipe_ops, int *algo, int *proto, int *channels);
  int (*destroy)(void *context);
};

struct tuner_abi_v3 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, tuner_abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int *channels);
  int (*destroy)(void *context);
};

struct tuner_abi_v4 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, tuner_abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int is_registered,
                       int *channels);
  int (*destroy)(void *context);
};

struct tuner_abi_v5 {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_abi_logger logger,
              struct tuner_abi_nvl_domain_info *domains, struct tuner_abi_constants *constants);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int is_registered,
                       int *channels);
  int (*finalize)(void *context);
};

struct tuner_abi_v6 {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_abi_logger logger,
              struct tuner_abi_nvl_domain_info *domains, struct tuner_abi_constants *constants);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int is_registered,
                       int *channels);
  int (*finalize)(void *context);
  /* Optional: NULL keeps NCCL's own chunk size. */
  int (*get_chunk_size)(void *context, int coll, size_t bytes, int algo, int proto, int channels,
                        size_t *chunk_bytes);
};

struct tuner_abi_v7 {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_abi_logger logger,
              struct tuner_abi_nvl_domain_info *domains, struct tuner_abi_constants_v7 *constants);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int is_registered,
                       int *channels);
  int (*finalize)(void *context);
  int (*get_chunk_size)(void *context, int coll, size_t bytes, int algo, int proto, int channels,
                        size_t *chunk_bytes);
};

#define TUNER_ABI_FIELD(type, field, at)                                                           \
  _Static_assert(offsetof(struct type, field) == (at), #type "." #field " must lie at " #at)
#define TUNER_ABI_SIZE(type, bytes)                                                                \
  _Static_assert(sizeof(struct type) == (bytes), #type " must be " #bytes " bytes")
#define TUNER_ABI_FOUR_FIELDS(type, last)                                                          \
  TUNER_ABI_FIELD(type, name, 0);                                                                  \
  TUNER_ABI_FIELD(type, init, 8);                                                                  \
  TUNER_ABI_FIELD(type, get_coll_info, 16);                                                        \
  TUNER_ABI_FIELD(type, last, 24)

TUNER_ABI_FOUR_FIELDS(tuner_abi_v1, destroy);
TUNER_ABI_SIZE(tuner_abi_v1, 32);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v2, destroy);
TUNER_ABI_SIZE(tuner_abi_v2, 32);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v3, destroy);
TUNER_ABI_SIZE(tuner_abi_v3, 32);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v4, destroy);
TUNER_ABI_SIZE(tuner_abi_v4, 32);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v5, finalize);
TUNER_ABI_SIZE(tuner_abi_v5, 32);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v6, finalize);
TUNER_ABI_FIELD(tuner_abi_v6, get_chunk_size, 32);
TUNER_ABI_SIZE(tuner_abi_v6, 40);
TUNER_ABI_FOUR_FIELDS(tuner_abi_v7, finalize);
TUNER_ABI_FIELD(tuner_abi_v7, get_chunk_size, 32);
TUNER_ABI_SIZE(tuner_abi_v7, 40);

TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, domain_count, 0);
TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, min_ranks_per_domain, 4);
TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, max_ranks_per_domain, 8);
TUNER_ABI_SIZE(tuner_abi_nvl_domain_info, 12);

TUNER_ABI_FIELD(tuner_abi_constants, base_latency_us, 0);
TUNER_ABI_FIELD(tuner_abi_constants, hw_latency_us, 168);
TUNER_ABI_FIELD(tuner_abi_constants, ll_max_gbs, 672);
TUNER_ABI_FIELD(tuner_abi_constants, ring_ll128_channel_max_gbs, 768);
TUNER_ABI_FIELD(tuner_abi_constants, tree_ll128_channel_max_gbs, 864);
TUNER_ABI_FIELD(tuner_abi_constants, tree_channel_max_gbs, 960);
TUNER_ABI_FIELD(tuner_abi_constants, nvls_tree_channel_max_gbs, 1056);
TUNER_ABI_SIZE(tuner_abi_constants, 1152);
TUNER_ABI_FIELD(tuner_abi_constants_v7, ll_max_gbs, 672);
TUNER_ABI_FIELD(tuner_abi_constants_v7, nvls_tree_channel_max_gbs, 1152);
TUNER_ABI_SIZE(tuner_abi_constants_v7, 1272);

#endif
