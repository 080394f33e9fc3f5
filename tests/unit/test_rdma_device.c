/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a NIC: found by librdmacm at its address, opened by a worker, shared, lost, found
 * again; the reasons why not; the NICs that NCCL_IB_HCA chooses. And ranges of memory, which come
 * and go like devices, in any order and at the same time. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/plugin/memory.h"
#include "net_plugin/plugin/interface.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static const struct fake_hca hca = { .name = "fake0", .addresses = { "fe80::1", "10.0.0.1" } };
static struct nic nic;
static char why[RDMA_WHY_MAX];
static uint8_t data[8 * 4096];

static int set_up(void **state) {
  static const char *const variables[] = { "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_IB_TC",
                                           "NCCL_IB_SL",  "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT",
                                           "NCCL_PROTO" };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    unsetenv(variables[i]);
  }
  rdma_host_start(&hca);
  nic = fake_nic("d0", "10.0.0.1", 24);
  log_capture_start();
  lane_memory_want(true);
  return 0;
}

static int tear_down(void **state) {
  lane_memory_want(false);
  log_capture_stop();
  rdma_host_stop(); /* fails if anything is left */
  return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* ---- settings ---- */

static struct rdma_settings with(const char *name, const char *value) {
  setenv(name, value, 1);
  endpoint_configure();
  unsetenv(name);
  return rdma_device_settings();
}

TEST(settings_are_nccls) {
  struct rdma_settings settings = rdma_device_settings();
  assert_false(settings.off_why || settings.is_wanted || settings.hcas.count);
  assert_int_equal(settings.traffic_class, -1);
  assert_int_equal(settings.service_level, -1);
  assert_int_equal(settings.timeout, 14);
  assert_int_equal(settings.retry_count, 7);
  assert_int_equal(with("NCCL_IB_TC", "0x6a").traffic_class, 106);
  assert_int_equal(with("NCCL_IB_SL", "5").service_level, 5);
  assert_int_equal(with("NCCL_IB_TIMEOUT", "22").timeout, 22);
  assert_int_equal(with("NCCL_IB_RETRY_CNT", "1").retry_count, 1);
  struct rdma_device *device = rdma_host_open(&nic);
  assert_int_equal(device->settings.retry_count, 1);
  rdma_device_release(device);
  assert_int_equal(with("NCCL_IB_TC", "").traffic_class, -1); /* as if not set */
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

TEST(bad_settings_are_told_and_not_taken) {
  assert_int_equal(with("NCCL_IB_TIMEOUT", "32").timeout, 14);
  assert_int_equal(log_capture_find("NCCL_IB_TIMEOUT=32 is ignored: accepted is 0..31; 14 is used"),
                   1);
  assert_int_equal(with("NCCL_IB_RETRY_CNT", "8").retry_count, 7);
  assert_int_equal(with("NCCL_IB_SL", "sl1").service_level, -1);
  assert_int_equal(with("NCCL_IB_TC", "-2").traffic_class, -1);
  assert_int_equal(with("NCCL_IB_TC", "99999999999999999999").traffic_class, -1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 5);
}

TEST(users_turn_it_off) {
  assert_string_equal(with("NCCL_IB_DISABLE", "2").off_why, "NCCL_IB_DISABLE is set");
  assert_null(with("NCCL_IB_DISABLE", "0").off_why);
  param_load((char *[]){ "STRATUS_RDMA=off", NULL });
  assert_string_equal(with("NCCL_IB_DISABLE", "0").off_why, "STRATUS_RDMA=off");
  param_load((char *[]){ "STRATUS_RDMA=on", NULL });
  assert_true(with("NCCL_IB_DISABLE", "0").is_wanted);
  assert_non_null(with("NCCL_IB_DISABLE", "1").off_why); /* NCCL's own win */
  param_load((char *[]){ NULL });
}

/* ---- none ---- */

/* is_there: a connection that is made now should be able to use it later. */
static void expect_none_for(bool is_there, const char *reason) {
  endpoint_configure();
  rdma_host_open_none(&nic, why);
  assert_int_equal(rdma_device_may_come(&nic), is_there);
  if (!strstr(why, reason)) {
    fail_msg("\"%s\" does not say \"%s\"", why, reason);
  }
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
  expect_none_for(false, "libibverbs.so.1: no such file");
  verbs_api_replace(fake_verbs_api(), NULL);
  nic = fake_nic("d0", "10.0.9.9", 24);
  expect_none_for(false, "finds no RDMA device at its address (rdma_bind_addr: No such device)");
  nic.advertised = fake_nic_address("192.168.0.1");
  expect_none_for(false, "others dial it by STRATUS_ADVERTISE_ADDRESS");
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.contexts + counts.pds + counts.cm_ids + counts.cm_channels, 0);
}

TEST(users_wishes_count) {
  setenv("NCCL_IB_HCA", "=fake", 1);
  expect_none_for(false, "NCCL_IB_HCA leaves out fake0:1");
  unsetenv("NCCL_IB_HCA");
  setenv("NCCL_IB_DISABLE", "1", 1);
  expect_none_for(false, "NCCL_IB_DISABLE is set");
  unsetenv("NCCL_IB_DISABLE");
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
  endpoint_configure();
  rdma_device_log_refusal(&nic, "one");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  param_load((char *[]){ NULL });
}

/* All places may have devices; those without one are taken again. */
TEST(there_are_places_for_nics) {
  static struct fake_hca many[RDMA_DEVICES];
  static char names[RDMA_DEVICES][16], addresses[RDMA_DEVICES][16];
  struct nic none[3];
  for (unsigned i = 0; i < 3; i++) {
    snprintf(names[i], sizeof names[i], "none%u", i);
    none[i] = fake_nic(names[i], "10.0.9.9", 24);
    rdma_host_open_none(&none[i], why);
  }
  for (unsigned i = 0; i < RDMA_DEVICES; i++) {
    snprintf(names[i], sizeof names[i], "many%u", i);
    snprintf(addresses[i], sizeof addresses[i], "10.1.0.%u", i + 1);
    many[i] = (struct fake_hca){ .name = names[i], .addresses = { addresses[i] } };
    fake_verbs_add(&many[i]);
    nic = fake_nic(names[i], addresses[i], 24);
    rdma_device_release(rdma_host_open(&nic));
  }
  rdma_host_open_none(&none[0], why);
  assert_string_equal(why, "too many RDMA devices are in use");
}

/* ---- open ---- */

TEST(each_transport_is_known) {
  static const struct {
    struct fake_hca hca;
    enum rdma_transport transport;
    bool has_immediate;
    const char *text;
  } kinds[] = {
    { { .name = "roce0", .addresses = { "10.0.4.1" } }, RDMA_ROCE, true, "roce0 port 1 (RoCE)" },
    { { .name = "ib0", .addresses = { "10.0.1.1" }, .is_infiniband = true },
      RDMA_INFINIBAND,
      true,
      "ib0 port 1 (InfiniBand)" },
    { { .name = "siw0", .addresses = { "10.0.2.1" }, .is_iwarp = true },
      RDMA_IWARP,
      false,
      "siw0 port 1 (iWARP)" },
    { { .name = "erdma_0", .addresses = { "10.0.3.1" }, .is_iwarp = true, .vendor_id = 0x1ded },
      RDMA_IWARP,
      true,
      "erdma_0 port 1 (iWARP)" },
  };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    char text[ENDPOINT_TEXT_MAX];
    fake_verbs_add(&kinds[i].hca);
    nic = fake_nic("d1", kinds[i].hca.addresses[0], 24);
    struct rdma_device *device = rdma_host_open(&nic);
    assert_int_equal(device->transport, kinds[i].transport);
    assert_int_equal(device->has_immediate, kinds[i].has_immediate);
    assert_true(endpoint_find(&nic, text));
    assert_string_equal(text, kinds[i].text);
    rdma_device_release(device);
  }
}

