/* SPDX-License-Identifier: Apache-2.0 */
/* options: what the program is asked to simulate.
 * Owns: nothing; texts point into argv.  Threads: the main one.  Blocks: never.
 * Fails: options_read prints what is wrong and returns CLI_USAGE. */
#ifndef TESTS_SCALE_OPTIONS_H
#define TESTS_SCALE_OPTIONS_H

#include "common/cli.h"
#include "tests/scale/steps.h"

#define OPTIONS_HOSTS_MAX 16u
#define OPTIONS_WORKLOADS_MAX 16u
#define OPTIONS_VARIANTS_MAX 64

enum options_transport { OPTIONS_STRATUS, OPTIONS_SOCKET, OPTIONS_SOCKET_2X8, OPTIONS_IDEAL };

struct options {
  int transport; /* enum options_transport */
  struct transport_config host;
  struct schedule_config schedule;
  struct steps_config steps;
  double bytes_scale; /* of workloads */
  uint64_t learn_ns, learn_bytes;
  unsigned variants;            /* draws of paths */
  double slow_share, slow_rate; /* hosts whose NIC has this part of its rate */
  double failed_share;          /* hosts of which one NIC of several is down */
  unsigned hosts[OPTIONS_HOSTS_MAX], hosts_count;
  char *workloads[OPTIONS_WORKLOADS_MAX];
  unsigned workload_count;
};

extern const struct cli_option options_table[];
/* After the table was read. */
int options_read(struct options *options);

#endif
