/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_tuner_layouts: the tuner interface as NCCL sees it, for the stand-in host.
 *
 * Declared a second time and not taken from tuner_plugin/abi, so that a mistake there shows as a
 * failed test instead of agreeing with itself. Facts: NVIDIA/nccl, v1 at v2.19.3-1 and v2 at
 * v2.21.5-1 src/include/nccl_tuner.h, v3 at v2.22.3-1 the same file, v4 at v2.24.3-1, v5 at
 * v2.28.3-1, v6 at v2.30.3-1 and v7 at 2449986 (2.32.6) src/include/plugin/tuner/tuner_v<N>.h;
 * argument order checked there. */
#ifndef TESTS_ABI_NCCL_TUNER_LAYOUTS_H
#define TESTS_ABI_NCCL_TUNER_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

typedef enum { HOST_SUCCESS = 0, HOST_INVALID_USAGE = 5 } host_result;
typedef enum { HOST_LOG_WARN = 2, HOST_LOG_INFO = 3, HOST_LOG_TRACE = 5 } host_log_level;
enum { HOST_LOG_INIT = 1, HOST_LOG_TUNING = 64 };
typedef enum {
  HOST_BROADCAST = 0,
  HOST_REDUCE = 1,
  HOST_ALLGATHER = 2,
  HOST_REDUCESCATTER = 3,
  HOST_ALLREDUCE = 4,
} host_func;
enum { HOST_TREE = 0, HOST_RING = 1, HOST_NVLS = 4, HOST_PAT = 6, HOST_ALGOS_MAX = 7 };
enum { HOST_LL = 0, HOST_LL128 = 1, HOST_SIMPLE = 2, HOST_PROTOS = 3 };
#define HOST_IGNORE (-1.0f)

typedef void (*host_logger)(host_log_level level, unsigned long flags, const char *file, int line,
                            const char *fmt, ...);

typedef struct {
  int32_t nvl_domains, min_ranks, max_ranks;
} host_nvl_info;

typedef struct {
  double base[7][3];
  double hw[3][7][3];
  double ll_bw[4][3];
  double ring_ll128_bw[4][3];
  double tree_ll128_bw[4][3];
  double tree_bw[4][3];
  double nvls_tree_bw[4][3];
} host_constants;

/* Rubin is a fifth column. */
typedef struct {
  double base[7][3];
  double hw[3][7][3];
  double ll_bw[5][3];
  double ring_ll128_bw[5][3];
  double tree_ll128_bw[5][3];
  double tree_bw[5][3];
  double nvls_tree_bw[5][3];
} host_constants_v7;

typedef struct {
  const char *name;
  host_result (*init)(size_t n_ranks, size_t n_nodes, host_logger log);
  host_result (*get)(host_func func, size_t n_bytes, int collnet, int nvls, int pipe_ops, int *algo,
                     int *proto, int *n_channels);
  host_result (*destroy)(void);
} host_tuner_v1;

typedef struct {
  const char *name;
  host_result (*init)(size_t n_ranks, size_t n_nodes, host_logger log, void **context);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int collnet, int nvls,
                     int pipe_ops, int *algo, int *proto, int *n_channels);
  host_result (*destroy)(void *context);
} host_tuner_v2;

typedef struct {
  const char *name;
  host_result (*init)(size_t n_ranks, size_t n_nodes, host_logger log, void **context);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int pipe_ops, float **costs,
                     int n_algos, int n_protos, int *n_channels);
  host_result (*destroy)(void *context);
} host_tuner_v3;

typedef struct {
  const char *name;
  host_result (*init)(size_t n_ranks, size_t n_nodes, host_logger log, void **context);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int pipe_ops, float **costs,
                     int n_algos, int n_protos, int reg_buff, int *n_channels);
  host_result (*destroy)(void *context);
} host_tuner_v4;

typedef struct {
  const char *name;
  host_result (*init)(void **context, uint64_t comm_id, size_t n_ranks, size_t n_nodes,
                      host_logger log, host_nvl_info *nvl, host_constants *constants);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int pipe_ops, float **costs,
                     int n_algos, int n_protos, int reg_buff, int *n_channels);
  host_result (*finalize)(void *context);
} host_tuner_v5;

typedef struct {
  const char *name;
  host_result (*init)(void **context, uint64_t comm_id, size_t n_ranks, size_t n_nodes,
                      host_logger log, host_nvl_info *nvl, host_constants *constants);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int pipe_ops, float **costs,
                     int n_algos, int n_protos, int reg_buff, int *n_channels);
  host_result (*finalize)(void *context);
  host_result (*chunk)(void *context, host_func func, size_t n_bytes, int algo, int proto,
                       int n_channels, size_t *chunk_size);
} host_tuner_v6;

typedef struct {
  const char *name;
  host_result (*init)(void **context, uint64_t comm_id, size_t n_ranks, size_t n_nodes,
                      host_logger log, host_nvl_info *nvl, host_constants_v7 *constants);
  host_result (*get)(void *context, host_func func, size_t n_bytes, int pipe_ops, float **costs,
                     int n_algos, int n_protos, int reg_buff, int *n_channels);
  host_result (*finalize)(void *context);
  host_result (*chunk)(void *context, host_func func, size_t n_bytes, int algo, int proto,
                       int n_channels, size_t *chunk_size);
} host_tuner_v7;

#endif
