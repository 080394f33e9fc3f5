/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_check.h. Each check is independent: it reads a setting and prints the command that
 * corrects it. What cannot be read is not judged. */
#include "net_plugin/tools/doctor_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/control_group.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/doctor_tell.h"
#include "net_plugin/tools/limits.h"

/* "net.core.somaxconn"; an interface's name in it may have dots of its own. */
static bool read_sysctl(const struct doctor_host *host, const char *name, int64_t *value) {
  char path[96];
  snprintf(path, sizeof path, "proc/sys/%s", name);
  for (char *c = path; *c; c++) {
    *c = *c == '.' ? '/' : *c;
  }
  return sysfs_read_int(host->root, value, "%s", path) == 0;
}

/* ---- several NICs in one subnet ---- */

/* A setting of the kernel. */
struct advice {
  const char *name;
  int64_t bad_from, bad_to, good;
  const char *effect; /* of a bad value */
};

static bool is_bad(const struct advice *advice, int64_t value) {
  return value >= advice->bad_from && value <= advice->bad_to;
}

/* The kernel uses the larger of the two. */
static int64_t interface_setting(const struct doctor_host *host, const char *nic,
                                 const char *name) {
  int64_t all = 0, own = 0;
  if (sysfs_read_int(host->root, &all, "proc/sys/net/ipv4/conf/all/%s", name) < 0) {
    return -1; /* not readable: skipped */
  }
  sysfs_read_int(host->root, &own, "proc/sys/net/ipv4/conf/%s/%s", nic, name);
  return all > own ? all : own;
}

/* arp_ignore, arp_announce and rp_filter of two NICs: 0 and 1 are bad for the former two, 1 for the
 * latter, where 0 is no filter at all. */
static void check_shared_subnet(const struct doctor_host *host, const struct nic *a,
                                const struct nic *b) {
  static const struct advice settings[] = {
    { "arp_ignore", 0, 0, 1,
      "each NIC answers ARP for the other's address, and packets arrive on either" },
    { "arp_announce", 0, 1, 2,
      "each NIC sends ARP requests with the other's address, so that neighbours learn the wrong "
      "one" },
    { "rp_filter", 1, 1, 2,
      "packets that arrive on the NIC without the preferred route are dropped" },
  };
  for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
    const struct nic *nics[] = { a, b };
    for (int j = 0; j < 2; j++) {
      int64_t value = interface_setting(host, nics[j]->name, settings[i].name);
      if (is_bad(&settings[i], value)) {
        doctor_tell(DOCTOR_HINT,
                    "%s and %s are in one subnet, and %s of %s is %" PRId64 ": %s; "
                    "sysctl -w net.ipv4.conf.all.%s=%" PRId64,
                    a->name, b->name, settings[i].name, nics[j]->name, value, settings[i].effect,
                    settings[i].name, settings[i].good);
        break;
      }
    }
  }
  if (!tcp_socket_can_bind_device(a) || !tcp_socket_can_bind_device(b)) {
    doctor_tell(DOCTOR_HINT,
                "%s and %s are in one subnet, and flows cannot be bound to a device: all use "
                "the first; use Linux 5.7 or later, or setcap cap_net_raw+ep PROGRAM",
                a->name, b->name);
  }
}

static void check_subnets(const struct doctor_host *host) {
  for (unsigned i = 1; i < host->nic_count; i++) {
    const struct nic *nic = &host->nics[i];
    for (unsigned j = 0; j < i && nic->address.ss_family == AF_INET; j++) {
      if (tcp_address_is_near(&nic->address, &host->nics[j])) {
        check_shared_subnet(host, &host->nics[j], nic);
        return; /* the commands apply to all NICs */
      }
    }
  }
}

/* NICs that share an address of the host, as on lo with BGP unnumbered: the kernel spreads flows.
 */
