/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is opened here: what cannot be opened later falls back to TCP over the same NICs. */
#include "net_plugin/plugin/rdma_nics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rdma_sysfs_port *find_port(const struct interface *interface, const char *root,
                                               const struct rdma_settings *settings,
                                               const struct rdma_sysfs_port *ports,
                                               unsigned port_count) {
  struct nic nic = { .address = interface->address, .prefix_bits = interface->prefix_bits };
  memcpy(nic.name, interface->name, sizeof(nic.name));
  for (unsigned i = 0; i < port_count; i++) {
    char why[RDMA_WHY_MAX];
    int gid;
    if (rdma_choice_is_of_nic(root, &ports[i], &nic) &&
        rdma_choice_judge(&ports[i], settings, &nic, &gid, why) == 0) {
      return &ports[i];
    }
  }
  return NULL;
}

/* Whether naming could have made it a NIC, or did. */
static bool is_eligible(const struct interface *interface) {
  return interface->verdict == INTERFACE_CHOSEN || interface->verdict == INTERFACE_NOT_NAMED ||
         interface->verdict == INTERFACE_LESS_PREFERRED ||
         interface->verdict == INTERFACE_OF_ITS_LINK ||
         interface->verdict == INTERFACE_SAME_HARDWARE ||
         interface->verdict == INTERFACE_OVER_LIMIT;
}

static void keep(struct rdma_nics *nics, const char *name, size_t interface,
                 const struct rdma_sysfs_port *port) {
  struct rdma_nic *nic = &nics->list[nics->count++];
  *nic = (struct rdma_nic){
    .interface = interface,
    .speed_mbps = port->speed_mbps,
  };
  snprintf(nic->name, sizeof(nic->name), "%s", name);
  memcpy(nic->pci_path, port->pci_path, sizeof(nic->pci_path));
}

/* With the verdicts as they are, or as if each interface were eligible that has an HCA. */
static void find(const struct interface *interfaces, size_t count, bool is_choosing,
                 const char *root, const struct rdma_settings *settings,
                 const struct rdma_sysfs_port *ports, unsigned port_count, struct rdma_nics *out) {
  for (size_t i = 0; i < count && out->count < INTERFACE_CHOSEN_MAX; i++) {
    const struct interface *it = &interfaces[i];
    bool is_candidate = is_choosing ? is_eligible(it) : it->verdict == INTERFACE_CHOSEN;
    if (is_candidate && !rdma_nics_of(out, it->name)) {
      const struct rdma_sysfs_port *port = find_port(it, root, settings, ports, port_count);
      if (port) {
        keep(out, it->name, i, port);
      }
    }
  }
}

static void choose(struct interface *interfaces, size_t count, const struct rdma_nics *nics) {
  for (size_t i = 0; i < count; i++) {
    struct interface *it = &interfaces[i];
    const struct rdma_nic *nic = rdma_nics_of(nics, it->name);
    if (nic && is_eligible(it)) {
      it->verdict = nic->interface == i ? INTERFACE_CHOSEN : INTERFACE_SECOND_ADDRESS;
    } else if (it->verdict == INTERFACE_CHOSEN) {
      it->verdict = INTERFACE_WITHOUT_HCA;
    }
  }
}

void rdma_nics_find(struct interface *interfaces, size_t count, const char *sysfs_root,
                    const struct rdma_settings *settings, struct rdma_nics *out) {
  *out = (struct rdma_nics){ 0 };
  struct rdma_sysfs_port *ports = settings->is_off ? NULL : calloc(RDMA_PORTS_MAX, sizeof(*ports));
  if (!ports) {
    return;
  }
  unsigned port_count = rdma_sysfs_list(sysfs_root, ports);
  bool is_choosing = settings->hcas.count > 0 || settings->hcas.is_excluding;
  find(interfaces, count, is_choosing, sysfs_root, settings, ports, port_count, out);
  if (is_choosing && out->count > 0) {
    choose(interfaces, count, out);
  }
  free(ports);
}

const struct rdma_nic *rdma_nics_of(const struct rdma_nics *nics, const char *name) {
  for (unsigned i = 0; i < nics->count; i++) {
    if (!strcmp(nics->list[i].name, name)) {
      return &nics->list[i];
    }
  }
  return NULL;
}
