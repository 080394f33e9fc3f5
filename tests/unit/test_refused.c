/* SPDX-License-Identifier: Apache-2.0 */
/* What a filter of system calls, gVisor or an old kernel refuses for good, one call after the
 * other: where a job can do without it goes on, with one line at most; else the reason is named. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "common/param.h"
#include "tests/lib/fault.h"
#include "tests/lib/job.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

static const int errors[] = { EPERM, ENOSYS, EINVAL, ENOPROTOOPT };
enum { ERRORS = sizeof errors / sizeof errors[0] };

static int tear_down(void **state) {
  fault_clear();
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

/* Lines of the log that hold one of the words of refusal. */
static size_t count_refusals(void) {
  size_t count = 0;
  for (int i = 0; i < ERRORS; i++) {
    count += log_capture_find(strerror(errors[i]));
  }
  return count;
}

static void expect_job_without(const char *what, int error) {
  struct outcome outcome;
  log_capture_start();
  job_run(&(struct job_options){ NULL, false }, &outcome);
  fault_clear();
  if (outcome.error || outcome.problem || log_capture_count(LOG_LEVEL_WARN) ||
      count_refusals() > 1) {
    log_capture_print();
    fail_msg("%s refused by %s: error %d at %s, %s; %zu warnings, %zu lines", what, strerror(error),
             outcome.error, outcome.stage ? outcome.stage : "-",
             outcome.problem ? outcome.problem : "no problem", log_capture_count(LOG_LEVEL_WARN),
             count_refusals());
  }
  log_capture_stop();
}

#define OPTION(level, option)                                                                      \
  { level, option, #option }

UNIT_TEST_WITH(a_job_does_without_socket_options, NULL, tear_down) {
  static const struct {
    int level, option;
    const char *name;
  } options[] = {
    OPTION(IPPROTO_TCP, TCP_NODELAY),    OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    OPTION(IPPROTO_TCP, TCP_KEEPIDLE),   OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
    OPTION(IPPROTO_TCP, TCP_KEEPCNT),    OPTION(IPPROTO_TCP, TCP_RTO_MAX_MS),
    OPTION(IPPROTO_TCP, TCP_INFO),       OPTION(SOL_SOCKET, SO_KEEPALIVE),
    OPTION(SOL_SOCKET, SO_REUSEADDR),    OPTION(SOL_SOCKET, SO_LINGER),
    OPTION(SOL_SOCKET, SO_BINDTODEVICE), OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
    OPTION(IPPROTO_IP, IP_PKTINFO),      OPTION(IPPROTO_IP, IP_PKTOPTIONS),
    OPTION(SOL_SOCKET, SO_SNDBUF),       OPTION(SOL_SOCKET, SO_RCVBUF),
    OPTION(IPPROTO_IP, IP_TOS),
  };
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    for (int j = 0; j < ERRORS; j++) {
      job_set_parameters("STRATUS_DSCP=10", "STRATUS_SOCKET_BUFFER_BYTES=1M");
      fault_refuse_option(options[i].level, options[i].option, errors[j]);
      expect_job_without(options[i].name, errors[j]);
    }
  }
}

UNIT_TEST_WITH(a_job_does_without_system_calls, NULL, tear_down) {
  static const enum fault_call calls[] = { FAULT_AFFINITY, FAULT_LIMIT, FAULT_STATUS,
                                           FAULT_MAKE_DIRECTORY };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    for (int j = 0; j < ERRORS; j++) {
      job_set_parameters(NULL, NULL);
      fault_refuse(calls[i], errors[j]);
      expect_job_without(fault_call_name(calls[i]), errors[j]);
    }
  }
}

/* What it cannot do without is named, and nothing else is blamed. */
UNIT_TEST_WITH(a_call_that_is_needed_is_named, NULL, tear_down) {
  static const enum fault_call calls[] = { FAULT_EVENTFD, FAULT_EPOLL_CREATE, FAULT_THREAD };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    struct outcome outcome;
    job_set_parameters(NULL, NULL);
    log_capture_start();
    fault_refuse(calls[i], ENOSYS);
    job_run(&(struct job_options){ NULL, false }, &outcome);
    fault_clear();
    assert_true(outcome.error && !outcome.problem);
    if (log_capture_find(fault_call_name(calls[i])) == 0 || log_capture_find("limit") > 0 ||
        log_capture_find("Function not implemented") == 0) {
      log_capture_print();
      fail_msg("%s", fault_call_name(calls[i]));
    }
    log_capture_stop();
  }
}