static void check_multipath(const struct doctor_host *host) {
  static const char *const names[] = { "net.ipv4.fib_multipath_hash_policy",
                                       "net.ipv6.fib_multipath_hash_policy" };
  const struct nic *nics = host->nics;
  int64_t policy;
  for (unsigned i = 1; i < host->nic_count; i++) {
    const char *name = names[nics[i].address.ss_family == AF_INET6];
    if (memcmp(&nics[i].address, &nics[0].address, sizeof nics[0].address) == 0 &&
        read_sysctl(host, name, &policy) && policy == 0) {
      doctor_tell(DOCTOR_HINT,
                  "%s and %s have one address, and all flows to a host take the same of them; "
                  "sysctl -w %s=1",
                  nics[0].name, nics[i].name, name);
      return;
    }
  }
}

/* ---- bonds ---- */

/* The bond that a NIC is, or stands on: a VLAN, a bridge. */
static bool find_bond(const char *root, const char *name, int depth, char bond[IF_NAMESIZE]) {
  glob_t lower;
  bool is_found = sysfs_exists(root, "sys/class/net/%s/bonding", name);
  if (is_found) {
    snprintf(bond, IF_NAMESIZE, "%.15s", name);
    return true;
  }
  size_t count = sysfs_find(root, &lower, "sys/class/net/%s/lower_*", name);
  for (size_t i = 0; i < count && depth > 0 && !is_found; i++) {
    const char *below = sysfs_name(lower.gl_pathv[i]) + strlen("lower_");
    is_found = find_bond(root, below, depth - 1, bond);
  }
  globfree(&lower);
  return is_found;
}

/* The first word: "layer2 0". */
static bool read_bonding(const char *root, const char *bond, const char *name, char word[32]) {
  char text[SYSFS_TEXT_MAX];
  return sysfs_read_text(root, text, sizeof text, "sys/class/net/%s/bonding/%s", bond, name) > 0 &&
         sscanf(text, "%31s", word) == 1;
}

/* A member is chosen by a hash of what all flows between two hosts have in common, unless it takes
 * the ports, too. Modes that hash nothing either use one member or change it by themselves. */
static void check_bond(const struct doctor_host *host, const char *nic) {
  char bond[IF_NAMESIZE], mode[32], policy[32], members[SYSFS_TEXT_MAX];
  const char *root = host->root;
  if (!find_bond(root, nic, HOST_STACKED_MAX, bond) ||
      sysfs_read_text(root, members, sizeof members, "sys/class/net/%s/bonding/slaves", bond) < 0 ||
      !strchr(members, ' ') || !read_bonding(root, bond, "mode", mode) ||
      (strcmp(mode, "802.3ad") != 0 && strcmp(mode, "balance-xor") != 0) ||
      !read_bonding(root, bond, "xmit_hash_policy", policy) || strstr(policy, "3+4")) {
    return;
  }
  doctor_tell(
      DOCTOR_HINT,
      "%s: the bond %s hashes by %s, so all flows to a host take one of its members (%s), and "
      "no other when that is slow; ip link set %s type bond xmit_hash_policy layer3+4, and "
      "the like on the switch",
      nic, bond, policy, members, bond);
}

static void check_bonds(const struct doctor_host *host) {
  for (unsigned i = 0; i < host->nic_count; i++) {
    check_bond(host, host->nics[i].name);
  }
}

/* ---- memory of sockets ---- */

/* The third number: the maximum size of a socket's buffer. */
static bool read_largest(const struct doctor_host *host, const char *name, uint64_t *bytes) {
  char text[SYSFS_TEXT_MAX];
  return sysfs_read_text(host->root, text, sizeof(text), "proc/sys/net/ipv4/%s", name) > 0 &&
         sscanf(text, "%*u %*u %" SCNu64, bytes) == 1;
}

