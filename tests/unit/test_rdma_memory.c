/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of memory and devices that come and go, in any order and at the same time; who opens
 * devices, and who notices that they have gone. */
#include "net_plugin/lane/rdma/rdma_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/lane/rdma/rdma_opener.h"
#include "net_plugin/plugin/memory.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

#define PATIENCE_NS (20 * NS_PER_S)

static const struct fake_hca hca = { .name = "fake0", .addresses = { "10.0.0.1" } };
static struct nic nic;
static char why[RDMA_WHY_MAX];
static uint8_t data[8 * 4096];

static int set_up(void **state) {
  (void)state;
  rdma_host_start(&hca);
  nic = fake_nic("d0", "10.0.0.1", 24);
  log_capture_start();
  lane_memory_want(true);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  lane_memory_want(false);
  rdma_opener_finish();
  rdma_memory_release(true);
  log_capture_stop();
  rdma_host_stop(); /* fails if anything is left */
  return 0;
}

static bool has_keys(const struct lane_memory *memory, int domain) {
  uint32_t local, remote;
  return rdma_memory_keys(memory, domain, &local, &remote);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(without_wishes_nothing_is_kept) {
  lane_memory_want(false);
  assert_null(lane_memory_register(data, sizeof data, LANE_MEMORY_REMOTE, NULL));
  lane_memory_want(true);
}

TEST(ranges_and_devices_come_in_any_order) {
  struct lane_memory *before = lane_memory_register(data, 4096, LANE_MEMORY_REMOTE, NULL);
  struct rdma_device *device = rdma_host_open(&nic);
  assert_false(atomic_load(&device->is_attached));
  int domain = rdma_memory_attach(device);
  assert_true(atomic_load(&device->is_attached));
  struct lane_memory *after = lane_memory_register(data + 4096, 4096, LANE_MEMORY_REMOTE, NULL);
  assert_true(has_keys(before, domain) && has_keys(after, domain));
  assert_int_equal(fake_verbs_counts().mrs, 2);
  lane_memory_free(before);
  rdma_memory_detach(domain);
  lane_memory_free(after);
  rdma_device_close(device);
  assert_int_equal(fake_verbs_counts().contexts, 1); /* for the next queue pair */
}

/* As NCCL registers: on send and receive connections, the same buffer also on both. */
TEST(only_what_is_received_can_be_written) {
  const struct memory *sent, *received, *part, *sent_part;
  uint32_t local, remote;
  struct rdma_device *device = rdma_host_open(&nic);
  int domain = rdma_memory_attach(device);
  assert_int_equal(memory_register(data, 4096, MEMORY_HOST, MEMORY_SENT, &sent), 0);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  assert_true(rdma_memory_keys(sent->devices, domain, &local, &remote));
  assert_int_equal(remote, 0);
  assert_int_equal(memory_register(data, 4096, MEMORY_HOST, MEMORY_RECEIVED, &received), 0);
  assert_int_equal(fake_verbs_counts().remote_mrs, 1);
  assert_true(rdma_memory_keys(received->devices, domain, &local, &remote));
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
  rdma_memory_detach(domain);
  rdma_device_close(device);
}

/* CollNet's calls register without a word about what for; a group of one moves nothing, so that
 * nothing but the registrations is looked at. */
TEST(only_what_a_collnet_call_receives_into_can_be_written) {
  enum { COUNT = 512 };
  uint32_t local, remote;
  struct collnet_memory *sent, *received;
  struct rdma_device *device = rdma_host_open(&nic);
  int domain = rdma_memory_attach(device);
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
    uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
    while (!atomic_load(&received->target)) {
      assert_true(clock_now_ns() < until_ns);
      usleep(100);
    }
    assert_int_equal(fake_verbs_counts().mrs, 3);
    assert_int_equal(fake_verbs_counts().remote_mrs, 1);
  }
  assert_true(rdma_memory_keys(group_memory(sent, true)->devices, domain, &local, &remote));
  assert_int_equal(remote, 0);
  assert_null(sent->target);
  assert_true(rdma_memory_keys(group_memory(received, false)->devices, domain, &local, &remote));
  assert_true(remote != 0);
  collnet_deregister(group, received);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  collnet_deregister(group, sent);
  assert_int_equal(memory_count(), 0);
  collnet_close(group);
  rdma_memory_detach(domain);
  rdma_device_close(device);
}

