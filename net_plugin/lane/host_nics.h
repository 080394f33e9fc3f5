/* SPDX-License-Identifier: Apache-2.0 */
/* host_nics: the network interfaces of this host and their addresses, as the kernel has them now.
 * Owns: nothing; who asks for a list frees it.  Threads: any.  Blocks: never (netlink.h), but
 * while a fork() is in progress (common/descriptor.h).
 * Fails: negative errno. */
#ifndef NET_PLUGIN_LANE_HOST_NICS_H
#define NET_PLUGIN_LANE_HOST_NICS_H

#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>

struct host_link {
  unsigned index, flags; /* IFF_* */
  char name[IF_NAMESIZE];
  uint8_t hardware[32]; /* its address on the link */
  unsigned hardware_bytes;
};

struct host_address {
  unsigned index; /* of its link */
  unsigned flags; /* IFA_F_* */
  unsigned prefix_bits;
  struct sockaddr_storage address; /* with its scope; the port is 0 */
};

/* In the kernel's order: links by index; addresses of IPv4 before those of IPv6. Return how many.
 */
int host_links(struct host_link **list);
int host_addresses(struct host_address **list);

/* The link's name, or a negative errno: -ENXIO, -ENODEV if there is none of this index. */
int host_link_name(unsigned index, char name[IF_NAMESIZE]);

/* Whether the link has this address, or any has it if index is 0: 1, 0, or a negative errno. *flags
 * are those of the address. Ports are ignored. */
int host_address_find(unsigned index, const struct sockaddr_storage *address, unsigned *flags);

#endif
