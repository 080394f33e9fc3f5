/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of stratus, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef NET_PLUGIN_TOOLS_LIMITS_H
#define NET_PLUGIN_TOOLS_LIMITS_H

#include "common/time_units.h"
#include "net_plugin/observe/limits.h"

/* ---- host, rendezvous ---- */

/* Round trip between zones of one region; shorter within a zone. */
#define HOST_ROUND_TRIP_US 1000
/* Connections of one process in a medium job: 64 peers, two channels, both directions. */
#define HOST_CONNECTIONS 256
/* A VLAN on a bridge on a bond. */
#define HOST_STACKED_MAX 3
#define RENDEZVOUS_TIMEOUT_NS (30 * NS_PER_S)
#define RENDEZVOUS_PAUSE_US 50000 /* between two tries to connect; not measured by itself */

/* ---- stats ---- */

/* For all answers together, however their processes behave: a second more than a process gives its
 * client. */
#define STATS_ANSWERS_NS (STATS_CLIENT_NS + NS_PER_S)
/* Of all answers together. Sixteen thousand flows are some ten million bytes. */
#define STATS_ANSWERS_MAX_BYTES (256u << 20)
/* Others may fill their directories. A host has some processes per GPU. */
#define STATS_SOURCES_MAX 4096

/* ---- perf ---- */

/* What a client has until it says what it wants. */
#define PERF_GREETING_TIMEOUT_NS (30 * NS_PER_S)
/* Passes over all streams after which the time is read; how often the other end is asked. */
#define PERF_CLOCK_EVERY_PASSES 16
#define PERF_POLL_EVERY_NS (2 * NS_PER_MS)
/* Of a round: 32 MiB, and more than a minute of the shortest. What comes later is not counted. */
#define PERF_HALF_TRIPS_MAX (4u << 20)
/* NCCL sets up the channels of a peer together, at most 64 (MAXCHANNELS). */
#define PERF_CONNECTING_MAX 64

/* ---- probe ---- */

/* The longest measurement: 150 times the default of --time. */
#define PROBE_DURATION_MAX_NS (60 * NS_PER_S)
/* What a rank has for a step: the longest measurement, its warm-up, and peers that do not answer.
 */
#define PROBE_STEP_NS (180 * NS_PER_S)
/* Bytes: a tenth of what 0.1 Gb/s carries in the default of --time, as the rate counts whole
 * messages; round trips that are measured. */
#define LOAD_MESSAGE_BYTES (512u << 10)
#define LOAD_PINGS 100
#define LOAD_TIMEOUT_NS (15 * NS_PER_S)
/* Three tries of the kernel, at 0, 1 and 3 s: all other pairs of a round wait for one that gets no
 * answer, as behind a firewall. */
#define LOAD_DIAL_NS (5 * NS_PER_S)
/* After the round trips: packets as long as the path takes them, as it says. Within LOAD_BLOCK_NS,
 * which is four retransmissions of the first of them, at 1 Mb/s half a second. */
#define LOAD_BLOCK_BYTES (64u << 10)
#define LOAD_BLOCK_NS (3 * NS_PER_S)
/* Warm-up: until all flows are open and have reached their rate. */
#define LOAD_WARM_UP_LEAST_NS (200 * NS_PER_MS)
/* A launcher starts the ranks of a large job over minutes; callers try for 30 s themselves. */
#define PROBE_GATHER_NS (120 * NS_PER_S)
/* How often rank 0 says meanwhile who is missing. */
#define PROBE_TELL_NS (10 * NS_PER_S)
/* Limits of repeated measurements of outliers: per pair, and in total. */
#define SURVEY_AGAIN_ROUNDS 3
#define SURVEY_AGAIN_MAX 32
/* A pair is slow below this part of the median of its NIC. */
#define FINDINGS_SLOW 0.7
/* Noise of a round trip. */
#define FINDINGS_NEAR_US 50.0

#endif
