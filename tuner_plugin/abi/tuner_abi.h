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

/* NCCL's own ncclDebugLogLevel of a warning, and the two ncclDebugLogSubSys bits that a tuner logs
 * under. */
enum { TUNER_ABI_LOG_WARN = 2 };
enum tuner_abi_log_subsystem { TUNER_ABI_LOG_INIT = 0x1, TUNER_ABI_LOG_TUNING = 0x40 };

typedef void (*tuner_abi_logger)(int level, unsigned long subsystems, const char *file, int line,
                                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Shared by versions 5 to 7. */
struct tuner_abi_nvl_domain_info {
  int domain_count;
  int min_ranks_per_domain;
  int max_ranks_per_domain;
};

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

/* `constants` of NCCL's cost model may be written by a tuner. stratus never does: they feed more
 * than collective tuning (v2.30.7-1 src/sym_kernels.cc:197). It never reads them either. */
struct tuner_abi_v5 {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_abi_logger logger,
              struct tuner_abi_nvl_domain_info *domains, void *constants);
  int (*get_coll_info)(void *context, int coll, size_t bytes, int pipe_ops,
                       tuner_abi_cost_table table, int algos, int protos, int is_registered,
                       int *channels);
  int (*finalize)(void *context);
};

/* And v7, whose constants know one GPU generation more. */
struct tuner_abi_v6 {
  struct tuner_abi_v5 v5;
  /* Optional: NULL keeps NCCL's own chunk size. */
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
TUNER_ABI_FIELD(tuner_abi_v6, get_chunk_size, 32);
TUNER_ABI_SIZE(tuner_abi_v6, 40);

TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, domain_count, 0);
TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, min_ranks_per_domain, 4);
TUNER_ABI_FIELD(tuner_abi_nvl_domain_info, max_ranks_per_domain, 8);
TUNER_ABI_SIZE(tuner_abi_nvl_domain_info, 12);

extern struct tuner_abi_v6 ncclTunerPlugin_v6; /* for the unit tests */

#endif
