/* SPDX-License-Identifier: Apache-2.0 */
/* The same steps as in opening a device, for all ports, each result kept. */
#include "net_plugin/lane/rdma_survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/lane/rdma/rdma_device.h"

void rdma_survey_configure(struct rdma_settings *settings, const char *sysfs_root) {
  rdma_settings_read(settings);
  rdma_device_configure(settings, sysfs_root);
}

const char *rdma_survey_settings(struct rdma_settings *settings) {
  return rdma_device_settings(settings);
}

const char *rdma_survey_library_reason(void) {
  return verbs_api_get() ? "" : verbs_api_reason();
}

const char *rdma_survey_kind(const struct rdma_survey_row *row) {
  if (row->port.is_infiniband) {
    return "InfiniBand";
  }
  if (row->port.is_iwarp) {
    return "iWARP";
  }
  return row->gid >= 0 && row->port.gids[row->gid].roce_version == 1 ? "RoCE v1" : "RoCE v2";
}

/* The interface that the port seems to belong to, for one that is none of ours. */
static void guess_interface(struct rdma_survey_row *row) {
  const char *name = row->port.parent;
  for (unsigned i = 0; i < row->port.gid_count && !*name; i++) {
    name = row->port.gids[i].netdev;
  }
  snprintf(row->nic, sizeof(row->nic), "%s", name);
}

static const struct nic *find_nic(const char *root, const struct rdma_sysfs_port *port,
                                  const struct nic *nics, unsigned nic_count) {
  for (unsigned i = 0; i < nic_count; i++) {
    if (rdma_choice_is_of_nic(root, port, &nics[i])) {
      return &nics[i];
    }
  }
  return NULL;
}

static void judge(const char *root, const struct rdma_settings *settings, const struct nic *nic,
                  struct rdma_survey_row *row) {
  row->gid = -1;
  rdma_quirks_find(&row->port, &row->traits);
  if (!nic) {
    guess_interface(row);
    snprintf(row->why, sizeof(row->why),
             row->nic[0] ? "its interface %s is none of the NICs in use"
                         : "it belongs to none of the NICs in use",
             row->nic);
    return;
  }
  memcpy(row->nic, nic->name, sizeof(row->nic));
  if (settings->is_off) {
    snprintf(row->why, sizeof(row->why), "%s", settings->off_why);
  } else if (rdma_choice_judge(&row->port, settings, nic, &row->gid, row->why) == 0) {
    row->is_used = true;
    row->why[0] = '\0';
    rdma_choice_warning(root, &row->port, nic, row->warning);
  }
}

/* As NCCL finds out: with a descriptor that is none, a kernel or driver that knows dma-bufs
 * complains of the descriptor. */
static bool takes_dmabufs(const struct rdma_device *device) {
  if (!device->api->reg_dmabuf_mr || !device->port.traits.has_dmabuf) {
    return false;
  }
  struct ibv_mr *mr = device->api->reg_dmabuf_mr(device->pd, 0, 0, 0, -1, 0);
  if (mr) {
    device->api->dereg_mr(mr);
  }
  return !mr && errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS;
}

static void try_to_open(const struct nic *nic, struct rdma_survey_row *row) {
  struct rdma_device *device = rdma_device_open(nic, row->why);
  if (!device) {
    row->is_used = false;
    return;
  }
  row->is_opened = true;
  row->mtu_bytes = rdma_mtu_bytes(device->port.mtu);
  row->has_dmabuf = takes_dmabufs(device);
  rdma_device_close(device);
}

unsigned rdma_survey(const struct nic *nics, unsigned nic_count, bool is_opening,
                     struct rdma_survey_row rows[RDMA_PORTS_MAX]) {
  struct rdma_sysfs_port *ports = calloc(RDMA_PORTS_MAX, sizeof(*ports));
  if (!ports) {
    return 0;
  }
  struct rdma_settings settings;
  const char *root = rdma_device_settings(&settings);
  unsigned count = rdma_sysfs_list(root, ports);
  for (unsigned i = 0; i < count; i++) {
    const struct nic *nic = find_nic(root, &ports[i], nics, nic_count);
    rows[i] = (struct rdma_survey_row){ .port = ports[i] };
    judge(root, &settings, nic, &rows[i]);
    if (rows[i].is_used && is_opening) {
      try_to_open(nic, &rows[i]);
    }
  }
  free(ports);
  return count;
}
