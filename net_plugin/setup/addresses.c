/* SPDX-License-Identifier: Apache-2.0 */
/* See addresses.h. */
#include "net_plugin/setup/addresses.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static unsigned family_of(const struct sockaddr_storage *address) {
  return address->ss_family == AF_INET6 ? 6 : 4;
}

size_t address_packed_bytes(const struct sockaddr_storage *address) {
  return address_bytes(family_of(address));
}

static void pack(const struct sockaddr_storage *address, uint8_t *bytes) {
  bytes[0] = (uint8_t)family_of(address);
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    memcpy(bytes + 1, &in6->sin6_port, 2);
    memcpy(bytes + 3, &in6->sin6_addr, 16);
  } else {
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    memcpy(bytes + 1, &in->sin_port, 2);
    memcpy(bytes + 3, &in->sin_addr, 4);
  }
}

static void unpack(const uint8_t *bytes, struct sockaddr_storage *address) {
  memset(address, 0, sizeof *address);
  if (bytes[0] == 6) {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_port, bytes + 1, 2);
    memcpy(&in6->sin6_addr, bytes + 3, 16);
  } else {
    struct sockaddr_in *in = (struct sockaddr_in *)address;
    in->sin_family = AF_INET;
    memcpy(&in->sin_port, bytes + 1, 2);
    memcpy(&in->sin_addr, bytes + 3, 4);
  }
}

void addresses_pack(const struct sockaddr_storage *list, unsigned count, uint8_t *bytes,
                    size_t room) {
  size_t at = 0;
  for (unsigned i = 0; i < count; i++) {
    assert(at + address_packed_bytes(&list[i]) <= room);
    pack(&list[i], bytes + at);
    at += address_packed_bytes(&list[i]);
  }
  memset(bytes + at, 0, room - at);
}

int addresses_unpack(const uint8_t *bytes, size_t room, unsigned count,
                     struct sockaddr_storage list[ADDRESSES_MAX]) {
  if (!addresses_are_valid(bytes, room, count)) {
    return -EPROTO;
  }
  for (unsigned i = 0; i < count; i++) {
    unpack(bytes, &list[i]);
    bytes += address_packed_bytes(&list[i]);
  }
  return 0;
}

unsigned addresses_of_reply(const struct reply *reply,
                            struct sockaddr_storage list[ADDRESSES_MAX]) {
  const struct address_list *addresses = &reply->addresses;
  int error = addresses_unpack(addresses->bytes, sizeof addresses->bytes, addresses->count, list);
  return error ? 0 : addresses->count;
}
