/* SPDX-License-Identifier: Apache-2.0 */
/* observe: makes the engines tell how they are doing: statistics on a unix socket, reports of
 * transfers that stand still, and a word at the end of connections and NICs.
 * Owns: the socket, while there are engines.  Threads: observe_start at init, by one thread at a
 * time.  Blocks: when the first engine is made, on the file system.  Fails: cannot; what does not
 * work is left out, with one LOG_INFO. */
#ifndef NET_PLUGIN_OBSERVE_OBSERVE_H
#define NET_PLUGIN_OBSERVE_OBSERVE_H

/* Before the first engine is made. Parameters are read here. */
void observe_start(void);

#endif
