/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a NIC: found by librdmacm at its address, opened, shared, lost by its events, found
 * again; the reasons why not; the NICs that NCCL_IB_HCA chooses. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/plugin/rdma_nics.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static const struct fake_hca hca = { .name = "fake0", .addresses = { "fe80::1", "10.0.0.1" } };
static struct nic nic;
static char why[RDMA_WHY_MAX];

static int set_up(void **state) {
  (void)state;
  static const char *const variables[] = { "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_IB_RETRY_CNT",
                                           "NCCL_PROTO" };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    unsetenv(variables[i]);
  }
  rdma_host_start(&hca);
  nic = fake_nic("d0", "10.0.0.1", 24);
  log_capture_start();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  log_capture_stop();
  rdma_host_stop();
  return 0;
}

static void expect_none_for(bool is_there, const char *reason) {
  rdma_host_configure();
  assert_null(rdma_device_open(&nic, why));
  assert_int_equal(rdma_device_may_come(&nic), is_there);
  if (!strstr(why, reason)) {
    fail_msg("\"%s\" does not say \"%s\"", why, reason);
  }
}

static void expect_none(const char *reason) {
  expect_none_for(false, reason);
}

/* A connection that is made now should be able to use it later. */
static void expect_none_yet(const char *reason) {
  expect_none_for(true, reason);
}

static bool is_readable(int fd) {
  struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
  return poll(&poll_fd, 1, 0) == 1;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(facts_are_put_together) {
  struct rdma_device *device = rdma_host_open(&nic);
  const struct rdma_port *port = &device->port;
  assert_string_equal(port->name, "fake0");
  assert_int_equal(port->port, 1);
  assert_int_equal(port->transport, RDMA_ROCE);
  assert_true(port->can_gather && port->has_immediate);
  assert_non_null(device->pd);
  assert_false(is_readable(device->lost_fd));
  rdma_device_close(device);
  assert_int_equal(fake_verbs_counts().cm_ids + fake_verbs_counts().cm_channels, 0);
}

TEST(each_transport_is_known) {
  static const struct {
    struct fake_hca hca;
    enum rdma_transport transport;
    bool can_gather, has_immediate;
    const char *text;
  } kinds[] = {
    { { .name = "ib0", .addresses = { "10.0.1.1" }, .is_infiniband = true },
      RDMA_INFINIBAND,
      true,
      true,
      "ib0 port 1 (InfiniBand)" },
    { { .name = "siw0", .addresses = { "10.0.2.1" }, .is_iwarp = true, .max_send_sge = 1 },
      RDMA_IWARP,
      false,
      false,
      "siw0 port 1 (iWARP)" },
    { { .name = "erdma_0", .addresses = { "10.0.3.1" }, .is_iwarp = true, .vendor_id = 0x1ded },
      RDMA_IWARP,
      true,
      true,
      "erdma_0 port 1 (iWARP)" },
  };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    char text[ENDPOINT_TEXT_MAX];
    fake_verbs_add(&kinds[i].hca);
    nic = fake_nic("d1", kinds[i].hca.addresses[0], 24);
    struct rdma_device *device = rdma_host_open(&nic);
    assert_int_equal(device->port.transport, kinds[i].transport);
    assert_int_equal(device->port.can_gather, kinds[i].can_gather);
    assert_int_equal(device->port.has_immediate, kinds[i].has_immediate);
    assert_true(endpoint_find(&nic, text));
    assert_string_equal(text, kinds[i].text);
    rdma_device_close(device);
  }
}

TEST(holders_share_one_device) {
  struct rdma_device *first = rdma_host_open(&nic), *second = rdma_host_open(&nic);
  assert_ptr_equal(first, second);
  rdma_device_hold(first);
  assert_int_equal(fake_verbs_counts().contexts, 1);
  rdma_device_close(first);
  rdma_device_close(first);
  assert_int_equal(fake_verbs_counts().contexts, 1);
  rdma_device_close(first);
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.contexts, 0);
  assert_int_equal(counts.pds, 0);
}

TEST(lost_devices_are_looked_for_again) {
  struct rdma_device *device = rdma_host_open(&nic);
  fake_verbs_remove("fake0");
  assert_false(atomic_load(&device->is_lost));
  assert_true(is_readable(device->context->async_fd));
  rdma_device_take_events(device);
  assert_true(atomic_load(&device->is_lost));
  assert_true(is_readable(device->lost_fd));
  assert_int_equal(log_capture_find("fake0, the RDMA device of d0, is given up"), 1);
  rdma_device_lose(device, "again"); /* says nothing more */
  assert_int_equal(log_capture_count(LOG_LEVEL_INFO), 1);

  assert_null(rdma_device_open(&nic, why));
  assert_non_null(strstr(why, "finds no RDMA device at its address"));
  fake_verbs_add(&hca);
  assert_null(rdma_device_open(&nic, why)); /* not asked for again at once */
  rdma_host_configure();
  struct rdma_device *again = rdma_host_open(&nic);
  assert_ptr_not_equal(again, device);
  assert_false(atomic_load(&again->is_lost));
  rdma_device_close(device);
  rdma_device_close(again);
}

