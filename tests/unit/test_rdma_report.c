/* SPDX-License-Identifier: Apache-2.0 */
/* HCAs as devices and doctor show them, and the NICs that NCCL_IB_HCA chooses. */
#include "net_plugin/tools/rdma.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/told.h"
#include "tests/lib/unit.h"

static const struct fake_hca hcas[] = {
  { .name = "fake0",
    .netdev = "d0",
    .gids = { "fe80::1", "10.0.0.1" },
    .pci_vendor = 0x15b3,
    .pci_device = 0x1019,
    .driver = "mlx5_core",
    .pci_function = "0000:17:00.0" },
  { .name = "fake1", .netdev = "d1", .gids = { "10.0.1.1" }, .is_down = true },
  { .name = "fake2", .netdev = "d2", .gids = { "10.0.2.1" }, .has_no_dmabuf = true },
};
enum { HCAS = sizeof(hcas) / sizeof(hcas[0]) };

static struct rdma_report report;

static int set_up(void **state) {
  (void)state;
  unsetenv("NCCL_IB_HCA");
  unsetenv("NCCL_IB_DISABLE");
  rdma_host_start(&hcas[0]);
  for (int i = 1; i < HCAS; i++) {
    rdma_host_add(&hcas[i]);
  }
  tree_write(&rdma_host_root, "dev/infiniband/uverbs0", "\n");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rdma_report_free(&report);
  rdma_host_stop();
  return 0;
}

/* d0 and d1 are in use. */
static void make_report(void) {
  static struct device_table table;
  table = (struct device_table){ .count = 2, .physical_count = 2 };
  for (int i = 0; i < 2; i++) {
    table.devices[i].nic_count = 1;
    table.devices[i].nics[0] = fake_nic(i ? "d1" : "d0", i ? "10.0.1.1" : "10.0.0.1", 24);
  }
  rdma_report_make(&table, &report);
}

static void check(void) {
  told_clear();
  rdma_report_check(&report);
}

