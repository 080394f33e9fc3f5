/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_options: what users and profiles can set for the sockets of flows. Parameters win over the
 * profile.
 * Owns: the values taken from a profile.  Threads: any; tcp_options_use_profile before the first
 * flow. Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_TCP_OPTIONS_H
#define NET_PLUGIN_LANE_TCP_OPTIONS_H

#include <stdint.h>

#include "common/profile.h"

struct tcp_options {
  uint32_t notsent_lowat_bytes;      /* 0: no limit */
  uint32_t socket_buffer_bytes;      /* 0: the kernel's */
  uint32_t pacing_mbps;              /* 0: none */
  uint32_t busy_poll_us;             /* 0: none */
  int dscp;                          /* -1: NCCL's traffic class, or none */
  char congestion[PROFILE_NAME_MAX]; /* empty: the system's */
};

/* NULL: none. */
void tcp_options_use_profile(const struct profile_net *net);
void tcp_options_get(struct tcp_options *options);

#endif
