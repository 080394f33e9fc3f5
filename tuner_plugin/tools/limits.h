/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of stratus, with its unit and the evidence for it. Where none
 * is given a value is not measured by itself: chosen by reasoning, and part of what was measured as
 * a whole. */
#ifndef TUNER_PLUGIN_TOOLS_LIMITS_H
#define TUNER_PLUGIN_TOOLS_LIMITS_H

/* ---- verify ---- */

/* Shares of a time. */
#define AB_TEST_LEAST_TOLERANCE 0.03
#define AB_TEST_MOST_DOUBT 0.10

/* ---- stratus compare ---- */

/* Two runs that differ by less are the same: about what runs of one setting differ by. Not
 * measured by itself. */
#define COMPARE_SAME 0.03
/* nccl-tests' lines have 250 bytes at most, and launchers write before them. */
#define COMPARE_LINE_MAX 4096
/* A file that is something else has a remark for each line. */
#define COMPARE_NOTES_MAX 8

#endif