static void expect_told(const char *part) {
  if (!strstr(told, part)) {
    fail_msg("\"%s\" is not in:\n%s", part, told);
  }
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "null";
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(every_port_is_shown_with_its_reason) {
  make_report();
  json_t *json = rdma_report_to_json(&report);
  json_t *rows = json_object_get(json, "hcas");
  assert_true(json_is_true(json_object_get(json, "on")));
  assert_int_equal(json_array_size(rows), HCAS);

  json_t *first = json_array_get(rows, 0);
  assert_string_equal(text_of(first, "hca"), "fake0");
  assert_true(json_is_true(json_object_get(first, "used")));
  assert_string_equal(text_of(first, "interface"), "d0");
  assert_string_equal(text_of(first, "kind"), "RoCE v2");
  assert_string_equal(text_of(first, "link_layer"), "Ethernet");
  assert_string_equal(text_of(first, "pci_path"), "/sys/devices/pci0000:00/0000:17:00.0");
  assert_string_equal(text_of(first, "reason"), "null");
  assert_int_equal(json_integer_value(json_object_get(first, "mtu")), 4096);
  json_t *gids = json_object_get(first, "gids");
  assert_int_equal(json_array_size(gids), 2);
  assert_true(json_is_false(json_object_get(json_array_get(gids, 0), "chosen")));
  assert_true(json_is_true(json_object_get(json_array_get(gids, 1), "chosen")));
  assert_string_equal(text_of(json_array_get(gids, 1), "address"), "10.0.0.1");

  json_t *second = json_array_get(rows, 1);
  assert_true(json_is_false(json_object_get(second, "used")));
  assert_string_equal(text_of(second, "reason"), "port 1 of fake1 is DOWN");
  json_t *third = json_array_get(rows, 2);
  assert_string_equal(text_of(third, "reason"), "its interface d2 is none of the NICs in use");
  assert_true(json_is_null(json_object_get(third, "mtu")));
  json_decref(json);
}

TEST(doctor_tells_what_is_used) {
  make_report();
  report.lockable_bytes = 65536;
  check();
  expect_told("good: RDMA: d0 uses fake0 port 1 (ConnectX, RoCE v2, 100000 Mb/s, MTU 4096, GID 1 = "
              "10.0.0.1)");
  expect_told("hint: RDMA: fake1 port 1 is not used: port 1 of fake1 is DOWN");
  expect_told("bad: the limit of locked memory is 64K");
  report.lockable_bytes = UINT64_MAX;
  check();
  assert_null(strstr(told, "bad: "));
}

TEST(doctor_tells_what_is_missing) {
  fake_verbs_fail_call(FAKE_OPEN_DEVICE, 1, EACCES);
  make_report();
  check();
  expect_told("hint: RDMA: fake0 port 1 is not used: fake0 cannot be opened: Permission denied");
  rdma_report_free(&report);
  verbs_api_replace(NULL, "libibverbs.so.1: gone");
  rdma_host_empty();
  fake_verbs_write_sysfs(&hcas[0], &rdma_host_root);
  make_report();
  check();
  expect_told("bad: RDMA: libibverbs cannot be loaded (libibverbs.so.1: gone); install rdma-core");
  expect_told("bad: RDMA: /dev/infiniband is missing");
  expect_told("fake0 needs libibverbs");
  rdma_report_free(&report);
  verbs_api_replace(fake_verbs_api(), NULL);
  setenv("NCCL_IB_DISABLE", "1", 1);
  rdma_host_configure();
  make_report();
  check();
  assert_string_equal(told, "hint: RDMA is off: NCCL_IB_DISABLE is set\n");
}

TEST(gpu_memory_is_judged) {
  tree_write(&rdma_host_root, "sys/module/nvidia/version", "550.54\n");
  make_report();
  check();
  /* The fake's registration of a descriptor that is none fails as one that knows dma-bufs. */
  expect_told(
      "hint: GPU memory and RDMA: driver 550.54, peer memory module not loaded, dma-buf taken "
      "by HCAs, but not given by this GPU driver; data is staged");
  rdma_report_free(&report);
  tree_write(&rdma_host_root, "proc/driver/nvidia/version",
             "NVIDIA UNIX Open Kernel Module for x86_64\n");
  make_report();
  check();
  expect_told("good: GPU memory and RDMA: driver 550.54, peer memory module not loaded, dma-buf "
              "possible");
  rdma_report_free(&report);
  tree_write(&rdma_host_root, "sys/module/nvidia_peermem/version", "550.54\n");
  make_report();
  check();
  expect_told("good: GPU memory and RDMA: driver 550.54, peer memory module nvidia_peermem");
}

TEST(machines_without_hcas_are_healthy) {
  rdma_host_empty();
  make_report();
  check();
  assert_string_equal(told, "good: RDMA: there is no HCA; TCP is used\n");
}

/* ---- NICs that NCCL_IB_HCA chooses ---- */

enum { INTERFACES = 5 };

static void make_interfaces(struct interface list[INTERFACES]) {
  static const struct {
    const char *name, *address;
    enum interface_verdict verdict;
  } given[INTERFACES] = {
    { "eth0", "192.168.0.1", INTERFACE_CHOSEN },
    { "d0", "10.0.9.9", INTERFACE_NOT_NAMED }, /* no GID has it */
    { "d0", "10.0.0.1", INTERFACE_NOT_NAMED },
    { "d1", "10.0.1.1", INTERFACE_NOT_NAMED },
    { "d2", "10.0.2.1", INTERFACE_NOT_RUNNING },
  };
  for (int i = 0; i < INTERFACES; i++) {
    list[i] = (struct interface){ .verdict = given[i].verdict };
    snprintf(list[i].name, sizeof(list[i].name), "%s", given[i].name);
    list[i].address = fake_nic_address(given[i].address);
  }
}

static struct rdma_nics find_nics(struct interface list[INTERFACES], const char *rules) {
  struct rdma_settings settings;
  struct rdma_nics nics;
  rules ? setenv("NCCL_IB_HCA", rules, 1) : unsetenv("NCCL_IB_HCA");
  rdma_settings_read(&settings);
  make_interfaces(list);
  rdma_nics_find(list, INTERFACES, rdma_host_root.root, &settings, &nics);
  return nics;
}

TEST(named_hcas_choose_their_nics) {
  struct interface list[INTERFACES];
  struct rdma_nics nics = find_nics(list, "fake");
  assert_int_equal(nics.count, 1);
  const struct rdma_nic *nic = rdma_nics_of(&nics, "d0");
  assert_non_null(nic);
  assert_int_equal(nic->speed_mbps, 100000);
  assert_string_equal(nic->pci_path, "/sys/devices/pci0000:00/0000:17:00.0");
  assert_int_equal(list[0].verdict, INTERFACE_WITHOUT_HCA);
  assert_int_equal(list[1].verdict, INTERFACE_SECOND_ADDRESS);
  assert_int_equal(list[2].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list[3].verdict, INTERFACE_NOT_NAMED); /* the port is down */
  assert_int_equal(list[4].verdict, INTERFACE_NOT_RUNNING);
}

TEST(without_names_interfaces_stay_chosen) {
  struct interface list[INTERFACES];
  struct rdma_nics nics = find_nics(list, NULL);
  assert_int_equal(nics.count, 0);
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list[2].verdict, INTERFACE_NOT_NAMED);
  nics = find_nics(list, "other"); /* names none that is here */
  assert_int_equal(nics.count, 0);
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
  setenv("NCCL_IB_DISABLE", "1", 1);
  nics = find_nics(list, "fake0");
  assert_int_equal(nics.count, 0);
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
}

UNIT_MAIN(NULL, NULL)
