/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of RDMA lanes, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef NET_PLUGIN_LANE_RDMA_LIMITS_H
#define NET_PLUGIN_LANE_RDMA_LIMITS_H

#include "common/time_units.h"

/* ---- a queue pair ---- */

/* Slots of each direction. Data comes in large ones, what answers it in small ones. */
#define RDMA_SLOTS 16
#define RDMA_DATA_SLOT_BYTES 8192u
#define RDMA_CONTROL_SLOT_BYTES 1024u
/* Sends, and for each a write before it. */
#define RDMA_SEND_DEPTH (2 * RDMA_SLOTS)
/* One send of so many asks for a completion. */
#define RDMA_SIGNAL_EVERY (RDMA_SLOTS / 4)
/* Bytes up to which a copy is cheaper than a second piece. */
#define RDMA_COPY_BYTES 512u
/* Inline data asked for: as much as most devices take, else what any takes that takes some (eRDMA
 * 96, the oldest of Intel's 48, MANA none). */
#define RDMA_INLINE_BYTES 220u
#define RDMA_INLINE_LEAST_BYTES 48u
/* Completions taken at a time. */
#define RDMA_NEWS_MOST 16
/* As verbs count: 0.64 ms, as NCCL has it; slots are counted, so it is not needed. */
#define RDMA_MIN_RNR_TIMER 12
/* As verbs count: 67 ms, and as devices count, up to four times that: with seven repetitions a
 * queue pair whose packets get lost is given up after 0.5 to 2 s, and its data goes another way.
 * NCCL has 20, half a minute and more, for there the job ends with it. */
#define RDMA_TIMEOUT 14

/* ---- polling ---- */

/* Without a completion for so long, the waiting thread may sleep, and the set is checked. */
#define RDMA_QUIET_NS (20 * NS_PER_US)
/* How often it is checked again; more rarely by a thread that goes on polling: a queue that is
 * armed again costs an event for the next message. */
#define RDMA_CHECK_NS (1 * NS_PER_MS)
#define RDMA_POLLED_CHECK_NS (4 * NS_PER_MS)

/* ---- librdmacm ---- */

/* For an address, and for a route. */
#define RDMA_CM_PHASE_MS 1000
#define RDMA_CM_BACKLOG 8
/* At a time: strangers must not keep others waiting. */
#define RDMA_CM_EVENTS_MOST 16

/* ---- devices ---- */

/* Since a search began. Real devices are open in a few hundredths of a second, emulated
 * machines take seconds to load libibverbs. */
#define RDMA_SEARCH_WAIT_NS (15 * NS_PER_S)
/* Before the next search. One can take long, while a device is being removed, for example, and
 * costs the kernel work. The longer one took, the later is the next, up to a limit. */
#define RDMA_REFUSAL_NS NS_PER_S
#define RDMA_REFUSAL_FACTOR 4
#define RDMA_REFUSAL_MOST_NS (10 * NS_PER_S)
/* An interrupted call, for example, succeeds at the second try. */
#define RDMA_DESTROY_TRIES 3

/* ---- warnings: between two of a kind ---- */

#define RDMA_STRANGER_INTERVAL_NS (30 * NS_PER_S)
#define RDMA_WARN_INTERVAL_NS (60 * NS_PER_S)

#endif
