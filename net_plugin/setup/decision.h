/* SPDX-License-Identifier: Apache-2.0 */
/* decision: what the ranks of this process decide by, compared with every peer's before a
 * connection is made: ranks that decide differently would wait for each other for ever.
 * Owns: nothing.  Threads: any; decision_use_profile before the first connection.  Blocks: never.
 * Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_DECISION_H
#define NET_PLUGIN_SETUP_DECISION_H

#include <stdbool.h>

#include "common/profile.h"
#include "net_plugin/setup/handshake.h"

/* Hands a profile on to all that go by it: the lanes' settings, and these decisions. NULL: there is
 * none. nccl_version as ncclGetVersion counts; 0: not known. */
void decision_use_profile(const struct profile *profile, int nccl_version);
/* By what the ranks of a process decide. */
struct decision decision_of(const struct profile *profile, int nccl_version);

/* Do ranks with these choose the same? Their profiles may differ otherwise. */
bool decision_is_same(const struct decision *a, const struct decision *b);

/* Tells the user that a peer has others: once for all connections that fail of it. */
void decision_tell(const struct conn_params *ours, const struct conn_params *theirs,
                   const char *their_address);

#endif
