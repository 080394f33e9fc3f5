/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every constant of the policy, with its unit in its name and the evidence for it.
 * "Not measured by itself": chosen by reasoning, and part of what was measured as a whole. */
#ifndef NET_PLUGIN_POLICY_LIMITS_H
#define NET_PLUGIN_POLICY_LIMITS_H

#include "common/time_units.h"

/* ---- which lanes are wanted ---- */

/* A message of this size makes more than one lane worth opening, if flows are slow. Where flows are
 * capped, AllReduce of 8 to 64 KiB waited for one flow: 260 to 530 us, against 90 to 200 us
 * over 16. */
#define POLICY_LANES_BYTES (4u << 10)

/* ---- stripe: which lane takes the next chunk ---- */

/* A message that is smaller stays on the last lane; larger ones take turns, as a lane that gets
 * each of them has used up the burst that its cap lets pass, while others have theirs. AllReduce,
 * us, with 16 KiB unless a trial of turns had helped, and with this: flows of 0.5 Gb/s, 8 and 64
 * KiB, 254 (137 to 279), 529 and 143, 460 (medians of 4 fresh launches); 8 hosts, flows of 0.05
 * Gb/s, 64 KiB, 18300 and 11800. Without caps 2 to 8 KiB take 0.89 to 0.95 of the time, 16 to 256
 * KiB 0.95 to 1.07; 8 hosts on 2 CPUs, 64 KiB, 1.09. What turns cost is up to the receiver: see
 * note_arrival in connection_lanes.c. By emulation. */
#define STRIPE_SMALL_BYTES (4u << 10)
/* Messages that follow each other so quickly stay together up to this size, and go out in one
 * system call, and so does what is left of one. Without that AllReduce of 64 KiB without caps took
 * 191 us instead of 158. With 64 KiB instead of 16 AllReduce of 128 and 256 KiB with flows of
 * 0.5 Gb/s took 1069 and 1402 us instead of 625 and 859 (4 rounds), as one lane carries what was
 * posted together. By emulation. */
#define STRIPE_BATCH_NS (10 * NS_PER_US)
#define STRIPE_WARM_BYTES (16u << 10)
/* The last lane is used again while it has less to do than this. Measured with 32 to 256 KiB
 * messages: in pieces of 32 KiB over all lanes they were slower. */
#define STRIPE_WARM_PS 250000000ull /* 250 us */
/* A lane is slow at this time per byte, compared with a typical lane. With one of eight lanes at
 * 10 % and four messages of 1 MiB in flight, the simulated network gives 0.97 of the lanes' sum
 * instead of 0.39; with one at 1 %, 0.79 instead of 0.05. */
#define STRIPE_SLOW_PERCENT 150u
/* And after about so many such samples in a row. With one sample, which a scheduler can spoil, good
 * lanes got chunks of 8 to 16 KiB: 27 per message of 512 KiB; 4.05 instead of 5.54 GB/s. */
#define STRIPE_SLOW_SAMPLES 4u
/* A lane without a known rate gets no more than this before its first acknowledgement, if there are
 * others. It matters for a lane that is very slow from the start: eight modelled lanes of 1 Gb/s,
 * one of them at 1 %, 4 MiB of buffer each, four messages of 1 MiB in flight, give 0.96 of their
 * sum, 0.84 without; the first 20 messages take a quarter of the time. One at 10 %: half. Where no
 * lane is slow it brings nothing. */
#define STRIPE_UNKNOWN_BYTES (64u << 10)
/* The learned time per byte of an idle slow lane is halved after so long, so that the lane is tried
 * again. Not measured by itself. */
#define STRIPE_AGING_NS (1 * NS_PER_S)
/* Until a lane has shown its rate: 8 Gb/s. Not measured by itself. */
#define STRIPE_DEFAULT_PS_PER_BYTE 1000u

/* After a lane has sent packets again, lanes that are not slow count as equally fast for so long:
 * policed flows have 0.99 of the NIC instead of 0.70 (scripts/bench policed). Not always, since a
 * step of ResNet-50 on 20 simulated hosts takes 98 ms so, and 90 by each lane's own rate (means of
 * 6 seeds), 16 MiB in a ring of 8 emulated ones 485 and 447 ms. How long is not measured by
 * itself. */
#define STRIPE_LOSSY_NS (10 * NS_PER_S)

