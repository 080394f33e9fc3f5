/* SPDX-License-Identifier: Apache-2.0 */
/* HCA ports as sysfs shows them, which NIC each belongs to, and which GID stands for it. */
#include "net_plugin/lane/rdma/rdma_choice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/lane/rdma/rdma_device.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define CONNECTX "tests/data/rdma/connectx"

static struct rdma_sysfs_port ports[RDMA_PORTS_MAX];

UNIT_TEST(ports_are_read) {
  assert_int_equal(rdma_sysfs_list(CONNECTX, ports), 4);
  const struct rdma_sysfs_port *port = &ports[0];
  assert_string_equal(port->name, "mlx5_0");
  assert_int_equal(port->port, 1);
  assert_false(port->is_infiniband || port->is_iwarp);
  assert_true(port->is_active);
  assert_int_equal(port->speed_mbps, 100000);
  assert_int_equal(port->guid, 0x0c42a10300000010ull);
  assert_string_equal(port->pci_path, "/sys/devices/pci0000:16/0000:17:00.0");
  assert_string_equal(port->driver, "mlx5_core");
  assert_int_equal(port->numa_node, 0);
  assert_int_equal(port->gid_count, 6); /* one place is empty */
  assert_int_equal(port->gids[2].roce_version, 1);
  assert_int_equal(port->gids[3].roce_version, 2);
  assert_string_equal(port->gids[5].netdev, "ens0.20");
  assert_true(ports[2].is_infiniband);
  assert_int_equal(ports[2].speed_mbps, 200000);
  assert_int_equal(ports[2].gids[0].roce_version, 0);
  assert_int_equal(ports[2].numa_node, 1);
  assert_false(ports[3].is_active);
  assert_string_equal(ports[3].state, "DOWN");
  assert_int_equal(rdma_sysfs_list("tests/data", ports), 0);
}

UNIT_TEST(nics_find_their_ports) {
  assert_int_equal(rdma_sysfs_list(CONNECTX, ports), 4);
  static const struct {
    const char *nic, *address;
    int port; /* -1: none */
  } cases[] = {
    { "ens0", "10.10.0.1", 0 },
    { "ens0.20", "10.20.0.1", 0 },
    { "ens1", "fd00:1::1", 1 },
    { "ib0", "192.168.7.1", 2 }, /* by its PCI function: IP addresses are no GIDs of InfiniBand */
    { "ens3", "10.30.0.1", 3 },
    { "ens0", "10.99.0.1", -1 },
    /* Another namespace's interface of the same address, or name, is not ours. */
    { "eth9", "10.10.0.1", -1 },
    { "ens1", "10.10.0.1", -1 },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct nic nic = fake_nic(cases[i].nic, cases[i].address, 24);
    for (int j = 0; j < 4; j++) {
      if (rdma_choice_is_of_nic(CONNECTX, &ports[j], &nic) != (j == cases[i].port)) {
        fail_msg("%s %s and %s", cases[i].nic, cases[i].address, ports[j].name);
      }
    }
  }
}

UNIT_TEST(erdma_is_found_by_the_hardware_address_it_borrows) {
  struct nic nic = fake_nic("eth0", "172.16.0.11", 20);
  assert_int_equal(rdma_sysfs_list("tests/data/rdma/erdma", ports), 1);
  assert_true(rdma_choice_is_of_nic("tests/data/rdma/erdma", &ports[0], &nic));
  ports[0].node_guid = 0; /* and by the GID alone */
  assert_true(rdma_choice_is_of_nic("tests/data/rdma/erdma", &ports[0], &nic));
  ports[0].gid_count = 0;
  assert_false(rdma_choice_is_of_nic("tests/data/rdma/erdma", &ports[0], &nic));
  assert_int_equal(rdma_sysfs_list("tests/data/rdma/erdma-compat", ports), 1);
  assert_true(rdma_choice_is_of_nic("tests/data/rdma/erdma-compat", &ports[0], &nic));
}

/* A port on interface d0 with these GIDs, "1" or "2" before the address for the RoCE version. */
static struct rdma_sysfs_port make_port(const char *const *gids) {
  struct rdma_sysfs_port port = { .name = "hca", .port = 1, .is_active = true };
  for (; *gids; gids++) {
    struct rdma_gid *gid = &port.gids[port.gid_count];
    *gid = (struct rdma_gid){ .index = (int)port.gid_count, .netdev = "d0" };
    gid->roce_version = (uint8_t)((*gids)[0] - '0');
    if (inet_pton(AF_INET, *gids + 1, gid->bytes + 12) == 1) {
      gid->bytes[10] = gid->bytes[11] = 0xff;
    } else {
      assert_int_equal(inet_pton(AF_INET6, *gids + 1, gid->bytes), 1);
    }
    port.gid_count++;
  }
  return port;
}

