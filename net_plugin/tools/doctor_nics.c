/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_check.h. A condition names all NICs that it holds for in one line. */
#include "net_plugin/tools/doctor_check.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/sysfs.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/plugin/nic_facts.h"
#include "net_plugin/tools/doctor_tell.h"

/* "eth1, eth2": as many as have room. */
struct names {
  char text[DEVICE_PHYSICAL_MAX * (IF_NAMESIZE + 2)];
  unsigned count;
};

static void add_name(struct names *names, const char *name) {
  size_t length = strlen(names->text);
  if (length + IF_NAMESIZE + 2 < sizeof(names->text)) {
    snprintf(names->text + length, sizeof(names->text) - length, "%s%.15s", length ? ", " : "",
             name);
  }
  names->count++;
}

/* ---- conditions of a NIC ---- */

static bool is_loopback(const struct doctor_host *host, const struct nic *nic) {
  for (int i = 0; i < host->found->interface_count; i++) {
    if (!strcmp(host->found->interfaces[i].nic.name, nic->name)) {
      return host->found->interfaces[i].flags & IFF_LOOPBACK;
    }
  }
  return false;
}

static bool is_inner_bridge(const struct doctor_host *host, const struct nic *nic) {
  return !is_loopback(host, nic) && nic_facts_is_inner_bridge(host->root, nic->name);
}

static bool leads_nowhere(const struct doctor_host *host, const struct nic *nic) {
  return is_loopback(host, nic) || is_inner_bridge(host, nic);
}

static bool is_of_link(const struct doctor_host *host, const struct nic *nic) {
  return !leads_nowhere(host, nic) && interface_is_of_link(&nic->address);
}

/* One of a link, beside others. */
static bool is_near_only(const struct doctor_host *host, const struct nic *nic) {
  bool has_other = false;
  for (unsigned i = 0; i < host->nic_count; i++) {
    has_other |= !leads_nowhere(host, &host->nics[i]) && !is_of_link(host, &host->nics[i]);
  }
  return has_other && is_of_link(host, nic);
}

static bool is_idle(const struct doctor_host *host, const struct nic *nic) {
  return nic->is_idle && !leads_nowhere(host, nic);
}

/* What comes to it from afar is answered through another NIC, or not at all, though the host has a
 * way there. */
static bool is_stuck(const struct doctor_host *host, const struct nic *nic) {
  const struct sockaddr_storage far = route_far(nic->address.ss_family);
  return !nic->is_idle && nic->index && !leads_nowhere(host, nic) && !is_of_link(host, nic) &&
         route_exists_to(&far) && route_find(nic, &far) == ROUTE_ELSEWHERE;
}

static void check_conditions(const struct doctor_host *host) {
  static const struct {
    bool (*holds)(const struct doctor_host *host, const struct nic *nic);
    const char *text; /* behind the names of the NICs */
  } conditions[] = {
    { is_loopback, "leads to this host alone: for a job of several hosts name NICs between them in "
                   "NCCL_SOCKET_IFNAME" },
    { is_inner_bridge,
      "a bridge without a NIC, as containers and virtual machines have, leads to this host alone: "
      "leave it out in NCCL_SOCKET_IFNAME" },
    { is_near_only,
      "the address that NCCL takes is one of the link, and hosts beyond it are not reached; "
      "connections use it in turn with the others, so leave it out in NCCL_SOCKET_IFNAME" },
    { is_idle,
      "no route leads through it, so it carries nothing; ip route add NETWORK dev NIC, or leave it "
      "out in NCCL_SOCKET_IFNAME" },
    { is_stuck,
      "no route and rule of its own lead beyond its subnet, so hosts there are answered through "
      "another NIC, or not at all; ip route add default via GATEWAY dev NIC table 101; ip rule add "
      "from ITS-ADDRESS table 101" },
  };
  for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
    struct names names = { .count = 0 };
    for (unsigned j = 0; j < host->nic_count; j++) {
      if (conditions[i].holds(host, &host->nics[j])) {
        add_name(&names, host->nics[j].name);
      }
    }
    if (names.count) {
      doctor_tell(DOCTOR_HINT, "%s: %s", names.text, conditions[i].text);
    }
  }
}

/* ---- what is left out ---- */

static void check_left_out(const struct doctor_host *host) {
  const struct discovery *found = host->found;
  char wish[INTERFACE_WISH_TEXT_MAX];
  uint32_t most = 0, fastest = 0;
  struct names left = { .count = 0 };
  for (unsigned i = 0; i < host->nic_count; i++) {
    most = host->nics[i].speed_mbps > most ? host->nics[i].speed_mbps : most;
  }
  const char *last = "";
  for (int i = 0; i < found->interface_count; i++) {
    const struct interface *it = &found->interfaces[i];
    struct nic_facts facts;
    if (it->verdict != INTERFACE_NOT_NAMED || !strcmp(it->nic.name, last) ||
        !sysfs_exists(host->root, "sys/class/net/%s/device", it->nic.name)) {
      continue;
    }
    nic_facts_read(host->root, it->nic.name, &facts);
    if (facts.speed_mbps && facts.speed_mbps >= most) {
      add_name(&left, it->nic.name);
      fastest = facts.speed_mbps > fastest ? facts.speed_mbps : fastest;
      last = it->nic.name;
    }
  }
  if (left.count && host->nic_count) {
    doctor_tell(DOCTOR_HINT, "%s leaves out %s, up to %u Mb/s; the fastest in use has %u",
                interface_wish_text(&found->wishes, wish), left.text, fastest, most);
  }
}

/* ---- MTU ---- */

/* 0: not known. */
static unsigned mtu_of(const char *root, const char *nic) {
  int64_t mtu;
  return sysfs_read_int(root, &mtu, "sys/class/net/%s/mtu", nic) == 0 && mtu > 0 ? (unsigned)mtu
                                                                                 : 0;
}

static void check_mtu(const struct doctor_host *host) {
  struct names small = { .count = 0 }, large = { .count = 0 };
  unsigned least = 0, most = 0;
  for (int is_second = 0; is_second < 2; is_second++) {
    for (unsigned i = 0; i < host->nic_count; i++) {
      const struct nic *nic = &host->nics[i];
      unsigned mtu = leads_nowhere(host, nic) ? 0 : mtu_of(host->root, nic->name);
      if (is_second && mtu) {
        add_name(mtu < most ? &small : &large, nic->name);
      }
      most = mtu > most ? mtu : most;
      least = mtu && (!least || mtu < least) ? mtu : least;
    }
  }
  if (small.count) {
    doctor_tell(
        DOCTOR_HINT,
        "the MTU of %s is %u, that of %s %u: small packets cost more processor time; ip link "
        "set NIC mtu %u, if its network carries that",
        small.text, least, large.text, most, most);
  }
}

/* ---- addresses ---- */

static void tell_advertised(const struct doctor_host *host) {
  char address[INTERFACE_ADDRESS_TEXT_MAX], own[INTERFACE_ADDRESS_TEXT_MAX];
  for (unsigned i = 0; i < host->nic_count; i++) {
    const struct nic *nic = &host->nics[i];
    if (nic->advertised.ss_family != AF_UNSPEC) {
      doctor_tell(DOCTOR_GOOD, "other hosts dial %s at %s (STRATUS_ADVERTISE_ADDRESS), not at %s",
                  nic->name, interface_address_text(&nic->advertised, address),
                  interface_address_text(&nic->address, own));
    }
  }
}

void nics_check(const struct doctor_host *host) {
  check_conditions(host);
  check_left_out(host);
  check_mtu(host);
  tell_advertised(host);
}
