/* SPDX-License-Identifier: Apache-2.0 */
/* talk: what the program says beside its results, on stderr, with the rank that says it.
 * Owns: the name it speaks under.  Threads: any.
 * Blocks: if stderr does.  Fails: never. */
#ifndef COLL_TALK_H
#define COLL_TALK_H

/* Exit statuses. A rank that failed tells the launcher so by a status of its own, since a rank that
 * found wrong values ends by itself and must not be taken for a lost one. */
enum { EXIT_GOOD = 0, EXIT_BAD = 1, EXIT_WRONG_USE = 2, EXIT_RANK_FAILED = 3 };

/* "rank 3 on b", once known; `failure_status` is what talk_fail exits with. */
void talk_set_name(const char *name, int failure_status);

__attribute__((format(printf, 1, 2))) void talk(const char *format, ...);

/* Says it and ends the process at once, whatever its other threads wait for. */
__attribute__((noreturn, format(printf, 1, 2))) void talk_fail(const char *format, ...);

#endif
