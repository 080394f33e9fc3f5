/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: which hosts measure with each other at the same time: in each round every host has at most
 * one partner, and after all rounds each has had every other.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PROBE_PAIRS_H
#define NET_PLUGIN_TOOLS_PROBE_PAIRS_H

/* Of all pairs once, in one direction. */
unsigned pairs_round_count(unsigned hosts);

/* The partner of a host in that round; the host itself if it has none. */
unsigned pairs_partner(unsigned hosts, unsigned round, unsigned host);

#endif
