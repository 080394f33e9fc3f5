/* SPDX-License-Identifier: Apache-2.0 */
/* See nic_renewal.h. */
#include "net_plugin/plugin/nic_renewal.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/lane/host_nics.h"
#include "net_plugin/lane/tcp_address.h"

void nic_renewal_begin(struct nic_renewal *renewal, const struct device_table *table) {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  *renewal = (struct nic_renewal){ .count = device_table_nics(table, nics) };
  for (unsigned i = 0; i < renewal->count; i++) {
    renewal->nics[i].told = renewal->nics[i].now = nics[i];
  }
}

/* The entry of a NIC of the table. */
static unsigned entry_of(const struct nic_renewal *renewal, const struct nic *told) {
  unsigned i = 0;
  while (i + 1 < renewal->count && (renewal->nics[i].told.index != told->index ||
                                    strcmp(renewal->nics[i].told.name, told->name) != 0)) {
    i++;
  }
  return i;
}

/* ---- is it still there? ---- */

static bool is_there(const struct nic *nic) {
  char name[IF_NAMESIZE];
  unsigned flags;
  int error = host_link_name(nic->index, name);
  if (error) {
    return error != -ENXIO && error != -ENODEV; /* not known */
  }
  return strcmp(name, nic->name) == 0 &&
         host_address_find(nic->has_host_address ? 0 : nic->index, &nic->address, &flags) != 0;
}

/* Its interface may be a new one. */
static bool is_back(const struct nic *nic) {
  unsigned flags;
  return host_address_find(0, &nic->address, &flags) > 0;
}

bool nic_renewal_is_due(const struct nic_renewal *renewal, const struct device *device) {
  bool is_due = false;
  for (unsigned i = 0; i < device->nic_count && !is_due; i++) {
    unsigned at = entry_of(renewal, &device->nics[i]);
    is_due = renewal->nics[at].is_gone ? is_back(&renewal->nics[at].told)
                                       : !is_there(&renewal->nics[at].now);
  }
  return is_due;
}

/* ---- what is there now ---- */

struct fresh {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  bool is_taken[DEVICE_PHYSICAL_MAX];
  unsigned count;
};

typedef bool is_like_fn(const struct nic *told, const struct nic *now);

static bool has_same_index(const struct nic *told, const struct nic *now) {
  return told->index == now->index;
}

static bool has_same_ip(const struct nic *told, const struct nic *now) {
  return tcp_address_is_same_ip(&told->address, &now->address);
}

static bool has_same_name(const struct nic *told, const struct nic *now) {
  return strcmp(told->name, now->name) == 0;
}

/* What is chosen where nothing better is left leads to no other host. */
static bool is_new_way(const struct nic *told, const struct nic *now) {
  return !now->is_idle && (now->has_neighbours || !told->has_neighbours);
}

/* For those that are still gone. */
static void match(struct nic_renewal *renewal, struct fresh *fresh, is_like_fn *is_like) {
  for (unsigned i = 0; i < renewal->count; i++) {
    for (unsigned j = 0; j < fresh->count && renewal->nics[i].is_gone; j++) {
      if (!fresh->is_taken[j] && is_like(&renewal->nics[i].told, &fresh->nics[j])) {
        renewal->nics[i].now = fresh->nics[j];
        renewal->nics[i].is_gone = false;
        fresh->is_taken[j] = true;
      }
    }
  }
}

static void tell(const struct nic *told, const struct nic *before, const struct nic *now) {
  char old_text[INTERFACE_ADDRESS_TEXT_MAX], new_text[INTERFACE_ADDRESS_TEXT_MAX];
  interface_address_text(&before->address, old_text);
  if (!now) {
    LOG_WARN("%s (%s), which NCCL got as a device, is gone, or NCCL_SOCKET_IFNAME does not name it "
             "any more",
             before->name, old_text);
  } else if (strcmp(before->name, now->name) != 0 || !has_same_ip(before, now)) {
    LOG_INFO("%s (%s) is %s (%s) now: connections that are made from here on use that", told->name,
             old_text, now->name, interface_address_text(&now->address, new_text));
  }
}

void nic_renewal_take(struct nic_renewal *renewal, const struct device_table *table) {
  struct nic_renewal before = *renewal;
  struct fresh fresh = { .is_taken = { false } };
  fresh.count = device_table_nics(table, fresh.nics);
  for (unsigned i = 0; i < renewal->count; i++) {
    renewal->nics[i].is_gone = true;
  }
  match(renewal, &fresh, has_same_index);
  match(renewal, &fresh, has_same_name);
  match(renewal, &fresh, has_same_ip);
  match(renewal, &fresh, is_new_way);
  for (unsigned i = 0; i < renewal->count; i++) {
    bool is_gone = renewal->nics[i].is_gone;
    if (!is_gone || !before.nics[i].is_gone) {
      tell(&renewal->nics[i].told, &before.nics[i].now, is_gone ? NULL : &renewal->nics[i].now);
    }
  }
}

/* ---- asking for it ---- */

static const struct nic *find_stand_in(const struct nic_renewal *renewal, unsigned from) {
  for (unsigned i = 0; i < renewal->count; i++) {
    unsigned at = (from + i) % renewal->count;
    if (!renewal->nics[at].is_gone) {
      return &renewal->nics[at].now;
    }
  }
  return NULL;
}

unsigned nic_renewal_nics(const struct nic_renewal *renewal, const struct device *device,
                          struct nic out[NIC_MAX_FUSED]) {
  unsigned count = 0;
  for (unsigned i = 0; i < device->nic_count; i++) {
    unsigned at = entry_of(renewal, &device->nics[i]);
    if (!renewal->nics[at].is_gone) {
      out[count++] = renewal->nics[at].now;
    }
  }
  const struct nic *other =
      count ? NULL : find_stand_in(renewal, entry_of(renewal, &device->nics[0]));
  if (other) {
    out[count++] = *other;
  } else if (!count) {
    LOG_WARN("%s is gone, and this host has no other network interface that NCCL_SOCKET_IFNAME "
             "and NCCL_SOCKET_FAMILY allow: no connection can be made",
             device->name);
  }
  return count;
}
