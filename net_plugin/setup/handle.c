/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */
#include "net_plugin/setup/handle.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"

#define HANDLE_MAGIC 0x4c525453u /* "STRL" */

/* Those that have room, in their order. One of each family has: of 8 addresses at most, a peer that
 * talks one family finds one to dial. */
static unsigned choose(const struct handle *handle, struct sockaddr_storage chosen[ADDRESSES_MAX],
                       uint8_t *advertised) {
  bool is_chosen[ADDRESSES_MAX] = { false }, has_family[2] = { false, false };
  size_t used = 0;
  for (unsigned i = 0; i < handle->count; i++) {
    bool *has = &has_family[handle->addresses[i].ss_family == AF_INET6];
    is_chosen[i] = !*has;
    used += *has ? 0 : address_packed_bytes(&handle->addresses[i]);
    *has = true;
  }
  unsigned count = 0;
  for (unsigned i = 0; i < handle->count; i++) {
    size_t bytes = address_packed_bytes(&handle->addresses[i]);
    if (!is_chosen[i] && used + bytes <= HANDLE_ROOM) {
      is_chosen[i] = true;
      used += bytes;
    }
    if (is_chosen[i]) {
      *advertised |= (uint8_t)((handle->advertised >> i & 1) << count);
      chosen[count++] = handle->addresses[i];
    }
  }
  return count;
}

unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]) {
  memset(bytes, 0, HANDLE_BYTES);
  bytes_put_le32(bytes, HANDLE_MAGIC);
  bytes_put_le16(bytes + 4, HANDSHAKE_WIRE_VERSION);
  memcpy(bytes + HANDLE_LISTENER_AT, handle->listener, TOKEN_BYTES);
  memcpy(bytes + HANDLE_SECRET_AT, handle->secret, AUTH_SECRET_BYTES);
  struct sockaddr_storage chosen[ADDRESSES_MAX];
  unsigned count = choose(handle, chosen, &bytes[7]);
  addresses_pack(chosen, count, bytes + HANDLE_ADDRESSES_AT, HANDLE_ROOM);
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
  memcpy(handle->listener, bytes + HANDLE_LISTENER_AT, TOKEN_BYTES);
  memcpy(handle->secret, bytes + HANDLE_SECRET_AT, AUTH_SECRET_BYTES);
  handle->count = bytes[6];
  handle->advertised = bytes[7];
  int error =
      addresses_unpack(bytes + HANDLE_ADDRESSES_AT, HANDLE_ROOM, bytes[6], handle->addresses);
  return handle->count ? error : -EPROTO;
}

uint64_t handle_pending(const uint8_t bytes[HANDLE_BYTES]) {
  return bytes_get_le64(bytes + HANDLE_PENDING_AT);
}

void handle_set_pending(uint8_t bytes[HANDLE_BYTES], uint64_t pending) {
  bytes_put_le64(bytes + HANDLE_PENDING_AT, pending);
}
