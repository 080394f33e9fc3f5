/* SPDX-License-Identifier: Apache-2.0 */
/* log_capture: keeps what is logged, so that a test can look at it.
 * Owns: the texts, until the next start.  Threads: any may log.
 * Blocks: on its lock.  Fails: cannot; what exceeds LOG_CAPTURE_MAX messages is only counted. */
#ifndef TESTS_LIB_LOG_CAPTURE_H
#define TESTS_LIB_LOG_CAPTURE_H

#include <stddef.h>

#include "common/log.h"

enum { LOG_CAPTURE_MAX = 64 };

/* Forgets what was kept and becomes the log's sink; stop brings the default sink back. */
void log_capture_start(void);
void log_capture_stop(void);

/* One more message, as of a sink of a test's own. */
void log_capture_keep(enum log_level level, const char *text);

/* For cmocka. */
int log_capture_set_up(void **state);
int log_capture_tear_down(void **state);
#define LOG_CAPTURE_TEST(test) UNIT_TEST_WITH(test, log_capture_set_up, log_capture_tear_down)

/* How many messages of this level there were. */
size_t log_capture_count(enum log_level level);

/* How many messages, of any level, contain the text. */
size_t log_capture_find(const char *part);

/* The message number `index`, "" if there is none. */
const char *log_capture_text(size_t index);

/* Prints what was kept, for a test that is about to fail. */
void log_capture_print(void);

#endif
