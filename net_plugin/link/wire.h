/* SPDX-License-Identifier: Apache-2.0 */
/* wire: the frames that travel on a lane, and the limits both sides rely on.
 * Owns: nothing.  Threads: any (no state).  Blocks: never.
 * Fails: wire_header_decode returns -EPROTO for bytes that are not a valid header.
 *
 * Every frame is a 48-byte little-endian header and `length` payload bytes. A frame describes
 * itself: any lane may carry any chunk of any message, and a receiver can place it without other
 * context.
 *
 *    0 u8  magic       WIRE_MAGIC; anything else means that the byte stream lost its framing
 *    1 u8  type        enum wire_type
 *    2 u16 flags       enum wire_flag
 *    4 u32 length      payload bytes that follow
 *    8 u64 number      meaning per type, see below
 *   16 u64 message
 *   24 u64 offset
 *   32 u64 total
 *   40 u32 payload_crc CRC32C of the payload if WIRE_HAS_CRC, else 0; placed bytes are payload, too
 *   44 u32 header_crc  CRC32C of bytes 0..43
 *
 *   type     from      number           message          offset          total           payload
 *   DATA     sender    of the chunk     sequence number  byte position   message size    the bytes
 *   REQUEST  sender    0                sequence number  0               0               -
 *   WINDOW   receiver  landed: all      receives granted messages landed remote buffers  see below
 *                      below
 *   CLOSED   either    0                lane             epoch           0               -
 *   BYE      either    0                0                messages landed 0               -
 *                                                        (sender: 0)
 *   PING     either    0                token            0               0               -
 *   PONG     either    0                token echoed, 0  0               0               -
 *   ABORT    either    0                0                errno, positive 0               text: why
 *
 * DATA: the chunk keeps its number, whichever lane carries it, however often. The first has 0, each
 * that is cut the next one. REQUEST wants credit for a message. CLOSED: the lane's connection of
 * this epoch, and older ones, is closed on this side: neither read, nor written to, nor written
 * from. A receiver answers one. BYE: nothing will follow. A PONG with token 0 answers nothing: it
 * brings along what TCP acknowledges. The text of an ABORT may be empty.
 *
 * The payload of a WINDOW is a struct wire_landed, then the remote buffers of the last of the
 * granted receives.
 *
 * With WIRE_IS_CODED the payload of a DATA frame is in the form of net_plugin/codec, and `length`
 * is what it takes so. The upper 24 bits of `offset` are then the length of the chunk that it
 * stands for. With WIRE_HAS_CRC, too, the payload begins with the CRC32C of that chunk, 32 bits.
 *
 * With WIRE_IS_PLACED the bytes of a DATA frame do not follow: a NIC that can (RDMA) has written
 * them to the message's remote buffer, before this header came.
 *
 * All counts are cumulative from the start of the connection, so a frame that is late or repeated
 * can be ignored by taking the maximum. */
#ifndef NET_PLUGIN_LINK_WIRE_H
#define NET_PLUGIN_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC 0xA7
#define WIRE_HEADER_BYTES 48
#define WIRE_MAX_LANES 64
#define WIRE_MAX_CHUNK_BYTES (4u << 20)
/* NCCL_MAX_NET_SIZE_BYTES: no single request is larger (nccl src/include/nccl_net.h). */
#define WIRE_MAX_MESSAGE_BYTES (1ull << 40)
/* An LL message comes in chunks of at most this size, a multiple of any line. */
#define WIRE_MAX_LL_BYTES (64u << 10)
#define WIRE_MAX_ERRNO 4095 /* Linux: MAX_ERRNO */
/* Of an ABORT: the name of a host, its address, and what happened. */
#define WIRE_MAX_REASON_BYTES 192
/* A remote buffer has a key for each RDMA device of the receiver, as many as the handshake agreed
 * on. */
#define WIRE_REMOTE_KEYS 8
#define WIRE_MAX_REMOTE_BUFFERS 64
#define WIRE_MAX_REMOTE_BUFFER_BYTES (16 + 4 * WIRE_REMOTE_KEYS)
/* A chunk that is sent is less than so far ahead of the first one that has not landed. */
#define WIRE_MAX_FLIGHT 1024
#define WIRE_LANDED_WORDS (WIRE_MAX_FLIGHT / 64)
#define WIRE_MIN_LANDED_BYTES 8
#define WIRE_MAX_LANDED_BYTES (WIRE_MIN_LANDED_BYTES + 4 * WIRE_MAX_LANES + 8 * WIRE_LANDED_WORDS)
#define WIRE_MAX_WINDOW_BYTES                                                                      \
  (WIRE_MAX_LANDED_BYTES + WIRE_MAX_REMOTE_BUFFERS * WIRE_MAX_REMOTE_BUFFER_BYTES)

enum wire_type {
  WIRE_DATA = 1,
  WIRE_REQUEST,
  WIRE_WINDOW,
  WIRE_CLOSED,
  WIRE_BYE,
  WIRE_PING,
  WIRE_PONG,
  WIRE_ABORT,
  WIRE_TYPE_END
};

enum wire_flag {
  WIRE_HAS_CRC = 1,
  WIRE_WANTS_ACK = 2, /* DATA: the sender's user waits until all of the message is acknowledged */
  WIRE_IS_LL = 4,     /* DATA: the receiver's user reads it while it arrives, see message.h */
  WIRE_IS_PLACED = 8, /* DATA: the bytes are in place already, no payload follows */
  WIRE_IS_CODED = 16, /* DATA: the payload is compressed; only if the handshake agreed on that */
};

struct wire_header {
  uint8_t type;
  uint16_t flags;
  uint32_t length; /* payload bytes; of a compressed frame: those of the chunk */
  uint64_t message;
  uint64_t offset;
  uint64_t total;
  uint32_t payload_crc;
  uint32_t coded; /* payload bytes of a compressed frame; 0: it is not compressed */
  uint64_t number;
};

/* What a receiver tells of the chunks behind the first one that has not landed (the WINDOW's
 * number), and when some of them came: u32 lanes, u32 words, of each lane u8 lane and u24 held_us,
 * u64 per word. */
#define WIRE_MAX_HELD_US 0xFFFFFFu
struct wire_landed {
  uint64_t lanes;                   /* on which a chunk came since the last WINDOW */
  uint64_t held_us[WIRE_MAX_LANES]; /* of these: how long ago the last one came; cut to the most */
  unsigned words;
  uint64_t bits[WIRE_LANDED_WORDS]; /* bit i of word w: chunk number + 64 w + i has landed */
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
 * content than 32 bits, which an RDMA write can bring along: bit 31 is WIRE_WANTS_ACK, 15 bits are
 * the low ones of the message's sequence number, 16 those of the chunk's number. False: this frame
 * needs more. */
bool wire_header_to_immediate(const uint8_t bytes[WIRE_HEADER_BYTES], uint32_t *immediate);
/* A message that is live, and a chunk that is in flight, or the next one. */
struct wire_near {
  uint64_t message, number;
};
/* The header that the 32 bits and the length stand for. 0, or -EPROTO as wire_header_decode. */
int wire_header_from_immediate(uint32_t immediate, uint32_t length, struct wire_near near,
                               struct wire_header *header);

/* How many bytes it takes: WIRE_MAX_LANDED_BYTES at most. */
uint32_t wire_landed_encode(const struct wire_landed *landed, uint8_t *bytes);
/* 0, or -EPROTO. Only what `lanes` and `words` stand for is written. */
int wire_landed_decode(const uint8_t *bytes, uint32_t length, struct wire_landed *landed);

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