/* ---- stripe: how a lane's rate is learned ---- */

/* Acknowledged bytes that make a sample. Not measured by itself. */
#define STRIPE_SAMPLE_BYTES (64u << 10)
/* A sample counts by its bytes beside so many of before. Not measured by itself. */
#define STRIPE_LEARNED_BYTES (192u << 10)
/* As STRIPE_SAMPLE_BYTES for a lane that has nothing left to do. With less, copies of small
 * messages, which are acknowledged late, gave 0.2 Gb/s for a lane that is not capped. */
#define STRIPE_DRAINED_BYTES (32u << 10)

/* ---- stripe: how large a chunk is ---- */

/* Smallest share of a large message, except on a slow lane. Not measured by itself. */
#define STRIPE_MIN_CHUNK_BYTES (32u << 10)
/* The same on a slow lane. Part of the figures at STRIPE_SLOW_PERCENT. */
#define STRIPE_SLOW_CHUNK_BYTES (8u << 10)
/* A chunk is no less than what a lane drains in this time, so that 64 KiB on a lane of 5 Gb/s are
 * not cut. Without caps, 2 connections, 512 KiB: 5.54 GB/s instead of 4.05, together with
 * STRIPE_SLOW_SAMPLES. Modelled lanes of 20 Gb/s, 4 us of CPU per chunk, four messages of 512 KiB
 * in flight: 42 us each, 78 without. */
#define STRIPE_QUICK_PS 125000000ull /* 125 us */
/* The same where one lane is used: nobody else could take a part. Without caps, 2 connections,
 * 512 KiB, GB/s: 4.4 to 6.7 with STRIPE_QUICK_PS, 6.0 to 7.0 with this, Socket 6.2 to 7.1 (5
 * alternating rounds): chunks of 128 KiB fill 43 KB of a packet of 64, those of 512 KiB 56. */
#define STRIPE_ALONE_PS 1000000000ull /* 1 ms */
/* Where more lanes of a path are used, each is taken to be capped, and gets no more at a time,
 * however quick the bursts are that pass its cap. Eight simulated hosts (build/tests/scale --gpus 8
 * --nic-gbps 100 --flow-gbps 12.5 --burst 128K --steps 5 --skip 2): a step of bert_large_ddp takes
 * 406 to 416 ms (seeds 1, 2, 4; 483 with 3); 496 to 514 without this, 491 to 513 without
 * FLOW_COUNT_PAUSE_MAX_NS after a climb; Socket with 2x8 sockets 375 to 411. With it as the least
 * size, too, AllReduce of 4 MiB on 2 emulated hosts, flows of 0.5 Gb/s, took 1.2 times as long. */
#define STRIPE_FEW_LANES 4u
#define STRIPE_CAPPED_CHUNK_BYTES (64u << 10)
/* What a NIC places is not cut below this: a piece costs a write, a header and acknowledgements.
 * AllReduce of 64 KiB on emulated RDMA became up to as fast as NCCL's own IB transport, which does
 * not cut either. */
#define STRIPE_PLACED_LEAST_BYTES (512u << 10)
/* And not above so many chunks. On emulated RDMA with 4 queue pairs and 1 MiB: 4 to 5 writes per
 * message instead of 10. */
#define STRIPE_PLACED_CHUNKS 8u

/* ---- limit ---- */

/* A lane is measured so often while it has anything in flight. A TCP_INFO costs 1.4 us of a thread
 * in a loop, and 4 to 8 us where the caches hold something else. */
#define LIMIT_PERIOD_NS (7500 * NS_PER_US)
/* While a number of flows is being compared with another. */
#define LIMIT_SOON_NS (3 * NS_PER_MS)
/* A window is no shorter, so that each connection with traffic is in it. The first one tells
 * nothing: TCP looks for its speed, memory is touched for the first time. */
#define LIMIT_WINDOW_NS (15 * NS_PER_MS)
/* And has so much time of lanes in flight: Linux counts in jiffies of up to 10 ms. */
#define LIMIT_WINDOW_IN_FLIGHT_NS (40 * NS_PER_MS)
/* The network is the limit where it is so for so much of the time in flight. */
#define LIMIT_NETWORK_PERCENT 50u
/* A connection that has so much in flight has bulk traffic. Not measured by itself. */
#define LIMIT_BULK_BYTES (128u << 10)
/* Lanes that are not up, or not drained, after a change of their number are waited for no longer.
 * Not measured by itself. */
