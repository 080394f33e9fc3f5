/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of what both plugins share, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#include <stddef.h>

#include "common/time_units.h"

/* More than fork() takes for a process of many gigabytes, or a driver to open its device. Two
 * threads can wait for each other where another library's fork handler waits for a thread of ours;
 * that ends then. */
#define DESCRIPTOR_WAIT_NS (1 * NS_PER_S)
/* Enough for 2000 connections of 8 flows in each direction. Not the hard limit, which may be 10^9:
 * children inherit the soft limit, and some programs close all numbers below it when they start. */
#define OPEN_FILES_RAISED_MOST 65536
/* Between two warnings that a setting is ignored. Not measured by itself. */
#define SETTING_WARN_INTERVAL_NS (3600 * NS_PER_S)
/* Bytes of a block of the CRC by the processor's instruction, of which three go at once, and of
 * those for what is left. Not measured by themselves. */
#define HASH_LONG_BLOCK_BYTES 4096
#define HASH_SHORT_BLOCK_BYTES 256

/* ---- for tools ---- */

/* Two round trips, and a caller that waits for a busy processor. */
#define PEER_PROOF_NS (2 * NS_PER_S)

#endif
