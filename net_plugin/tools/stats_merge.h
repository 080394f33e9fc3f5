/* SPDX-License-Identifier: Apache-2.0 */
/* stats_merge: merges the metrics of several processes into one Prometheus text, in which the
 * samples of a metric are grouped under one HELP and one TYPE line. Owns: the texts added, until
 * stats_merge_free.  Threads: main.  Blocks: never. Fails: -ENOMEM. */
#ifndef NET_PLUGIN_TOOLS_STATS_MERGE_H
#define NET_PLUGIN_TOOLS_STATS_MERGE_H

#include <stddef.h>
#include <stdio.h>

struct stats_metric;

struct stats_merge {
  struct stats_metric *metrics; /* in order of first appearance */
  size_t count;
};

/* Adds the text of one process. Lines before the first "# HELP" are dropped. */
int stats_merge_add(struct stats_merge *merge, const char *text);
void stats_merge_print(const struct stats_merge *merge, FILE *to);
void stats_merge_free(struct stats_merge *merge);

#endif
