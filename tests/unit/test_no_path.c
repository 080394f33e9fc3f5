/* SPDX-License-Identifier: Apache-2.0 */
/* What a user is told of a NIC that does not reach an address. Routes: tests/netns/nics. */
#include <errno.h>
#include <string.h>

#include "net_plugin/setup/no_path.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/unit.h"

static struct nic nic; /* without an index the routing tables are not asked */

static int set_up(void **state) {
  nic = fake_nic("eth7", "127.0.0.1", 8);
  return 0;
}

static void expect(const char *address, bool is_advertised, int error, const char *start,
                   const char *part) {
  const struct sockaddr_storage to = fake_nic_address(address);
  char text[NO_PATH_TEXT];
  no_path_text(&nic, &to, is_advertised, error, text);
  if (strncmp(text, start, strlen(start)) != 0 || !strstr(text, part)) {
    fail_msg("\"%s\" does not begin with \"%s\" and contain \"%s\"", text, start, part);
  }
}

UNIT_TEST_WITH(an_errno_has_a_likely_reason, set_up, NULL) {
  expect("127.0.0.2", false, -EHOSTUNREACH, "No route to host; ", "nobody has this address");
  expect("127.0.0.2", false, -ETIMEDOUT, "Connection timed out; ", "firewall drop TCP");
  expect("127.0.0.2", false, 0, "Connection timed out; ", "nothing answers");
  expect("127.0.0.2", false, -ECONNREFUSED, "Connection refused; ", "nobody listens there");
  expect("127.0.0.2", false, -EADDRNOTAVAIL, "Cannot assign requested address; ",
         "duplicate address detection");
  expect("127.0.0.2", false, -EPROTONOSUPPORT, "Protocol not supported; ", "same on every host");
  expect("127.0.0.2", false, -ECONNRESET, "Connection reset by peer; ", "the peer's process lives");
}

UNIT_TEST_WITH(an_own_address_explains_more, set_up, NULL) {
  nic.index = 1; /* lo */
  expect("127.0.0.1", false, -ECONNREFUSED, "Connection refused; ",
         "this host has that address, too");
  expect("127.0.0.1", false, -ETIMEDOUT, "Connection timed out; ", "bridges of containers");
}

UNIT_TEST_WITH(an_advertised_address_is_called_so, set_up, NULL) {
  expect("127.0.0.2", true, -ECONNREFUSED, "Connection refused; ",
         "the peer has this address in STRATUS_ADVERTISE_ADDRESS");
  expect("127.0.0.2", true, -ETIMEDOUT, "Connection timed out; ",
         "is this TCP port passed on to the NIC");
  expect("127.0.0.2", true, -ECONNRESET, "Connection reset by peer; ", "the peer's process lives");
}

UNIT_TEST_WITH(a_lack_of_descriptors_explains_all, set_up, NULL) {
  expect("127.0.0.1", false, -EMFILE, "no descriptor is left", "ulimit -n");
}