/* If asking waited for the driver, this test would never end. */
TEST(who_asks_does_not_wait_for_drivers) {
  fake_verbs_hold_calls(FAKE_CM_BIND, true);
  for (int i = 0; i < 3; i++) {
    assert_null(rdma_device_take(&nic, why));
    assert_string_equal(why, "");
  }
  fake_verbs_hold_calls(FAKE_CM_BIND, false);
  struct rdma_device *first = rdma_host_open(&nic), *second = rdma_host_open(&nic);
  assert_ptr_equal(first, second);
  assert_int_equal(fake_verbs_counts().pds, 1);
  assert_int_equal(log_capture_find("fake0, the RDMA device of d0, is open: port 1"), 1);
  rdma_device_release(first);
  rdma_device_release(second);
  assert_int_equal(fake_verbs_counts().pds, 1); /* for the next queue pair */
}

static bool is_readable(int fd) {
  struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
  return poll(&poll_fd, 1, 0) == 1;
}

TEST(lost_devices_are_looked_for_again) {
  struct rdma_device *device = rdma_host_open(&nic);
  uint32_t id = rdma_memory_domain(device->index);
  fake_verbs_remove("fake0");
  assert_true(is_readable(device->events->async_fd));
  rdma_device_take_events(device);
  assert_true(atomic_load(&device->is_lost));
  assert_true(is_readable(device->lost_fd));
  assert_int_equal(log_capture_find("fake0, the RDMA device of d0, is given up: "), 1);
  rdma_device_lose(device, "again"); /* says nothing more */
  assert_int_equal(log_capture_find("is given up"), 1);
  assert_null(rdma_device_take(&nic, why)); /* while it has users */
  assert_true(rdma_device_may_come(&nic));
  assert_int_equal(fake_verbs_counts().pds, 1);
  rdma_device_release(device);
  rdma_worker_finish(&device->queue);
  assert_int_equal(fake_verbs_counts().pds + fake_verbs_counts().cm_ids, 0);
  assert_int_equal(rdma_memory_domain(device->index), 0);
  expect_none_for(false, "finds no RDMA device at its address");
  fake_verbs_add(&hca);
  rdma_host_open_none(&nic, why); /* not asked for again at once */
  endpoint_configure();
  device = rdma_host_open(&nic);
  assert_false(atomic_load(&device->is_lost));
  assert_int_not_equal(rdma_memory_domain(device->index), id);
  rdma_device_release(device);
}

