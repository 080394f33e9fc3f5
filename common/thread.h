/* SPDX-License-Identifier: Apache-2.0 */
/* thread: starts the plugin's threads in the application's process, and what they wait on.
 * Owns: nothing; the caller joins or detaches.  Threads: any.  Blocks: never.  Fails: as stated. */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include <pthread.h>

/* Starts a thread with asynchronous signals blocked: they are for the application's threads. 0 or a
 * negative errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);
/* Makes a condition whose timed waits end by clock_now_ns(), not by the time of day. */
void thread_init_condition(pthread_cond_t *condition);

#endif
