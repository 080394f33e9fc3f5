/* SPDX-License-Identifier: Apache-2.0 */
/* Whether NICs can carry a job, as stratus doctor judges it: interfaces are invented, and what
 * the system knows of them are files. Routes are those of tests/netns/nics. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/fake_nic.h"
#include "tests/lib/told.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct tree tree;
static struct discovery found;

static int set_up(void **context) {
  (void)context;
  tree_create(&tree);
  static struct interface interfaces[16];
  memset(&found, 0, sizeof(found));
  memset(interfaces, 0, sizeof(interfaces));
  found.interfaces = interfaces;
  return 0;
}

static int tear_down(void **context) {
  (void)context;
  tree_remove(&tree);
  return 0;
}

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
  tree_write(&tree, path, "%d\n", mtu);
  if (mbps) {
    snprintf(path, sizeof(path), "sys/class/net/%s/speed", name);
    tree_write(&tree, path, "%d\n", mbps);
    snprintf(path, sizeof(path), "sys/class/net/%s/device/vendor", name);
    tree_write(&tree, path, "0x15b3\n");
  }
}

static struct nic *use(const char *name, const char *address, int mtu, int mbps) {
  struct device *device = &found.devices.devices[found.devices.count++];
  add_interface(name, address, mtu, mbps, INTERFACE_CHOSEN);
  device->nic_count = 1;
  device->nics[0] = fake_nic(name, address, 24);
  device->nics[0].speed_mbps = mbps ? (uint32_t)mbps : DEVICE_DEFAULT_SPEED_MBPS;
  found.devices.physical_count = found.devices.count;
  return &device->nics[0];
}

static void expect(int count, const char *part) {
  told_clear();
  nics_check(&found, tree.root);
  if (told_counts[DOCTOR_HINT] != count || !strstr(told, part)) {
    fail_msg("%d findings, not %d hints with \"%s\":\n%s", told_counts[DOCTOR_HINT], count, part,
             told);
  }
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(good_nics_are_not_judged) {
  expect(0, "");
  use("eth0", "10.0.0.1", 9000, 100000);
  use("eth1", "10.0.1.1", 9000, 100000);
  add_interface("wlan0", "192.168.1.1", 1500, 0, INTERFACE_NOT_NAMED);
  expect(0, "");
}

TEST(loopback_leads_nowhere) {
  use("lo", "127.0.0.1", 65536, 0);
  expect(1, "lo: leads to this host alone");
  use("eth0", "10.0.0.1", 1500, 0);
  expect(1, "lo: leads to this host alone"); /* and its MTU does not count */
}

TEST(a_bridge_needs_a_nic) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("br-4f1", "172.18.0.1", 1500, 0);
  tree_write(&tree, "sys/class/net/br-4f1/bridge/ageing_time", "1\n");
  expect(1, "br-4f1: a bridge without a NIC");
  tree_make_directory(&tree, "sys/class/net/br-4f1/brif/veth1");
  tree_write(&tree, "sys/class/net/veth1/mtu", "1500\n");
  expect(1, "br-4f1: a bridge without a NIC");
  tree_make_directory(&tree, "sys/class/net/br-4f1/brif/bond0");
  tree_make_directory(&tree, "sys/class/net/bond0/lower_ens1");
  expect(0, "");
}

TEST(a_tunnels_address_is_of_its_link) {
  use("tun0", "fe80::1", 1500, 0);
  expect(0, ""); /* there is no other */
  use("eth0", "fd00::1", 1500, 0);
  expect(1, "tun0: the address that NCCL takes is one of the link");
  expect(1, "in turn with the others");
  found.devices.devices[0].nics[0].address = fake_nic_address("169.254.7.1");
  expect(1, "tun0: the address");
}

TEST(nics_without_a_route_are_idle) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("eth1", "10.0.0.2", 1500, 0)->is_idle = true;
  use("eth2", "10.0.0.3", 1500, 0)->is_idle = true;
  expect(1, "eth1, eth2: no route leads through it");
}

TEST(faster_nics_are_not_left_out) {
  use("eth0", "10.0.0.1", 1500, 10000);
  found.wishes.ifname = "eth0";
  add_interface("ens1", "10.1.0.1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens1", "fd00::1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens2", "10.2.0.1", 1500, 200000, INTERFACE_NOT_NAMED);
  add_interface("ens3", "10.3.0.1", 1500, 1000, INTERFACE_NOT_NAMED);
  add_interface("ens4", "10.4.0.1", 1500, 400000, INTERFACE_NOT_RUNNING);
  expect(1, "NCCL_SOCKET_IFNAME=\"eth0\" leaves out ens1, ens2, up to 200000 Mb/s; the fastest in "
            "use has 10000");
}

TEST(mtus_are_equal) {
  use("eth0", "10.0.0.1", 1500, 0);
  use("eth1", "10.0.1.1", 9000, 0);
  use("eth2", "10.0.2.1", 9000, 0);
  expect(1, "the MTU of eth0 is 1500, that of eth1, eth2 9000");
}

UNIT_MAIN(NULL, NULL)
