/* SPDX-License-Identifier: Apache-2.0 */
/* Profiler events, as NCCL's callback receives them. */
#include <string.h>

#include "net_plugin/observe/profiler.h"
#include "tests/lib/unit.h"

/* ncclProfilerNetSockDescr_v1_t as a profiler plugin declares it:
 * plugins/profiler/example/nccl/net_socket_v1.h:22-31 of NCCL v2.30.7. */
struct descriptor {
  uint8_t type;
  union {
    struct {
      int fd;
      int op;
      size_t length;
    } sock;
  };
};

static struct {
  int calls;
  int type;
  void *phandle;
  int64_t plugin_id;
  struct descriptor data;
  void *event;
  void *answer;
} seen;

static int callback(void **event, int type, void *phandle, int64_t plugin_id, void *data) {
  seen.calls++;
  seen.type = type;
  seen.phandle = phandle;
  seen.plugin_id = plugin_id;
  seen.event = *event;
  if (data) {
    memcpy(&seen.data, data, sizeof(seen.data));
  }
  if (type == 0) {
    *event = seen.answer;
  }
  return 0;
}

static int set_up(void **context) {
  (void)context;
  memset(&seen, 0, sizeof(seen));
  return 0;
}

UNIT_TEST_WITH(a_request_starts_and_stops, set_up, NULL) {
  struct profiler profiler = { 0 };
  profiler_set_callback(&profiler, callback);
  int phandle, answer;
  void *event = &event; /* whatever was there before */
  seen.answer = &answer;
  profiler_request_started(&profiler, &phandle, true, 4096, &event);
  assert_int_equal(seen.calls, 1);
  assert_int_equal(seen.type, 0);
  assert_null(seen.event);
  assert_ptr_equal(seen.phandle, &phandle);
  assert_int_equal(seen.plugin_id, 0x20001);
  assert_int_equal(seen.data.type, 1);
  assert_int_equal(seen.data.sock.fd, -1);
  assert_int_equal(seen.data.sock.op, 0);
  assert_int_equal(seen.data.sock.length, 4096);
  assert_ptr_equal(event, &answer);

  profiler_request_stopped(&profiler, &event);
  assert_int_equal(seen.calls, 2);
  assert_int_equal(seen.type, 1);
  assert_ptr_equal(seen.event, &answer);
  assert_null(event);

  profiler_request_started(&profiler, &phandle, false, 0, &event);
  assert_int_equal(seen.data.sock.op, 1);
}

UNIT_TEST_WITH(nobody_listens, set_up, NULL) {
  struct profiler profiler = { 0 };
  int phandle;
  void *event = &event;
  profiler_request_started(&profiler, &phandle, true, 1, &event);
  assert_null(event);
  profiler_request_started(NULL, &phandle, true, 1, &event);
  profiler_request_stopped(NULL, &event);
  profiler_set_callback(&profiler, callback);
  profiler_request_started(&profiler, NULL, true, 1, &event);
  profiler_request_stopped(&profiler, &event);
  assert_int_equal(seen.calls, 0);
}

UNIT_TEST_WITH(an_event_that_nobody_wanted_is_not_stopped, set_up, NULL) {
  struct profiler profiler = { 0 };
  profiler_set_callback(&profiler, callback);
  int phandle;
  void *event;
  profiler_request_started(&profiler, &phandle, true, 1, &event); /* leaves *event NULL */
  assert_int_equal(seen.calls, 1);
  profiler_request_stopped(&profiler, &event);
  assert_int_equal(seen.calls, 1);
}

UNIT_TEST_WITH(the_callback_can_go_before_the_event, set_up, NULL) {
  struct profiler profiler = { 0 };
  profiler_set_callback(&profiler, callback);
  int phandle, answer;
  void *event;
  seen.answer = &answer;
  profiler_request_started(&profiler, &phandle, true, 1, &event);
  profiler_set_callback(&profiler, NULL);
  profiler_request_stopped(&profiler, &event);
  assert_int_equal(seen.calls, 1);
  assert_null(event);
}

UNIT_MAIN(NULL, NULL)
