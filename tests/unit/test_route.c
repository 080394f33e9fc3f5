/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's tables say of this host's own addresses. Real NICs: tests/netns/layouts. */
#include <unistd.h>

#include "net_plugin/lane/route.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/unit.h"

enum { LO = 1 };

static enum route_way find(unsigned index, const char *from, const char *to) {
  struct nic nic = fake_nic("lo", from, 8);
  const struct sockaddr_storage peer = fake_nic_address(to);
  nic.index = index;
  return route_find(&nic, &peer);
}

UNIT_TEST(what_stays_on_the_host_leaves_by_no_nic) {
  assert_int_equal(find(LO, "127.0.0.1", "127.0.0.1"), ROUTE_OWN);
  assert_int_equal(find(LO, "127.0.0.1", "127.9.9.9"), ROUTE_OWN);
  if (access("/proc/net/if_inet6", R_OK) == 0) {
    assert_int_equal(find(LO, "::1", "::1"), ROUTE_OWN);
  }
}

UNIT_TEST(an_unknown_nic_or_another_family_is_not_guessed_at) {
  assert_int_equal(find(0, "127.0.0.1", "127.0.0.2"), ROUTE_UNKNOWN);
  assert_int_equal(find(LO, "127.0.0.1", "::1"), ROUTE_UNKNOWN);
}

UNIT_TEST(own_addresses_are_known) {
  const struct sockaddr_storage own = fake_nic_address("127.1.2.3");
  const struct sockaddr_storage other = fake_nic_address("192.0.2.1"); /* RFC 5737 */
  assert_true(route_is_own(&own));
  assert_false(route_is_own(&other));
}
