/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL calls, through the newest tables, while the k-th call of a kind fails (each_failure.h).
 * Each job comes to an end: all data right, or a clean error with a warning. Once the connection
 * stands, only the former will do: a flow that fails is reconnected. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "tests/lib/each_failure.h"
#include "tests/lib/fault.h"
#include "tests/lib/job.h"
#include "tests/lib/unit.h"

/* ---- the net table: a job ---- */

static void run_job(struct outcome *outcome) {
  job_run(&(struct job_options){ NULL, false }, outcome);
}

static void run_connected_job(struct outcome *outcome) {
  job_run(&(struct job_options){ each_failure_arm, false }, outcome);
}

static void run_job_whose_flows_are_cut(struct outcome *outcome) {
  job_run(&(struct job_options){ each_failure_arm, true }, outcome);
}

static const struct entry_point job = { "net table", run_job, false, false };
static const struct entry_point connected_job = { "net table, connected", run_connected_job, true,
                                                  true };
static const struct entry_point cut_job = { "net table, reconnecting", run_job_whose_flows_are_cut,
                                            true, true };

static void a_job_survives_each_failing_call(void **state) {
  (void)state;
  each_failure_of_all(&job);
  static const struct failure others[] = {
    { FAULT_BIND, EACCES },         { FAULT_ACCEPT, ECONNABORTED }, { FAULT_ACCEPT, EINTR },
    { FAULT_CONNECT, ENETUNREACH }, { FAULT_SEND, EAGAIN },         { FAULT_SEND, EINTR },
    { FAULT_RECEIVE, EAGAIN },      { FAULT_EPOLL_ADD, ENOSPC },
  };
  EACH_FAILURE(&job, others);
}

static void loses_nothing_without_memory_for_a_flow(void **state) {
  (void)state;
  static const struct failure failures[] = { { FAULT_ALLOCATION, ENOMEM } };
  EACH_FAILURE(&cut_job, failures);
}

/* What carries data: a flow is lost, its chunks go to the others. */
static void loses_nothing_when_a_flow_fails(void **state) {
  (void)state;
  static const struct failure failures[] = {
    { FAULT_SEND, EPIPE },    { FAULT_SEND, ENOBUFS },       { FAULT_SEND, EINTR },
    { FAULT_SEND, EAGAIN },   { FAULT_RECEIVE, ECONNRESET }, { FAULT_RECEIVE, ETIMEDOUT },
    { FAULT_RECEIVE, EINTR }, { FAULT_EPOLL_WAIT, EINTR },
  };
  EACH_FAILURE(&connected_job, failures);
}

/* What dials again after flows were cut. */
static void loses_nothing_when_a_dial_fails(void **state) {
  (void)state;
  static const struct failure failures[] = {
    { FAULT_SOCKET, EMFILE },     { FAULT_CONNECT, ECONNREFUSED }, { FAULT_CONNECT, EINTR },
    { FAULT_BIND, EADDRINUSE },   { FAULT_ACCEPT, EMFILE },        { FAULT_EPOLL_ADD, ENOMEM },
    { FAULT_SETSOCKOPT, EACCES }, { FAULT_SEND, EPIPE },           { FAULT_RECEIVE, ECONNRESET },
  };
  EACH_FAILURE(&cut_job, failures);
}

static void short_reads_and_writes_are_whole(void **state) {
  (void)state;
  static const size_t pieces[] = { 1000, 41, 7 };
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    struct job_options options = { NULL, i == 0 };
    struct outcome outcome;
    fault_shorten(pieces[i]);
    job_run(&options, &outcome);
    fault_clear();
    assert_int_equal(outcome.error, 0);
    assert_null(outcome.problem);
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
    FAILURE_TEST(short_reads_and_writes_are_whole, use_auto),
    FAILURE_TEST(a_job_survives_each_failing_call, use_auto),
    FAILURE_TEST(a_job_survives_each_failing_call, use_thread),
    FAILURE_TEST(loses_nothing_without_memory_for_a_flow, use_thread),
    FAILURE_TEST(loses_nothing_when_a_flow_fails, use_auto),
    FAILURE_TEST(loses_nothing_when_a_dial_fails, use_auto),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
