/* SPDX-License-Identifier: Apache-2.0 */
/* What stratus doctor finds in a host's settings and its NICs, which are files here; interfaces are
 * invented. Routes are those of tests/netns/nics. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/control_group.h"
#include "net_plugin/tools/doctor_check.h"
#include "net_plugin/tools/doctor_tell.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

/* ---- what is told, in the place of doctor's own ---- */

/* Lines such as "hint: eth0 ...", and how many there are of a kind. */
static char told[8192];
static int told_counts[DOCTOR_BAD + 1];

void doctor_tell(enum doctor_finding finding, const char *format, ...) {
  static const char *const words[] = { "good: ", "hint: ", "bad: " };
  char text[DOCTOR_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t length = strlen(told);
  snprintf(told + length, sizeof told - length, "%s%s\n", words[finding], text);
  told_counts[finding]++;
}

/* ---- the host ---- */

static struct interface interfaces[16];
static struct discovery found;
static struct doctor_host host;

/* What one of the checks tells of it: so many hints, and the part. */
static void expect_of(void (*check)(const struct doctor_host *host), int count, const char *part) {
  told[0] = '\0';
  memset(told_counts, 0, sizeof told_counts);
  host.nic_count = device_table_nics(&found.devices, host.nics);
  check(&host);
  if (told_counts[DOCTOR_HINT] != count || !strstr(told, part)) {
    fail_msg("%d findings, not %d hints with \"%s\":\n%s", told_counts[DOCTOR_HINT], count, part,
             told);
  }
}

static void set(const char *name, const char *value) {
  char path[128];
  snprintf(path, sizeof(path), "proc/sys/net/%s", name);
  tree_write(&test_tree, path, "%s\n", value);
}

/* A host without NICs. */
static int set_up_nics(void **context) {
  test_tree_create(context);
  memset(interfaces, 0, sizeof interfaces);
  found = (struct discovery){ .interfaces = interfaces };
  host = (struct doctor_host){
    .root = test_tree.root, .found = &found, .lanes = 8, .open_files = 1 << 20
  };
  return 0;
}

static struct nic *add_nic(const char *name, const char *address, uint32_t mbps) {
  struct device *device = &found.devices.devices[found.devices.count++];
  *device = (struct device){ .nic_count = 1, .nics = { fake_nic(name, address, 24) } };
  device->nics[0].speed_mbps = mbps;
  found.devices.physical_count = found.devices.count;
  return &device->nics[0];
}

/* A host with nothing to complain about. */
static int set_up_host(void **context) {
  set_up_nics(context);
  add_nic("eth0", "10.0.0.1", 100000);
  set("ipv4/tcp_rmem", "4096\t131072\t6291456");
  set("ipv4/tcp_wmem", "4096\t16384\t4194304");
  set("core/rmem_max", "212992");
  set("core/wmem_max", "212992");
  set("core/somaxconn", "4096");
  set("ipv4/tcp_slow_start_after_idle", "0");
  set("ipv4/tcp_retries2", "8");
  set("ipv4/conf/all/arp_ignore", "0");
  set("ipv4/conf/all/arp_announce", "0");
  set("ipv4/conf/all/rp_filter", "0");
  return 0;
}

static void expect(int count, const char *part) {
  expect_of(host_check, count, part);
}

#define HOST_TEST(test) UNIT_TEST_WITH(test, set_up_host, test_tree_remove)

HOST_TEST(a_good_host_has_no_findings) {
  expect(0, "");
  tree_remove(&test_tree); /* what cannot be read is not judged */
  tree_create(&test_tree);
  host.root = test_tree.root;
  expect(0, "");
}

HOST_TEST(buffers_must_hold_what_is_in_flight) {
  found.devices.devices[0].nics[0].speed_mbps = 400000; /* 2 x 50 Gb/s x 1 ms for each of 8 */
  expect(2, "sysctl -w net.ipv4.tcp_rmem='4096 131072 12500000'");
  expect(2, "tcp_wmem ends at 4194304 bytes");
  host.lanes = 32;
  expect(0, "");
  host.socket_buffer_bytes = 1 << 20;
  expect(2, "sysctl -w net.core.wmem_max=1048576");
}

HOST_TEST(nics_in_one_subnet_need_care) {
  add_nic("eth1", "10.0.1.1", 1000);
  expect(0, "");
  add_nic("eth2", "10.0.0.2", 1000);
  /* These NICs are invented, so that they cannot be bound to either. */
  expect(3, "sysctl -w net.ipv4.conf.all.arp_ignore=1");
  expect(3, "eth0 and eth2 are in one subnet, and arp_announce of eth0 is 0");
  set("ipv4/conf/all/arp_ignore", "1");
  set("ipv4/conf/all/arp_announce", "2");
  expect(1, "cannot be bound to a device");
  set("ipv4/conf/eth2/rp_filter", "1");
  expect(2, "rp_filter of eth2 is 1");
  set("ipv4/conf/all/rp_filter", "2");
  expect(1, "");
}

HOST_TEST(merged_nics_are_looked_at_one_by_one) {
  add_nic("eth1", "10.0.0.2", 1000);
  found.devices.devices[0].nics[1] = found.devices.devices[1].nics[0];
  found.devices.devices[0].nic_count = 2;
  found.devices.count = found.devices.physical_count = 1;
  expect(3, "eth0 and eth1 are in one subnet");
}

static void set_bond(const char *mode, const char *policy, const char *members) {
  tree_write(&test_tree, "sys/class/net/bond0/bonding/mode", "%s\n", mode);
  tree_write(&test_tree, "sys/class/net/bond0/bonding/xmit_hash_policy", "%s\n", policy);
  tree_write(&test_tree, "sys/class/net/bond0/bonding/slaves", "%s\n", members);
}

HOST_TEST(a_bond_must_hash_by_ports) {
  add_nic("bond0", "10.0.1.1", 50000);
  set_bond("802.3ad 4", "layer2 0", "eth2 eth3");
  expect(1,
         "bond0: the bond bond0 hashes by layer2, so all flows to a host take one of its members "
         "(eth2 eth3)");
  expect(1, "ip link set bond0 type bond xmit_hash_policy layer3+4");
  set_bond("balance-xor 2", "layer2+3 2", "eth2 eth3");
  expect(1, "hashes by layer2+3");
  set_bond("balance-xor 2", "layer3+4 1", "eth2 eth3");
  expect(0, "");
  set_bond("802.3ad 4", "encap3+4 4", "eth2 eth3");
  expect(0, "");
  set_bond("active-backup 1", "layer2 0", "eth2 eth3");
  expect(0, "");
  set_bond("802.3ad 4", "layer2 0", "eth2");
  expect(0, "");
}

HOST_TEST(a_vlan_has_the_bond_below_it) {
  add_nic("bond0.7", "10.0.1.1", 50000);
  set_bond("802.3ad 4", "layer2 0", "eth2 eth3");
  expect(0, "");
  tree_make_directory(&test_tree, "sys/class/net/bond0.7/lower_bond0");
  expect(1, "bond0.7: the bond bond0 hashes by layer2");
}

HOST_TEST(a_quota_of_cpus_is_told) {
  tree_write(&test_tree, "proc/self/cgroup", "0::/pod\n");
  tree_write(&test_tree, "sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  expect(0, "");
  tree_write(&test_tree, "sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  char limit[CONTROL_GROUP_TEXT_MAX];
  if (control_group_cpus(test_tree.root, limit) == 1 && !*limit) {
    SKIP_BECAUSE("this process has one CPU");
  }
  expect(1, "the quota of /sys/fs/cgroup/pod is 1.5 CPUs, so stratus makes threads for 1");
}

HOST_TEST(queues_and_limits) {
  set("core/somaxconn", "128");
  expect(1, "sysctl -w net.core.somaxconn=4096");
  set("core/somaxconn", "4096");
  set("ipv4/tcp_slow_start_after_idle", "1");
  expect(1, "tcp_slow_start_after_idle=0");
  set("ipv4/tcp_slow_start_after_idle", "0");
  set("ipv4/tcp_retries2", "15");
  expect(1, "tcp_retries2=8");
  set("ipv4/tcp_retries2", "8");
  host.open_files = 1024;
  expect(1, "with 8 flows each, that is for 128 connections; ulimit -n 2048");
}

HOST_TEST(nics_with_one_address_need_ports_in_the_hash) {
  set("ipv4/fib_multipath_hash_policy", "0");
  expect(0, "");
  add_nic("eth1", "10.0.0.1", 100000);
  for (int i = 0; i < 2; i++) {
    found.devices.devices[i].nics[0].prefix_bits = 0; /* no subnet is on the NIC */
  }
  expect(1, "eth0 and eth1 have one address, and all flows to a host take the same of them; "
            "sysctl -w net.ipv4.fib_multipath_hash_policy=1");
  set("ipv4/fib_multipath_hash_policy", "1");
  expect(0, "");
}

/* ---- whether NICs can carry a job ---- */

/* An interface with a MTU and, unless it is 0, a device that tells its speed. */
static void add_interface(const char *name, const char *address, int mtu, int mbps,
                          enum interface_verdict verdict) {
  struct interface *it = &found.interfaces[found.interface_count++];
  char path[128];
  it->verdict = verdict;
  it->flags = IFF_RUNNING | (strcmp(name, "lo") ? 0 : IFF_LOOPBACK);
  it->nic.address = fake_nic_address(address);
  snprintf(it->nic.name, sizeof(it->nic.name), "%s", name);
  snprintf(path, sizeof(path), "sys/class/net/%s/mtu", name);
  tree_write(&test_tree, path, "%d\n", mtu);
  if (mbps) {
    snprintf(path, sizeof(path), "sys/class/net/%s/speed", name);
    tree_write(&test_tree, path, "%d\n", mbps);
    snprintf(path, sizeof(path), "sys/class/net/%s/device/vendor", name);
    tree_write(&test_tree, path, "0x15b3\n");
  }
}

static struct nic *use(const char *name, const char *address, int mtu, int mbps) {
  add_interface(name, address, mtu, mbps, INTERFACE_CHOSEN);
  return add_nic(name, address, mbps ? (uint32_t)mbps : DEVICE_DEFAULT_SPEED_MBPS);
}

static void expect_of_nics(int count, const char *part) {
  expect_of(nics_check, count, part);
}

#define NICS_TEST(test) UNIT_TEST_WITH(test, set_up_nics, test_tree_remove)

NICS_TEST(loopback_leads_nowhere) {
  use("lo", "127.0.0.1", 65536, 0);
  expect_of_nics(1, "lo: leads to this host alone");
  use("eth0", "10.0.0.1", 1500, 0);
  expect_of_nics(1, "lo: leads to this host alone"); /* and its MTU does not count */
}

NICS_TEST(a_bridge_needs_a_nic) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("br-4f1", "172.18.0.1", 1500, 0);
  tree_write(&test_tree, "sys/class/net/br-4f1/bridge/ageing_time", "1\n");
  expect_of_nics(1, "br-4f1: a bridge without a NIC");
  tree_make_directory(&test_tree, "sys/class/net/br-4f1/brif/veth1");
  tree_write(&test_tree, "sys/class/net/veth1/mtu", "1500\n");
  expect_of_nics(1, "br-4f1: a bridge without a NIC");
  tree_make_directory(&test_tree, "sys/class/net/br-4f1/brif/bond0");
  tree_make_directory(&test_tree, "sys/class/net/bond0/lower_ens1");
  expect_of_nics(0, "");
}

NICS_TEST(a_tunnels_address_is_of_its_link) {
  use("tun0", "fe80::1", 1500, 0);
  expect_of_nics(0, ""); /* there is no other */
  use("eth0", "fd00::1", 1500, 0);
  expect_of_nics(1, "tun0: the address that NCCL takes is one of the link");
  expect_of_nics(1, "in turn with the others");
  found.devices.devices[0].nics[0].address = fake_nic_address("169.254.7.1");
  expect_of_nics(1, "tun0: the address");
}

NICS_TEST(nics_without_a_route_are_idle) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("eth1", "10.0.0.2", 1500, 0)->is_idle = true;
  use("eth2", "10.0.0.3", 1500, 0)->is_idle = true;
  expect_of_nics(1, "eth1, eth2: no route leads through it");
}

NICS_TEST(faster_nics_are_not_left_out) {
  use("eth0", "10.0.0.1", 1500, 10000);
  found.wishes.ifname = "eth0";
  add_interface("ens1", "10.1.0.1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens1", "fd00::1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens2", "10.2.0.1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens3", "10.3.0.1", 1500, 1000, INTERFACE_NOT_NAMED);
  add_interface("ens4", "10.4.0.1", 1500, 400000, INTERFACE_NOT_RUNNING);
  add_interface("wlan0", "192.168.1.1", 1500, 0, INTERFACE_NOT_NAMED);
  expect_of_nics(
      1, "NCCL_SOCKET_IFNAME=\"eth0\" leaves out ens1, ens2, up to 200000 Mb/s; the fastest in "
         "use has 10000");
}

NICS_TEST(mtus_are_equal) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("eth1", "10.0.1.1", 9000, 0);
  use("eth2", "10.0.2.1", 9000, 0);
  expect_of_nics(1, "the MTU of eth0 is 1500, that of eth1, eth2 9000");
}
