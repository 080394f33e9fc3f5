/* SPDX-License-Identifier: Apache-2.0 */
/* lane_offer: what the two sides of a handshake send each other about their endpoints (endpoint.h).
 * PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_LANE_OFFER_H
#define NET_PLUGIN_LANE_LANE_OFFER_H

#include <stdint.h>

#define LANE_TOKEN_BYTES 32

/* As it is sent. */
struct lane_offer {
  uint8_t kind; /* the transport's: two of different kinds cannot talk; 0: there is no endpoint */
  uint8_t key;  /* the answer's: which key of a target is for the endpoint's domain */
};

/* The transport's own protocol connects endpoints: each side shows its token there, to prove that
 * it belongs to this epoch of this lane. */
struct lane_tokens {
  uint8_t request[LANE_TOKEN_BYTES], answer[LANE_TOKEN_BYTES];
};

#endif
