/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of statistics, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef NET_PLUGIN_OBSERVE_LIMITS_H
#define NET_PLUGIN_OBSERVE_LIMITS_H

#include "common/time_units.h"

/* How long a client may take. */
#define STATS_CLIENT_NS (5 * NS_PER_S)
#define STATS_BACKLOG 64
/* After an engine that was busy. */
#define STATS_RETRY_NS (1 * NS_PER_MS)
/* Pause after EMFILE and the like, or level-triggered events would repeat at once. */
#define STATS_ACCEPT_PAUSE_NS (1 * NS_PER_S)
/* Per step; each flow costs about 2 us of system calls, and 5 us to write down. */
#define STATS_FLOWS_PER_STEP 16
/* Of a process: some 16,000 flows; more are left out. */
#define STATS_TEXT_MAX_BYTES (16 << 20)
/* Limit of entries read from a directory with unexpected contents. */
#define STATS_SWEEP_MAX 1024

#endif
