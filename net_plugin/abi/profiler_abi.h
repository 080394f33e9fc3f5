/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_abi: NCCL's profiler plugin interface, versions 1 to 7, as far as this plugin reads it:
 * the head of an event and what a collective begins with. Sources: NVIDIA/nccl,
 * src/include/nccl_profiler.h and ext-profiler/ at v2.23.4-1 (v1) and v2.25.1-1 (v2),
 * src/include/plugin/profiler/profiler_v3.h to _v6.h and nccl_profiler.h at v2.30.7-1, _v7.h at
 * 8898068 (2.31.2). Forks had a v7 before, with other members after those read here.
 *
 * Which release asks for which: 2.23 v1; 2.24, 2.25 v2; 2.26 v3; 2.27 v4; 2.28, 2.29 v5; 2.30 v6;
 * 2.31, 2.32 v7; older ones after those, newest first. From 2.28 on NCCL looks into the net
 * plugin's library when it finds no libnccl-profiler.so, or what NCCL_PROFILER_PLUGIN names; before
 * that only into what NCCL_PROFILER_PLUGIN names (src/plugin/profiler.cc, src/misc/profiler.cc).
 * Owns: nothing.  Threads: NCCL calls init and finalize for each communicator, events from any.
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_ABI_PROFILER_ABI_H
#define NET_PLUGIN_ABI_PROFILER_ABI_H

#include "net_plugin/abi/net_abi.h"

enum { NCCL_PROFILE_COLLECTIVE = 1 << 1 }; /* ncclProfileColl, nccl_profiler.h at v2.30.7-1 */

struct profiler_event_v1 {
  uint8_t type;
  void *parent;
  int rank;
  const char *name; /* from here on: of a collective */
  uint64_t communicator, sequence;
  uint8_t function; /* ncclFunc_t */
};

struct profiler_event_v2 { /* v3 is the same so far */
  uint8_t type;
  void *parent;
  int rank;
  const char *name;
  uint64_t communicator, sequence;
  const char *function;
};

struct profiler_event_v4 {
  uint8_t type;
  void *parent;
  int rank;
  uint64_t sequence;
  const char *function;
};

struct profiler_event_v5 { /* v6 and v7 are the same so far */
  uint64_t type;
  void *parent;
  int rank;
  uint64_t sequence;
  const char *function;
};

/* The last two arguments of recordEventState are never looked at. */
#define PROFILER_REST(event)                                                                       \
  enum nccl_result (*startEvent)(void *context, void **handle, const event *description);          \
  enum nccl_result (*stopEvent)(void *handle);                                                     \
  enum nccl_result (*recordEventState)(void *handle, int state, void *arguments);                  \
  enum nccl_result (*finalize)(void *context)

struct profiler_plugin_v1 {
  const char *name;
  enum nccl_result (*init)(void **context, int *mask);
  PROFILER_REST(struct profiler_event_v1);
};

struct profiler_plugin_v2 { /* and v3 */
  const char *name;
  enum nccl_result (*init)(void **context, int *mask);
  PROFILER_REST(struct profiler_event_v2);
};

struct profiler_plugin_v4 {
  const char *name;
  enum nccl_result (*init)(void **context, int *mask, const char *comm_name, uint64_t communicator,
                           int nodes, int ranks, int rank, nccl_logger_fn *logger);
  PROFILER_REST(struct profiler_event_v4);
};

struct profiler_plugin_v5 { /* to v7 */
  const char *name;
  enum nccl_result (*init)(void **context, uint64_t communicator, int *mask, const char *comm_name,
                           int nodes, int ranks, int rank, nccl_logger_fn *logger);
  PROFILER_REST(struct profiler_event_v5);
};

extern const struct profiler_plugin_v1 ncclProfiler_v1;
extern const struct profiler_plugin_v2 ncclProfiler_v2, ncclProfiler_v3;
extern const struct profiler_plugin_v4 ncclProfiler_v4;
extern const struct profiler_plugin_v5 ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

#endif