TEST(ports_that_go_down_are_lost) {
  struct rdma_device *device = rdma_host_open(&nic);
  fake_verbs_set_port("fake0", false);
  rdma_device_take_events(device);
  assert_true(atomic_load(&device->is_lost));
  assert_non_null(strstr(log_capture_text(0), "port error"));
  expect_none_yet("port 1 of fake0 is down");
  fake_verbs_set_port("fake0", true);
  rdma_host_configure();
  struct rdma_device *again = rdma_host_open(&nic);
  rdma_device_close(device);
  rdma_device_close(again);
}

TEST(queue_pairs_hear_of_their_own_events) {
  struct rdma_device *device = rdma_host_open(&nic);
  struct rdma_watch watches[2] = { 0 };
  struct ibv_qp *qps[2];
  struct ibv_cq *cq = device->api->create_cq(device->context, 8, NULL, NULL, 0);
  for (int i = 0; i < 2; i++) {
    struct ibv_qp_init_attr init = { .qp_context = &watches[i],
                                     .send_cq = cq,
                                     .recv_cq = cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = { .max_send_wr = 1 } };
    qps[i] = device->api->create_qp(device->pd, &init);
    assert_non_null(qps[i]);
  }
  fake_verbs_event("fake0", IBV_EVENT_QP_ACCESS_ERR, qps[1]);
  fake_verbs_event("fake0", IBV_EVENT_QP_FATAL, qps[1]);
  fake_verbs_event("fake0", IBV_EVENT_PORT_ACTIVE, NULL);
  rdma_device_take_events(device);
  assert_int_equal(atomic_load(&watches[0].event), 0);
  assert_int_equal(atomic_load(&watches[1].event), IBV_EVENT_QP_ACCESS_ERR + 1); /* the first */
  assert_false(atomic_load(&device->is_lost));
  assert_int_equal(device->api->destroy_qp(qps[0]), 0); /* all events are acknowledged */
  assert_int_equal(device->api->destroy_qp(qps[1]), 0);
  assert_int_equal(device->api->destroy_cq(cq), 0);
  rdma_device_close(device);
}

TEST(missing_pieces_are_named) {
  static const struct {
    enum fake_call call;
    bool is_there;
    const char *reason;
  } cases[] = {
    { FAKE_CM_CHANNEL, false, "librdmacm cannot be used (rdma_create_id: Permission denied)" },
    { FAKE_CM_ID, false, "librdmacm cannot be used (rdma_create_id: Permission denied)" },
    { FAKE_CM_BIND, false, "no RDMA device at its address (rdma_bind_addr: Permission denied)" },
    { FAKE_OPEN_DEVICE, true,
      "fake0 cannot be opened: Permission denied; /dev/infiniband must be readable" },
    { FAKE_QUERY_DEVICE, true, "fake0 cannot be queried: Permission denied" },
    { FAKE_QUERY_PORT, true, "fake0 cannot be queried: Permission denied" },
    { FAKE_ALLOC_PD, true, "fake0 cannot be used: Permission denied" },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    fake_verbs_fail_call(cases[i].call, 1, EACCES);
    expect_none_for(cases[i].is_there, cases[i].reason);
  }
  verbs_api_replace(NULL, "libibverbs.so.1: no such file");
  expect_none("libibverbs.so.1: no such file");
  verbs_api_replace(fake_verbs_api(), NULL);
  nic = fake_nic("d0", "10.0.9.9", 24);
  expect_none("finds no RDMA device at its address (rdma_bind_addr: No such device)");
  nic.advertised = fake_nic_address("192.168.0.1");
  expect_none("others dial it by STRATUS_ADVERTISE_ADDRESS");
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.contexts + counts.pds + counts.cm_ids + counts.cm_channels, 0);
}

TEST(users_wishes_count) {
  setenv("NCCL_IB_HCA", "=fake", 1);
  expect_none("NCCL_IB_HCA leaves out fake0:1");
  unsetenv("NCCL_IB_HCA");
  setenv("NCCL_IB_DISABLE", "1", 1);
  expect_none("NCCL_IB_DISABLE is set");
  unsetenv("NCCL_IB_DISABLE");
  setenv("NCCL_IB_RETRY_CNT", "1", 1);
  rdma_host_configure();
  struct rdma_device *device = rdma_host_open(&nic);
  assert_int_equal(device->settings.retry_count, 1);
  rdma_device_close(device);
  unsetenv("NCCL_IB_RETRY_CNT");
}

