/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a NIC: opened, shared, lost by its events, found again; and the reasons why not. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

static const struct fake_hca hca = { .name = "fake0",
                                     .netdev = "d0",
                                     .gids = { "fe80::1", "fe80::1", "10.0.0.1", "10.0.0.1" },
                                     .is_roce_v1 = { true, false, true, false },
                                     .pci_vendor = 0x15b3,
                                     .pci_device = 0x1019,
                                     .driver = "mlx5_core",
                                     .pci_function = "0000:17:00.0" };
static struct nic nic;
static char why[RDMA_WHY_MAX];

static int set_up(void **state) {
  (void)state;
  static const char *const variables[] = { "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_IB_RETRY_CNT" };
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
  assert_int_equal(rdma_mtu_bytes(port->mtu), 4096);
  assert_string_equal(port->traits.model, "ConnectX");
  assert_int_equal(port->max_send_sge, 16);
  assert_false(port->is_infiniband || port->is_iwarp);
  assert_non_null(device->pd);
  assert_false(is_readable(device->lost_fd));
  rdma_device_close(device);
}

TEST(traits_limit_what_the_device_says) {
  static const struct fake_hca erdma = { .name = "erdma_0",
                                         .netdev = "d1",
                                         .gids = { "10.0.1.1" },
                                         .pci_vendor = 0x1ded,
                                         .pci_device = 0x107f,
                                         .pci_function = "0000:18:00.0" };
  rdma_host_add(&erdma);
  nic = fake_nic("d1", "10.0.1.1", 24);
  struct rdma_device *device = rdma_host_open(&nic);
  assert_string_equal(device->port.traits.model, "eRDMA");
  assert_int_equal(device->port.max_send_sge, 6);
  rdma_device_close(device);
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
  assert_non_null(strstr(why, "does not list fake0"));
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

TEST(changed_addresses_make_a_new_device) {
  struct rdma_device *device = rdma_host_open(&nic);
  fake_verbs_event("fake0", IBV_EVENT_GID_CHANGE, NULL);
  rdma_device_take_events(device);
  assert_false(atomic_load(&device->is_lost)); /* its lanes go on as long as they can */
  struct rdma_device *other = rdma_host_open(&nic);
  assert_ptr_not_equal(other, device);
  rdma_device_close(device);
  rdma_device_close(other);
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

TEST(machines_without_an_hca_need_no_library) {
  rdma_host_empty();
  verbs_api_replace(NULL, "libibverbs.so.1: no such file");
  expect_none("there is no HCA");
  verbs_api_replace(fake_verbs_api(), NULL);
}

TEST(missing_pieces_are_named) {
  verbs_api_replace(NULL, "libibverbs.so.1: no such file");
  expect_none_yet("fake0 needs libibverbs: libibverbs.so.1: no such file");
  verbs_api_replace(fake_verbs_api(), NULL);
  fake_verbs_fail_call(FAKE_OPEN_DEVICE, 1, EACCES);
  expect_none_yet("fake0 cannot be opened: Permission denied; /dev/infiniband must be readable");
  fake_verbs_fail_call(FAKE_QUERY_DEVICE, 1, EIO);
  expect_none_yet("fake0 cannot be queried: Input/output error");
  fake_verbs_fail_call(FAKE_QUERY_PORT, 1, EIO);
  expect_none_yet("fake0 cannot be queried");
  fake_verbs_fail_call(FAKE_ALLOC_PD, 1, ENOMEM);
  expect_none_yet("fake0 cannot be used: Cannot allocate memory");
  snprintf(nic.name, sizeof(nic.name), "other");
  expect_none("no HCA belongs to other");
  snprintf(nic.name, sizeof(nic.name), "d0");
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.contexts + counts.pds, 0);
  /* As in a container with /sys but without /dev/infiniband. */
  fake_verbs_remove("fake0");
  expect_none_yet("libibverbs does not list fake0: /dev/infiniband is missing");
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

UNIT_MAIN(NULL, NULL)
