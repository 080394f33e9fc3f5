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
 *   32 u32 payload_crc CRC32C of the payload if WIRE_HAS_CRC, else 0; placed bytes are payload, too
 *   36 u32 header_crc  CRC32C of bytes 0..35
 *
 *   type     from      message          offset          total           payload
 *   DATA     sender    sequence number  byte position   message size    the bytes
 *   REQUEST  sender    sequence number  0               message size    -     (wants credit for it)
 *   WINDOW   receiver  receives granted messages landed remote buffers  lane acknowledgements, then
 *                                                                       remote buffers of the last
 *                                                                       of the granted receives
 *   FENCE    sender    lane             epoch           0               -     (what arrived on it?)
 *   FENCED   receiver  lane             epoch           DATA frames got -     (answer, or unasked)
 *   BYE      either    0                messages landed 0               -     (nothing will follow;
 *                                                                              sender: 0)
 *   PING     either    token            0               0               -
 *   PONG     either    token echoed, 0  0               0               -  (0: unasked, with what
 *                                                                             TCP acknowledges)
 *   ABORT    either    0                errno, positive 0               text: why (may be empty)
 *
 * With WIRE_IS_CODED the payload of a DATA frame is in the form of net_plugin/codec, and `length`
 * is what it takes so. The upper 24 bits of `offset` are then the length of the chunk that it
 * stands for. With WIRE_HAS_CRC, too, the payload begins with the CRC32C of that chunk, 32 bits.
 *
 * With WIRE_IS_REPEAT a DATA frame is a second copy of one that went out on another lane, its
 * origin, so that the receiver knows which of the two comes too late. The upper 24 bits of `offset`
 * are then the low ones of the number of that frame among those of its lane (the first is 0); those
 * of `total` are its lane (6 bits), the low ones of that lane's epoch (10), and 8 more of the
 * number.
 *
 * With WIRE_IS_PLACED the bytes of a DATA frame do not follow: a NIC that can (RDMA) has written
 * them to the message's remote buffer, before this header came.
 *
 * All counts are cumulative from the start of the connection, so a frame that is late or repeated
 * can be ignored by taking the maximum. Counts of a lane's DATA frames go on over its epochs too:
 * if a reconnect succeeds for the receiver only, the next one still reports a count that the sender
 * can use. A frame that a fence refused was never counted; its chunk gets a new count when it is
 * sent again. */
#ifndef NET_PLUGIN_LINK_WIRE_H
#define NET_PLUGIN_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC 0xA7
#define WIRE_HEADER_BYTES 40
#define WIRE_MAX_LANES 64
#define WIRE_MAX_CHUNK_BYTES (4u << 20)
/* NCCL_MAX_NET_SIZE_BYTES: no single request is larger (nccl src/include/nccl_net.h). */
#define WIRE_MAX_MESSAGE_BYTES (1ull << 40)
/* An LL message comes in chunks of at most this size, a multiple of any line. */
#define WIRE_MAX_LL_BYTES (64u << 10)
#define WIRE_ACK_BYTES 16
#define WIRE_MAX_ERRNO 4095 /* Linux: MAX_ERRNO */
/* Of an ABORT: the name of a host, its address, and what happened. */
#define WIRE_MAX_REASON_BYTES 192
/* A remote buffer has a key for each RDMA device of the receiver, as many as the handshake agreed
 * on. */
#define WIRE_REMOTE_KEYS 8
#define WIRE_MAX_REMOTE_BUFFERS 64
#define WIRE_MAX_REMOTE_BUFFER_BYTES (16 + 4 * WIRE_REMOTE_KEYS)
#define WIRE_MAX_WINDOW_BYTES                                                                      \
  (WIRE_MAX_LANES * WIRE_ACK_BYTES + WIRE_MAX_REMOTE_BUFFERS * WIRE_MAX_REMOTE_BUFFER_BYTES)

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
  WIRE_WANTS_ACK = 2,  /* DATA: the sender's user waits until all of the message is acknowledged */
  WIRE_IS_LL = 4,      /* DATA: the receiver's user reads it while it arrives, see message.h */
  WIRE_IS_PLACED = 8,  /* DATA: the bytes are in place already, no payload follows */
  WIRE_IS_CODED = 16,  /* DATA: the payload is compressed; only if the handshake agreed on that */
  WIRE_IS_REPEAT = 32, /* DATA: the chunk went out on another lane before, see wire_origin */
};

