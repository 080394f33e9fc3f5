/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the set-up of connections, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef NET_PLUGIN_SETUP_LIMITS_H
#define NET_PLUGIN_SETUP_LIMITS_H

#include "common/time_units.h"

/* ---- what a connection has ---- */

/* Lanes per connection and NIC to begin with where neither user nor profile sets them. NCCL opens
 * at least two channels, each with connections of its own, so a pair of hosts has twice as many
 * flows: enough to fill a NIC whose flows are capped at an eighth of it. More flows cost latency
 * where no cap is in the way: each holds a queue of its own. Training steps of hf_Bert and alexnet
 * on 8 hosts without caps (scripts/steps), stratus beside Socket: 1.03 and 1.02 of its time with
 * 8, 1.01 and 1.01 with 4, 1.01 and 1.00 with 2; on 4 hosts with caps of an eighth, where the
 * others are still to be learned: 215 and 105 ms with 8, 218 and 114 with 4, 284 and 149 with 2. */
#define SETTINGS_LANES_PER_NIC 4
/* The least of a group's connection: another one takes over where one breaks. */
#define SETTINGS_GROUP_LANES_PER_NIC 2
/* Of messages of up to STRATUS_EAGER_BYTES, 16K: with 128K AllReduce touched new memory in its
 * first 30 operations, 128 KiB 1240 us each in the first ten after two, 580 with 16K; 1 MiB 5260
 * and 2842 (2 hosts, flows capped at an eighth of the NIC, medians of 4 rounds). */
#define SETTINGS_EAGER_SLOTS 32
/* chunk_bytes is so many times usual_chunk_bytes unless the user set it. A chunk costs the two ends
 * about 4 us: 2 connections of one flow between hosts without limits, messages of 512 KiB, 7.9 GB/s
 * with chunks of 128 KiB, 9.5 with 512 KiB, no more with 1 MiB (stratus perf). */
#define SETTINGS_QUICK_CHUNKS 4u

/* ---- connect ---- */

/* Between two rounds of dials, doubled up to the last one. */
#define CONNECT_FIRST_BACKOFF_NS (20 * NS_PER_MS)
#define CONNECT_LAST_BACKOFF_NS (1 * NS_PER_S)
#define CONNECT_DIAL_TIMEOUT_NS (5 * NS_PER_S)
/* While there are paths that were not tried yet; long enough for one lost SYN. */
#define CONNECT_FIRST_ROUND_NS (3 * NS_PER_S / 2)
/* After so long one line says what is in the way. */
#define CONNECT_SLOW_NS (5 * NS_PER_S)
/* By no NIC and with no source address does the kernel's own routing know a way, so that no packet
 * was sent, and all NICs are up: given up after so long, unless STRATUS_CONNECT_TIMEOUT is set.
 * Routes follow a NIC that comes up: those of IPv4 at once or with the address, those of a router
 * of IPv6 within 1.5 s (RFC 4861: it is asked after up to 1 s, and answers within 0.5 s). Twice
 * that. NCCL's Socket gives up at once. */
#define CONNECT_NO_WAY_NS (3 * NS_PER_S)
/* A listener with a short queue (net.core.somaxconn) loses what comes in a burst, and the kernels
 * of all that lost repeat their SYN after the same second (TCP_TIMEOUT_INIT), then after two: 256
 * connects to a queue of 4 took 33 s. So a dial that is not answered begins anew after this time,
 * less up to half as jitter, then after twice as long, and so on. Round trips are shorter: between
 * continents they take 0.3 s, and the fourth or fifth try waits that long. A hello that is not
 * acknowledged for the same time begins anew, too. What is doubled is the wait after each dial, not
 * after each look: a busy engine hands over connected sockets 0.2 s late, and where each look
 * doubled it 47 of 380 lost hellos waited for TCP's timer, 10 of 257 now (tests/netns/perf
 * lost_handshakes). */
#define DIAL_FIRST_REDIAL_NS (50 * NS_PER_MS)

/* ---- the lanes of a live connection ---- */

/* A dial that takes longer is given up and tried again by the link's backoff. Longer than the 3 s
 * after which the kernel says that nobody on the link has an address (mcast_solicit in arp(7)). */
#define PEERING_DIAL_TIMEOUT_NS (7 * NS_PER_S / 2)
/* How long an inquiry waits for an answer. */
#define INQUIRY_TIMEOUT_NS (1 * NS_PER_S)
/* An endpoint that breaks soon after it was connected, or cannot be, is not tried again for so
 * long, doubled each time. */
