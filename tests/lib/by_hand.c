/* SPDX-License-Identifier: Apache-2.0 */
/* See by_hand.h. */
#include "tests/lib/by_hand.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/unit.h"

void by_hand_hello(const struct handle *handle, const uint8_t *job, struct hello *hello,
                   struct auth_keys *keys) {
  *hello = (struct hello){ .wire_version = HANDSHAKE_WIRE_VERSION,
                           .version = "0.1.0",
                           .terms = { .lanes = 2, .chunk_bytes = 131072 },
                           .epoch = 1,
                           .dscp = -1,
                           .is_first = 1,
                           .host = "caller",
                           .nic = "lo" };
  memset(hello->connection, 0x5a, TOKEN_BYTES);
  memcpy(hello->listener, handle->listener, TOKEN_BYTES);
  auth_keys_derive(handle->secret, job, hello->connection, keys);
}

void by_hand_say(int fd, const uint8_t *bytes, size_t count, bool is_slow) {
  size_t n = is_slow ? 5 : count;
  for (size_t i = 0; i < count; i += n) {
    n = n < count - i ? n : count - i;
    assert_int_equal(send(fd, bytes + i, n, MSG_NOSIGNAL), n);
    if (is_slow) {
      usleep(50);
    }
  }
}
