/* SPDX-License-Identifier: Apache-2.0 */
/* wire: the frames that travel on a lane, and the limits both sides rely on.
 * Owns: nothing.  Threads: any (no state).  Blocks: never.
 * Fails: wire_header_decode returns -EPROTO for bytes that are not a valid header.
 *
 * Every frame is a 40-byte little-endian header and `length` payload bytes. A frame describes
 * itself: any lane may carry any chunk of any message, and a receiver can place it without other
 * context.
 *
 *    0 u8  magic       WIRE_MAGIC; anything else means that the byte stream lost its framing
 *    1 u8  type        enum wire_type
 *    2 u16 flags       enum wire_flag
 *    4 u32 length      payload bytes that follow
 *    8 u64 message     meaning per type, see below
 *   16 u64 offset
 *   24 u64 total
 *   32 u32 payload_crc CRC32C of the payload if WIRE_HAS_CRC, else 0
 *   36 u32 header_crc  CRC32C of bytes 0..35
 *
 *   type     from      message          offset          total           payload
 *   DATA     sender    sequence number  byte position   message size    the bytes
 *   REQUEST  sender    sequence number  0               message size    -     (wants credit for it)
 *   WINDOW   receiver  receives granted messages landed 0               lane acknowledgements
 *   FENCE    sender    lane             epoch           0               -     (what arrived on it?)
 *   FENCED   receiver  lane             epoch           DATA frames got -     (answer, or unasked)
 *   BYE      either    0                messages landed 0               -     (nothing will follow;
 *                                                                              sender: 0)
 *   PING     either    token            0               0               -
 *   PONG     either    token echoed     0               0               -
 *   ABORT    either    0                errno, positive 0               -     (the sender of this
 *                                                                              has failed)
 *
 * All counts are cumulative from the start of the connection, so a frame that is late or repeated
 * can be ignored by taking the maximum. Counts of a lane's DATA frames go on over its epochs too:
 * if a re-dial succeeds for the receiver only, the next one still reports a count that the sender
 * can use. A frame that a fence refused was never counted; its chunk gets a new count when it is
 * sent again. */
#ifndef NET_PLUGIN_LINK_WIRE_H
#define NET_PLUGIN_LINK_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC 0xA7
#define WIRE_HEADER_BYTES 40
#define WIRE_MAX_LANES 64
#define WIRE_MAX_CHUNK_BYTES (4u << 20)
/* NCCL_MAX_NET_SIZE_BYTES: no single request is larger (nccl src/include/nccl_net.h). */
#define WIRE_MAX_MESSAGE_BYTES (1ull << 40)
/* A polled message comes in chunks of at most this size, a multiple of any line. */
#define WIRE_MAX_POLLED_BYTES (64u << 10)
#define WIRE_ACK_BYTES 16
#define WIRE_MAX_ERRNO 4095 /* Linux: MAX_ERRNO */
#define WIRE_MAX_WINDOW_BYTES (WIRE_MAX_LANES * WIRE_ACK_BYTES)

enum wire_type {
  WIRE_DATA = 1,
  WIRE_REQUEST,
  WIRE_WINDOW,
  WIRE_FENCE,
  WIRE_FENCED,
  WIRE_BYE,
  WIRE_PING,
  WIRE_PONG,
  WIRE_ABORT,
  WIRE_TYPE_END
};

enum wire_flag {
  WIRE_HAS_CRC = 1,
  WIRE_IS_AWAITED = 2, /* DATA: the sender's user waits until all of the message is acknowledged */
  WIRE_IS_POLLED = 4,  /* DATA: the receiver's user reads it while it arrives, see polled.h */
};

struct wire_header {
  uint8_t type;
  uint16_t flags;
  uint32_t length;
  uint64_t message;
  uint64_t offset;
  uint64_t total;
  uint32_t payload_crc;
};

/* One lane acknowledgement in a WINDOW payload: u8 lane, u24 held_us, u32 epoch, u64 frames. */
#define WIRE_MAX_HELD_US 0xFFFFFFu
struct wire_ack {
  uint8_t lane;
  uint32_t
      held_us; /* how long ago the last of the frames came: the acknowledgement was held back */
  uint32_t epoch;
  uint64_t frames;
};

void wire_header_encode(const struct wire_header *header, uint8_t bytes[WIRE_HEADER_BYTES]);

/* 0, or -EPROTO: bad magic, checksum, type, flags, or a field outside its limits for the type. */
int wire_header_decode(const uint8_t bytes[WIRE_HEADER_BYTES], struct wire_header *header);

void wire_ack_encode(const struct wire_ack *ack, uint8_t bytes[WIRE_ACK_BYTES]);
int wire_ack_decode(const uint8_t bytes[WIRE_ACK_BYTES], struct wire_ack *ack);

#endif
