/* SPDX-License-Identifier: Apache-2.0 */
/* profiler: reports the start and stop of network requests to NCCL's profiler plugin.
 *
 * NCCL hands network plugins a callback (net API v10 and later) and, with each isend and irecv, a
 * handle for the step that the request belongs to. NCCL's own transports report only when NCCL was
 * built with NET_PROFILER=1 (src/transport/net_socket.cc:308 at v2.30.7); this one always does.
 *
 * Owns: nothing; an open event belongs to its request.  Threads: any; one event, one at a time;
 * join and leave: one at a time.
 * Blocks: as the profiler plugin does.  Fails: cannot; without a callback, a handle or an
 * interested profiler plugin nothing is reported. */
#ifndef NET_PLUGIN_OBSERVE_PROFILER_H
#define NET_PLUGIN_OBSERVE_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ncclProfilerCallback_t, src/include/nccl_common.h:69 at v2.30.7; int stands for ncclResult_t. */
typedef int profiler_callback_fn(void **event, int type, void *phandle, int64_t plugin_id,
                                 void *data);

enum { PROFILERS_MAX = 8 }; /* each NCCL in a process has one callback */

struct profiler {
  profiler_callback_fn *callback; /* atomic; NULL: NCCL gave none */
  unsigned users;                 /* of profiler_join */
};

/* NULL removes the callback. */
void profiler_set_callback(struct profiler *profiler, profiler_callback_fn *callback);

/* The profiler of a user who brought this callback; users with the same one share it. NULL without
 * a callback, and where more than PROFILERS_MAX different ones are in use. */
struct profiler *profiler_join(profiler_callback_fn *callback);
/* With the last user the callback is forgotten: who brought it may be unloaded. NULL is allowed. */
void profiler_leave(struct profiler *profiler);

/* *event is for profiler_request_stopped; NULL: not reported. */
void profiler_request_started(const struct profiler *profiler, void *phandle, bool is_send,
                              size_t bytes, void **event);

/* Does nothing if *event is NULL, and leaves it NULL. */
void profiler_request_stopped(const struct profiler *profiler, void **event);

#endif
