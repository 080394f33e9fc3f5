/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of a connection, with its unit and the evidence for it. Where none
 * is given a value is not measured by itself: chosen by reasoning, and part of what was measured as
 * a whole. */
#ifndef NET_PLUGIN_CONNECTION_LIMITS_H
#define NET_PLUGIN_CONNECTION_LIMITS_H

#include "common/time_units.h"

/* Coalescing, in nanoseconds, posts and bytes: a small message that is posted within 2 us of having
 * sent the last one is kept back, as who posts so quickly goes on to do so. What is kept goes out
 * in one system call when it is enough, or when two polls in a row find that no more has come: 2 to
 * 3 times as many messages of 1 and 4 KiB a second (two hosts, one CPU each). A ping-pong is never
 * so quick. Not where there may be queue pairs, which take each message by itself. */
#define COALESCE_GAP_NS 2000
#define COALESCE_POSTS_MAX 8
#define COALESCE_BYTES_MAX (64u << 10)
#define COALESCE_MESSAGE_BYTES_MAX (16u << 10)
/* In polls of connections that may use RDMA lanes: one of so many, a power of two, is complete, for
 * deadlines, and for devices that are lost. */
#define PEEKS_PER_POLL 16

/* After so many polls in vain another lane than the hot one is looked at in one of so many: where
 * threads wait for a CPU each system call of a poll in vain keeps it from who has something to do.
 * Eight emulated hosts on 2 CPUs, AllReduce of 64 KiB: 310 to 420 reads an operation instead of 410
 * to 520. By time not told from noise by itself; with EPOLL_PERIOD_NS, see there. */
#define OTHER_POLLS 8

/* How long the peer has to close its lanes once everything is delivered. */
#define CLOSE_TIMEOUT_NS (1 * NS_PER_S)

/* Reads, each of up to LANE_READ_BYTES, of a lane that takes nothing any more: a socket holds 6 MiB
 * (the kernel's default of net.ipv4.tcp_rmem) at most. */
#define LAST_READS 8

/* Bytes: a lane's compressed chunks differ by some KiB, for which nothing is mapped anew. */
#define CODING_GRAIN_BYTES ((size_t)16 << 10)

/* Threads of NCCL whose last failure is remembered, 2^6, and for how long: as long as dials that
 * are refused may need its support (REFUSAL_GONE_NS). */
#define FAILED_DRIVERS 64
#define FAILED_LATELY_NS (5 * NS_PER_S)

/* Between two warnings of a kind. A peer that dies ends dozens of connections within seconds. */
#define SAME_REPORT_NS (10 * NS_PER_S)
/* Peers about which warnings are told apart; others may repeat one. */
#define REPORTED_PEERS 16
/* A peer in trouble is reported when that is known, and after so long: whoever looks at the log
 * sees that it lasts. */
#define TROUBLE_REPORTS_NS                                                                         \
  { 0, 30 * NS_PER_S, 120 * NS_PER_S }
/* While data is in flight, a working peer answers a PING at least every 2.5 s (link/). */
#define STALL_SILENT_NS (4 * NS_PER_S)
/* Shorter pauses are no stall. */
#define STALL_LEAST_NS (2 * NS_PER_S)
/* Many connections of a process stall at the same time: one line is enough. */
#define STALL_REPORT_INTERVAL_NS (1 * NS_PER_S)
/* A waiting connection is checked at least so many times before a report is due, and each second.
 */
#define STALL_CHECKS_PER_REPORT 4
#define STALL_CHECK_NS (1 * NS_PER_S)
/* What NCCL has closed and the peer does not have: the kernel keeps trying for a closed socket for
 * about as long (tcp_orphan_retries). STRATUS_LINK_TIMEOUT, if that is less. */
#define LINGER_NS (100 * NS_PER_S)
#define DAMAGE_INTERVAL_NS (10 * NS_PER_S)
#define CODING_WARN_INTERVAL_NS (60 * NS_PER_S)

#endif
