/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the engine, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef NET_PLUGIN_ENGINE_LIMITS_H
#define NET_PLUGIN_ENGINE_LIMITS_H

#include "common/time_units.h"

/* ---- who does the work ---- */

/* CPUs from which on a thread for each engine is worth it, and so many more than engines. */
#define PROGRESS_THREAD_CPUS 4
#define PROGRESS_OTHER_CPUS 2
/* CPUs from which on a NIC gets two engines, and PROGRESS_ENGINES_MAX. */
#define PROGRESS_TWO_ENGINES_CPUS 8
#define PROGRESS_MOST_ENGINES_CPUS 32
#define PROGRESS_ENGINES_MAX 4
/* A thread that NCCL cannot have later ends the job, or makes it hang: with pids.max one below what
 * a job of 2 GPUs in one process needs it stood still (2026-11-26, NCCL 2.29.7: 20 with Socket). So
 * a NIC gets more than one engine only where 8 GPUs have room, with 6 threads each and some spare.
 */
#define THREADS_FOR_NCCL 64

/* ---- when it is done ---- */

/* How long after NCCL's last poll the thread keeps off. NCCL's threads poll every few microseconds;
 * after 4 ms without they have gone to do something else. */
#define HOLD_NS (4 * NS_PER_MS)
/* The same while all lanes are RDMA: nobody but NCCL waits for what they bring, and its threads,
 * which may get no CPU for 100 ms beside busy processes, will poll again. AllReduce of 64 KiB over
 * emulated queue pairs took 0.7 of the time. Over TCP it brought nothing. */
#define RDMA_HOLD_NS (200 * NS_PER_MS)
/* In a hold the thread checks so often whether it still applies: 100 wake-ups a second. */
#define HOLD_CHECK_NS (10 * NS_PER_MS)
/* How long the thread polls on, yielding, when there is nothing to do and NCCL's threads do not
 * poll. Half a round trip of 8 B takes 9.9 us with it and 42 us without, and two connections move
 * 5.0 and 3.0 GB/s in 512 KiB (two hosts of one CPU each): sleeps and wake-ups are what it saves.
 */
#define SPIN_NS (50 * NS_PER_US)
/* How often the thread offers the lock to a thread that waits for it. */
#define LOCK_OFFERS 100
/* Pollers ask the epoll set, which costs as much as reading a flow, after so long: seldom where a
 * thread has a CPU, at once where it had none for a while, as all its lanes may have something.
 * Together with OTHER_POLLS and engine_defer, with 4 flows, of the time without them: AllReduce on
 * 2 hosts without caps, 64 B, 8 KiB, 64 KiB, 256 KiB, 1 MiB, 4 MiB 0.97, 0.94, 0.90, 0.78, 0.71,
 * 0.98, in another run 1.01, 0.51, 0.99, 0.99, 0.94, 1.02 (medians of 5 rounds each); 8 hosts on
 * the same 2 CPUs, 64 KiB, 256 KiB, 1 MiB 0.85, 1.06, 0.81 (6 rounds). By emulation. That is with
 * 20 us: half a round trip of 8 B took 7.79 us then, 7.63 with 50, and 7.50 with 100, with which
 * AllReduce of 1 MiB on the 8 hosts took 22.8 ms instead of 18.4 (6 and 3 rounds). */
#define EPOLL_PERIOD_NS (50 * NS_PER_US)
/* RDMA lanes are polled without the set, which has only deadlines and lost devices for them. */
#define RDMA_EPOLL_PERIOD_NS (4 * NS_PER_MS)
/* Idle waiters sleep up to 200 us between polls, once nothing has moved for 500 ms. Threads that
 * only yield keep ksoftirqd from their CPU for up to ten seconds (Linux 6.18): no packet came for
 * ten seconds after a NIC was back, in a fifth of 'tests/netns/faults nic-down-2s-sender'. */
#define IDLE_AFTER_NS (500 * NS_PER_MS)
#define IDLE_SLEEP_NS (200 * 1000)
#define IDLE_POLL_NS (50 * 1000) /* between two sleeps */
/* That something has moved is noted once in so long. */
#define ACTIVITY_GRAIN_NS (10 * NS_PER_MS)
/* Between two warnings of a kind. */
#define ENGINE_WARN_INTERVAL_NS (1 * NS_PER_S)
/* Taken from the epoll set at a time. */
#define EVENTS_PER_ROUND 64

#endif
