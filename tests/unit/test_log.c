/* SPDX-License-Identifier: Apache-2.0 */
/* Levels, sinks, cut texts, rate limit; nothing on stdout. */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static int start(void **state) {
  log_set_threshold(LOG_LEVEL_INFO);
  log_capture_start();
  return 0;
}

#define LOG_TEST(function) UNIT_TEST_WITH(function, start, log_capture_tear_down)

/* And their arguments are not computed. */
LOG_TEST(threshold_drops_details) {
  int computed = 0;
  LOG_WARN("one %d", 1);
  LOG_INFO("two");
  LOG_TRACE("three %d", ++computed);
  assert_int_equal(computed, 0);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_INFO), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_TRACE), 0);
  assert_string_equal(log_capture_text(0), "one 1");
  log_set_threshold(LOG_LEVEL_TRACE);
  LOG_TRACE("three");
  assert_int_equal(log_capture_count(LOG_LEVEL_TRACE), 1);
  log_set_threshold(LOG_LEVEL_WARN);
  LOG_INFO("four");
  assert_int_equal(log_capture_find("four"), 0);
}

LOG_TEST(long_text_is_cut) {
  char text[2 * LOG_TEXT_MAX];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  LOG_WARN("%s", text);
  assert_int_equal(strlen(log_capture_text(0)), LOG_TEXT_MAX - 1);
}

LOG_TEST(errno_is_kept) {
  errno = ETIMEDOUT;
  LOG_WARN("text");
  assert_int_equal(errno, ETIMEDOUT);
}

/* Runs the default sink with both streams in files; returns their sizes. */
static void measure_default_sink(long *stdout_bytes, long *stderr_bytes) {
  int saved[2] = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };
  FILE *files[2] = { tmpfile(), tmpfile() };
  assert_non_null(files[0]);
  assert_non_null(files[1]);
  fflush(stdout);
  dup2(fileno(files[0]), STDOUT_FILENO);
  dup2(fileno(files[1]), STDERR_FILENO);
  log_set_sink(NULL);
  LOG_WARN("to stderr");
  LOG_INFO("nowhere");
  fflush(stdout);
  fflush(stderr);
  dup2(saved[0], STDOUT_FILENO);
  dup2(saved[1], STDERR_FILENO);
  *stdout_bytes = lseek(fileno(files[0]), 0, SEEK_END);
  *stderr_bytes = lseek(fileno(files[1]), 0, SEEK_END);
  for (int i = 0; i < 2; i++) {
    close(saved[i]);
    fclose(files[i]);
  }
}

LOG_TEST(default_sink_never_touches_stdout) {
  long stdout_bytes;
  long stderr_bytes;
  measure_default_sink(&stdout_bytes, &stderr_bytes);
  assert_int_equal(stdout_bytes, 0);
  assert_int_equal(stderr_bytes, strlen("stratus: WARN to stderr\n"));
}

LOG_TEST(limited_place_speaks_once_per_interval) {
  for (int i = 0; i < 5; i++) {
    LOG_WARN_EVERY(3600 * NS_PER_S, "flood %d", i);
  }
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_string_equal(log_capture_text(0), "flood 0");
}

LOG_TEST(suppressed_count_is_reported) {
  struct log_limit limit = { 0 };
  log_write_limited(&limit, 3600 * NS_PER_S, "f", 1, "stall");
  log_write_limited(&limit, 3600 * NS_PER_S, "f", 1, "stall");
  log_write_limited(&limit, 3600 * NS_PER_S, "f", 1, "stall");
  limit.next_ns = 0;
  log_write_limited(&limit, 3600 * NS_PER_S, "f", 1, "stall");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 2);
  assert_string_equal(log_capture_text(1), "stall (and 2 similar before)");
}

enum { THREADS = 4, PER_THREAD = 2000 };

static void *flood(void *limit) {
  for (int i = 0; i < PER_THREAD; i++) {
    log_write_limited(limit, 3600 * NS_PER_S, "f", 1, "flood");
  }
  return NULL;
}

LOG_TEST(of_many_threads_one_speaks) {
  struct log_limit limit = { 0 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, flood, &limit), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_int_equal(limit.suppressed, THREADS * PER_THREAD - 1);
}