/* Other devices keep what they have, and what cannot be written by peers stays. */
TEST(revoked_devices_take_no_writes_any_more) {
  uint32_t local, remote;
  struct lane_memory *sent = lane_memory_register(data, 4096, LANE_MEMORY_LOCAL, NULL);
  struct lane_memory *received = lane_memory_register(data + 4096, 4096, LANE_MEMORY_REMOTE, NULL);
  struct rdma_device *device = rdma_host_open(&nic);
  int domain = rdma_memory_attach(device);
  fake_verbs_fail_calls(FAKE_DEREG_MR, EBUSY);
  assert_int_equal(rdma_memory_revoke(domain), EBUSY);
  assert_false(rdma_memory_keys(received, domain, &local, &remote));
  fake_verbs_heal_calls();
  assert_int_equal(rdma_memory_revoke(domain), 0);
  assert_int_equal(fake_verbs_counts().mrs, 1);
  assert_true(rdma_memory_keys(sent, domain, &local, &remote));
  rdma_memory_detach(domain);
  rdma_memory_release(true);
  /* The domain is as new for who comes next. */
  assert_int_equal(rdma_memory_attach(device), domain);
  assert_true(rdma_memory_keys(received, domain, &local, &remote));
  rdma_memory_detach(domain);
  rdma_device_close(device);
  lane_memory_free(sent);
  lane_memory_free(received);
}

TEST(a_device_that_comes_back_knows_all_ranges) {
  struct lane_memory *memory = lane_memory_register(data, sizeof data, LANE_MEMORY_REMOTE, NULL);
  struct rdma_device *device = rdma_host_open(&nic);
  int domain = rdma_memory_attach(device);
  uint32_t id = rdma_memory_domain_id(domain);
  fake_verbs_remove("fake0");
  rdma_device_take_events(device);
  rdma_device_close(device);
  assert_int_equal(fake_verbs_counts().contexts, 1);
  rdma_memory_detach(domain);
  assert_int_equal(fake_verbs_counts().contexts + fake_verbs_counts().mrs, 0);
  assert_false(has_keys(memory, domain));

  fake_verbs_add(&hca);
  device = rdma_host_open(&nic);
  domain = rdma_memory_attach(device);
  assert_true(has_keys(memory, domain));
  assert_int_not_equal(rdma_memory_domain_id(domain), id);
  rdma_memory_detach(domain);
  rdma_device_close(device);
  lane_memory_free(memory);
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
    int domain = rdma_memory_attach(device);
    assert_true(has_keys(kept, domain));
    rdma_device_lose(device, "test");
    rdma_device_close(device);
    rdma_memory_detach(domain);
    assert_false(has_keys(kept, domain));
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  lane_memory_free(kept);
  assert_int_equal(fake_verbs_counts().mrs, 0);
}

/* If asking waited for the driver, this test would never end. */
TEST(who_asks_does_not_wait_for_drivers) {
  fake_verbs_hold_calls(FAKE_OPEN_DEVICE, true);
  for (int i = 0; i < 3; i++) {
    assert_null(rdma_opener_take(&nic, why));
    assert_string_equal(why, "");
  }
  fake_verbs_hold_calls(FAKE_OPEN_DEVICE, false);
  rdma_opener_wait(&nic, 1);
  struct rdma_device *device = rdma_opener_take(&nic, why);
  assert_non_null(device);
  assert_true(atomic_load(&device->is_attached));
  assert_int_equal(fake_verbs_counts().contexts, 1);
  assert_int_equal(log_capture_find("fake0, the RDMA device of d0, is open: port 1"), 1);
  rdma_device_close(device);
}

TEST(who_asks_is_told_why_not) {
  fake_verbs_remove("fake0");
  rdma_opener_wait(&nic, 1);
  assert_null(rdma_opener_take(&nic, why));
  assert_non_null(strstr(
      why, "librdmacm finds no RDMA device at its address (rdma_bind_addr: No such device)"));
  setenv("NCCL_IB_DISABLE", "1", 1);
  rdma_host_configure();
  unsetenv("NCCL_IB_DISABLE");
  assert_null(rdma_opener_take(&nic, why));
  assert_string_equal(why, "NCCL_IB_DISABLE is set");
}

/* No lane reads its events. */
TEST(an_unused_device_that_goes_is_given_up_when_it_is_asked_for) {
  rdma_opener_wait(&nic, 1);
  assert_int_equal(fake_verbs_counts().contexts, 1);
  fake_verbs_remove("fake0");
  rdma_opener_wait(&nic, 1);
  assert_int_equal(fake_verbs_counts().contexts, 0);
}

UNIT_MAIN(NULL, NULL)
