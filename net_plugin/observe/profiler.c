/* SPDX-License-Identifier: Apache-2.0 */
/* Events have the layout of NCCL's socket transport, because that is one of the two that profiler
 * plugins know how to read; there is no registry for others. */
#include "net_plugin/observe/profiler.h"

/* src/include/nccl_common.h:62-67 at v2.30.7. */
enum { EVENT_START = 0, EVENT_STOP = 1 };

/* NCCL_PROFILER_NET_TYPE_SOCK | version 1: src/include/plugin/nccl_profiler.h:99-106 and
 * src/include/plugin/profiler/net_socket_v1.h:11 at v2.30.7. */
static const int64_t plugin_id_socket_v1 = (INT64_C(2) << 16) | 1;

/* src/include/plugin/profiler/net_socket_v1.h:14 and src/include/socket.h:135-136 at v2.30.7. */
enum { EVENT_TYPE_SOCKET = 1, EVENT_SEND = 0, EVENT_RECEIVE = 1 };

/* ncclProfilerNetSockDescr_v1_t, src/include/plugin/profiler/net_socket_v1.h:22-31 at v2.30.7. The
 * three last members are a struct in a union there, which aligns them for size_t. */
struct socket_event_v1 {
  uint8_t type;
  struct {
    int fd;
    int op;
    size_t length;
  } sock;
};
_Static_assert(offsetof(struct socket_event_v1, type) == 0 &&
                   offsetof(struct socket_event_v1, sock.fd) == 8 &&
                   offsetof(struct socket_event_v1, sock.op) == 12 &&
                   offsetof(struct socket_event_v1, sock.length) == 16 &&
                   sizeof(struct socket_event_v1) == 24,
               "ABI of the profiler's socket event");

void profiler_set_callback(struct profiler *profiler, profiler_callback_fn *callback) {
  __atomic_store_n(&profiler->callback, callback, __ATOMIC_RELEASE);
}

struct profiler *profiler_join(profiler_callback_fn *callback) {
  static struct profiler profilers[PROFILERS_MAX];
  struct profiler *joined = NULL;
  for (int i = 0; callback && i < PROFILERS_MAX; i++) {
    if (profilers[i].users == 0 ? !joined : profilers[i].callback == callback) {
      joined = &profilers[i];
    }
  }
  if (joined) {
    joined->users++;
    profiler_set_callback(joined, callback);
  }
  return joined;
}

void profiler_leave(struct profiler *profiler) {
  if (profiler && --profiler->users == 0) {
    profiler_set_callback(profiler, NULL);
  }
}

static profiler_callback_fn *callback_of(const struct profiler *profiler) {
  return profiler ? __atomic_load_n(&profiler->callback, __ATOMIC_ACQUIRE) : NULL;
}

void profiler_request_started(const struct profiler *profiler, void *phandle, bool is_send,
                              size_t bytes, void **event) {
  *event = NULL;
  profiler_callback_fn *callback = callback_of(profiler);
  if (!callback || !phandle) {
    return;
  }
  /* The request is spread over many flows, so no single file descriptor stands for it. */
  struct socket_event_v1 data = {
    .type = EVENT_TYPE_SOCKET,
    .sock = { .fd = -1, .op = is_send ? EVENT_SEND : EVENT_RECEIVE, .length = bytes },
  };
  /* The profiler plugin reads `data` before the call returns. Its result is ignored: it cannot
   * affect the transfer. */
  (void)callback(event, EVENT_START, phandle, plugin_id_socket_v1, &data);
}

void profiler_request_stopped(const struct profiler *profiler, void **event) {
  profiler_callback_fn *callback = callback_of(profiler);
  /* NCCL passes a NULL event on to the profiler plugin (src/plugin/profiler.cc:797-799 at v2.30.7),
   * which may not handle it. */
  if (*event && callback) {
    (void)callback(event, EVENT_STOP, NULL, 0, NULL);
  }
  *event = NULL;
}
