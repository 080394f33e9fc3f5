/* SPDX-License-Identifier: Apache-2.0 */
/* observe: hooks into the engines: statistics on a unix socket, reports of stalled transfers, and a
 * log line when a connection or NIC is closed.
 * Owns: the socket, while there are engines.  Threads: observe_start at init, by one thread at a
 * time.  Blocks: when the first engine is made, on the file system.  Fails: cannot; without a
 * socket there are no statistics, and one LOG_INFO says why. */
#ifndef NET_PLUGIN_OBSERVE_OBSERVE_H
#define NET_PLUGIN_OBSERVE_OBSERVE_H

/* Before the first engine is made. Parameters are read here. */
void observe_start(void);

#endif
