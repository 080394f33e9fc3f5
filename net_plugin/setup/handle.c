/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */
#include "net_plugin/setup/handle.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/hash.h"

#define HANDLE_MAGIC 0x4c525453u /* "STRL" */

/* As drawn in handle.h. */
struct handle_bytes {
  uint32_t magic;
  uint16_t wire_version;
  uint8_t advertised, zero;
  uint8_t listener[TOKEN_BYTES], secret[AUTH_SECRET_BYTES];
  struct wire_address addresses[HANDLE_ADDRESSES];
  uint64_t pending;
  uint8_t zeros[8];
};
_Static_assert(sizeof(struct handle_bytes) == HANDLE_BYTES &&
                   offsetof(struct handle_bytes, listener) == HANDLE_LISTENER_AT &&
                   offsetof(struct handle_bytes, pending) == HANDLE_PENDING_AT,
               "as drawn");

void address_to_wire(const struct sockaddr_storage *address, struct wire_address *wire) {
  struct in6_addr ip = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    ip = in6->sin6_addr;
    memcpy(wire->port, &in6->sin6_port, sizeof wire->port);
  } else {
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    memcpy(&ip.s6_addr[12], &in->sin_addr, sizeof in->sin_addr);
    memcpy(wire->port, &in->sin_port, sizeof wire->port);
  }
  memcpy(wire->ip, &ip, sizeof wire->ip);
}

bool address_from_wire(const struct wire_address *wire, struct sockaddr_storage *address) {
  static const struct wire_address none;
  struct in6_addr ip;
  if (memcmp(wire, &none, sizeof none) == 0) {
    return false;
  }
  memcpy(&ip, wire->ip, sizeof ip);
  memset(address, 0, sizeof *address);
  if (IN6_IS_ADDR_V4MAPPED(&ip)) {
    struct sockaddr_in *in = (struct sockaddr_in *)address;
    in->sin_family = AF_INET;
    memcpy(&in->sin_port, wire->port, sizeof wire->port);
    memcpy(&in->sin_addr, &ip.s6_addr[12], sizeof in->sin_addr);
  } else {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_port, wire->port, sizeof wire->port);
    in6->sin6_addr = ip;
  }
  return true;
}

static unsigned read_list(const struct wire_address *list, unsigned room,
                          struct sockaddr_storage *addresses) {
  unsigned count = 0;
  while (count < room && address_from_wire(&list[count], &addresses[count])) {
    count++;
  }
  return count;
}

unsigned addresses_of_reply(const struct reply *reply,
                            struct sockaddr_storage list[ADDRESSES_MAX]) {
  return read_list(reply->addresses, ADDRESSES_MAX, list);
}

/* Which one is the last that has room: a peer that talks one family finds one to dial. */
static unsigned choose_last(const struct handle *handle) {
  for (unsigned i = 1; i < handle->count; i++) {
    if (handle->addresses[i].ss_family != handle->addresses[0].ss_family) {
      return i < HANDLE_ADDRESSES ? HANDLE_ADDRESSES - 1 : i;
    }
  }
  return HANDLE_ADDRESSES - 1;
}

unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]) {
  struct handle_bytes wire = { .magic = HANDLE_MAGIC, .wire_version = HANDSHAKE_WIRE_VERSION };
  unsigned count = handle->count < HANDLE_ADDRESSES ? handle->count : HANDLE_ADDRESSES;
  memcpy(wire.listener, handle->listener, TOKEN_BYTES);
  memcpy(wire.secret, handle->secret, AUTH_SECRET_BYTES);
  for (unsigned i = 0; i < count; i++) {
    unsigned from = i < HANDLE_ADDRESSES - 1 ? i : choose_last(handle);
    address_to_wire(&handle->addresses[from], &wire.addresses[i]);
    wire.advertised |= (uint8_t)((handle->advertised >> from & 1) << i);
  }
  memcpy(bytes, &wire, sizeof wire);
  hash_wipe(&wire, sizeof wire);
  return count;
}

int handle_decode(const uint8_t bytes[HANDLE_BYTES], struct handle *handle) {
  struct handle_bytes wire;
  memcpy(&wire, bytes, sizeof wire);
  memset(handle, 0, sizeof *handle);
  handle->wire_version = wire.wire_version;
  int error = wire.magic != HANDLE_MAGIC                    ? -EPROTO
              : wire.wire_version != HANDSHAKE_WIRE_VERSION ? -EPROTONOSUPPORT
                                                            : 0;
  if (!error) {
    memcpy(handle->listener, wire.listener, TOKEN_BYTES);
    memcpy(handle->secret, wire.secret, AUTH_SECRET_BYTES);
    handle->advertised = wire.advertised;
    handle->count = read_list(wire.addresses, HANDLE_ADDRESSES, handle->addresses);
    error = handle->count ? 0 : -EPROTO;
  }
  hash_wipe(&wire, sizeof wire);
  return error;
}

uint64_t handle_pending(const uint8_t bytes[HANDLE_BYTES]) {
  uint64_t pending;
  memcpy(&pending, bytes + HANDLE_PENDING_AT, sizeof pending);
  return pending;
}

void handle_set_pending(uint8_t bytes[HANDLE_BYTES], uint64_t pending) {
  memcpy(bytes + HANDLE_PENDING_AT, &pending, sizeof pending);
}
