/* SPDX-License-Identifier: Apache-2.0 */
/* See first_hello.h. */
#include "tests/lib/first_hello.h"

#include <string.h>

void first_hello(const struct handle *handle, const uint8_t *job, struct hello *hello,
                 struct auth_keys *keys) {
  *hello = (struct hello){ .wire_version = HANDSHAKE_WIRE_VERSION,
                           .version = "0.1.0",
                           .lanes = 2,
                           .epoch = 1,
                           .chunk_bytes = 131072,
                           .dscp = -1,
                           .is_first = 1,
                           .host = "caller",
                           .nic = "lo" };
  memset(hello->connection, 0x5a, TOKEN_BYTES);
  memcpy(hello->listener, handle->listener, TOKEN_BYTES);
  auth_keys_derive(handle->secret, job, hello->connection, keys);
}