#define LIMIT_SETTLE_MAX_NS (200 * NS_PER_MS)

/* ---- flow_count ---- */

/* The level of the first guess. Below it is one flow of each path. Where the processors are the
 * limit fewer flows move more: 2 connections between hosts without limits 3.9 GB/s with 8 flows
 * each, 4.8 with 4, 5.8 with 2 and 5.9 with 1 (stratus perf, 512 KiB, after 0.5 s; with 1 after
 * 2 s 8.1). No level lies between: in the simulation, NIC of 100 Gb/s and flows of 12.5, 4
 * connections of 2 flows fill the NIC as those of 4 do, but trees of 125 hosts have 0.31 instead of
 * 0.42 of BERT's scaling. */
#define FLOW_COUNT_GUESS 1u
/* What the speed must be after a climb, of that before, in the mean of so many windows, or of two
 * where it is SURE, or of one where it is no more than before. By the kernel's bytes windows of
 * 15 ms differ by a tenth; 8 flows of which two share one of 64 paths become 16 for 1.14 times the
 * speed. */
#define FLOW_COUNT_GAIN_PERCENT 110u
#define FLOW_COUNT_SURE_PERCENT 150u
#define FLOW_COUNT_GAIN_WINDOWS 4u
/* Where that makes so few flows, of all connections, twice the guess is kept unless it is slower,
 * but for noise, since a policer lets pass any number of new flows for a second: without it one
 * connection has 0.53 of the NIC (scripts/bench policed), 0.99 with it. With more it costs: rings
 * of two connections, AllReduce of 64 MiB on 2 hosts with flows of 1/8 0.42 GB/s, 0.44 without it.
 */
#define FLOW_COUNT_GUESS_GAIN_PERCENT 92u
#define FLOW_COUNT_FEW 8u
/* Windows in a row in which the network is not the limit, before level 0 is tried. In a ring of 4
 * hosts the limit is another one from window to window. */
#define FLOW_COUNT_CALM_WINDOWS 5u
/* Of more than FLOW_COUNT_FEW flows so many packets are lost that there is no level above the
 * guess, and level 0 is tried for so many windows: it is kept where it has so much of the speed,
 * which differs by a factor of ten from window to window. Eight hosts, NICs of 0.5 Gb/s with a
 * queue of 8 packets, AllToAll of 64 KiB, 1 and 8 MiB: 3.9, 31 and 385 ms; before, also with more
 * PINGs, 4.4, 58 and 525; Socket 3.0, 24 and 204 (medians of 3 rounds). */
#define FLOW_COUNT_CROWDED_PERCENT 1u
#define FLOW_COUNT_CROWDED_WINDOWS 8u
#define FLOW_COUNT_CROWDED_KEEP_PERCENT 50u
/* Losses of about so many windows count. With 4 one of the eight hosts above climbed to 224 flows
 * in between, and 8 MiB took no less than before (one run). */
#define FLOW_COUNT_LOSS_WINDOWS 16u
#define FLOW_COUNT_PACKET_BYTES 1448u /* of data, with Ethernet's usual MTU and time stamps */
/* What fewer flows must have of the speed of more, in the mean of FLOW_COUNT_GAIN_WINDOWS where
 * these were climbed to, in one window at level 0. They are given up at once if they have less than
 * POOR: level 0 after so much time of connections under load, others after two windows. Without
 * that second comparison scripts/bench allreduce had 128 flows for the rest of the job, as 4 of a
 * connection had 33 MB/s in the first 50 ms and 250 later. Simulated as at
 * STRIPE_FEW_LANES bert_large_ddp takes 344 and 416 ms on 4 and 8 hosts, 363 and 433 without. */
#define FLOW_COUNT_KEEP_PERCENT 92u
#define FLOW_COUNT_POOR_PERCENT 75u
#define FLOW_COUNT_SOON_NS (4 * NS_PER_MS)
/* Level 0 was too few: it is not taken again for so long under load, then twice as long. Of 20
 * simulated hosts one was always at it with 1 s: a step of ResNet-50 took 102 ms, 89 with 10 s. Nor
 * for the longest pause where a climb was faster: see STRIPE_FEW_LANES. */
