/* SPDX-License-Identifier: Apache-2.0 */
/* Formats messages and passes them to the sink. No lock: the sink and the threshold are single
 * words, and NCCL's logger has its own lock. */
#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/clock.h"

static void sink_stderr(enum log_level level, const char *file, int line, const char *text) {
  (void)file;
  (void)line;
  if (level == LOG_LEVEL_WARN) {
    fprintf(stderr, "stratus: WARN %s\n", text);
  }
}

static log_sink_fn *current_sink = sink_stderr;
static enum log_level threshold = LOG_LEVEL_INFO;

void log_set_sink(log_sink_fn *sink) {
  __atomic_store_n(&current_sink, sink ? sink : sink_stderr, __ATOMIC_RELEASE);
}

void log_set_threshold(enum log_level level) {
  __atomic_store_n(&threshold, level, __ATOMIC_RELAXED);
}

bool log_is_enabled(enum log_level level) {
  return level <= __atomic_load_n(&threshold, __ATOMIC_RELAXED);
}

/* `suppressed`: like ones before it that were not written. */
static void write_text(enum log_level level, const char *file, int line, uint64_t suppressed,
                       const char *format, va_list arguments) {
  int saved_errno = errno;
  char text[LOG_TEXT_MAX];
  int length = vsnprintf(text, sizeof text, format, arguments);
  if (suppressed > 0 && length >= 0 && length < LOG_TEXT_MAX) {
    snprintf(text + length, sizeof text - (size_t)length, " (and %" PRIu64 " similar before)",
             suppressed);
  }
  log_sink_fn *sink = __atomic_load_n(&current_sink, __ATOMIC_ACQUIRE);
  sink(level, file, line, text);
  errno = saved_errno;
}

void log_write(enum log_level level, const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_text(level, file, line, 0, format, arguments);
  va_end(arguments);
}

bool log_limit_pass(struct log_limit *limit, uint64_t now_ns, uint64_t interval_ns,
                    uint64_t *suppressed) {
  uint64_t next_ns = __atomic_load_n(&limit->next_ns, __ATOMIC_RELAXED);
  /* Of several threads after the interval, the one that advances next_ns logs. */
  if (now_ns < next_ns ||
      !__atomic_compare_exchange_n(&limit->next_ns, &next_ns, now_ns + interval_ns, false,
                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    __atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
    return false;
  }
  *suppressed = __atomic_exchange_n(&limit->suppressed, 0, __ATOMIC_RELAXED);
  return true;
}

void log_write_limited(struct log_limit *limit, uint64_t interval_ns, const char *file, int line,
                       const char *format, ...) {
  uint64_t suppressed;
  if (!log_limit_pass(limit, clock_now_ns(), interval_ns, &suppressed)) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  write_text(LOG_LEVEL_WARN, file, line, suppressed, format, arguments);
  va_end(arguments);
}
