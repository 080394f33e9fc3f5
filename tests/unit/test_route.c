/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's tables say of this host's own addresses, and what a user is told of a NIC that
 * does not reach an address. Real NICs: tests/netns/layouts, tests/netns/nics. */
#include "net_plugin/lane/route.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net_plugin/setup/no_path.h"
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

/* ---- what is told ---- */

/* Without an index of the NIC the routing tables are not asked. */
UNIT_TEST(an_errno_has_a_likely_reason) {
  static const struct {
    const char *address;
    unsigned index;
    bool is_advertised;
    int error;
    const char *start, *part;
  } cases[] = {
    { "127.0.0.2", 0, false, -EHOSTUNREACH, "No route to host; ", "nobody has this address" },
    { "127.0.0.2", 0, false, -ETIMEDOUT, "Connection timed out; ", "firewall drop TCP" },
    { "127.0.0.2", 0, false, 0, "Connection timed out; ", "nothing answers" },
    { "127.0.0.2", 0, false, -ECONNREFUSED, "Connection refused; ", "nobody listens there" },
    { "127.0.0.2", 0, false, -EADDRNOTAVAIL, "Cannot assign requested address; ",
      "duplicate address detection" },
    { "127.0.0.2", 0, false, -EPROTONOSUPPORT, "Protocol not supported; ", "same on every host" },
    { "127.0.0.2", 0, false, -ECONNRESET, "Connection reset by peer; ",
      "the peer's process lives" },
    /* an own address explains more */
    { "127.0.0.1", LO, false, -ECONNREFUSED, "Connection refused; ",
      "this host has that address, too" },
    { "127.0.0.1", LO, false, -ETIMEDOUT, "Connection timed out; ", "bridges of containers" },
    /* an advertised address is called so */
    { "127.0.0.2", 0, true, -ECONNREFUSED, "Connection refused; ",
      "the peer has this address in STRATUS_ADVERTISE_ADDRESS" },
    { "127.0.0.2", 0, true, -ETIMEDOUT, "Connection timed out; ",
      "is this TCP port passed on to the NIC" },
    { "127.0.0.2", 0, true, -ECONNRESET, "Connection reset by peer; ", "the peer's process lives" },
    /* a lack of descriptors explains all */
    { "127.0.0.1", 0, false, -EMFILE, "no descriptor is left", "ulimit -n" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct nic nic = fake_nic("eth7", "127.0.0.1", 8);
    const struct sockaddr_storage to = fake_nic_address(cases[i].address);
    char text[NO_PATH_TEXT];
    nic.index = cases[i].index;
    no_path_text(&nic, &to, cases[i].is_advertised, cases[i].error, text);
    if (strncmp(text, cases[i].start, strlen(cases[i].start)) != 0 ||
        !strstr(text, cases[i].part)) {
      fail_msg("\"%s\" does not begin with \"%s\" and contain \"%s\"", text, cases[i].start,
               cases[i].part);
    }
  }
}
