/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of stratus run and stratus env, with its unit and the evidence for
 * it. Where none is given a value is not measured by itself: chosen by reasoning, and part of what
 * was measured as a whole. */
#ifndef COMMON_TOOLS_LIMITS_H
#define COMMON_TOOLS_LIMITS_H

/* A plugin that answers from its own table takes microseconds; one that asks a server must not hold
 * the job back. */
#define ENV_PLUGIN_ANSWER_MS 2000

#endif
