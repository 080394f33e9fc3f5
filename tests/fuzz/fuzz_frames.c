/* SPDX-License-Identifier: Apache-2.0 */
/* Frame headers and acknowledgements from any bytes: what is accepted is within the limits that the
 * link relies on, and is written back as it was read. */
#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_limits(const struct wire_header *header) {
  FUZZ_CHECK(header->type >= WIRE_DATA && header->type < WIRE_TYPE_END);
  FUZZ_CHECK(header->length <= WIRE_MAX_CHUNK_BYTES);
  FUZZ_CHECK(header->length == 0 || header->type == WIRE_DATA || header->type == WIRE_WINDOW ||
             header->type == WIRE_ABORT);
  if (header->type == WIRE_DATA) {
    FUZZ_CHECK(header->total <= WIRE_MAX_MESSAGE_BYTES);
    FUZZ_CHECK(header->offset + header->length <= header->total);
    FUZZ_CHECK(wire_stream_bytes(header) <= header->length);
    FUZZ_CHECK((header->coded > 0) == ((header->flags & WIRE_IS_CODED) != 0));
  }
  if (header->type == WIRE_WINDOW) {
    FUZZ_CHECK(header->length <= WIRE_MAX_WINDOW_BYTES);
    FUZZ_CHECK(header->total <=
               WIRE_MAX_REMOTE_BUFFERS); /* link_send.c checks the length with them */
    FUZZ_CHECK(header->total != 0 || header->length % WIRE_ACK_BYTES == 0);
  }
  if (header->type == WIRE_ABORT) {
    FUZZ_CHECK(header->length <= WIRE_MAX_REASON_BYTES);
    FUZZ_CHECK(header->offset >= 1 && header->offset <= WIRE_MAX_ERRNO);
  }
  if (header->type == WIRE_FENCE || header->type == WIRE_FENCED) {
    FUZZ_CHECK(header->message < WIRE_MAX_LANES && header->offset >= 1);
    FUZZ_CHECK(header->offset <= UINT32_MAX);
  }
}

static void try_header(const uint8_t bytes[WIRE_HEADER_BYTES]) {
  struct wire_header header;
  if (wire_header_decode(bytes, &header) == 0) {
    uint8_t again[WIRE_HEADER_BYTES];
    check_limits(&header);
    wire_header_encode(&header, again);
    FUZZ_CHECK(memcmp(again, bytes, WIRE_HEADER_BYTES) == 0);
  }
}

static void try_ack(const uint8_t bytes[WIRE_ACK_BYTES]) {
  struct wire_ack ack;
  if (wire_ack_decode(bytes, &ack) == 0) {
    uint8_t again[WIRE_ACK_BYTES];
    FUZZ_CHECK(ack.lane < WIRE_MAX_LANES && ack.epoch >= 1);
    wire_ack_encode(&ack, again);
    FUZZ_CHECK(memcmp(again, bytes, WIRE_ACK_BYTES) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  uint8_t header[WIRE_HEADER_BYTES], ack[WIRE_ACK_BYTES];
  for (unsigned i = 0; i < 4 && input.left > 0; i++) {
    fuzz_bytes(&input, header, sizeof header);
    try_header(header);
    /* Chance never finds a checksum. */
    header[0] = WIRE_MAGIC;
    bytes_put_le32(header + 36, hash_crc32c(0, header, 36));
    try_header(header);
    for (size_t at = 0; at + WIRE_ACK_BYTES <= sizeof header; at += 8) {
      memcpy(ack, header + at, sizeof ack);
      try_ack(ack);
    }
  }
  return 0;
}