TEST(a_reason_is_logged_once) {
  for (int i = 0; i < 3; i++) {
    rdma_device_log_refusal(&nic, "one");
  }
  assert_int_equal(log_capture_find("no RDMA through d0, TCP is used: one"), 1);
  rdma_device_log_refusal(&nic, "two");
  struct nic other = fake_nic("d1", "10.0.1.1", 24);
  rdma_device_log_refusal(&other, "one");
  assert_int_equal(log_capture_count(LOG_LEVEL_INFO), 3);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  param_load((char *[]){ "STRATUS_RDMA=on", NULL });
  rdma_host_configure();
  rdma_device_log_refusal(&nic, "one");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  param_load((char *[]){ NULL });
}

/* ---- what eRDMA and LL128 do not do together ---- */

static unsigned warnings_with(const char *mtu, const char *protocols) {
  static const struct fake_hca erdma = {
    .name = "erdma_0", .addresses = { "10.0.3.1" }, .is_iwarp = true, .vendor_id = 0x1ded
  };
  struct tree tree;
  tree_create(&tree);
  tree_write(&tree, "sys/class/net/d3/mtu", "%s\n", mtu);
  sysfs_process_root = tree.root;
  protocols ? setenv("NCCL_PROTO", protocols, 1) : unsetenv("NCCL_PROTO");
  fake_verbs_add(&erdma);
  nic = fake_nic("d3", "10.0.3.1", 24);
  log_capture_start();
  rdma_device_close(rdma_host_open(&nic));
  unsigned warnings = (unsigned)log_capture_find("erdma_0: the MTU of d3 is");
  fake_verbs_remove("erdma_0");
  sysfs_process_root = "/";
  tree_remove(&tree);
  return warnings;
}

TEST(erdma_with_other_mtus_and_ll128_is_warned_of) {
  assert_int_equal(warnings_with("1500", NULL), 1);
  assert_int_equal(warnings_with("1500", "LL,LL128"), 1);
  assert_int_equal(warnings_with("1500", "^Simple"), 1);
  assert_int_equal(warnings_with("1500", "^LL128"), 0);
  assert_int_equal(warnings_with("1500", "LL,Simple"), 0);
  assert_int_equal(warnings_with("8500", NULL), 0);
  assert_int_equal(warnings_with("1400", NULL), 0);
}

/* ---- NICs that NCCL_IB_HCA chooses ---- */

enum { INTERFACES = 5 };

static void choose(struct interface list[INTERFACES], const char *rules) {
  static const struct {
    const char *name, *address;
    enum interface_verdict verdict;
  } given[INTERFACES] = {
    { "eth0", "192.168.0.1", INTERFACE_CHOSEN },
    { "d0", "10.0.9.9", INTERFACE_NOT_NAMED }, /* librdmacm finds nothing there */
    { "d0", "10.0.0.1", INTERFACE_NOT_NAMED },
    { "d1", "10.0.1.1", INTERFACE_NOT_NAMED },
    { "d2", "10.0.2.1", INTERFACE_NOT_RUNNING },
  };
  for (int i = 0; i < INTERFACES; i++) {
    list[i] = (struct interface){ .verdict = given[i].verdict };
    snprintf(list[i].name, sizeof(list[i].name), "%s", given[i].name);
    list[i].address = fake_nic_address(given[i].address);
  }
  rules ? setenv("NCCL_IB_HCA", rules, 1) : unsetenv("NCCL_IB_HCA");
  endpoint_configure();
  if (endpoint_names_devices()) {
    rdma_nics_choose(list, INTERFACES);
  }
}

TEST(named_devices_choose_their_nics) {
  static const struct fake_hca down = { .name = "fake1",
                                        .addresses = { "10.0.1.1" },
                                        .is_down = true };
  static const struct fake_hca idle = { .name = "fake2", .addresses = { "10.0.2.1" } };
  struct interface list[INTERFACES];
  fake_verbs_add(&down);
  fake_verbs_add(&idle);
  choose(list, "fake");
  assert_int_equal(list[0].verdict, INTERFACE_WITHOUT_HCA);
  assert_int_equal(list[1].verdict, INTERFACE_SECOND_ADDRESS);
  assert_int_equal(list[2].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list[3].verdict, INTERFACE_NOT_NAMED); /* the port is down */
  assert_int_equal(list[4].verdict, INTERFACE_NOT_RUNNING);
}

TEST(without_names_interfaces_stay_chosen) {
  struct interface list[INTERFACES];
  choose(list, NULL);
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list[2].verdict, INTERFACE_NOT_NAMED);
  choose(list, "other"); /* names none that is here */
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
  setenv("NCCL_IB_DISABLE", "1", 1);
  choose(list, "fake0");
  assert_int_equal(list[0].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list[2].verdict, INTERFACE_NOT_NAMED);
}

UNIT_MAIN(NULL, NULL)
