/* SPDX-License-Identifier: Apache-2.0 */
/* stats_merge: the metrics of several processes as one text for Prometheus, in which all samples of
 * a metric stand together under one HELP and one TYPE line.
 * Owns: the texts added, until stats_merge_free.  Threads: main.  Blocks: never.
 * Fails: -ENOMEM. */
#ifndef NET_PLUGIN_TOOLS_STATS_MERGE_H
#define NET_PLUGIN_TOOLS_STATS_MERGE_H

#include <stddef.h>
#include <stdio.h>

struct stats_metric;

struct stats_merge {
  struct stats_metric *metrics; /* in the order of their first appearance */
  size_t count;
};

/* What one process said. Lines before the first "# HELP" are left out. */
int stats_merge_add(struct stats_merge *merge, const char *text);
void stats_merge_print(const struct stats_merge *merge, FILE *to);
void stats_merge_free(struct stats_merge *merge);

#endif
