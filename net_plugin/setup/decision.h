/* SPDX-License-Identifier: Apache-2.0 */
/* decision: what the ranks of this process decide by, compared with every peer's before a
 * connection is made: ranks that decide differently would wait for each other for ever.
 * Owns: this process's identity of decisions.  Threads: any; decision_use before the first
 * connection.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_DECISION_H
#define NET_PLUGIN_SETUP_DECISION_H

#include <stdbool.h>

#include "net_plugin/setup/handshake.h"

void decision_use(const struct decision *ours);
struct decision decision_get(void);

/* Do ranks with these choose the same? Their profiles may differ otherwise. */
bool decision_is_same(const struct decision *a, const struct decision *b);

/* Tells the user that a peer has others: once for all connections that fail of it. */
void decision_tell(const char *peer_host, const char *peer_address, const struct decision *theirs);

#endif
