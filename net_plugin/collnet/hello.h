/* SPDX-License-Identifier: Apache-2.0 */
/* hello: what members of a group tell each other at set-up, as bytes on the wire, and whether they
 * fit together. PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: as stated. */
#ifndef NET_PLUGIN_COLLNET_HELLO_H
#define NET_PLUGIN_COLLNET_HELLO_H

#include <stdint.h>

#include "net_plugin/collnet/collnet.h"

enum {
  HELLO_WIRE_VERSION = 1, /* of the exchange: phases, parts, staging */
  HELLO_HOST_BYTES = 64,
  COLLNET_HELLO_BYTES = 8 + 4 * 5 + HELLO_HOST_BYTES,
  HELLO_TEXT_BYTES = 256,
};

/* Each phase has a connection of its own to and from each member: order is all that tells which
 * message is which, and the phases of successive calls overlap. */
enum collnet_phase { COLLNET_CONTRIBUTE, COLLNET_RESULT, COLLNET_PHASES };

/* The first message of each connection. */
struct collnet_hello {
  uint32_t version, members, member, phase, mode;
  char host[HELLO_HOST_BYTES]; /* always terminated */
};

void collnet_hello_encode(const struct collnet_hello *hello, uint8_t bytes[COLLNET_HELLO_BYTES]);

/* 0, or -EPROTO if this is no hello, or one that names no member or phase of a group like ours. */
int collnet_hello_decode(const uint8_t *bytes, size_t length, const struct collnet_hello *ours,
                         struct collnet_hello *theirs);

/* 0, or -EPROTO with a text that names both hosts and says what to do. */
int collnet_hello_compare(const struct collnet_hello *ours, const struct collnet_hello *theirs,
                          char text[HELLO_TEXT_BYTES]);

#endif
