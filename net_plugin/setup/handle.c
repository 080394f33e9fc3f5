/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */
#include "net_plugin/setup/handle.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/bytes.h"

#define HANDLE_MAGIC 0x4c525453u /* "STRL" */

/* The bytes that an address of this family takes; 0: there is no such family. */
static size_t bytes_of(unsigned family) {
  return family == 4 ? HANDLE_IPV4_BYTES : family == 6 ? HANDLE_IPV6_BYTES : 0;
}

static unsigned family_of(const struct sockaddr_storage *address) {
  return address->ss_family == AF_INET6 ? 6 : 4;
}

static void put_address(const struct sockaddr_storage *address, uint8_t *bytes) {
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

static void get_address(const uint8_t *bytes, struct sockaddr_storage *address) {
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

unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]) {
  memset(bytes, 0, HANDLE_BYTES);
  bytes_put_le32(bytes, HANDLE_MAGIC);
  bytes_put_le16(bytes + 4, HANDSHAKE_WIRE_VERSION);
  memcpy(bytes + HANDLE_LISTENER_AT, handle->listener, TOKEN_BYTES);
  memcpy(bytes + HANDLE_SECRET_AT, handle->secret, AUTH_SECRET_BYTES);
  unsigned count = 0;
  size_t at = HANDLE_ADDRESSES_AT;
  for (; count < handle->count; count++) {
    size_t next = at + bytes_of(family_of(&handle->addresses[count]));
    if (next > HANDLE_ATTEMPT_AT) {
      break;
    }
    put_address(&handle->addresses[count], bytes + at);
    at = next;
  }
  bytes[6] = (uint8_t)count;
  return count;
}

int handle_decode(const uint8_t bytes[HANDLE_BYTES], struct handle *handle) {
  memset(handle, 0, sizeof *handle);
  if (bytes_get_le32(bytes) != HANDLE_MAGIC) {
    return -EPROTO;
  }
  handle->wire_version = bytes_get_le16(bytes + 4);
  if (handle->wire_version != HANDSHAKE_WIRE_VERSION) {
    return -EPROTONOSUPPORT;
  }
  if (bytes[6] < 1 || bytes[6] > HANDLE_ADDRESSES) {
    return -EPROTO;
  }
  memcpy(handle->listener, bytes + HANDLE_LISTENER_AT, TOKEN_BYTES);
  memcpy(handle->secret, bytes + HANDLE_SECRET_AT, AUTH_SECRET_BYTES);
  for (size_t at = HANDLE_ADDRESSES_AT; handle->count < bytes[6]; handle->count++) {
    size_t taken = bytes_of(bytes[at]);
    if (taken == 0 || at + taken > HANDLE_ATTEMPT_AT) {
      return -EPROTO;
    }
    get_address(bytes + at, &handle->addresses[handle->count]);
    at += taken;
  }
  return 0;
}

uint64_t handle_attempt(const uint8_t bytes[HANDLE_BYTES]) {
  return bytes_get_le64(bytes + HANDLE_ATTEMPT_AT);
}

void handle_set_attempt(uint8_t bytes[HANDLE_BYTES], uint64_t attempt) {
  bytes_put_le64(bytes + HANDLE_ATTEMPT_AT, attempt);
}
