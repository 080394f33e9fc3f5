/* SPDX-License-Identifier: Apache-2.0 */
/* rdma: HCAs, for devices and doctor.
 * Owns: a report, until rdma_report_free.  Threads: one.  Blocks: as the opening of devices does.
 * Fails: cannot; what is missing is text in the report. */
#ifndef NET_PLUGIN_TOOLS_RDMA_H
#define NET_PLUGIN_TOOLS_RDMA_H

#include <jansson.h>

#include "net_plugin/lane/rdma_survey.h"
#include "net_plugin/plugin/device.h"
#include "net_plugin/tools/doctor_check.h"

struct rdma_report {
  struct rdma_settings settings;
  struct rdma_gpu_facts gpu;
  char library_reason[RDMA_WHY_MAX]; /* why libibverbs cannot be loaded; empty: it can */
  bool has_device_nodes;             /* /dev/infiniband is there */
  uint64_t lockable_bytes;           /* RLIMIT_MEMLOCK; UINT64_MAX: no limit */
  unsigned row_count, used_count;
  bool can_dmabuf; /* of any row */
  struct rdma_survey_row *rows;
};

void rdma_report_make(const struct device_table *table, struct rdma_report *out);
void rdma_report_free(struct rdma_report *report);

json_t *rdma_report_to_json(const struct rdma_report *report);
void rdma_report_print(const struct rdma_report *report);

/* Tells doctor of each finding. */
void rdma_report_check(const struct rdma_report *report);

#endif
