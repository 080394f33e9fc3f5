/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_nic.h. */
#include "tests/lib/fake_nic.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/unit.h"

struct sockaddr_storage fake_nic_address(const char *text) {
  struct sockaddr_storage address = { 0 };
  struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;
  struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&address;
  address.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
  void *number = address.ss_family == AF_INET6 ? (void *)&ipv6->sin6_addr : (void *)&ipv4->sin_addr;
  assert_int_equal(inet_pton(address.ss_family, text, number), 1);
  return address;
}

struct nic fake_nic(const char *name, const char *address, unsigned prefix_bits) {
  struct nic nic = { .address = fake_nic_address(address), .prefix_bits = prefix_bits };
  snprintf(nic.name, sizeof nic.name, "%s", name);
  return nic;
}
