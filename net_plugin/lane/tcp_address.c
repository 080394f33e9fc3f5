/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_address.h. */
#include "net_plugin/lane/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const uint8_t *tcp_address_ip(const struct sockaddr_storage *address, unsigned *bytes) {
  bool is_v6 = address->ss_family == AF_INET6;
  *bytes = is_v6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
  return is_v6 ? ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr
               : (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
}

socklen_t tcp_address_bytes(const struct sockaddr_storage *address) {
  return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
               "the port stands where the family does not matter");
unsigned tcp_address_port(const struct sockaddr_storage *address) {
  return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void tcp_address_set_port(struct sockaddr_storage *address, unsigned port) {
  ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

void tcp_address_set_scope(struct sockaddr_storage *address, const struct nic *nic) {
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
  if (address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) {
    in6->sin6_scope_id = nic->index;
  }
}

static unsigned ip_bits(const struct sockaddr_storage *address) {
  unsigned bytes;
  tcp_address_ip(address, &bytes);
  return 8 * bytes;
}

/* The first so many bits are equal. */
static bool ip_match(const struct sockaddr_storage *a, const struct sockaddr_storage *b,
                     unsigned bits) {
  unsigned bytes, whole = bits / 8, rest = bits % 8;
  const uint8_t *ours = tcp_address_ip(a, &bytes), *theirs = tcp_address_ip(b, &bytes);
  return a->ss_family == b->ss_family && memcmp(ours, theirs, whole) == 0 &&
         (rest == 0 || ((ours[whole] ^ theirs[whole]) >> (8 - rest)) == 0);
}

bool tcp_address_is_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
  return ip_match(a, b, ip_bits(a));
}

bool tcp_address_is_near(const struct sockaddr_storage *address, const struct nic *nic) {
  return nic->prefix_bits != 0 && nic->prefix_bits <= ip_bits(address) &&
         ip_match(address, &nic->address, nic->prefix_bits);
}

const char *tcp_address_text(const struct sockaddr_storage *address, char text[TCP_ADDRESS_TEXT]) {
  char host[INET6_ADDRSTRLEN] = "?";
  unsigned bytes;
  bool is_v6 = address->ss_family == AF_INET6;
  inet_ntop(is_v6 ? AF_INET6 : AF_INET, tcp_address_ip(address, &bytes), host, sizeof host);
  snprintf(text, TCP_ADDRESS_TEXT, is_v6 ? "[%s]:%u" : "%s:%u", host, tcp_address_port(address));
  return text;
}