#define FLOW_COUNT_PAUSE_NS (10 * NS_PER_S)
#define FLOW_COUNT_PAUSE_MAX_NS (300 * NS_PER_S)
/* After a climb has ended the next one is tried after so much time under load, then after twice as
 * much, up to FLOW_COUNT_PAUSE_MAX_NS; at level 0 whatever the limit seems: two windows, in which
 * uncapped flows lose a quarter. Without it 8 hosts with caps stayed at one flow for the rest of a
 * job, with Socket's speed, and of flows at 1/32 of the NIC 8 or 16 were used for good in 2 of 3
 * runs, as bursts had made the first windows look fast. */
#define FLOW_COUNT_RETRY_NS (1 * NS_PER_S)
/* So many windows in a row in which the speed is below so much of what it was, or the other way
 * round: the network is another. */
#define FLOW_COUNT_OTHER_PERCENT 60u
#define FLOW_COUNT_OTHER_WINDOWS 10u
/* Flows that were in use and are not any more stay open for so long. Not measured by itself. */
#define FLOW_COUNT_KEEP_NS (5 * NS_PER_S)
/* Flows of an engine: not doubled beyond that. Each dial costs both ends about half a millisecond
 * of CPU; 256 fill a NIC whose flows are capped at 1/200 of it. Not measured by itself. */
#define FLOW_COUNT_FLOWS_MAX 256u

/* ---- compression ---- */

/* Bytes delivered with coding, of those without, that are no loss, given noise. */
#define COMPRESSION_KEEP_PERCENT 95u
/* Compressed bytes of what the network carried before: it carries more now. */
#define COMPRESSION_RICH_PERCENT 130u
/* So many windows in a row decide that the network is the limit, that coding is too slow, and that
 * the network carries more. In a ring of 4 hosts windows in which a burst passed come in rows of
 * up to five, and are rich by chance. */
#define COMPRESSION_LIMITED_WINDOWS 3u
#define COMPRESSION_POOR_WINDOWS 5u
#define COMPRESSION_RICH_WINDOWS 10u
/* Coding takes no more of the time of delivery than this: it is tried whatever the limit seems.
 * With 5, eight hosts on 2 CPUs without limits of the network, AllReduce of 16 MiB, had 0.70 of
 * what they have without coding; with 2, 1.02. */
#define COMPRESSION_CHEAP_PERCENT 2u
/* What coding takes until it is known: about as with AVX (net_plugin/codec/README.md). */
#define COMPRESSION_PS_PER_BYTE 100u
/* Windows that tell whether fewer bytes are faster there, and as many before. The speed of one
 * differs by a quarter from the next: FSDP on 4 hosts, 0.11 to 0.15 GB/s. */
#define COMPRESSION_TRIED_WINDOWS 8u
/* Time under load until it begins again, then doubled up to the maximum. */
#define COMPRESSION_PAUSE_NS (1 * NS_PER_S)
#define COMPRESSION_PAUSE_MAX_NS (300 * NS_PER_S)

/* ---- slow_flow_reconnect ---- */

/* Time per byte, of the median lane's. Two flows on one path need 200 each. */
#define SLOW_FLOW_PERCENT 180u
/* No lane that is faster (20 Gb/s) is taken to be slow. Not measured by itself. */
#define SLOW_FLOW_FAST_PS_PER_BYTE 400u
/* Time under load in which a lane must be slow. Not measured by itself. */
#define SLOW_FLOW_PATIENCE_NS (2 * NS_PER_S)
/* After the first reconnect of a lane, then doubled up to the maximum. Not measured by itself. */
#define SLOW_FLOW_PAUSE_NS (4 * NS_PER_S)
#define SLOW_FLOW_PAUSE_MAX_NS (64 * NS_PER_S)
/* Between reconnects of different lanes. Not measured by itself. */
#define SLOW_FLOW_GAP_NS (1 * NS_PER_S)
/* Reconnects of a lane until its rate changes. Not measured by itself. */
#define SLOW_FLOW_TRIES 6u
/* Load of all lanes (80 Mb/s) below which none is judged. Not measured by itself. */
#define SLOW_FLOW_LOAD_BYTES_PER_MS 10000u
/* Calls that are further apart than this have idle time between them. They come every 100 ms. */
#define SLOW_FLOW_INTERVAL_MAX_NS (300 * NS_PER_MS)

#endif
