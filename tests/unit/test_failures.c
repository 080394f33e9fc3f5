/* SPDX-License-Identifier: Apache-2.0 */
/* A whole job in which the k-th allocation or the k-th system call of a kind fails, for k = 1, 2,
 * ... until none fails any more. Each job comes to an end: all data right, or a clean error with a
 * warning; nothing leaks. Once the connection stands, only the former will do: a flow that fails is
 * reconnected. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/param.h"
#include "tests/lib/fault.h"
#include "tests/lib/job.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

/* Polling never ends to call epoll_wait. */
enum { K_MAX = 300 };

/* The fault that is set when the connection stands. */
static enum fault_call pending_call;
static unsigned long pending_k;
static int pending_error;

static void set_pending_fault(void) {
  fault_fail(pending_call, pending_k, pending_error);
}

/* Runs one job; true if the fault happened. */
static bool run_with(enum fault_call call, unsigned long k, int error, bool when_connected,
                     bool cuts_flows) {
  struct job_options options = { when_connected ? set_pending_fault : NULL, cuts_flows };
  struct job_result result;
  unsigned descriptors = job_descriptors();
  long mappings = fault_mappings();
  log_capture_start();
  pending_call = call;
  pending_k = k;
  pending_error = error;
  if (!when_connected) {
    set_pending_fault();
  }
  job_run(&options, &result);
  bool has_failed = fault_clear();
  bool is_error_told = !result.error || log_capture_count(LOG_LEVEL_WARN) > 0;
  bool must_succeed = when_connected || !has_failed;
  if (result.is_hung || result.is_wrong || !is_error_told || (must_succeed && result.error) ||
      job_descriptors() != descriptors || fault_mappings() != mappings) {
    log_capture_print();
    fail_msg("%s number %lu failing with %s%s: error %d at %s%s%s, %s, descriptors %u -> %u, "
             "mappings %ld -> %ld",
             fault_call_name(call), k, strerrorname_np(error),
             when_connected ? " once connected" : "", result.error, result.stage,
             result.is_hung ? ", hung" : "", result.is_wrong ? ", wrong data" : "",
             is_error_told ? "a warning said why" : "no warning", descriptors, job_descriptors(),
             mappings, fault_mappings());
  }
  log_capture_stop();
  return has_failed;
}

/* Every k at first, then fewer and fewer: what comes often comes from the same place. */
static void run_for_all(enum fault_call call, int error, bool when_connected, bool cuts_flows) {
  enum { DENSE = 12 };
  unsigned long k = 1;
  uint64_t start_ns = clock_now_ns();
  while (k <= K_MAX && run_with(call, k, error, when_connected, cuts_flows)) {
    k += k < DENSE || call == FAULT_ALLOCATION ? 1 : 1 + k / 2;
  }
  if (getenv("STRATUS_TEST_VERBOSE")) {
    fprintf(stderr, "%s %s: up to %lu, %" PRIu64 " ms\n", fault_call_name(call),
            strerrorname_np(error), k, (clock_now_ns() - start_ns) / NS_PER_MS);
  }
}

struct failure {
  enum fault_call call;
  int error;
};

static void a_job_without_faults_succeeds(void **state) {
  (void)state;
  assert_false(run_with(FAULT_RANDOM, K_MAX, EIO, false, true));
  assert_false(run_with(FAULT_RANDOM, K_MAX, EIO, true, true));
}

static void survives_failing_allocations(void **state) {
  (void)state;
  run_for_all(FAULT_ALLOCATION, ENOMEM, false, false);
}

static void loses_nothing_without_memory_for_a_flow(void **state) {
  (void)state;
  run_for_all(FAULT_ALLOCATION, ENOMEM, true, true);
}