#define ENDPOINT_SOON_NS (5 * NS_PER_S)
#define ENDPOINT_BACKOFF_NS (1 * NS_PER_S)
#define ENDPOINT_BACKOFF_DOUBLINGS 6
/* How often lanes that are TCP flows are checked: can they have an endpoint (again)? Doubled each
 * time that they could not. */
#define UPGRADE_NS (1 * NS_PER_S)
#define UPGRADE_DOUBLINGS 5
#define NEXT_UPGRADE_NS (50 * NS_PER_MS) /* one has just succeeded */
/* All flows are lost, and every dial has been refused for this long: the process is gone. A
 * firewall that is being reloaded takes less. */
#define REFUSAL_GONE_NS (4 * NS_PER_S)
/* The same where its kernel has closed a flow (FIN), which a firewall does not, or another
 * connection that the same thread of NCCL drives has failed: a rank whose peer has stopped sending,
 * and which can send nothing itself, hears nothing else. Long enough for two answers more, which
 * are no chance: a sender has dialled after 10, 30 and 70 ms, a receiver asked after 20 and 70. */
#define REFUSAL_CONFIRMED_NS (50 * NS_PER_MS)
/* When who only receives asks whether anybody listens there, and how often, while no flow is up: a
 * sender dials again after 10 ms (FAILOVER_BACKOFF_MIN_NS), and then there is nothing to ask. */
#define REFUSAL_FIRST_INQUIRY_NS (20 * NS_PER_MS)
#define REFUSAL_INQUIRY_NS (50 * NS_PER_MS)
/* A process that ends loses all its flows: a FIN of one, so long before nobody listened any more,
 * belongs to that. What it has written and not sent goes first, so another may end later. */
#define PEER_LEFT_TOGETHER_NS (2 * NS_PER_S)
/* What connections that are closing get in the plugin's last finalize. */
#define SETUP_CLOSE_NS (2 * NS_PER_S)

/* ---- who is let in ---- */

/* Connections accepted before the engine goes on with its other work. */
#define PORT_ACCEPTS_PER_EVENT 64
/* After accept failed for want of descriptors or memory: the event would come again at once. */
#define PORT_PAUSE_NS (100 * NS_PER_MS)
/* Without descriptors, a peer goes for the next one after so long: an honest peer says hello, and
 * proves itself, within a round trip or two. */
#define PORT_TURN_NS (25 * NS_PER_MS)
/* What a peer that has not proved itself has for all of it, however slowly it sends. */
#define PENDING_PEER_NS (10 * NS_PER_S)
/* Of a process. A handshake takes milliseconds, so this is enough for tens of thousands of honest
 * connections per second. */
#define PENDING_PEERS_MAX 512
/* Pending peers take at most this part of the descriptors that the process may open: the
 * application and the flows need the rest. */
#define PENDING_PEERS_PART 8
/* A port's share is never less. */
#define PENDING_PEERS_LEAST 4
/* Less than half of the 5 s that a dial has (CONNECT_DIAL_TIMEOUT_NS), of which its own driver may
 * take the other half; drivers take milliseconds. */
#define ACCEPT_PATIENCE_NS (2 * NS_PER_S)
/* Connections made and not accepted yet; NCCL makes one per listener, anything beyond this is an
 * attack. */
#define LISTENER_MAX_PENDING 64

/* ---- descriptors ---- */

/* Half of the limit is for flows. The rest is the application's, and for what connections need in
 * any case: NCCL has sockets of its own for bootstrap and proxy, about two per peer. */
#define FLOW_BUDGET_PART 2
/* A connection takes at most this part of what is left, so that later ones do not find nothing:
 * under a limit of 256 the first has 8 flows, the fifth 4, and from the 13th on each has one, so
 * that both ends of 60 connections leave 51 descriptors (tests/unit/test_descriptors.c). */
#define FLOW_BUDGET_CONNECTION_PART 16

/* ---- warnings ---- */

/* Between two of a kind, about one peer or listener; about NICs and lanes, as a process has
 * hundreds of connections, which find out together; about the file with the secret. */
#define SETUP_WARN_INTERVAL_NS (30 * NS_PER_S)
#define SETUP_NIC_WARN_INTERVAL_NS (60 * NS_PER_S)
#define SECRET_WARN_INTERVAL_NS (3600 * NS_PER_S)
/* A NIC that comes up late, or whose switch port does, is not named; a dial fails after 3.5 s. */
#define NIC_IDLE_NS (5 * NS_PER_S)

#endif
