/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of discovery and placement, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef NET_PLUGIN_PLUGIN_LIMITS_H
#define NET_PLUGIN_PLUGIN_LIMITS_H

/* CPUs: a process with so many or less is pinned. */
#define PLACEMENT_FEW_CPUS 4

#endif
