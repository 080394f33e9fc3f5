/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_tell: the findings of stratus doctor: lines of text, or one JSON document at the end.
 * Owns: the findings, one set per process.  Threads: the main thread.  Blocks: on stdout.
 * Fails: doctor_tell cannot; a text that is too long is cut. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_TELL_H
#define NET_PLUGIN_TOOLS_DOCTOR_TELL_H

#include <stdbool.h>

enum doctor_finding { DOCTOR_GOOD, DOCTOR_HINT, DOCTOR_BAD };
enum { DOCTOR_TEXT_MAX = 2048 };

void doctor_tell_begin(bool is_json);
void doctor_tell(enum doctor_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* How many of these so far. */
int doctor_tell_count(enum doctor_finding finding);
/* The exit status: CLI_FAILED if one was bad. */
int doctor_tell_end(void);

#endif
