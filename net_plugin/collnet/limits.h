/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of CollNet, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef NET_PLUGIN_COLLNET_LIMITS_H
#define NET_PLUGIN_COLLNET_LIMITS_H

#include "common/time_units.h"

/* For hellos. All members come here within milliseconds of each other, after an exchange of NCCL's;
 * a host that cannot come is to be named within 10 s. */
#define COLLNET_SETUP_NS (8 * NS_PER_S)
#define COLLNET_POLL_NS (50 * NS_PER_US)

/* Members of a group: hosts. N hosts need 4 (N - 1) connections each. */
#define COLLNET_MEMBERS_MAX 64
/* NCCL_STEPS (8) of each of up to MAXCHANNELS / COLLNET_GROUP_NSUBS (8) channel groups share a
 * group: src/transport/coll_net.cc at v2.30.7. More wait until NCCL asks again. */
#define COLLNET_REQUESTS 64
/* Bytes of one piece of a call. With one GPU per host and registered memory NCCL hands over whole
 * messages, cut to this size; before v9 it does not cut, up to 512 MiB. */
#define COLLNET_BYTES_MAX (2 << 20)
/* Bytes of the pieces in flight: NCCL_STEPS of the largest, so that both phases are busy, and
 * staging is at most 1.5 times as much. */
#define COLLNET_IN_FLIGHT_BYTES (8 * COLLNET_BYTES_MAX)

#endif
