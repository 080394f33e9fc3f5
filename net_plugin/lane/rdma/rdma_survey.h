/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_survey: every HCA port of the machine, and what it is or is not used for; for people.
 * Owns: nothing.  Threads: any.  Blocks: as sysfs and the opening of devices do.
 * Fails: cannot; what stands in the way is text. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_SURVEY_H
#define NET_PLUGIN_LANE_RDMA_RDMA_SURVEY_H

#include "net_plugin/lane/rdma/rdma_device.h"

struct rdma_survey_row {
  struct rdma_sysfs_port port;
  char nic[IF_NAMESIZE]; /* its interface, in use or not; empty: unknown */
  int gid;               /* place in port.gids of the one that is used; -1: none */
  bool is_used;          /* one of the NICs uses it */
  bool is_opened;        /* it could be opened: the next two are known */
  unsigned mtu_bytes;    /* of RDMA packets */
  bool has_dmabuf;       /* the kernel and its driver take dma-bufs */
  struct rdma_traits traits;
  enum rdma_cm_wish cm;               /* are its queue pairs connected by librdmacm? */
  char why[RDMA_WHY_MAX];             /* why it is not used, or not opened; else empty */
  char warning[RDMA_QUIRKS_TEXT_MAX]; /* about its settings; else empty */
};

/* With the settings of rdma_device_configure. Returns how many rows. is_opening: those that are
 * used are opened for a moment. */
unsigned rdma_survey(const struct nic *nics, unsigned nic_count, bool is_opening,
                     struct rdma_survey_row rows[RDMA_PORTS_MAX]);

/* "InfiniBand", "RoCE v2", "RoCE v1", "iWARP". */
const char *rdma_survey_kind(const struct rdma_survey_row *row);

/* Who connects its queue pairs, and why. */
const char *rdma_survey_way(const struct rdma_survey_row *row);

#endif
