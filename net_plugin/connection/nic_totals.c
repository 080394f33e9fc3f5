/* SPDX-License-Identifier: Apache-2.0 */
/* See nic_totals.h. */
#include "net_plugin/connection/nic_totals.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "net_plugin/lane/tcp_address.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nic_totals table[NIC_TOTALS_MAX];
static atomic_uint used; /* entries below are complete but for their counts */

struct nic_totals *nic_totals_of(const struct nic *nic) {
  pthread_mutex_lock(&lock);
  unsigned count = atomic_load(&used), i = 0;
  while (i < count && strcmp(table[i].nic, nic->name) != 0) {
    i++;
  }
  if (i == NIC_TOTALS_MAX) {
    i--;
  } else {
    table[i].address = nic->address;
  }
  if (i == count) {
    memcpy(table[i].nic, nic->name, sizeof table[i].nic);
    atomic_store(&used, count + 1);
  }
  pthread_mutex_unlock(&lock);
  return &table[i];
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
  return a->ss_family != AF_UNSPEC && tcp_address_is_same_ip(a, b) &&
         (a->ss_family != AF_INET6 || ((const struct sockaddr_in6 *)a)->sin6_scope_id ==
                                          ((const struct sockaddr_in6 *)b)->sin6_scope_id);
}

struct nic_totals *nic_totals_by_address(const struct sockaddr_storage *address) {
  struct nic_totals *found = NULL;
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < atomic_load(&used) && !found; i++) {
    if (is_same_host(&table[i].address, address)) {
      found = &table[i];
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

const struct nic_totals *nic_totals_at(unsigned index) {
  return index < atomic_load(&used) ? &table[index] : NULL;
}
