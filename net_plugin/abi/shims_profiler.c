/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of NCCL's profiler, v1 to v7. Without STRATUS_PROFILE_EVENTS no event is asked for.
 * Every event gets a handle, though nothing is kept of it: NCCL before 2.28 tells of a collective
 * only if its group got one. */
#include "common/clock.h"
#include "common/param.h"
#include "net_plugin/abi/profiler_abi.h"
#include "net_plugin/abi/shims.h"
#include "net_plugin/observe/profiler_events.h"

#define LAYOUT(event, member, offset)                                                              \
  _Static_assert(offsetof(struct event, member) == (offset), "ABI of the profiler's events")
LAYOUT(profiler_event_v1, rank, 16);
LAYOUT(profiler_event_v1, communicator, 32);
LAYOUT(profiler_event_v1, sequence, 40);
LAYOUT(profiler_event_v1, function, 48);
LAYOUT(profiler_event_v2, rank, 16);
LAYOUT(profiler_event_v2, communicator, 32);
LAYOUT(profiler_event_v2, sequence, 40);
LAYOUT(profiler_event_v2, function, 48);
LAYOUT(profiler_event_v4, rank, 16);
LAYOUT(profiler_event_v4, sequence, 24);
LAYOUT(profiler_event_v4, function, 32);
LAYOUT(profiler_event_v5, rank, 16);
LAYOUT(profiler_event_v5, sequence, 24);
LAYOUT(profiler_event_v5, function, 32);

/* ---- what all versions share ---- */

static enum nccl_result open_communicator(void **context, int *mask, uint64_t communicator,
                                          int rank, int ranks) {
  bool is_wanted = param_bool(PARAM_PROFILE_EVENTS);
  *context = is_wanted ? profiler_events_open(communicator, rank, ranks) : NULL;
  *mask = is_wanted ? NCCL_PROFILE_COLLECTIVE : 0;
  return NCCL_SUCCESS;
}

static void entered(void *context, uint64_t type, const char *function, uint64_t sequence) {
  if (context && type == NCCL_PROFILE_COLLECTIVE) {
    profiler_events_entered(context, function ? function : "collective", sequence, clock_now_ns());
  }
}

static enum nccl_result stop_event(void *handle) {
  (void)handle;
  return NCCL_SUCCESS;
}

static enum nccl_result record_event_state(void *handle, int state, void *arguments) {
  (void)handle, (void)state, (void)arguments;
  return NCCL_SUCCESS;
}

static enum nccl_result finalize(void *context) {
  if (context) {
    profiler_events_close(context);
  }
  return NCCL_SUCCESS;
}

/* ---- v1 to v3: the communicator and the rank come with the events ---- */

static enum nccl_result init_v1(void **context, int *mask) {
  return open_communicator(context, mask, 0, -1, 0);
}

static enum nccl_result start_event_v1(void *context, void **handle,
                                       const struct profiler_event_v1 *event) {
  /* ncclFunc_t, src/include/nccl_common.h at v2.23.4-1. */
  static const char *const names[] = { "Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                       "AllReduce" };
  *handle = context;
  if (context && event->type == NCCL_PROFILE_COLLECTIVE) {
    profiler_events_identify(context, event->communicator, event->rank);
    entered(context, event->type,
            event->function < sizeof names / sizeof names[0] ? names[event->function] : NULL,
            event->sequence);
  }
  return NCCL_SUCCESS;
}

static enum nccl_result start_event_v2(void *context, void **handle,
                                       const struct profiler_event_v2 *event) {
  *handle = context;
  if (context && event->type == NCCL_PROFILE_COLLECTIVE) {
    profiler_events_identify(context, event->communicator, event->rank);
    entered(context, event->type, event->function, event->sequence);
  }
  return NCCL_SUCCESS;
}

/* ---- v4 to v7 ---- */

static enum nccl_result init_v4(void **context, int *mask, const char *comm_name,
                                uint64_t communicator, int nodes, int ranks, int rank,
                                nccl_logger_fn *logger) {
  (void)comm_name, (void)nodes, (void)logger;
  return open_communicator(context, mask, communicator, rank, ranks);
}

static enum nccl_result start_event_v4(void *context, void **handle,
                                       const struct profiler_event_v4 *event) {
  *handle = context;
  entered(context, event->type, event->function, event->sequence);
  return NCCL_SUCCESS;
}

static enum nccl_result init_v5(void **context, uint64_t communicator, int *mask,
                                const char *comm_name, int nodes, int ranks, int rank,
                                nccl_logger_fn *logger) {
  return init_v4(context, mask, comm_name, communicator, nodes, ranks, rank, logger);
}

static enum nccl_result start_event_v5(void *context, void **handle,
                                       const struct profiler_event_v5 *event) {
  *handle = context;
  entered(context, event->type, event->function, event->sequence);
  return NCCL_SUCCESS;
}

/* ---- tables ---- */

/* An event of another kind has another union: its function is not read. */
#define TABLE(version, layout, init_function, start)                                               \
  const struct profiler_plugin_v##layout ncclProfiler_v##version                                   \
      __attribute__((visibility("default"))) = { SHIMS_NAME, init_function,      start,            \
                                                 stop_event, record_event_state, finalize };
TABLE(1, 1, init_v1, start_event_v1)
TABLE(2, 2, init_v1, start_event_v2)
TABLE(3, 2, init_v1, start_event_v2)
TABLE(4, 4, init_v4, start_event_v4)
TABLE(5, 5, init_v5, start_event_v5)
TABLE(6, 5, init_v5, start_event_v5)
TABLE(7, 5, init_v5, start_event_v5)
