/* SPDX-License-Identifier: Apache-2.0 */
/* What stratus doctor finds in a host's settings, which are files here. */
#include <stdio.h>
#include <string.h>

#include "common/control_group.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/told.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct tree tree;
static struct device_table table;
static struct host_facts facts;

static void set(const char *name, const char *value) {
  char path[128];
  snprintf(path, sizeof(path), "proc/sys/net/%s", name);
  tree_write(&tree, path, "%s\n", value);
}

static void add_nic(const char *name, const char *address, uint32_t mbps) {
  struct device *device = &table.devices[table.count++];
  struct nic *nic = &device->nics[0];
  *device = (struct device){ .nic_count = 1 };
  *nic = fake_nic(name, address, 24);
  nic->speed_mbps = mbps;
  table.physical_count = table.count;
}

/* A host with nothing to complain about. */
static int set_up(void **context) {
  (void)context;
  tree_create(&tree);
  memset(&table, 0, sizeof(table));
  memset(&facts, 0, sizeof(facts));
  facts = (struct host_facts){
    .root = tree.root, .devices = &table, .lanes = 8, .open_files = 1 << 20
  };
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

static int tear_down(void **context) {
  (void)context;
  tree_remove(&tree);
  return 0;
}

static void expect(int count, const char *part) {
  told_clear();
  host_check(&facts);
  if (told_counts[DOCTOR_HINT] != count || !strstr(told, part)) {
    fail_msg("%d findings, not %d hints with \"%s\":\n%s", told_counts[DOCTOR_HINT], count, part,
             told);
  }
}

UNIT_TEST_WITH(a_good_host_has_no_findings, set_up, tear_down) {
  expect(0, "");
  tree_remove(&tree); /* what cannot be read is not judged */
  tree_create(&tree);
  facts.root = tree.root;
  expect(0, "");
}

UNIT_TEST_WITH(buffers_must_hold_what_is_in_flight, set_up, tear_down) {
  table.devices[0].nics[0].speed_mbps = 400000; /* 2 x 50 Gb/s x 1 ms for each of 8 */
  expect(2, "sysctl -w net.ipv4.tcp_rmem='4096 131072 12500000'");
  expect(2, "tcp_wmem ends at 4194304 bytes");
  facts.lanes = 32;
  expect(0, "");
  facts.options.socket_buffer_bytes = 1 << 20;
  expect(2, "sysctl -w net.core.wmem_max=1048576");
}

UNIT_TEST_WITH(nics_in_one_subnet_need_care, set_up, tear_down) {
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

UNIT_TEST_WITH(merged_nics_are_looked_at_one_by_one, set_up, tear_down) {
  add_nic("eth1", "10.0.0.2", 1000);
  table.devices[0].nics[1] = table.devices[1].nics[0];
  table.devices[0].nic_count = 2;
  table.count = table.physical_count = 1;
  expect(3, "eth0 and eth1 are in one subnet");
}

static void set_bond(const char *mode, const char *policy, const char *members) {
  tree_write(&tree, "sys/class/net/bond0/bonding/mode", "%s\n", mode);
  tree_write(&tree, "sys/class/net/bond0/bonding/xmit_hash_policy", "%s\n", policy);
  tree_write(&tree, "sys/class/net/bond0/bonding/slaves", "%s\n", members);
}

UNIT_TEST_WITH(a_bond_must_hash_by_ports, set_up, tear_down) {
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

UNIT_TEST_WITH(a_vlan_has_the_bond_below_it, set_up, tear_down) {
  add_nic("bond0.7", "10.0.1.1", 50000);
  set_bond("802.3ad 4", "layer2 0", "eth2 eth3");
  expect(0, "");
  tree_make_directory(&tree, "sys/class/net/bond0.7/lower_bond0");
  expect(1, "bond0.7: the bond bond0 hashes by layer2");
}

UNIT_TEST_WITH(a_quota_of_cpus_is_told, set_up, tear_down) {
  tree_write(&tree, "proc/self/cgroup", "0::/pod\n");
  tree_write(&tree, "sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  expect(0, "");
  tree_write(&tree, "sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  char limit[CONTROL_GROUP_TEXT_MAX];
  if (control_group_cpus(tree.root, limit) == 1 && !*limit) {
    SKIP_BECAUSE("this process has one CPU");
  }
  expect(1, "the quota of /sys/fs/cgroup/pod is 1.5 CPUs, so stratus makes threads for 1");
}

UNIT_TEST_WITH(queues_and_limits, set_up, tear_down) {
  set("core/somaxconn", "128");
  expect(1, "sysctl -w net.core.somaxconn=4096");
  set("core/somaxconn", "4096");
  set("ipv4/tcp_slow_start_after_idle", "1");
  expect(1, "tcp_slow_start_after_idle=0");
  set("ipv4/tcp_slow_start_after_idle", "0");
  set("ipv4/tcp_retries2", "15");
  expect(1, "tcp_retries2=8");
  set("ipv4/tcp_retries2", "8");
  facts.open_files = 1024;
  expect(1, "with 8 flows each, that is for 128 connections; ulimit -n 2048");
}

UNIT_TEST_WITH(nics_with_one_address_need_ports_in_the_hash, set_up, tear_down) {
  set("ipv4/fib_multipath_hash_policy", "0");
  expect(0, "");
  add_nic("eth1", "10.0.0.1", 100000);
  for (int i = 0; i < 2; i++) {
    table.devices[i].nics[0].prefix_bits = 0; /* no subnet is on the NIC */
  }
  expect(1, "eth0 and eth1 have one address, and all flows to a host take the same of them; "
            "sysctl -w net.ipv4.fib_multipath_hash_policy=1");
  set("ipv4/fib_multipath_hash_policy", "1");
  expect(0, "");
}

UNIT_MAIN(NULL, NULL)
