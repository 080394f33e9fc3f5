/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of stratus-run and stratus-env, with its unit and the evidence for
 * it. Where none is given a value is not measured by itself: chosen by reasoning, and part of what
 * was measured as a whole. */
#ifndef COMMON_TOOLS_LIMITS_H
#define COMMON_TOOLS_LIMITS_H

#include "common/time_units.h"

/* From SIGTERM to SIGKILL; launchers need this time to end their ranks. */
#define CHECKED_JOB_KILL_NS (3 * NS_PER_S)
/* How often is looked at what is known. */
#define CHECKED_JOB_LOOK_MS 100
/* A name server that does not answer must not hold back what is known; one in the same network
 * takes milliseconds. */
#define CHECK_NAME_MS 1500
/* Launchers start the ranks of a host within a second. */
#define ONE_VOICE_HOLD_NS (1 * NS_PER_S)
/* Messages about one fact come from many hosts: so long is waited for the others. NCCL's connects
 * of one collective are milliseconds apart. */
#define VERDICT_SETTLE_NS (1 * NS_PER_S)
/* Where a rank is silent of which nobody says why, so long: it may be slow to start. */
#define VERDICT_SILENCE_NS (3 * NS_PER_S)
/* A communicator without a net plugin: its process's earlier message may be on its way. */
#define VERDICT_GRACE_NS (2 * NS_PER_S)
/* A plugin that answers from its own table takes microseconds; one that asks a server must not hold
 * the job back. */
#define ENV_PLUGIN_ANSWER_MS 2000
/* Names that are tried for a file beside another. */
#define CONF_BLOCK_BESIDE_TRIES 100

#endif
