/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_survey: the HCA ports of the machine, and what each is or is not used for; what discovery
 * and people want to know of lane/rdma. The only header that leads there. Owns: the
 * settings in force.  Threads: any.  Blocks: as sysfs and the opening of devices do. Fails: cannot;
 * what stands in the way is text. */
#ifndef NET_PLUGIN_LANE_RDMA_SURVEY_H
#define NET_PLUGIN_LANE_RDMA_SURVEY_H

#include "net_plugin/lane/rdma/rdma_choice.h"

/* Reads the settings from the environment. From now on devices are searched with these, below
 * this root of sysfs. */
void rdma_survey_configure(struct rdma_settings *settings, const char *sysfs_root);
/* Those in force. Returns the root of sysfs. */
const char *rdma_survey_settings(struct rdma_settings *settings);
/* Why libibverbs cannot be loaded; empty: it can. */
const char *rdma_survey_library_reason(void);

struct rdma_survey_row {
  struct rdma_sysfs_port port;
  char nic[IF_NAMESIZE]; /* its interface, in use or not; empty: unknown */
  int gid;               /* place in port.gids of the one that is used; -1: none */
  bool is_used;          /* one of the NICs uses it */
  bool is_opened;        /* it could be opened: the next two are known */
  unsigned mtu_bytes;    /* of RDMA packets */
  bool has_dmabuf;       /* the kernel and its driver take dma-bufs */
  struct rdma_traits traits;
  char why[RDMA_WHY_MAX];             /* why it is not used, or not opened; else empty */
  char warning[RDMA_QUIRKS_TEXT_MAX]; /* about its settings; else empty */
};

/* With the settings in force. Returns how many rows. is_opening: those that are
 * used are opened for a moment. */
unsigned rdma_survey(const struct nic *nics, unsigned nic_count, bool is_opening,
                     struct rdma_survey_row rows[RDMA_PORTS_MAX]);

/* "InfiniBand", "RoCE v2", "RoCE v1", "iWARP". */
const char *rdma_survey_kind(const struct rdma_survey_row *row);

#endif
