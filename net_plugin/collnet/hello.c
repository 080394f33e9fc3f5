/* SPDX-License-Identifier: Apache-2.0 */
/* See hello.h. Numbers are little-endian. */
#include "net_plugin/collnet/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/plain.h"

static const uint8_t magic[8] = { 's', 't', 'c', 'o', 'l', 'n', 'e', 't' };

void collnet_hello_encode(const struct collnet_hello *hello, uint8_t bytes[COLLNET_HELLO_BYTES]) {
  const uint32_t numbers[] = { hello->version, hello->members, hello->member, hello->phase,
                               hello->mode };
  memcpy(bytes, magic, sizeof(magic));
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    bytes_put_le32(bytes + sizeof(magic) + 4 * i, numbers[i]);
  }
  memcpy(bytes + sizeof(magic) + sizeof(numbers), hello->host, HELLO_HOST_BYTES);
}

int collnet_hello_decode(const uint8_t *bytes, size_t length, const struct collnet_hello *ours,
                         struct collnet_hello *theirs) {
  if (length != COLLNET_HELLO_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0) {
    return -EPROTO;
  }
  uint32_t *const numbers[] = { &theirs->version, &theirs->members, &theirs->member, &theirs->phase,
                                &theirs->mode };
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    *numbers[i] = bytes_get_le32(bytes + sizeof(magic) + 4 * i);
  }
  memcpy(theirs->host, bytes + COLLNET_HELLO_BYTES - HELLO_HOST_BYTES, HELLO_HOST_BYTES);
  theirs->host[HELLO_HOST_BYTES - 1] = '\0';
  plain_text(theirs->host); /* it goes into logs */
  bool is_known = theirs->phase < COLLNET_PHASES && theirs->member < ours->members &&
                  theirs->member != ours->member;
  return is_known ? 0 : -EPROTO;
}

int collnet_hello_compare(const struct collnet_hello *ours, const struct collnet_hello *theirs,
                          char text[HELLO_TEXT_BYTES]) {
  if (theirs->version != ours->version) {
    snprintf(text, HELLO_TEXT_BYTES,
             "host %s has version %u of the exchange, this host (%s) version %u: install the same "
             "release of stratus on all hosts",
             theirs->host, theirs->version, ours->host, ours->version);
    return -EPROTO;
  }
  if (theirs->mode != ours->mode) {
    snprintf(text, HELLO_TEXT_BYTES,
             "host %s has STRATUS_COLLNET=%s, this host (%s) %s: set the same on all hosts",
             theirs->host, collnet_mode_name(theirs->mode), ours->host,
             collnet_mode_name(ours->mode));
    return -EPROTO;
  }
  if (theirs->members != ours->members) {
    snprintf(text, HELLO_TEXT_BYTES, "host %s has a group of %u members, this host (%s) one of %u",
             theirs->host, theirs->members, ours->host, ours->members);
    return -EPROTO;
  }
  return 0;
}