static void check_buffers(const struct doctor_host *host) {
  static const char *const names[] = { "tcp_rmem", "tcp_wmem" };
  static const char *const limits[] = { "net.core.rmem_max", "net.core.wmem_max" };
  uint64_t fastest_mbps = 0;
  for (unsigned i = 0; i < host->nic_count; i++) {
    uint32_t mbps = host->nics[i].speed_mbps;
    fastest_mbps = mbps > fastest_mbps ? mbps : fastest_mbps;
  }
  /* A flow's share of the bandwidth-delay product, twice: half of a buffer is overhead. */
  uint64_t needed = 2 * fastest_mbps * HOST_ROUND_TRIP_US / 8 / host->lanes;
  for (int i = 0; i < 2; i++) {
    uint64_t bytes = 0;
    int64_t limit = 0;
    if (host->socket_buffer_bytes == 0) {
      if (read_largest(host, names[i], &bytes) && bytes < needed) {
        doctor_tell(DOCTOR_HINT,
                    "%s ends at %" PRIu64 " bytes; %u flows fill %" PRIu64
                    " Mb/s at a round trip of 1 ms "
                    "with %" PRIu64 "; sysctl -w net.ipv4.%s='4096 131072 %" PRIu64 "'",
                    names[i], bytes, host->lanes, fastest_mbps, needed, names[i], needed);
      }
    } else if (read_sysctl(host, limits[i], &limit) &&
               (uint64_t)limit < host->socket_buffer_bytes) {
      doctor_tell(DOCTOR_HINT,
                  "socket buffers of %u bytes are set, and %s allows %" PRId64 "; sysctl -w %s=%u",
                  host->socket_buffer_bytes, limits[i], limit, limits[i],
                  host->socket_buffer_bytes);
    }
  }
}

/* ---- the rest ---- */

static void check_cpus(const struct doctor_host *host) {
  char limit[CONTROL_GROUP_TEXT_MAX];
  unsigned cpus = control_group_cpus(host->root, limit);
  if (*limit) {
    doctor_tell(
        DOCTOR_HINT,
        "%s, so stratus makes threads for %u: when NCCL's and its own have used the time up, "
        "all flows wait for the next period; give the container more CPUs, or whole ones "
        "(cpuset) in the place of a quota",
        limit, cpus);
  }
}

static void check_sysctls(const struct doctor_host *host) {
  static const struct advice sysctls[] = {
    { "net.core.somaxconn", 0, 1023, 4096,
      "connections are refused when many peers connect at once" },
    { "net.ipv4.tcp_slow_start_after_idle", 1, 1, 0,
      "flows repeat slow start after each pause of a job" },
    { "net.ipv4.tcp_retries2", 9, INT64_MAX, 8,
      "stratus detects dead peers itself, but NCCL's bootstrap connections wait for minutes" },
  };
  int64_t value;
  for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
    if (read_sysctl(host, sysctls[i].name, &value) && is_bad(&sysctls[i], value)) {
      doctor_tell(DOCTOR_HINT, "%s is %" PRId64 ": %s; sysctl -w %s=%" PRId64, sysctls[i].name,
                  value, sysctls[i].effect, sysctls[i].name, sysctls[i].good);
    }
  }
}

static void check_open_files(const struct doctor_host *host) {
  uint64_t needed = (uint64_t)HOST_CONNECTIONS * host->lanes;
  if (host->open_files < needed) {
    doctor_tell(DOCTOR_HINT,
                "ulimit -n is %" PRIu64 ": with %u flows each, that is for %" PRIu64
                " connections; ulimit -n %" PRIu64
                " (systemd: LimitNOFILE=, docker: --ulimit nofile=)",
                host->open_files, host->lanes, host->open_files / host->lanes, needed);
  }
}

void doctor_host_read(const struct discovery *found, struct doctor_host *host) {
  struct settings settings;
  struct rlimit files = { .rlim_cur = RLIM_INFINITY };
  settings_get(1, &settings);
  getrlimit(RLIMIT_NOFILE, &files);
  *host =
      (struct doctor_host){ .root = sysfs_process_root,
                            .found = found,
                            .lanes = settings.policy.first_lanes,
                            .socket_buffer_bytes = (uint32_t)param_size(PARAM_SOCKET_BUFFER_BYTES),
                            .open_files = files.rlim_cur };
  host->nic_count = device_table_nics(&found->devices, host->nics);
}

void host_check(const struct doctor_host *host) {
  check_multipath(host);
  check_subnets(host);
  check_bonds(host);
  check_buffers(host);
  check_cpus(host);
  check_sysctls(host);
  check_open_files(host);
}
