/* SPDX-License-Identifier: Apache-2.0 */
/* profile_use: hands a profile on to all that go by it: the lanes' settings, NCCL's own variables,
 * and what this process tells its peers that it decides by.
 * Owns: nothing.  Threads: the caller serialises; before the first connection.
 * Blocks: never.  Fails: cannot.
 *
 * NCCL reads each variable once, some before any plugin is loaded; those of section [env] come
 * later, the first after the first communicator's net init (channels in ncclTopoPostset, sizes of
 * buffers in initTransportsRank, src/init.cc at v2.29.7; seen to come in time with 2.22.3, too). */
#ifndef NET_PLUGIN_PLUGIN_PROFILE_USE_H
#define NET_PLUGIN_PLUGIN_PROFILE_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/profile.h"
#include "net_plugin/setup/handshake.h"

/* profile NULL: there is none. latency_us: what NCCL is told, from wherever. nccl_version as
 * ncclGetVersion counts; 0: not known. */
void profile_use(const struct profile *profile, uint32_t latency_us, int nccl_version);

/* By what the ranks of a process decide. */
struct decision profile_use_decision(const struct profile *profile, uint32_t latency_us,
                                     int nccl_version);

/* Sets the variables of [env] that are not set; says which in `text`, which may be empty. */
#define PROFILE_USE_TEXT_MAX 512
const char *profile_use_environment(const struct profile *profile, char text[PROFILE_USE_TEXT_MAX]);

#endif
