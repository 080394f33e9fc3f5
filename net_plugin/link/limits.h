/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the link, with its unit and the evidence for it. "Not measured by
 * itself": chosen by reasoning, and part of what was measured as a whole. What the wire's format
 * fixes is in wire.h. */
#ifndef NET_PLUGIN_LINK_LIMITS_H
#define NET_PLUGIN_LINK_LIMITS_H

#include "common/time_units.h"

/* ---- messages ---- */

/* Messages in flight, completed or not; at least NCCL_NET_MAX_REQUESTS, which is 32. Not measured
 * by itself. */
#define LINK_WINDOW 64
/* Chunks between the oldest that is not acknowledged and the youngest: 4 MiB of the smallest ones,
 * 128 MiB of the usual ones. A power of two, WIRE_MAX_FLIGHT at most; not measured by itself. */
#define LINK_FLIGHT 1024
/* Up to here a copy is cheaper than waiting for its acknowledgement, whatever lanes there are. Not
 * measured by itself. */
#define LINK_COPY_BYTES (16u << 10)
/* Copies that fit into the memory for them: small messages, or this many of the largest. Memory
 * that is registered with NICs is there whether it is used or not. Not measured by themselves. */
#define OUTGOING_COPIES 32
#define OUTGOING_COPIES_REGISTERED 16
/* An RDMA lane does not place messages of up to so many bytes: they go along with their header. Not
 * measured by itself. */
#define LINK_PLACE_BYTES 4096u
/* Shorter chunks are not compressed. Of a bf16 gradient at 10 Gb/s, 4 KiB take 2.0 us to code and
 * decode and save 0.9 us, 16 KiB 5.0 and 3.5, 128 KiB 19 and 29 (codec-speed --chunk, AVX-512, Zen
 * 5). */
#define LINK_CODED_BYTES (16u << 10)
/* LL halves the payload; NCCL gives it slots of 64 KiB. Larger ones (NCCL_LL_BUFFSIZE) are not
 * detected: tensors of one value have that form, too, and LL's words of 8 bytes come whole. Not
 * measured by itself. */
#define LL_DETECT_MAX_BYTES (128u << 10)

/* ---- credit ---- */

/* Longest time a frame stays unacknowledged; on an RDMA lane. Not measured by themselves. */
#define CREDIT_DELAY_NS (1 * NS_PER_MS)
#define CREDIT_RDMA_DELAY_NS (50 * NS_PER_MS)
/* NCCL posts the receives of a collective one by one, each time its proxy's loop comes round. With
 * this rule a step of hf_Bart on 4 emulated hosts of 0.4 Gb/s takes 253.5 ms, without 258.8
 * (docs/measurements.md). The value is not measured by itself. */
#define CREDIT_OPENING_NS (50 * NS_PER_US)
/* What may stay unacknowledged: eager frames; bytes, which keeps drain rates known. Not measured by
 * themselves. */
#define CREDIT_FRAMES (LINK_WINDOW / 2)
#define CREDIT_BYTES (512u << 10)

/* ---- lanes that are lost ---- */

/* Before the first reconnect, less up to half as jitter; doubled per failure up to the maximum.
 * While nothing is brought across no lane waits longer than that. Not measured by themselves. */
#define FAILOVER_BACKOFF_MIN_NS (10 * NS_PER_MS)
#define FAILOVER_BACKOFF_MAX_NS (1 * NS_PER_S)
/* A path that accepts a connection and then carries no bytes costs a stall at each try. From the
 * second stall on the backoff is this time, doubled up to the maximum. Not measured by themselves.
 */
#define FAILOVER_STALL_BACKOFF_NS (2 * NS_PER_S)
#define FAILOVER_STALL_BACKOFF_MAX_NS (64 * NS_PER_S)
/* One lane that replaced another and was lost like it may be chance. Lanes; not measured by itself.
 */
#define LINK_VAIN_LANES 2
/* The longest backoff of a lane that was told to hurry, and a dial. Not measured by itself. */
#define LINK_LAST_TRY_NS (2 * FAILOVER_BACKOFF_MAX_NS)

/* ---- silent peers and stalled lanes: not measured by themselves, but for RESCUE ---- */

/* Between PINGs; a quarter of the timeout at most. */
#define LIVENESS_INTERVAL_MAX_NS (5 * NS_PER_S / 2)
/* No answer, or no lane, for so long, half of the timeout at most: it matters whether the peer's
 * host is there, a path that may be dead is replaced, and the user is told. Two PINGs. */
#define LIVENESS_DOUBT_NS (5 * NS_PER_S)
/* Nothing heard for so long: the peer was stopped. */
#define LIVENESS_GAP_NS (300 * NS_PER_MS)
/* The least time that a lane gets; while its rate is not known. */
#define LIVENESS_STALL_NS (500 * NS_PER_MS)
#define LIVENESS_STALL_UNKNOWN_NS (1 * NS_PER_S)
/* Nothing heard for so long though all lanes have something in flight, or nothing acknowledged
 * though lanes were replaced: what is lost is dialled soon. A job whose 8 flows were all
 * black-holed stood still for 1.7 s, with half of the timeout, 5 s, for 6 s (tests/netns/faults
 * drop-8). */
