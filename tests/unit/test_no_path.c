/* SPDX-License-Identifier: Apache-2.0 */
/* What a user is told of a NIC that does not reach an address. Routes: tests/netns/nics. */
#include <errno.h>
#include <string.h>

#include "net_plugin/setup/no_path.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/unit.h"

static void expect(const char *address, enum no_path_address kind, int error, const char *start,
                   const char *part) {
  /* Without an index no route is asked for by it; what the tables say of the address counts. */
  const struct nic nic = fake_nic("eth7", "127.0.0.1", 8);
  const struct sockaddr_storage to = fake_nic_address(address);
  char text[NO_PATH_TEXT];
  no_path_text(&nic, &to, kind, error, text);
  if (strncmp(text, start, strlen(start)) != 0 || !strstr(text, part)) {
    fail_msg("\"%s\" does not begin with \"%s\" and contain \"%s\"", text, start, part);
  }
}

UNIT_TEST(an_errno_has_a_likely_reason) {
  expect("127.0.0.2", NO_PATH_OF_NIC, -EHOSTUNREACH, "No route to host; ",
         "nobody has this address");
  expect("127.0.0.2", NO_PATH_OF_NIC, -ETIMEDOUT, "Connection timed out; ", "firewall drop TCP");
  expect("127.0.0.2", NO_PATH_OF_NIC, 0, "Connection timed out; ", "nothing answers");
  expect("127.0.0.2", NO_PATH_OF_NIC, -ECONNREFUSED, "Connection refused; ",
         "nobody listens there");
  expect("127.0.0.2", NO_PATH_OF_NIC, -EADDRNOTAVAIL, "Cannot assign requested address; ",
         "duplicate address detection");
  expect("127.0.0.2", NO_PATH_OF_NIC, -EPROTONOSUPPORT, "Protocol not supported; ",
         "same on every host");
  expect("127.0.0.2", NO_PATH_OF_NIC, -ECONNRESET, "Connection reset by peer; ",
         "the peer's process lives");
}

UNIT_TEST(an_own_address_explains_more) {
  expect("127.0.0.1", NO_PATH_OWN, -ECONNREFUSED, "Connection refused; ",
         "this host has that address, too");
  expect("127.0.0.1", NO_PATH_OWN, -ETIMEDOUT, "Connection timed out; ", "bridges of containers");
}

UNIT_TEST(an_advertised_address_is_called_so) {
  expect("127.0.0.2", NO_PATH_ADVERTISED, -ECONNREFUSED, "Connection refused; ",
         "the peer has this address in STRATUS_ADVERTISE_ADDRESS");
  expect("127.0.0.2", NO_PATH_ADVERTISED, -ETIMEDOUT, "Connection timed out; ",
         "is this TCP port passed on to the NIC");
  expect("127.0.0.2", NO_PATH_ADVERTISED, -ECONNRESET, "Connection reset by peer; ",
         "the peer's process lives");
}

UNIT_TEST(a_lack_of_descriptors_explains_all) {
  expect("127.0.0.1", NO_PATH_OWN, -EMFILE, "no descriptor is left", "ulimit -n");
}

UNIT_MAIN(NULL, NULL)