/* Also without users, who would read its events. */
TEST(ports_that_go_down_are_lost) {
  for (int i = 0; i < 2; i++) {
    struct rdma_device *device = rdma_host_open(&nic);
    if (i == 1) {
      rdma_device_release(device);
    }
    fake_verbs_set_port("fake0", false);
    if (i == 0) {
      rdma_device_take_events(device);
      rdma_device_release(device);
    }
    assert_null(rdma_device_take(&nic, why));
    rdma_worker_finish(&device->queue);
    assert_int_equal(log_capture_find("is given up: port error"), i + 1);
    expect_none_for(true, "port 1 of fake0 is down");
    fake_verbs_set_port("fake0", true);
    endpoint_configure();
  }
  rdma_device_release(rdma_host_open(&nic));
}

/* Closed; its place is free. */
static void give_up(struct rdma_device *device) {
  rdma_device_lose(device, "test");
  rdma_device_release(device);
  rdma_worker_finish(&device->queue);
}

/* librdmacm has one context for all NICs of a device; a child of fork must not have it. */
TEST(what_nics_share_stays_marked_until_the_last_goes) {
  const struct nic other = fake_nic("d9", "fe80::1", 64);
  struct rdma_device *one = rdma_host_open(&nic), *last = rdma_host_open(&other);
  int fd = last->bound->verbs->cmd_fd;
  assert_ptr_equal(one->bound->verbs, last->bound->verbs);
  give_up(one);
  assert_true(descriptor_is_marked(fd));
  give_up(last);
  assert_false(descriptor_is_marked(fd));
}

/* ---- memory ---- */

static bool has_keys(const struct lane_memory *memory, const struct rdma_device *device) {
  uint32_t local, remote;
  return rdma_memory_keys(memory, device->index, &local, &remote);
}

TEST(without_wishes_nothing_is_kept) {
  lane_memory_want(false);
  assert_null(lane_memory_register(data, sizeof data, LANE_MEMORY_REMOTE, NULL));
  lane_memory_want(true);
}

TEST(ranges_and_devices_come_in_any_order) {
  struct lane_memory *before = lane_memory_register(data, 4096, LANE_MEMORY_REMOTE, NULL);
  struct rdma_device *device = rdma_host_open(&nic);
  struct lane_memory *after = lane_memory_register(data + 4096, 4096, LANE_MEMORY_REMOTE, NULL);
  assert_true(has_keys(before, device) && has_keys(after, device));
  assert_int_equal(fake_verbs_counts().mrs, 2);
  lane_memory_free(before);
  give_up(device);
  assert_int_equal(fake_verbs_counts().mrs, 0);
  assert_false(has_keys(after, device));
  device = rdma_host_open(&nic);
  assert_true(has_keys(after, device));
  rdma_device_release(device);
  lane_memory_free(after);
}

