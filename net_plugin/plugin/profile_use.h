/* SPDX-License-Identifier: Apache-2.0 */
/* profile_use: hands a profile on to all that go by it: the lanes' settings, NCCL's own variables,
 * and what this process sends its peers about its decisions.
 * Owns: what NCCL is answered.  Threads: the caller serialises, but for profile_use_variable;
 * before the first connection. Blocks: never.  Fails: cannot.
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

/* profile NULL: there is none. latency_us: what NCCL gets, whatever its origin. nccl_version as
 * ncclGetVersion counts; 0: not known. */
void profile_use(const struct profile *profile, uint32_t latency_us, int nccl_version);

/* By what the ranks of a process decide. */
struct decision profile_use_decision(const struct profile *profile, uint32_t latency_us,
                                     int nccl_version);

/* Sets the variables of [env] that are not set; lists them in `text`, which may be empty. Where
 * NCCL asks for variables (below) it gets them as answers. Otherwise by setenv, which races with
 * getenv of the application's threads (glibc before 2.41). */
#define PROFILE_USE_TEXT_MAX 512
const char *profile_use_environment(const struct profile *profile, char text[PROFILE_USE_TEXT_MAX]);

/* From now on NCCL asks by profile_use_variable. Reads the profile for what NCCL asks before any
 * plugin's init, NCCL_COLLNET_ENABLE. Blocks: on that file. */
void profile_use_answer(int nccl_version);

/* What the user set, else what profile_use_environment found; NULL: neither. Any thread; what was
 * found stays valid. */
const char *profile_use_variable(const char *name);

#endif
