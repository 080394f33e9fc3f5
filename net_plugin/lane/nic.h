/* SPDX-License-Identifier: Apache-2.0 */
/* nic: the facts about a network interface that lanes and engines need.
 * Filled in by plugin/device.c, which finds and chooses interfaces; a plain value. */
#ifndef NET_PLUGIN_LANE_NIC_H
#define NET_PLUGIN_LANE_NIC_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* NCCL_NET_MAX_DEVS_PER_NIC_V12: the most physical devices one fused device may have. */
#define NIC_MAX_FUSED 8

struct nic {
  char name[IF_NAMESIZE];
  unsigned index; /* if_nametoindex */
  struct sockaddr_storage address;
  struct sockaddr_storage advertised; /* what other hosts dial; family 0: the same */
  bool has_host_address; /* not the NIC's, but the host's: routes choose a NIC for each flow */
  unsigned prefix_bits;  /* of its subnet; 0: unknown */
  bool has_neighbours;   /* ARP or the like: packets sent through it reach others by themselves */
  bool is_idle;          /* no route to others, or a bridge without a NIC; false: not known */
  int numa_node;         /* -1: unknown */
  cpu_set_t thread_cpus; /* where its engines' threads run; none: as they are made */
  uint32_t speed_mbps;   /* truthful, see device.c; never 0 */
};

#endif
