/* SPDX-License-Identifier: Apache-2.0 */
/* messages: what the other side of a control channel (net_plugin/tools/control_channel.h)
 * says, from the input.
 * Owns: nothing.  Threads: one.  Blocks: never.  Fails: as FUZZ_CHECK. */
#ifndef TESTS_FUZZ_MESSAGES_H
#define TESTS_FUZZ_MESSAGES_H

#include <string.h>
#include <sys/socket.h>

#include "common/bytes.h"
#include "common/version.h"
#include "net_plugin/tools/control_channel.h"
#include "tests/fuzz/fuzz.h"

/* The rest of the input, as it is or each line as a message with its length. In one piece: the
 * kernel takes more of one than of many. */
static inline void fuzz_say_all(int fd, struct fuzz_input *input, uint8_t shape) {
  static uint8_t said[64 << 10];
  size_t used = 0;
  if (shape & 1) {
    static const char release[] = "{\"release\":\"" STRATUS_VERSION "\"}";
    used = 4 + strlen(release);
    bytes_put_le32(said, (uint32_t)strlen(release));
    memcpy(said + 4, release, strlen(release));
  }
  while (shape & 2 && input->left > 0 && used + input->left + 4 < sizeof said) {
    char *line = fuzz_line(input);
    size_t length = strlen(line);
    bytes_put_le32(said + used, (uint32_t)length);
    memcpy(said + used + 4, line, length);
    used += 4 + length;
    free(line);
  }
  size_t rest = input->left < sizeof said - used ? input->left : sizeof said - used;
  fuzz_bytes(input, said + used, rest);
  used += rest;
  FUZZ_CHECK(used == 0 || send(fd, said, used, 0) == (ssize_t)used);
  shutdown(fd, SHUT_WR);
}

#endif
