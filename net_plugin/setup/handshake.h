/* SPDX-License-Identifier: Apache-2.0 */
/* handshake: the first message on every new lane, and its answer. PURE.
 *
 * The dialling side sends a hello, the listening side answers with a reply, both of fixed size,
 * little-endian, CRC32C at the end. The first HANDSHAKE_PREFIX_BYTES of both stay as they are in
 * every wire version, so that two releases that cannot talk can at least tell each other why:
 *
 *   0 u32 magic   4 u16 wire version   6 u16 bytes of the whole message   8 char[16] stratus
 * version
 *
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: -EPROTO not one of ours (a scanner, another service), -EPROTONOSUPPORT another wire
 * version (the version fields of the result are filled in), -EINVAL ours, but with a field out of
 * range. */
#ifndef NET_PLUGIN_SETUP_HANDSHAKE_H
#define NET_PLUGIN_SETUP_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#define HANDSHAKE_WIRE_VERSION 1
#define HANDSHAKE_PREFIX_BYTES 24
#define HELLO_BYTES 192
#define REPLY_BYTES 160
#define TOKEN_BYTES 16
#define VERSION_TEXT_BYTES 16
#define HOST_TEXT_BYTES 64
#define NIC_TEXT_BYTES 16

struct hello {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint8_t listener[TOKEN_BYTES]; /* from NCCL's handle: who may connect */
  uint8_t
      connection[TOKEN_BYTES]; /* drawn by the dialling side: which connection a lane belongs to */
  uint16_t lane, lanes;        /* this one, and how many there may be */
  uint32_t epoch;              /* incarnation of this lane, from 1 */
  uint32_t chunk_bytes;        /* largest DATA payload the dialling side will send */
  uint32_t eager_bytes;        /* what it wants; the reply decides */
  uint16_t eager_slots;
  int8_t dscp;      /* -1: none */
  uint8_t is_first; /* the first lane of a new connection */
  uint32_t pid;
  char host[HOST_TEXT_BYTES];
  char nic[NIC_TEXT_BYTES];
};

enum reply_status {
  REPLY_ACCEPTED,
  REPLY_OTHER_VERSION, /* see version */
  REPLY_UNKNOWN,       /* no such listener or connection here (any more) */
  REPLY_REFUSED,       /* lane or epoch does not fit the connection */
  REPLY_NO_RESOURCES,
  REPLY_STATUS_END
};

struct reply {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint16_t status;
  uint16_t lanes;           /* agreed: the smaller wish */
  uint32_t eager_bytes;     /* agreed */
  uint16_t eager_slots;     /* agreed */
  uint64_t received_before; /* DATA frames of the lane's previous epoch that arrived */
  uint32_t pid;
  char host[HOST_TEXT_BYTES];
  char nic[NIC_TEXT_BYTES];
};

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES]);
void reply_encode(const struct reply *reply, uint8_t bytes[REPLY_BYTES]);

/* Looks at the first HANDSHAKE_PREFIX_BYTES. 0: the rest of the message has our format. */
int handshake_prefix_check(const uint8_t *bytes, uint16_t *wire_version,
                           char version[VERSION_TEXT_BYTES]);
int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *hello);
int reply_decode(const uint8_t bytes[REPLY_BYTES], struct reply *reply);

/* For messages: "there is no such listener..." */
const char *reply_status_text(unsigned status);

#endif
