/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_facts.h and lane_offer.h: all offers are of queue pairs. */
#include "net_plugin/lane/rdma/rdma_facts.h"

#include "common/bytes.h"
#include "net_plugin/link/wire.h"

/* Offsets in an offer. */
enum {
  NUMBER_AT = 0,
  SLOT_BYTES_AT = 4,
  SLOTS_AT = 8,
  TRANSPORT_AT = 10,
  KEY_INDEX_AT = 11,
};
_Static_assert(KEY_INDEX_AT + 1 == LANE_OFFER_BYTES, "the facts fill an offer");

const char *rdma_transport_name(enum rdma_transport transport) {
  static const char *const names[RDMA_TRANSPORTS] = { "RoCE", "InfiniBand", "iWARP" };
  return names[transport];
}

void rdma_facts_encode(const struct rdma_facts *facts, struct lane_offer *offer) {
  uint8_t *bytes = offer->bytes;
  bytes_put_le32(bytes + NUMBER_AT, facts->number);
  bytes[TRANSPORT_AT] = facts->transport;
  bytes_put_le16(bytes + SLOTS_AT, facts->slots);
  bytes_put_le32(bytes + SLOT_BYTES_AT, facts->slot_bytes);
  bytes[KEY_INDEX_AT] = facts->key_index;
}

void rdma_facts_decode(const struct lane_offer *offer, struct rdma_facts *facts) {
  const uint8_t *bytes = offer->bytes;
  *facts = (struct rdma_facts){
    .number = bytes_get_le32(bytes + NUMBER_AT),
    .transport = bytes[TRANSPORT_AT],
    .slots = bytes_get_le16(bytes + SLOTS_AT),
    .slot_bytes = bytes_get_le32(bytes + SLOT_BYTES_AT),
    .key_index = bytes[KEY_INDEX_AT],
  };
}

bool lane_offer_is_none(const struct lane_offer *offer) {
  return bytes_get_le32(offer->bytes + NUMBER_AT) == 0;
}

/* Numbers have 24 bits; two slots are what the protocol of rdma_lane.h takes. */
bool lane_offer_is_valid(const struct lane_offer *offer) {
  struct rdma_facts facts;
  rdma_facts_decode(offer, &facts);
  return facts.number == 0 ||
         (facts.number <= 0xFFFFFF && facts.transport < RDMA_TRANSPORTS && facts.slots >= 2 &&
          facts.slots <= 0x7FFF && facts.slot_bytes >= 256 &&
          facts.slot_bytes <= RDMA_MAX_SLOT_BYTES && facts.key_index < WIRE_REMOTE_KEYS);
}
