/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_choice.h. */
#include "net_plugin/lane/rdma/rdma_choice.h"

#include <errno.h>
#include <stdio.h>

#include "net_plugin/lane/rdma/rdma_gid.h"

struct rdma_identity rdma_choice_identity(const struct rdma_sysfs_port *port) {
  return (struct rdma_identity){
    .pci_vendor = port->pci_vendor,
    .pci_device = port->pci_device,
    .driver = port->driver,
    .name = port->name,
    .is_iwarp = port->is_iwarp,
  };
}

enum rdma_cm_wish rdma_choice_cm(const struct rdma_traits *traits,
                                 const struct rdma_settings *with) {
  return traits->needs_cm ? RDMA_CM_MUST : (enum rdma_cm_wish)with->cm;
}

bool rdma_choice_is_allowed(const struct rdma_sysfs_port *port, const struct rdma_settings *with,
                            char why[RDMA_WHY_MAX]) {
  struct rdma_identity identity = rdma_choice_identity(port);
  struct rdma_traits traits;
  rdma_quirks_find(&identity, &traits);
  bool is_named = name_list_has(&with->hcas, port->name, port->port);
  bool has_way = !traits.needs_cm || with->cm != RDMA_CM_NEVER;
  if (!is_named) {
    snprintf(why, RDMA_WHY_MAX, "NCCL_IB_HCA leaves out %s:%d", port->name, port->port);
  } else if (!traits.is_usable) {
    snprintf(why, RDMA_WHY_MAX, "%s: %s", port->name, traits.why_not);
  } else if (!has_way) {
    snprintf(why, RDMA_WHY_MAX, "%s needs librdmacm, and STRATUS_RDMA_CM=off", port->name);
  }
  return is_named && traits.is_usable && has_way;
}

int rdma_choice_judge(const struct rdma_sysfs_port *port, const struct rdma_settings *with,
                      const struct nic *nic, int *gid, char why[RDMA_WHY_MAX]) {
  if (!rdma_choice_is_allowed(port, with, why)) {
    return -ENOENT;
  }
  if (!port->is_active) {
    snprintf(why, RDMA_WHY_MAX, "port %d of %s is %s", port->port, port->name,
             port->state[0] ? port->state : "in an unknown state");
    return -ENOENT;
  }
  if (nic->advertised.ss_family != AF_UNSPEC) {
    snprintf(why, RDMA_WHY_MAX,
             "others dial it by STRATUS_ADVERTISE_ADDRESS, and what translates that passes on TCP");
    return -ENOENT;
  }
  *gid = rdma_gid_choose(port, with, nic, why);
  return *gid < 0 ? -ENOENT : 0;
}
