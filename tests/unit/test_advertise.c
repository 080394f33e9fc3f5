/* SPDX-License-Identifier: Apache-2.0 */
/* STRATUS_ADVERTISE_ADDRESS, against invented interfaces. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/plugin/advertise.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

enum { INTERFACES = 3 };
static struct interface list[INTERFACES];

static void make_interfaces(void) {
  static const struct {
    const char *name, *address;
    enum interface_verdict verdict;
  } made[INTERFACES] = { { "eth0", "10.0.0.2", INTERFACE_CHOSEN },
                         { "lo", "10.9.9.9", INTERFACE_LESS_PREFERRED },
                         { "eth1", "10.0.1.2", INTERFACE_CHOSEN } };
  memset(list, 0, sizeof(list));
  for (int i = 0; i < INTERFACES; i++) {
    snprintf(list[i].nic.name, sizeof(list[i].nic.name), "%s", made[i].name);
    list[i].nic.address = fake_nic_address(made[i].address);
    list[i].nic.prefix_bits = 24;
    list[i].verdict = made[i].verdict;
  }
}

/* 10.9.9.9 and fd99::9 are on lo. */
static bool is_own(const struct sockaddr_storage *address) {
  char text[INTERFACE_ADDRESS_TEXT_MAX];
  interface_address_text(address, text);
  return strcmp(text, "10.9.9.9") == 0 || strcmp(text, "fd99::9") == 0;
}

static int apply(const char *text) {
  make_interfaces();
  log_capture_start();
  return advertise_apply(text, list, INTERFACES, is_own);
}

static void has(int index, const char *address, const char *advertised) {
  char text[INTERFACE_ADDRESS_TEXT_MAX];
  assert_string_equal(interface_address_text(&list[index].nic.address, text), address);
  if (!advertised) {
    assert_int_equal(list[index].nic.advertised.ss_family, AF_UNSPEC);
  } else {
    assert_string_equal(interface_address_text(&list[index].nic.advertised, text), advertised);
  }
}

LOG_CAPTURE_TEST(others_dial_what_is_advertised) {
  assert_int_equal(apply("eth1=203.0.113.8,eth0=203.0.113.7"), 0);
  has(0, "10.0.0.2", "203.0.113.7");
  has(1, "10.9.9.9", NULL);
  has(2, "10.0.1.2", "203.0.113.8");
  assert_int_equal(log_capture_find("eth0 listens at 10.0.0.2, and other hosts dial 203.0.113.7"),
                   1);
}

LOG_CAPTURE_TEST(an_address_of_the_host_is_used_itself) {
  assert_int_equal(apply("10.9.9.9"), 0);
  for (int i = 0; i < INTERFACES; i++) {
    has(i, "10.9.9.9", NULL);
  }
  assert_int_equal(list[0].nic.prefix_bits, 0);
  assert_int_equal(log_capture_find("eth0 uses 10.9.9.9, an address of this host"), 1);
  /* The NICs may have addresses of another family, or of one link only. */
  assert_int_equal(apply("fd99::9"), 0);
  has(0, "fd99::9", NULL);
}

LOG_CAPTURE_TEST(its_own_address_again_is_no_change) {
  assert_int_equal(apply("eth0=10.0.0.2,eth1=203.0.113.8"), 0);
  has(0, "10.0.0.2", NULL);
  has(2, "10.0.1.2", "203.0.113.8");
}

/* Nothing is changed, and one line says what is wrong. */
static void refused(const char *text, const char *part) {
  assert_int_equal(apply(text), -EINVAL);
  has(0, "10.0.0.2", NULL);
  has(2, "10.0.1.2", NULL);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  if (log_capture_find(part) != 1) {
    fail_msg("no \"%s\" in: %s", part, log_capture_text(0));
  }
}

LOG_CAPTURE_TEST(what_is_wrong_is_told) {
  refused("eth7=203.0.113.7", "\"eth7=203.0.113.7\" names none of the interfaces in use; accepted "
                              "is one address, or a list as in eth0=203.0.113.7,eth1=203.0.113.8, "
                              "of the interfaces in use: eth0,eth1");
  refused("lo=203.0.113.7", "names none of the interfaces in use");
  refused("eth0=myhost", "\"eth0=myhost\" has no IPv4 or IPv6 address");
  refused("eth0=", "has no IPv4 or IPv6 address");
  refused(",", "\"\" has no IPv4 or IPv6 address");
  refused("203.0.113.7:2000", "has no IPv4 or IPv6 address");
  refused("eth0=203.0.113.7,eth0=203.0.113.8", "is a second one for the same NIC");
  refused("eth0=203.0.113.7,203.0.113.8", "is a second one for the same NIC");
  refused("eth0=127.0.0.1", "means each host itself");
  refused("eth0=fe80::1", "holds on one link only");
  refused("eth0=169.254.1.1", "holds on one link only");
  refused("eth0=0.0.0.0", "is no host's");
  refused("eth0=ff02::1", "is no host's");
  refused("eth0=224.0.0.1", "is no host's");
  char text[256];
  snprintf(text, sizeof(text), "eth0=%0200d", 1);
  refused(text, "is too long");
}

LOG_CAPTURE_TEST(both_addresses_are_named_where_they_do_not_fit) {
  refused("203.0.113.7", "who dials 203.0.113.7 cannot reach both eth0 (10.0.0.2) and eth1 "
                         "(10.0.1.2)");
  refused("eth0=2001:db8::7",
          "eth0 listens at 10.0.0.2, where nobody arrives who dials 2001:db8::7");
}