static void survives_failing_calls(void **state) {
  (void)state;
  static const struct failure failures[] = {
    { FAULT_SOCKET, EMFILE },       { FAULT_SETSOCKOPT, ENOMEM },  { FAULT_BIND, EADDRINUSE },
    { FAULT_BIND, EACCES },         { FAULT_LISTEN, EADDRINUSE },  { FAULT_ACCEPT, EMFILE },
    { FAULT_ACCEPT, ECONNABORTED }, { FAULT_ACCEPT, EINTR },       { FAULT_CONNECT, ETIMEDOUT },
    { FAULT_CONNECT, ENETUNREACH }, { FAULT_SEND, ENOBUFS },       { FAULT_SEND, EAGAIN },
    { FAULT_SEND, EINTR },          { FAULT_RECEIVE, ECONNRESET }, { FAULT_RECEIVE, EAGAIN },
    { FAULT_EPOLL_CREATE, EMFILE }, { FAULT_EPOLL_ADD, ENOMEM },   { FAULT_EPOLL_ADD, ENOSPC },
    { FAULT_EPOLL_WAIT, EINTR },    { FAULT_EVENTFD, EMFILE },     { FAULT_THREAD, EAGAIN },
    { FAULT_RANDOM, ENOSYS },       { FAULT_OPEN, EMFILE },        { FAULT_READ, EIO },
  };
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    run_for_all(failures[i].call, failures[i].error, false, false);
  }
}

/* What carries data: a flow is lost, its chunks go to the others. */
static void loses_nothing_when_a_flow_fails(void **state) {
  (void)state;
  static const struct failure failures[] = {
    { FAULT_SEND, EPIPE },    { FAULT_SEND, ENOBUFS },       { FAULT_SEND, EINTR },
    { FAULT_SEND, EAGAIN },   { FAULT_RECEIVE, ECONNRESET }, { FAULT_RECEIVE, ETIMEDOUT },
    { FAULT_RECEIVE, EINTR }, { FAULT_EPOLL_WAIT, EINTR },
  };
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    run_for_all(failures[i].call, failures[i].error, true, false);
  }
}

/* What dials again after flows were cut. */
static void loses_nothing_when_a_dial_fails(void **state) {
  (void)state;
  static const struct failure failures[] = {
    { FAULT_SOCKET, EMFILE },     { FAULT_CONNECT, ECONNREFUSED }, { FAULT_CONNECT, EINTR },
    { FAULT_BIND, EADDRINUSE },   { FAULT_ACCEPT, EMFILE },        { FAULT_EPOLL_ADD, ENOMEM },
    { FAULT_SETSOCKOPT, EACCES }, { FAULT_SEND, EPIPE },           { FAULT_RECEIVE, ECONNRESET },
  };
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    run_for_all(failures[i].call, failures[i].error, true, true);
  }
}

static void short_reads_and_writes_are_whole(void **state) {
  (void)state;
  static const size_t pieces[] = { 1000, 41, 7 };
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    struct job_options options = { NULL, i == 0 };
    struct job_result result;
    fault_shorten(pieces[i]);
    job_run(&options, &result);
    fault_clear();
    assert_int_equal(result.error, 0);
    assert_false(result.is_hung);
    assert_false(result.is_wrong);
  }
}

static int use_auto(void **state) {
  (void)state;
  job_set_parameters("auto");
  return 0;
}

static int use_thread(void **state) {
  (void)state;
  job_set_parameters("thread");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fault_clear();
  param_load((char *[]){ NULL });
  return 0;
}

#define FAILURE_TEST(test, use) cmocka_unit_test_setup_teardown(test, use, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
    FAILURE_TEST(a_job_without_faults_succeeds, use_auto),
    FAILURE_TEST(a_job_without_faults_succeeds, use_thread),
    FAILURE_TEST(short_reads_and_writes_are_whole, use_auto),
    FAILURE_TEST(survives_failing_allocations, use_auto),
    FAILURE_TEST(loses_nothing_without_memory_for_a_flow, use_thread),
    FAILURE_TEST(survives_failing_calls, use_thread),
    FAILURE_TEST(loses_nothing_when_a_flow_fails, use_auto),
    FAILURE_TEST(loses_nothing_when_a_dial_fails, use_auto),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
