/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */
#include "net_plugin/setup/handle.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/bytes.h"

#define HANDLE_MAGIC 0x4c525453u /* "STRL" */

static void put_address(const struct sockaddr_storage *address, uint8_t *bytes) {
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    bytes_put_le16(bytes, 6);
    memcpy(bytes + 2, &in6->sin6_port, 2);
    memcpy(bytes + 4, &in6->sin6_addr, 16);
  } else {
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    bytes_put_le16(bytes, 4);
    memcpy(bytes + 2, &in->sin_port, 2);
    memcpy(bytes + 4, &in->sin_addr, 4);
  }
}

static int get_address(const uint8_t *bytes, struct sockaddr_storage *address) {
  memset(address, 0, sizeof *address);
  if (bytes_get_le16(bytes) == 6) {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_port, bytes + 2, 2);
    memcpy(&in6->sin6_addr, bytes + 4, 16);
  } else if (bytes_get_le16(bytes) == 4) {
    struct sockaddr_in *in = (struct sockaddr_in *)address;
    in->sin_family = AF_INET;
    memcpy(&in->sin_port, bytes + 2, 2);
    memcpy(&in->sin_addr, bytes + 4, 4);
  } else {
    return -EPROTO;
  }
  return 0;
}

void handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]) {
  memset(bytes, 0, HANDLE_BYTES);
  bytes_put_le32(bytes, HANDLE_MAGIC);
  bytes_put_le16(bytes + 4, HANDSHAKE_WIRE_VERSION);
  bytes[6] = (uint8_t)handle->count;
  memcpy(bytes + HANDLE_LISTENER_AT, handle->listener, TOKEN_BYTES);
  memcpy(bytes + HANDLE_SECRET_AT, handle->secret, AUTH_SECRET_BYTES);
  for (unsigned i = 0; i < handle->count; i++) {
    put_address(&handle->addresses[i], bytes + HANDLE_ADDRESSES_AT + i * HANDLE_ADDRESS_BYTES);
  }
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
  handle->count = bytes[6];
  if (handle->count < 1 || handle->count > HANDLE_ADDRESSES) {
    return -EPROTO;
  }
  memcpy(handle->listener, bytes + HANDLE_LISTENER_AT, TOKEN_BYTES);
  memcpy(handle->secret, bytes + HANDLE_SECRET_AT, AUTH_SECRET_BYTES);
  int error = 0;
  for (unsigned i = 0; i < handle->count && !error; i++) {
    error =
        get_address(bytes + HANDLE_ADDRESSES_AT + i * HANDLE_ADDRESS_BYTES, &handle->addresses[i]);
  }
  return error;
}

uint64_t handle_attempt(const uint8_t bytes[HANDLE_BYTES]) {
  return bytes_get_le64(bytes + HANDLE_ATTEMPT_AT);
}

void handle_set_attempt(uint8_t bytes[HANDLE_BYTES], uint64_t attempt) {
  bytes_put_le64(bytes + HANDLE_ATTEMPT_AT, attempt);
}
