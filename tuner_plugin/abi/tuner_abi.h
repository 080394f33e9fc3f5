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
 *   functions  v2.30.7-1 src/include/nccl_common.h:73-90 (0 to 4 unchanged since v2.19.3-1)
 * tests/abi/layouts.c compares every member with those headers.
 * Releases newer than a version's own still call it when the plugin offers nothing newer. */
#ifndef TUNER_PLUGIN_ABI_TUNER_ABI_H
#define TUNER_PLUGIN_ABI_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "common/nccl_abi.h"

/* Every release ends the communicator or the collective on anything but success (v2.30.7-1
 * src/init.cc:1641 and src/enqueue.cc:2147 wrap the calls in NCCLCHECK), so invalid usage is
 * returned only where the user asked for a fatal error. */

/* Shared by versions 5 to 7. */
struct tuner_abi_nvl_domain_info {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
};

/* NCCL passes `float[algos][protos]` cast to `float **`; it is one flat block, never a pointer
 * array (v2.30.7-1 src/enqueue.cc:2137,2147). */
typedef float **tuner_abi_cost_table;

struct tuner_abi_v1 {
  const char *name;
  enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_logger_fn *logger);
  enum nccl_result (*getCollInfo)(int coll, size_t bytes, int has_collnet, int has_nvls,
                                  int pipe_ops, int *algo, int *proto, int *channels);
  enum nccl_result (*destroy)(void);
};

struct tuner_abi_v2 {
  const char *name;
  enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_logger_fn *logger, void **context);
  enum nccl_result (*getCollInfo)(void *context, int coll, size_t bytes, int has_collnet,
                                  int has_nvls, int pipe_ops, int *algo, int *proto, int *channels);
  enum nccl_result (*destroy)(void *context);
};

struct tuner_abi_v3 {
  const char *name;
  enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_logger_fn *logger, void **context);
  enum nccl_result (*getCollInfo)(void *context, int coll, size_t bytes, int pipe_ops,
                                  tuner_abi_cost_table table, int algos, int protos, int *channels);
  enum nccl_result (*destroy)(void *context);
};

struct tuner_abi_v4 {
  const char *name;
  enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_logger_fn *logger, void **context);
  enum nccl_result (*getCollInfo)(void *context, int coll, size_t bytes, int pipe_ops,
                                  tuner_abi_cost_table table, int algos, int protos,
                                  int is_registered, int *channels);
  enum nccl_result (*destroy)(void *context);
};

/* `constants` of NCCL's cost model may be written by a tuner. stratus never does: they feed more
 * than collective tuning (v2.30.7-1 src/sym_kernels.cc:197). It never reads them either. */
#define TUNER_ABI_MEMBERS_V5                                                                       \
  const char *name;                                                                                \
  enum nccl_result (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes,           \
                           nccl_logger_fn *logger, struct tuner_abi_nvl_domain_info *domains,      \
                           void *constants);                                                       \
  enum nccl_result (*getCollInfo)(void *context, int coll, size_t bytes, int pipe_ops,             \
                                  tuner_abi_cost_table table, int algos, int protos,               \
                                  int is_registered, int *channels);                               \
  enum nccl_result (*finalize)(void *context);

struct tuner_abi_v5 {
  TUNER_ABI_MEMBERS_V5
};

/* And v7, whose constants know one GPU generation more. */
struct tuner_abi_v6 {
  TUNER_ABI_MEMBERS_V5
  /* Optional: NULL keeps NCCL's own chunk size. */
  enum nccl_result (*getChunkSize)(void *context, int coll, size_t bytes, int algo, int proto,
                                   int channels, size_t *chunk_bytes);
};

extern struct tuner_abi_v6 ncclTunerPlugin_v6; /* for the unit tests */

#endif