/* As NCCL registers: on send and receive connections, the same buffer also on both. */
TEST(only_what_is_received_can_be_written) {
  const struct memory *sent, *received, *part, *sent_part;
  uint32_t local, remote;
  struct rdma_device *device = rdma_host_open(&nic);
  assert_int_equal(memory_register(data, 4096, MEMORY_HOST, MEMORY_SENT, &sent), 0);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  assert_true(rdma_memory_keys(sent->devices, device->index, &local, &remote));
  assert_int_equal(remote, 0);
  assert_int_equal(memory_register(data, 4096, MEMORY_HOST, MEMORY_RECEIVED, &received), 0);
  assert_int_equal(fake_verbs_counts().remote_mrs, 1);
  assert_true(rdma_memory_keys(received->devices, device->index, &local, &remote));
  assert_true(remote != 0);
  /* Who sends uses what there is. */
  assert_int_equal(memory_register(data, 100, MEMORY_HOST, MEMORY_RECEIVED, &part), 0);
  assert_int_equal(memory_register(data, 100, MEMORY_HOST, MEMORY_SENT, &sent_part), 0);
  assert_ptr_equal(part->devices, received->devices);
  assert_ptr_equal(sent_part->devices, received->devices);
  assert_int_equal(fake_verbs_counts().mrs, 2);
  memory_deregister(received);
  memory_deregister(part);
  memory_deregister(sent_part);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  memory_deregister(sent);
  assert_int_equal(memory_count(), 0);
  rdma_device_release(device);
}

/* CollNet's calls register without a word about what for; a group of one moves nothing, so that
 * nothing but the registrations is looked at. */
TEST(only_what_a_collnet_call_receives_into_can_be_written) {
  enum { COUNT = 512 };
  uint32_t local, remote;
  struct collnet_memory *sent, *received;
  struct rdma_device *device = rdma_host_open(&nic);
  struct collnet_group *group = group_create(COLLNET_FULL, 1, 0, nic_totals_of(&nic));
  assert_non_null(group);
  assert_int_equal(collnet_register(group, data, 4096, MEMORY_HOST, &sent), 0);
  assert_int_equal(collnet_register(group, data + 4096, 4096, MEMORY_HOST, &received), 0);
  assert_int_equal(fake_verbs_counts().mrs, 2);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  struct collnet_call call = {
    data, data + 4096, COUNT, REDUCE_FLOAT32, REDUCE_SUM, sent, received
  };
  for (int i = 0; i < 2; i++) { /* the second has nothing to register */
    struct collnet_request *request;
    bool is_done;
    size_t bytes;
    assert_int_equal(collnet_allreduce(group, &call, &request), 0);
    assert_int_equal(collnet_test(request, &is_done, &bytes), 0);
    assert_true(is_done);
    UNTIL(atomic_load(&received->target));
    assert_int_equal(fake_verbs_counts().mrs, 3);
    assert_int_equal(fake_verbs_counts().remote_mrs, 1);
  }
  assert_true(rdma_memory_keys(group_memory(sent, true)->devices, device->index, &local, &remote));
  assert_int_equal(remote, 0);
  assert_null(sent->target);
  assert_true(
      rdma_memory_keys(group_memory(received, false)->devices, device->index, &local, &remote));
  assert_true(remote != 0);
  collnet_deregister(group, received);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  collnet_deregister(group, sent);
  assert_int_equal(memory_count(), 0);
  collnet_close(group);
  rdma_device_release(device);
}

static void *come_and_go(void *argument) {
  uint8_t *own = argument;
  for (int i = 0; i < 300; i++) {
    struct lane_memory *kept = lane_memory_register(own, 4096, LANE_MEMORY_REMOTE, NULL);
    struct lane_memory *other = lane_memory_register(own, 100, LANE_MEMORY_REMOTE, NULL);
    lane_memory_free(kept);
    lane_memory_free(other);
  }
  return NULL;
}

TEST(ranges_and_devices_come_and_go_at_once) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    pthread_create(&threads[i], NULL, come_and_go, data + i * 4096);
  }
  struct lane_memory *kept = lane_memory_register(data + 4 * 4096, 4096, LANE_MEMORY_REMOTE, NULL);
  for (int i = 0; i < 30; i++) {
    struct rdma_device *device = rdma_host_open(&nic);
    assert_true(has_keys(kept, device));
    give_up(device);
    assert_false(has_keys(kept, device));
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  lane_memory_free(kept);
  assert_int_equal(fake_verbs_counts().mrs, 0);
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
  struct rdma_device *device = rdma_host_open(&nic);
  unsigned warnings = (unsigned)log_capture_find("erdma_0: the MTU of d3 is");
  give_up(device);
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
    snprintf(list[i].nic.name, sizeof(list[i].nic.name), "%s", given[i].name);
    list[i].nic.address = fake_nic_address(given[i].address);
  }
  rules ? setenv("NCCL_IB_HCA", rules, 1) : unsetenv("NCCL_IB_HCA");
  endpoint_configure();
  if (endpoint_names_devices()) {
    interface_choose_hcas(list, INTERFACES);
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
