/* SPDX-License-Identifier: Apache-2.0 */
/* profile_use: hands a profile on to all that go by it: the lanes' settings, and what this process
 * sends its peers about its decisions.
 * Owns: nothing.  Threads: the caller serialises; before the first connection.  Blocks: never.
 * Fails: cannot. */
#ifndef NET_PLUGIN_PLUGIN_PROFILE_USE_H
#define NET_PLUGIN_PLUGIN_PROFILE_USE_H

#include <stdbool.h>

#include "common/profile.h"
#include "net_plugin/setup/handshake.h"

/* profile NULL: there is none. nccl_version as ncclGetVersion counts; 0: not known. */
void profile_use(const struct profile *profile, int nccl_version);

/* By what the ranks of a process decide. */
struct decision profile_use_decision(const struct profile *profile, int nccl_version);

#endif