#define GIDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int choose(const char *const *gids, const char *address) {
  char why[RDMA_WHY_MAX];
  struct rdma_settings settings = { 0 };
  struct rdma_sysfs_port port = make_port(gids);
  struct nic nic = fake_nic("d0", address, strchr(address, ':') ? 64 : 24);
  int gid, error = rdma_choice_judge(&port, &settings, &nic, &gid, why);
  return error ? error : gid;
}

UNIT_TEST(the_address_of_the_nic_stands_for_it) {
  assert_int_equal(choose(GIDS("1fe80::1", "2fe80::1", "110.0.0.1", "210.0.0.1"), "10.0.0.1"), 3);
  assert_int_equal(choose(GIDS("210.0.0.1", "110.0.0.1"), "10.0.0.1"), 0);
  assert_int_equal(choose(GIDS("1fe80::1", "110.0.0.1"), "10.0.0.1"), 1);
  assert_int_equal(choose(GIDS("2fd00:2::1", "2fd00:1::1"), "fd00:1::1"), 1);
  assert_int_equal(choose(GIDS("2192.168.0.1", "210.0.0.9"), "10.0.0.1"), -ENOENT);
}

UNIT_TEST(judgement_names_what_stands_in_the_way) {
  struct rdma_settings settings = { 0 };
  char why[RDMA_WHY_MAX];
  int gid;
  assert_int_equal(rdma_sysfs_list(CONNECTX, ports), 4);
  struct nic nic = fake_nic("ens0.20", "10.20.0.1", 24);
  assert_int_equal(rdma_choice_judge(&ports[0], &settings, &nic, &gid, why), 0);
  assert_int_equal(ports[0].gids[gid].index, 5);
  nic.advertised = fake_nic_address("203.0.113.7");
  assert_int_equal(rdma_choice_judge(&ports[0], &settings, &nic, &gid, why), -ENOENT);
  assert_non_null(strstr(why, "STRATUS_ADVERTISE_ADDRESS"));
  name_list_parse(&settings.hcas, "NCCL_IB_HCA", "^mlx5_0", true);
  assert_int_equal(rdma_choice_judge(&ports[0], &settings, &nic, &gid, why), -ENOENT);
  assert_string_equal(why, "NCCL_IB_HCA leaves out mlx5_0:1");
  nic = fake_nic("ens3", "10.30.0.1", 24);
  assert_int_equal(rdma_choice_judge(&ports[3], &settings, &nic, &gid, why), -ENOENT);
  assert_string_equal(why, "port 1 of mlx5_3 is DOWN");
  ports[1].pci_vendor = 0x1d0f;
  ports[1].pci_device = 0xefa1;
  assert_int_equal(rdma_choice_judge(&ports[1], &settings, &nic, &gid, why), -ENOENT);
  assert_non_null(strstr(why, "EFA has no reliable connections"));
}

UNIT_TEST(gpu_support_is_read) {
  struct rdma_gpu_facts facts;
  rdma_sysfs_read_gpu(CONNECTX, &facts);
  assert_true(facts.has_peermem);
  assert_string_equal(facts.peermem, "nvidia_peermem");
  assert_true(facts.has_open_driver);
  assert_string_equal(facts.nvidia, "535.104.05");
  rdma_sysfs_read_gpu("tests/data/rdma/erdma", &facts);
  assert_false(facts.has_peermem || facts.has_open_driver);
  assert_string_equal(facts.nvidia, "");
}

UNIT_TEST(odd_files_are_survived) {
  struct tree tree;
  tree_create(&tree);
  tree_write(&tree, "sys/class/infiniband/odd/ports/1/gids/0", "not a gid\n");
  tree_write(&tree, "sys/class/infiniband/odd/ports/1/gids/1", "%s\n",
             "0000:0000:0000:0000:0000:ffff:0a00:0001");
  tree_write(&tree, "sys/class/infiniband/odd/ports/1/rate", "fast\n");
  tree_write(&tree, "sys/class/infiniband/odd/ports/1/state", "up\n");
  tree_make_directory(&tree, "sys/class/infiniband/none");
  assert_int_equal(rdma_sysfs_list(tree.root, ports), 1);
  assert_int_equal(ports[0].gid_count, 1);
  assert_int_equal(ports[0].gids[0].index, 1);
  assert_int_equal(ports[0].gids[0].roce_version, 0);
  assert_int_equal(ports[0].speed_mbps, 0);
  assert_false(ports[0].is_active);
  assert_int_equal(ports[0].numa_node, -1);
  tree_remove(&tree);
}

UNIT_MAIN(NULL, NULL)
