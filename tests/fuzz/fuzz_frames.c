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
    FUZZ_CHECK(header->length >= WIRE_MIN_LANDED_BYTES);
  }
  if (header->type == WIRE_ABORT) {
    FUZZ_CHECK(header->length <= WIRE_MAX_REASON_BYTES);
    FUZZ_CHECK(header->offset >= 1 && header->offset <= WIRE_MAX_ERRNO);
  }
  if (header->type == WIRE_CLOSED) {
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

/* Lanes may come in any order, and twice, so what comes back is shorter at most. */
static void try_landed(const uint8_t *bytes, uint32_t length) {
  struct wire_landed landed, back;
  if (wire_landed_decode(bytes, length, &landed) == 0) {
    uint8_t again[WIRE_MAX_LANDED_BYTES];
    FUZZ_CHECK(length <= WIRE_MAX_LANDED_BYTES && landed.words <= WIRE_LANDED_WORDS);
    uint32_t shorter = wire_landed_encode(&landed, again);
    FUZZ_CHECK(shorter <= length && wire_landed_decode(again, shorter, &back) == 0);
    FUZZ_CHECK(back.lanes == landed.lanes && back.words == landed.words);
    FUZZ_CHECK(memcmp(back.bits, landed.bits, landed.words * sizeof *back.bits) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  uint8_t header[WIRE_HEADER_BYTES];
  for (unsigned i = 0; i < 4 && input.left > 0; i++) {
    fuzz_bytes(&input, header, sizeof header);
    try_header(header);
    /* Chance never finds a checksum. */
    header[0] = WIRE_MAGIC;
    bytes_put_le32(header + 44, hash_crc32c(0, header, 44));
    try_header(header);
    for (uint32_t length = 0; length <= sizeof header; length += 4) {
      try_landed(header, length);
      bytes_put_le32(header, length / 16); /* lanes, and words for the rest */
      bytes_put_le32(header + 4, (length - length / 16 * 4) / 8);
    }
  }
  return 0;
}
