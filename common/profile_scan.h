/* SPDX-License-Identifier: Apache-2.0 */
/* profile_scan: words, numbers and texts in one line of a profile, each error with its place.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: -EINVAL, with the place and what is accepted in the struct's error. */
#ifndef COMMON_PROFILE_SCAN_H
#define COMMON_PROFILE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

enum { SCAN_TOKEN_MAX = 64 }; /* of numbers and words, with the NUL */

/* The line that is being read, and where its errors go. */
struct scan {
  const char *line_start;
  int line; /* from 1 */
  struct profile_error *error;
};

/* Part of the line; never NUL-terminated. */
struct scan_span {
  const char *at;
  size_t length;
};

/* For "%.*s": as much of the span as fits into a message. */
#define SCAN_ARGS(span)                                                                            \
  (int)((span).length < SCAN_TOKEN_MAX ? (span).length : SCAN_TOKEN_MAX), (span).at

/* Sets the error; `at` is its place in the line, NULL for all of it. Returns -EINVAL. The first
 * error stays: what is read after it does not count. */
int scan_fail(struct scan *scan, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* -EINVAL after an error, else 0. */
int scan_status(const struct scan *scan);

struct scan_span scan_trim(struct scan_span span);
struct scan_span scan_strip_comment(struct scan_span line);

/* Takes the next word off `line`; it is empty, at the end of the line, if there is none. */
struct scan_span scan_take_word(struct scan_span *line);

bool scan_is(struct scan_span span, const char *text);

/* NUL-terminated copy; false if it does not fit. */
bool scan_copy(struct scan_span span, char *text, size_t text_bytes);

/* Takes the quotes off; a quote anywhere else is an error. */
int scan_unquote(struct scan *scan, struct scan_span *value);

/* `what` names the thing in the error. A size may have K, M, G. */
int scan_number(struct scan *scan, struct scan_span word, const char *what, uint32_t low,
                uint32_t high, bool is_size, uint32_t *number);

/* A decimal with up to three places, from 0 to `high`, as thousandths: "1.5" is 1500. */
int scan_milli(struct scan *scan, struct scan_span word, const char *what, uint32_t high,
               uint64_t *milli);

/* The place of the word in `words` (NULL at the end), in either case; after an error 0. */
int scan_word(struct scan *scan, struct scan_span word, const char *what, const char *const *words);

/* "2.21" or "2.21.5" as NCCL counts; without the third number, `patch`. */
int scan_version(struct scan *scan, struct scan_span value, const char *name, int patch,
                 int *version);

#endif
