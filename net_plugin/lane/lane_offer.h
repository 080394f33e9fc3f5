/* SPDX-License-Identifier: Apache-2.0 */
/* lane_offer: what the two sides of a handshake send each other about their endpoints (endpoint.h).
 * PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_LANE_OFFER_H
#define NET_PLUGIN_LANE_LANE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/wire.h"

#define LANE_OFFER_BYTES 2 /* in the handshake */
#define LANE_TOKEN_BYTES 32

struct lane_offer {
  uint8_t bytes[LANE_OFFER_BYTES];
};
enum {
  LANE_OFFER_KIND, /* the transport's: two of different kinds cannot talk; 0: there is no endpoint
                    */
  LANE_OFFER_KEY,  /* the answer's: which key of a target is for the endpoint's domain */
};

static inline bool lane_offer_is_none(const struct lane_offer *offer) {
  return offer->bytes[LANE_OFFER_KIND] == 0;
}
/* The peer is not trusted. */
static inline bool lane_offer_is_valid(const struct lane_offer *offer) {
  return offer->bytes[LANE_OFFER_KEY] < WIRE_REMOTE_KEYS;
}

/* The transport's own protocol connects endpoints: each side shows its token there, to prove that
 * it belongs to this epoch of this lane. */
struct lane_tokens {
  uint8_t request[LANE_TOKEN_BYTES], answer[LANE_TOKEN_BYTES];
};

#endif
