/* SPDX-License-Identifier: Apache-2.0 */
/* link_coding: chunks in the shorter form of net_plugin/codec. A chunk stays a range of its message
 * for flight, credit and failover; only its frame is another. What is sent again goes as it is. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link_state.h"

#define CRC_BYTES 4 /* the most that wire_coded_crc_bytes says */

uint8_t *coding_take_memory(const struct link *link, unsigned lane, size_t bytes) {
  const struct link_config *config = &link->config;
  return config->coding_memory ? config->coding_memory(config->coding_owner, lane, bytes) : NULL;
}

void link_lane_is_raw(struct link *link, unsigned lane) {
  assert(link->config.role == LINK_SENDER && lane < link->config.policy.lanes);
  link->lanes[lane].is_raw = true;
}

/* ---- sender ---- */

struct policy_encoded link_encode(struct link *link, unsigned lane, struct link_frame *frame) {
  struct policy_encoded encoded = { .lane = lane, .bytes = frame->length };
  uint32_t crc = link->config.wants_checksums ? CRC_BYTES : 0;
  uint8_t *out = coding_take_memory(link, lane, crc + codec_room(frame->length));
  frame->wants_coding = false;
  if (out == NULL) {
    link_lane_is_raw(link, lane);
    link->counts.coding.untried++;
    return encoded;
  }
  int width = codec_memory_choose(&link->codec);
  struct codec_result result = codec_encode(width, frame->payload, frame->length, out + crc);
  if (width != CODEC_RAW) {
    codec_memory_note(&link->codec, &result);
  }
  if (result.bytes == 0) {
    link->counts.coding.raw++;
    return encoded;
  }
  encoded.coded_bytes = crc + result.bytes;
  struct wire_header header;
  wire_header_decode(frame->header, &header); /* our own */
  if (crc > 0) {
    bytes_put_le32(out, header.payload_crc);
    header.payload_crc = hash_crc32c(0, out, encoded.coded_bytes);
  }
  header.flags |= WIRE_IS_CODED;
  header.coded = encoded.coded_bytes;
  wire_header_encode(&header, frame->header);
  frame->payload = out;
  frame->length = encoded.coded_bytes;
  link->lanes[lane].is_copied = true;
  link->counts.coding.coded++;
  link->counts.coding.bytes_before += encoded.bytes;
  link->counts.coding.bytes_after += encoded.coded_bytes;
  return encoded;
}

void link_encoded(struct link *link, const struct policy_encoded *encoded) {
  link->counts.coding.took_ns += encoded->took_ns;
  policy_encoded(link->policy, encoded);
}

/* ---- receiver ---- */

int coding_ends(struct link *link, const struct link_lane *receiving) {
  const struct wire_header *header = &receiving->header;
  uint32_t crc = wire_coded_crc_bytes(header->flags);
  int result = codec_decode(receiving->buffer + crc, header->coded - crc, receiving->destination,
                            header->length);
  if (result != 0 || (crc > 0 && hash_crc32c(0, receiving->destination, header->length) !=
                                     bytes_get_le32(receiving->buffer))) {
    return -EBADMSG;
  }
  link->counts.coding.coded++;
  link->counts.coding.bytes_before += header->length;
  link->counts.coding.bytes_after += header->coded;
  return 0;
}

void link_decoded(struct link *link, uint64_t took_ns) {
  link->counts.coding.took_ns += took_ns;
}
