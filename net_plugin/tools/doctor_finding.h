/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_finding: what the checks of stratus-net doctor call back with.
 * Owns: nothing.  Threads: the caller's.  Blocks: never.  Fails: cannot; a text that is too long is
 * cut. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_FINDING_H
#define NET_PLUGIN_TOOLS_DOCTOR_FINDING_H

enum doctor_finding { DOCTOR_GOOD, DOCTOR_HINT, DOCTOR_BAD };

typedef void doctor_tell_fn(enum doctor_finding finding, const char *text);

enum { DOCTOR_TEXT_MAX = 2048 };
void doctor_tell(doctor_tell_fn *tell, enum doctor_finding finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
