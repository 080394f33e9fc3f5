/* SPDX-License-Identifier: Apache-2.0 */
/* thread: threads of ours in somebody else's program.
 * Owns: nothing; the caller joins or detaches.  Threads: any.  Blocks: never.  Fails: as stated. */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include <pthread.h>

/* Starts a thread that takes no signals: they belong to the program's own threads. 0 or a negative
 * errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