#define LIVENESS_RESCUE_NS (1 * NS_PER_S)
/* Of the time that its load should need by its rate. */
#define LIVENESS_STALL_FACTOR 8ull
/* How often busy lanes are checked. */
#define LIVENESS_WATCH_NS (100 * NS_PER_MS)
/* An owner that comes so much later than its deadline did not run in between. */
#define LINK_AWAY_NS (100 * NS_PER_MS)

/* ---- a lane whose last packets were lost ---- */

/* A lane is asked, and asked again, after so many times the usual answer time without any answer:
 * the median of what PINGs take, to which each adds, or takes off, one of so many parts. Eight
 * hosts on 2 CPUs, NICs of 0.8 Gb/s, AllReduce of 64 KiB, 256 KiB and 1 MiB: 14.9, 23.0 and 42.4 ms
 * with 300 us, 11.6, 18.3 and 38.3 with this (medians of 3 rounds); 0.77, 0.77 and 0.93 of the time
 * without any looks (6 rounds). The median of what is heard first after a write grows with the
 * application's pauses: trees of 64 simulated hosts, 0.1 % lost, took 7.1 ms for 8 KiB
 * (tests/scale; with this less than 1.4). */
#define LINK_TAIL_ANSWERS 4u
#define LINK_TAIL_ANSWER_PARTS 8u /* not measured by itself */
/* No answer counts as quicker: 300 us. With 1 % of the packets lost a half round trip of 8 B takes
 * 18 us in the mean, and 1470 without any of this. Without loss one of 8 B takes 4.2 us and one of
 * 64 KiB 20.5 with and without it (medians of 4 rounds). A kernel may delay its acknowledgement for
 * longer: such a PING costs little, as it follows a pause. */
#define LINK_TAIL_ANSWER_NS (75 * NS_PER_US)
#define LINK_TAIL_ANSWER_MAX_NS (10 * NS_PER_MS) /* nor as slower; not measured by itself */
/* Between two looks, in round trip times of the lane: the least so far, since the smoothed one of a
 * lane with losses is milliseconds where the path takes microseconds. */
#define LINK_TAIL_RTTS 4u
/* PINGs in vain that follow at the same pause: they may have been lost themselves. Not measured by
 * itself. */
#define LINK_TAIL_PINGS 1u
/* Then each pause is longer: of a lane that moves, whose messages take long, twice, up to 2.4 ms;
 * of one that gets PINGs in vain, whose path may be gone, four times, up to 19 ms. Such a lane gets
 * so many PINGs: with more in flight its congestion window would not take one for when the path is
 * there again. Half round trips of 8 B while nothing arrives for 50 ms, twice a second: the longest
 * 82 ms, with pauses only doubled 110, Socket 104 (medians of 3 rounds, scripts/bench blackout). */
#define LINK_TAIL_SLOW_DOUBLINGS 3u
#define LINK_TAIL_LOST_DOUBLINGS 6u
#define LINK_TAIL_PINGS_MOST 10u
/* How many PINGs were in vain is remembered: a lane with a queue before it acknowledges later than
 * its least round trip time lets expect. Eight hosts sent 22 MiB to each of the others, whose
 * NIC had a queue of 8 packets, over one flow each: 14 500 packets a host, with this 11 900, Socket
 * 7200; and the last lane of a simulation, slower than 1 Mb/s, got 1650 PINGs a second. A
 * retransmission before the lane moves says that PINGs are of use, and halves the number; each time
 * that nothing was missing without a PING takes one of so many parts of one off. */
#define LINK_TAIL_PARTS 8u
/* A lane stands still when the kernel knows that packets are missing; or, as all of them may be and
 * the PING with them, when it has not moved for so many more looks: about 7 ms. Only with no more
 * bytes in flight than a packet may have, since of several one arrives, and tells of the others, or
 * where the peer was heard meanwhile: a lane that has more is held up by a peer that does not read.
 * On 2 CPUs with 4 pairs of processes 64 KiB sent 3 % twice. Such a peer may also delay its
 * acknowledgements for 40 ms: what is small is sent twice then. */
#define LINK_TAIL_STILL_LOOKS 4u
#define LINK_TAIL_STILL_BYTES (8u << 10)

/* ---- a lane on which a part of a frame is missing ---- */

/* Since the last part came, until a PONG goes out: then after twice as long, so often. 1 % lost,
 * one connection, 512 KiB: 38 and 44 Gb/s, with 0.5 ms 46, with 8 ms 33, without 19; AllReduce of
 * 16 MiB on 4 hosts with caps, where packets are further apart than that, 211 ms, with 0.5 ms 218
 * (medians of 3 to 6 rounds). How often is not measured by itself. */
#define LINK_PARTIAL_NS (2 * NS_PER_MS)
#define LINK_PARTIAL_PONGS 7u

/* ---- what is sent twice ---- */

/* Bytes that may be sent twice: one of 32 that are sent, and so many at once. Not measured by
 * themselves. */
#define REPEAT_SHARE 32u
#define REPEAT_BURST_BYTES (1u << 20)
/* Chunks up to this size are repeated whatever was spent. Not measured by itself. */
#define REPEAT_SMALL_BYTES 4096u
/* Lanes that are open because others stood still, the first one included, at most. With 1 % of the
 * packets lost half a round trip of 8 B takes 28 us in the mean with 2, 22 with 4 (3 rounds). */
#define FAILOVER_LANES_WITH_SPARES 4u

#endif
