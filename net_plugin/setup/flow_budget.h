/* SPDX-License-Identifier: Apache-2.0 */
/* flow_budget: how many descriptors the flows of this process may take, so that the application
 * always has some. Flows are counted when a connection is made, since they are opened later, when
 * there is traffic for them.
 * Owns: the count.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_FLOW_BUDGET_H
#define NET_PLUGIN_SETUP_FLOW_BUDGET_H

/* How many flows a new connection may have: `wanted`, or fewer where descriptors are few, which is
 * said once, but not less than `least`. */
unsigned flow_budget_limit(unsigned wanted, unsigned least);
/* A connection was made with so many; it is gone. */
void flow_budget_take(unsigned flows);
void flow_budget_give(unsigned flows);

#endif
