/* SPDX-License-Identifier: Apache-2.0 */
/* Peculiarities of HCAs, found by what sysfs says of them. */
#include "net_plugin/lane/rdma/rdma_quirks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma_survey.h"
#include "tests/lib/unit.h"

static struct rdma_sysfs_port ports[RDMA_PORTS_MAX];

static struct rdma_traits traits_of(const struct rdma_sysfs_port *port) {
  struct rdma_traits traits;
  rdma_quirks_find(port, &traits);
  return traits;
}

static void expect_erdma(const struct rdma_traits *traits) {
  assert_string_equal(traits->model, "eRDMA");
  assert_int_equal(traits->max_inline, 96);
  assert_int_equal(traits->max_send_sge, 6);
  assert_false(traits->has_dmabuf);
  assert_false(traits->has_flow_label);
  assert_true(traits->has_immediate); /* its driver knows it also as an iWARP device */
  assert_true(traits->is_usable);
}

UNIT_TEST(erdma_in_standard_mode_is_iwarp) {
  assert_int_equal(rdma_sysfs_list("tests/data/rdma/erdma", ports), 1);
  assert_int_equal(ports[0].pci_vendor, 0x1ded);
  assert_int_equal(ports[0].pci_device, 0x107f);
  assert_string_equal(ports[0].driver, "erdma");
  assert_true(ports[0].is_iwarp);
  struct rdma_traits traits = traits_of(&ports[0]);
  expect_erdma(&traits);
}

UNIT_TEST(erdma_in_compat_mode_is_roce) {
  assert_int_equal(rdma_sysfs_list("tests/data/rdma/erdma-compat", ports), 1);
  assert_false(ports[0].is_iwarp);
  struct rdma_traits traits = traits_of(&ports[0]);
  expect_erdma(&traits);
}

/* All that is told of the recorded machine, by what its files say alone: the interface has an MTU
 * of 1500. */
UNIT_TEST(a_recorded_erdma_is_warned_about) {
  static struct rdma_survey_row rows[RDMA_PORTS_MAX];
  struct rdma_settings settings = { 0 };
  struct nic nic = { .name = "eth0" };
  rdma_device_configure(&settings, "tests/data/rdma/erdma");
  assert_int_equal(rdma_survey(&nic, 1, false, rows), 1);
  assert_string_equal(rows[0].why, "");
  assert_true(rows[0].is_used);
  assert_string_equal(rdma_survey_kind(&rows[0]), "iWARP");
  assert_non_null(strstr(rows[0].warning, "MTU of its network interface is 1500"));
  assert_non_null(strstr(rows[0].warning, "NCCL_PROTO=^LL128"));
  rdma_device_configure(NULL, NULL);
}

static const char *warning_with(unsigned mtu, const char *protocols) {
  static char text[RDMA_QUIRKS_TEXT_MAX];
  struct rdma_sysfs_port port = { .pci_vendor = 0x1ded, .pci_device = 0x107f, .name = "erdma_0" };
  return rdma_quirks_warning(&port, mtu, protocols, text);
}

UNIT_TEST(erdma_wants_its_mtu_or_no_ll128) {
  const char *text = warning_with(1500, NULL);
  assert_non_null(text);
  assert_non_null(strstr(text, "erdma_0: the MTU of its network interface is 1500"));
  assert_non_null(strstr(text, "8500"));
  assert_non_null(strstr(text, "NCCL_PROTO=^LL128"));
  assert_non_null(warning_with(9000, ""));
  assert_non_null(warning_with(1500, "LL,LL128"));
  assert_non_null(warning_with(1500, "^LL"));
  assert_null(warning_with(8500, NULL));
  assert_null(warning_with(1400, NULL));
  assert_null(warning_with(1500, "^LL128"));
  assert_null(warning_with(1500, "^ll128,LL"));
  assert_null(warning_with(1500, "Simple"));
  assert_null(warning_with(0, NULL)); /* unknown */
  struct rdma_sysfs_port other = { .pci_vendor = 0x15b3, .name = "mlx5_0" };
  char unused[RDMA_QUIRKS_TEXT_MAX];
  assert_null(rdma_quirks_warning(&other, 1500, NULL, unused));
}

UNIT_TEST(connectx_can_all) {
  assert_int_equal(rdma_sysfs_list("tests/data/rdma/connectx", ports), 4);
  struct rdma_traits traits = traits_of(&ports[0]);
  assert_string_equal(traits.model, "ConnectX");
  assert_true(traits.has_dmabuf && traits.has_flow_label && traits.is_usable);
  assert_true(traits.max_inline >= 96);
  assert_true(traits.has_immediate);
}

static struct rdma_traits traits_by(uint16_t vendor, uint16_t device, const char *name) {
  struct rdma_sysfs_port port = { .pci_vendor = vendor, .pci_device = device };
  snprintf(port.name, sizeof port.name, "%s", name);
  return traits_of(&port);
}

UNIT_TEST(others_are_told_apart) {
  struct rdma_traits efa = traits_by(0x1d0f, 0xefa2, "rdmap0s6");
  assert_false(efa.is_usable);
  assert_non_null(strstr(efa.why_not, "reliable connections"));
  assert_string_equal(traits_by(0x15b3, 0x1003, "mlx4_0").model, "ConnectX-3");
  assert_false(traits_by(0x15b3, 0x1003, "mlx4_0").has_dmabuf);
  assert_string_equal(traits_by(0x15b3, 0x1013, "mlx5_0").model, "ConnectX");
  assert_int_equal(traits_by(0x1414, 0x00ba, "mana_0").max_inline, 0);
  assert_string_equal(traits_by(0, 0, "rxe0").model, "SoftRoCE");
  assert_string_equal(traits_by(0, 0, "siw_eth0").model, "SoftiWARP");
  struct rdma_sysfs_port siw = { .name = "siw0", .is_iwarp = true };
  assert_false(traits_of(&siw).has_immediate);
  /* A name alone says nothing about a card. */
  assert_string_equal(traits_by(0x1ded, 0x107f, "rxe0").model, "eRDMA");
  struct rdma_traits unknown = traits_by(0x1234, 0x5678, "new0");
  assert_string_equal(unknown.model, "unknown");
  assert_true(unknown.is_usable);
  assert_null(unknown.why_not);
}

UNIT_MAIN(NULL, NULL)
