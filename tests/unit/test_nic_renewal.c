/* SPDX-License-Identifier: Apache-2.0 */
/* Which NIC stands for each that NCCL was told of, after interfaces were renamed, got other
 * addresses, went or came. */
#include <stdio.h>
#include <string.h>

#include "net_plugin/plugin/nic_renewal.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static struct device_table told, fresh;
static struct nic_renewal renewal;

static void add(struct device_table *table, unsigned index, const char *name, const char *address) {
  struct device *device = &table->devices[table->count++];
  *device = (struct device){ .nic_count = 1 };
  device->nics[0] = fake_nic(name, address, 24);
  device->nics[0].index = index;
  device->nics[0].has_neighbours = true;
  snprintf(device->name, sizeof(device->name), "%s", name);
  table->physical_count = table->count;
}

static int set_up(void **context) {
  memset(&told, 0, sizeof(told));
  memset(&fresh, 0, sizeof(fresh));
  add(&told, 2, "eth0", "10.0.0.1");
  add(&told, 3, "eth1", "10.1.0.1");
  nic_renewal_begin(&renewal, &told);
  log_capture_start();
  return 0;
}

/* The device's NICs as "eth0 10.0.0.1 ". */
static const char *nics_of(int device) {
  static char text[256];
  struct nic nics[NIC_MAX_FUSED];
  char address[INTERFACE_ADDRESS_TEXT_MAX];
  unsigned count = nic_renewal_nics(&renewal, &told.devices[device], nics);
  text[0] = '\0';
  for (unsigned i = 0; i < count; i++) {
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s ", nics[i].name,
             interface_address_text(&nics[i].address, address));
  }
  return text;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, log_capture_tear_down)

/* Else by its name, which another one may have got. */
TEST(an_interface_is_known_by_its_index) {
  add(&fresh, 2, "eth1", "10.0.0.1");
  add(&fresh, 3, "eth0", "10.1.0.1");
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(0), "eth1 10.0.0.1 ");
  assert_string_equal(nics_of(1), "eth0 10.1.0.1 ");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  fresh.count = 0;
  add(&fresh, 7, "eth1", "10.1.0.1"); /* made again */
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(1), "eth1 10.1.0.1 ");
}

TEST(another_address_is_used) {
  add(&fresh, 2, "eth0", "10.0.0.9");
  add(&fresh, 9, "bond0", "10.1.0.1"); /* has taken the address over */
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(0), "eth0 10.0.0.9 ");
  assert_string_equal(nics_of(1), "bond0 10.1.0.1 ");
  assert_int_equal(log_capture_find("eth0 (10.0.0.1) is eth0 (10.0.0.9) now"), 1);
}

TEST(a_nic_that_is_gone_has_a_stand_in_until_it_is_back) {
  add(&fresh, 2, "eth0", "10.0.0.1");
  nic_renewal_take(&renewal, &fresh);
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(0), "eth0 10.0.0.1 ");
  assert_string_equal(nics_of(1), "eth0 10.0.0.1 ");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1); /* once */
  add(&fresh, 3, "eth1", "10.1.0.1");
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(1), "eth1 10.1.0.1 ");
}

TEST(a_new_nic_takes_its_place) {
  add(&fresh, 3, "eth1", "10.1.0.1");
  add(&fresh, 8, "eth2", "10.2.0.1");
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(0), "eth2 10.2.0.1 ");
  assert_string_equal(nics_of(1), "eth1 10.1.0.1 ");
}

/* NCCL's rules choose lo where nothing else is left. */
TEST(what_leads_nowhere_is_no_stand_in) {
  add(&fresh, 1, "lo", "127.0.0.1");
  fresh.devices[0].nics[0].has_neighbours = false;
  add(&fresh, 4, "docker0", "172.17.0.1");
  fresh.devices[1].nics[0].is_idle = true;
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(0), "");
  assert_int_equal(log_capture_find("eth0 is gone, and this host has no other"), 1);
}

TEST(a_device_of_several_keeps_those_that_are_left) {
  struct device fused = { .nic_count = 2 };
  fused.nics[0] = told.devices[0].nics[0];
  fused.nics[1] = told.devices[1].nics[0];
  told.devices[told.count++] = fused;
  add(&fresh, 3, "eth1", "10.1.0.7");
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(2), "eth1 10.1.0.7 ");
  add(&fresh, 2, "eth0", "10.0.0.1");
  nic_renewal_take(&renewal, &fresh);
  assert_string_equal(nics_of(2), "eth0 10.0.0.1 eth1 10.1.0.7 ");
}

TEST(the_kernel_says_whether_a_nic_is_still_there) {
  struct device device = { .nic_count = 1 };
  device.nics[0] = fake_nic("lo", "127.0.0.1", 8);
  device.nics[0].index = 1;
  told = (struct device_table){ .count = 1, .physical_count = 1, .devices = { device } };
  nic_renewal_begin(&renewal, &told);
  assert_false(nic_renewal_is_due(&renewal, &told.devices[0]));
  renewal.nics[0].now.address = fake_nic_address("203.0.113.1");
  assert_true(nic_renewal_is_due(&renewal, &told.devices[0]));
  renewal.nics[0].is_gone = true; /* and 127.0.0.1 is there */
  assert_true(nic_renewal_is_due(&renewal, &told.devices[0]));
  renewal.nics[0].told.address = fake_nic_address("203.0.113.1");
  assert_false(nic_renewal_is_due(&renewal, &told.devices[0]));
}