/* The first copy of a chunk that is sent again while its lane stands still. */
#define WIRE_ORIGIN_EPOCHS 1024u /* the epoch is known modulo this */
struct wire_origin {
  uint8_t lane;
  uint16_t epoch;
  uint32_t count; /* the low half of the frame's number */
};

struct wire_header {
  uint8_t type;
  uint16_t flags;
  uint32_t length; /* payload bytes; of a compressed frame: those of the chunk */
  uint64_t message;
  uint64_t offset;
  uint64_t total;
  uint32_t payload_crc;
  uint32_t coded;            /* payload bytes of a compressed frame; 0: it is not compressed */
  struct wire_origin origin; /* WIRE_IS_REPEAT */
};

/* One lane acknowledgement in a WINDOW payload: u8 lane, u24 held_us, u32 epoch, u64 frames. */
#define WIRE_MAX_HELD_US 0xFFFFFFu
struct wire_ack {
  uint8_t lane;
  uint64_t
      held_us; /* how long ago the last of the frames came: it was held back; cut to the most */
  uint32_t epoch;
  uint64_t frames;
};

void wire_header_encode(const struct wire_header *header, uint8_t bytes[WIRE_HEADER_BYTES]);

/* 0, or -EPROTO: bad magic, checksum, type, flags, or a field outside its limits for the type. */
int wire_header_decode(const uint8_t bytes[WIRE_HEADER_BYTES], struct wire_header *header);

/* Bytes that follow a header in the stream of its lane. */
static inline uint32_t wire_stream_bytes(const struct wire_header *header) {
  return (header->flags & WIRE_IS_PLACED) != 0 ? 0
         : header->coded > 0                   ? header->coded
                                               : header->length;
}

/* What comes before the chunk in the payload of a compressed frame. */
static inline uint32_t wire_coded_crc_bytes(uint16_t flags) {
  return (flags & WIRE_HAS_CRC) != 0 ? 4 : 0;
}

/* Turns the header of an encoded DATA frame into one whose bytes are placed. */
void wire_header_place(uint8_t bytes[WIRE_HEADER_BYTES]);

/* A DATA frame that is placed, carries the whole of its message and has no checksum has no more
 * content than 32 bits, which an RDMA write can bring along: bit 31 is WIRE_WANTS_ACK, the others
 * are the low ones of the message's number. False: this frame needs more. */
bool wire_header_to_immediate(const uint8_t bytes[WIRE_HEADER_BYTES], uint32_t *immediate);
/* The header that the 32 bits and the length stand for; near: the number of some live message. 0,
 * or -EPROTO as wire_header_decode. */
int wire_header_from_immediate(uint32_t immediate, uint32_t length, uint64_t near,
                               struct wire_header *header);

void wire_ack_encode(const struct wire_ack *ack, uint8_t bytes[WIRE_ACK_BYTES]);
int wire_ack_decode(const uint8_t bytes[WIRE_ACK_BYTES], struct wire_ack *ack);

/* Where a NIC may write the bytes of a message by itself, in a WINDOW payload: u64 address,
 * u64 bytes, u32 per key. */
struct wire_remote_buffer {
  uint64_t address;                /* of the message's first byte; 0: nowhere */
  uint64_t bytes;                  /* room there */
  uint32_t keys[WIRE_REMOTE_KEYS]; /* by the receiver's RDMA device; 0: not through this one */
};

static inline uint32_t wire_remote_buffer_bytes(unsigned keys) {
  return 16 + 4 * keys;
}

void wire_remote_buffer_encode(const struct wire_remote_buffer *remote_buffer, unsigned keys,
                               uint8_t *bytes);
void wire_remote_buffer_decode(const uint8_t *bytes, unsigned keys,
                               struct wire_remote_buffer *remote_buffer);

#endif
