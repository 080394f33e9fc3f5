/* SPDX-License-Identifier: Apache-2.0 */
/* interface: the system's network interfaces and which of them NCCL would use.
 *
 * The choice is NCCL's own, so that a user's NCCL_SOCKET_* variables mean what they always meant:
 * ncclFindInterfaces, src/misc/socket.cc:190-231, ncclOsFindInterfaces and
 * ncclFindInterfaceMatchSubnet, src/os/linux.cc:379-524, at NVIDIA/nccl v2.30.7-1. Releases before
 * 2.28 also took interfaces that are not running and libvirt's bridges; that is not followed. Nor
 * is it, where no interface is named, for what would be a second path and is none; and of an
 * interface's addresses NCCL takes the first, whatever it is for.
 *
 * Owns: nothing; who asks for the list frees it.  Threads: any.  Blocks: interface_select on name
 * resolution if NCCL_COMM_ID holds a host name.  Fails: as stated. */
#ifndef NET_PLUGIN_PLUGIN_INTERFACE_H
#define NET_PLUGIN_PLUGIN_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

enum {
  INTERFACE_HARDWARE_MAX = 32, /* bytes; InfiniBand's have 20 */
  INTERFACE_CHOSEN_MAX = 16,   /* MAX_IFS, src/include/socket.h of NCCL */
};

/* Why an address of an interface is used or not. */
enum interface_verdict {
  INTERFACE_CHOSEN,
  INTERFACE_NOT_RUNNING,      /* IFF_RUNNING is not set */
  INTERFACE_OTHER_FAMILY,     /* NCCL_SOCKET_FAMILY asks for the other one */
  INTERFACE_LOOPBACK_ADDRESS, /* ::1 is never used */
  INTERFACE_NOT_NAMED,        /* NCCL_SOCKET_IFNAME leaves it out */
  INTERFACE_LESS_PREFERRED,   /* there are better ones: ib*, the subnet of NCCL_COMM_ID, others */
  INTERFACE_SECOND_ADDRESS,   /* an earlier address of the interface is used */
  INTERFACE_OF_THIS_HOST,     /* a bridge without a NIC: it leads to this host alone */
  INTERFACE_OF_ITS_LINK,      /* its address is of the link, and others' are not */
  INTERFACE_SAME_HARDWARE,    /* an earlier one has its hardware address, and so its path */
  INTERFACE_OVER_LIMIT,       /* INTERFACE_CHOSEN_MAX are taken */
  INTERFACE_WITHOUT_HCA,      /* NCCL_IB_HCA chooses others, see interface_choose_hcas */
};

/* One address of one interface. */
struct interface {
  struct nic nic; /* as lanes use it; the rest of one that is chosen: device.c */
  unsigned flags; /* IFF_* */
  uint8_t hardware[INTERFACE_HARDWARE_MAX];
  unsigned hardware_bytes; /* 0: none, or only zeroes */
  bool is_inner_bridge;    /* nic_facts.h; for who looks there */
  unsigned address_flags;  /* IFA_F_* */
  bool is_route_source;    /* routes to afar through the interface have its address as source */
  enum interface_verdict verdict; /* set by interface_select */
};

/* NCCL's variables; NULL where they are not set. */
struct interface_wishes {
  const char *ifname;  /* NCCL_SOCKET_IFNAME */
  const char *family;  /* NCCL_SOCKET_FAMILY */
  const char *comm_id; /* NCCL_COMM_ID */
};
struct interface_wishes interface_read_wishes(void);

/* All IPv4 and IPv6 addresses, in the kernel's order. Returns how many, or negative errno. */
int interface_list(struct interface **list);

/* Sets every verdict. Returns how many are chosen. */
size_t interface_select(struct interface *list, size_t count,
                        const struct interface_wishes *wishes);

/* Where NCCL_IB_HCA names devices (endpoint_names_devices), chooses again. It chooses the devices
 * that NCCL's own IB transport moves data with, while NCCL_SOCKET_IFNAME then only serves its
 * bootstrap: such a job gets their NICs, whatever NCCL_SOCKET_IFNAME names; if none of them has the
 * address of an interface, nothing changes. Blocks: as endpoint_find. */
void interface_choose_hcas(struct interface *list, size_t count);

/* "does not match NCCL_SOCKET_IFNAME". */
const char *interface_verdict_text(enum interface_verdict verdict);
/* The value of NCCL_SOCKET_IFNAME in quotes, with a word about what NCCL does not take for names.
 */
enum { INTERFACE_WISH_TEXT_MAX = 256 };
const char *interface_wish_text(const struct interface_wishes *wishes,
                                char text[INTERFACE_WISH_TEXT_MAX]);

/* 169.254.0.0/16, fe80::/10: hosts beyond the link are not reached from there. */
bool interface_is_of_link(const struct sockaddr_storage *address);

/* "10.0.0.1" or "fe80::1%eth0". */
enum { INTERFACE_ADDRESS_TEXT_MAX = 64 };
const char *interface_address_text(const struct sockaddr_storage *address,
                                   char text[INTERFACE_ADDRESS_TEXT_MAX]);

#endif
