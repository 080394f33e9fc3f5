/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: a schedule in which pairs of hosts measure at the same time: in each round a host has at
 * most one partner, and in all rounds each other host once. Owns: nothing.  Threads: any.  Blocks:
 * never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PROBE_PAIRS_H
#define NET_PLUGIN_TOOLS_PROBE_PAIRS_H

/* For all pairs, in one direction. */
unsigned pairs_round_count(unsigned hosts);

/* The partner of a host in that round; the host itself if it has none. */
unsigned pairs_partner(unsigned hosts, unsigned round, unsigned host);

#endif
