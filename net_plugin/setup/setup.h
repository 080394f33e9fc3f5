/* SPDX-License-Identifier: Apache-2.0 */
/* setup: the end of everything below this directory, for the plugin's life cycle.
 * Owns: nothing.  Threads: any.  Blocks: setup_stop, up to about two seconds for connections that
 * are still closing.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_SETUP_H
#define NET_PLUGIN_SETUP_SETUP_H

/* For the last finalize: ends listeners, connections, engines and their threads. Everything can
 * start again afterwards. */
void setup_stop(void);

#endif
