/* SPDX-License-Identifier: Apache-2.0 */
/* flow_budget: how many descriptors the flows of this process may take, so that the application
 * always has some. A flow counts from its dial, or the peer's, until it is closed.
 * Owns: the count.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_FLOW_BUDGET_H
#define NET_PLUGIN_SETUP_FLOW_BUDGET_H

#include <stdbool.h>

/* One more flow for a connection that has so many. false: descriptors are few, and it has at least
 * `least`; the user is told once. */
bool flow_budget_take(unsigned flows, unsigned least);
/* So many are closed. */
void flow_budget_give(unsigned flows);

#endif
