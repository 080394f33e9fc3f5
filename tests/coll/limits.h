/* SPDX-License-Identifier: Apache-2.0 */
/* limits: times of coll that were chosen by reasoning. */
#ifndef COLL_LIMITS_H
#define COLL_LIMITS_H

#include "common/time_units.h"

/* How long the other ranks may continue after one has failed: they notice within a tenth of a
 * second, and their messages should get out; from SIGTERM to SIGKILL. */
#define RANKS_GRACE_NS (3 * NS_PER_S)
#define RANKS_KILL_NS (2 * NS_PER_S)
#define RUN_CONNECT_TIMEOUT_NS (60 * NS_PER_S)
/* Between two tries to reach rank 0. */
#define RENDEZVOUS_RETRY_US 20000
#define WATCHDOG_LOOK_EVERY_MS 50
/* Of compute alone, whose time varies little. */
#define REPLAY_COMPUTE_STEPS_MAX 10

#endif
