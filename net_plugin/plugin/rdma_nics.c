/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_nics.h. */
#include "net_plugin/plugin/rdma_nics.h"

#include <string.h>

#include "net_plugin/lane/endpoint.h"

/* Whether naming could have made it a NIC, or did. */
static bool is_eligible(const struct interface *interface) {
  return interface->verdict == INTERFACE_CHOSEN || interface->verdict == INTERFACE_NOT_NAMED ||
         interface->verdict == INTERFACE_LESS_PREFERRED ||
         interface->verdict == INTERFACE_OF_ITS_LINK ||
         interface->verdict == INTERFACE_SAME_HARDWARE ||
         interface->verdict == INTERFACE_OVER_LIMIT;
}

static bool has_device(const struct interface *interface) {
  struct nic nic = { .index = interface->index, .address = interface->address };
  char text[ENDPOINT_TEXT_MAX];
  memcpy(nic.name, interface->name, sizeof(nic.name));
  return endpoint_find(&nic, text);
}

/* The place of the address with which this interface was found; count: none. */
static size_t find(const struct interface *interfaces, const size_t *found, unsigned found_count,
                   size_t count, const char *name) {
  for (unsigned i = 0; i < found_count; i++) {
    if (!strcmp(interfaces[found[i]].name, name)) {
      return found[i];
    }
  }
  return count;
}

void rdma_nics_choose(struct interface *interfaces, size_t count) {
  size_t found[INTERFACE_CHOSEN_MAX];
  unsigned found_count = 0;
  for (size_t i = 0; i < count && found_count < INTERFACE_CHOSEN_MAX; i++) {
    if (is_eligible(&interfaces[i]) &&
        find(interfaces, found, found_count, count, interfaces[i].name) == count &&
        has_device(&interfaces[i])) {
      found[found_count++] = i;
    }
  }
  for (size_t i = 0; i < count && found_count > 0; i++) {
    struct interface *it = &interfaces[i];
    size_t at = find(interfaces, found, found_count, count, it->name);
    if (at < count && is_eligible(it)) {
      it->verdict = at == i ? INTERFACE_CHOSEN : INTERFACE_SECOND_ADDRESS;
    } else if (it->verdict == INTERFACE_CHOSEN) {
      it->verdict = INTERFACE_WITHOUT_HCA;
    }
  }
}
