/* SPDX-License-Identifier: Apache-2.0 */
/* lane_offer: what the two sides of a handshake send each other about their endpoints (endpoint.h).
 * Only the transport reads the bytes. PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_LANE_OFFER_H
#define NET_PLUGIN_LANE_LANE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#define LANE_OFFER_BYTES 12 /* in the handshake */
#define LANE_TOKEN_BYTES 32

/* Address and properties of an endpoint. None: the first four bytes are 0. */
struct lane_offer {
  uint8_t bytes[LANE_OFFER_BYTES];
};

bool lane_offer_is_none(const struct lane_offer *offer);
/* There is none, or all of it is within bounds: the peer is not trusted. */
bool lane_offer_is_valid(const struct lane_offer *offer);

/* The transport's own protocol connects endpoints: each side shows its token there, to prove that
 * it belongs to this epoch of this lane. */
struct lane_tokens {
  uint8_t request[LANE_TOKEN_BYTES], answer[LANE_TOKEN_BYTES];
};

#endif
