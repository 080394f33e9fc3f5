/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided at the edge to NCCL: result codes, log levels, traffic classes. The
 * calls themselves are tested by tests/abi/net_host.c against the built plugin. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/abi/logger.h"
#include "net_plugin/abi/net_abi.h"
#include "net_plugin/abi/shims.h"

#include "tests/lib/unit.h"

UNIT_TEST(results_name_the_culprit) {
  static const struct {
    int error;
    enum nccl_result result;
  } expected[] = {
    { 0, NCCL_SUCCESS },
    /* the peer */
    { ECONNRESET, NCCL_REMOTE_ERROR },
    { ECONNREFUSED, NCCL_REMOTE_ERROR },
    { EPIPE, NCCL_REMOTE_ERROR },
    { ETIMEDOUT, NCCL_REMOTE_ERROR },
    { EHOSTDOWN, NCCL_REMOTE_ERROR },
    { ECONNABORTED, NCCL_REMOTE_ERROR },
    /* this host */
    { EMFILE, NCCL_SYSTEM_ERROR },
    { ENOMEM, NCCL_SYSTEM_ERROR },
    { EADDRINUSE, NCCL_SYSTEM_ERROR },
    { ENETUNREACH, NCCL_SYSTEM_ERROR },
    /* the user's set-up */
    { EPROTO, NCCL_INVALID_USAGE },
    { EPROTONOSUPPORT, NCCL_INVALID_USAGE },
    { EMSGSIZE, NCCL_INVALID_USAGE },
    { EACCES, NCCL_INVALID_USAGE },
    /* a bug */
    { EINVAL, NCCL_INTERNAL_ERROR },
    { EFAULT, NCCL_INTERNAL_ERROR },
  };
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
    assert_int_equal(shims_result(-expected[i].error), expected[i].result);
  }
}

static struct {
  enum nccl_log_level level;
  unsigned long flags;
  int calls;
  char text[256];
} logged;

static void nccl_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                        const char *format, ...) {
  assert_true(strstr(file, "test_net_abi.c") != NULL && line > 0);
  logged.level = level;
  logged.flags = flags;
  logged.calls++;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(logged.text, sizeof(logged.text), format, arguments);
  va_end(arguments);
}

UNIT_TEST(messages_reach_nccls_log) {
  logger_use(nccl_logger);
  LOG_WARN("100%% of %s", "eth0");
  assert_int_equal(logged.level, 2);
  assert_int_equal(logged.flags, 0x11);
  assert_string_equal(logged.text, "NET/stratus: 100% of eth0");
  LOG_INFO("info");
  assert_int_equal(logged.level, 3);
  LOG_TRACE("trace"); /* below the threshold */
  assert_int_equal(logged.calls, 2);
  log_set_threshold(LOG_LEVEL_TRACE);
  LOG_TRACE("trace");
  assert_int_equal(logged.level, 5);
  log_set_threshold(LOG_LEVEL_INFO);
  log_set_sink(NULL);
  LOG_INFO("nobody hears this");
  assert_int_equal(logged.calls, 3);
}

static int calls_of_other;

static void other_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                         const char *format, ...) {
  calls_of_other++;
}

UNIT_TEST(the_latest_logger_is_told) {
  logger_use(nccl_logger);
  logger_use(other_logger);
  logged.calls = 0;
  LOG_INFO("to the latest");
  assert_int_equal(logged.calls, 0);
  assert_int_equal(calls_of_other, 1);
}
