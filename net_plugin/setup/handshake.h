/* SPDX-License-Identifier: Apache-2.0 */
/* handshake: the first messages on every new lane. PURE.
 *
 *   dialling side                                   listening side
 *        hello      which connection, a nonce ------------->
 *        <------------------- another nonce      challenge      or a refusal, as a reply
 *        proof      of knowing the secrets ---------------->    (auth.h)
 *        <-------- what is agreed, and a proof       reply
 *
 * All are of fixed size, little-endian, CRC32C at the end. The first HANDSHAKE_PREFIX_BYTES of each
 * stay as they are in every wire version, so that two releases that cannot talk can at least tell
 * each other why:
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane_offer.h"

#define HANDSHAKE_WIRE_VERSION 11
#define HANDSHAKE_PREFIX_BYTES 24
#define HELLO_BYTES 432
#define CHALLENGE_BYTES 64
#define PROOF_BYTES 104
#define REPLY_BYTES 544
#define REPLY_MAC_AT 508 /* before the checksum, at the end */
#define HANDSHAKE_MAX_BYTES 544
#define TOKEN_BYTES 16
#define NONCE_BYTES 32
#define MAC_BYTES 32
#define VERSION_TEXT_BYTES 16
#define ADDRESSES_MAX 8
#define ADDRESS_IPV4_BYTES (1 + 2 + 4)
#define ADDRESS_IPV6_BYTES (1 + 2 + 16)
#define ADDRESSES_BYTES (ADDRESSES_MAX * ADDRESS_IPV6_BYTES) /* room for any */
#define HOST_TEXT_BYTES 64
#define NIC_TEXT_BYTES 16
#define CHOICES_TEXT_BYTES 192 /* a few variables with their values; the hash has all of them */

_Static_assert(HELLO_BYTES <= HANDSHAKE_MAX_BYTES && REPLY_BYTES <= HANDSHAKE_MAX_BYTES,
               "a buffer of HANDSHAKE_MAX_BYTES holds any message");

enum handshake_kind {
  HANDSHAKE_HELLO,
  HANDSHAKE_CHALLENGE,
  HANDSHAKE_PROOF,
  HANDSHAKE_REPLY,
  HANDSHAKE_KINDS
};

/* What ranks must have alike to choose alike: profile_decision_hash of common/profile.h, with the
 * user's variables of NCCL where the profile decides. For messages the hash of the whole profile, 0
 * for none, and these variables, "NCCL_ALGO=ring NCCL_PROTO=ll", cut if they are longer. */
struct decision {
  uint16_t version; /* PROFILE_DECISION_VERSION */
  uint64_t hash, profile;
  char choices[CHOICES_TEXT_BYTES];
};

/* Where a listener is reached, see addresses.h: { u8 family (4, 6), u16 port, u8[4 or 16] address
 * }, port and address in network order; one after the other without gaps, then zeros. */
struct address_list {
  uint8_t count;
  uint8_t bytes[ADDRESSES_BYTES];
};

/* What one side offers, or what was agreed (negotiate.h); as link_config's. */
struct terms {
  uint16_t lanes;
  uint32_t chunk_bytes;
  uint32_t eager_bytes;
  uint16_t eager_slots; /* agreed: 0 with eager_bytes 0, and the other way round */
  uint8_t wants_checksums;
  uint8_t remote_keys; /* of targets (link.h) that it can use; 0: none */
  uint8_t codec;       /* version that it can write or read; 0: none */
};

struct hello {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint8_t listener[TOKEN_BYTES];   /* from NCCL's handle: whom the lane is for */
  uint8_t connection[TOKEN_BYTES]; /* drawn by the dialling side: where the lane belongs */
  uint16_t lane;                   /* this one of terms.lanes */
  uint32_t epoch;                  /* of this lane, from 1 */
  /* What the dialling side wants; the reply decides. Without remote_keys no offer follows. Its
   * codec is not sent: whoever speaks this wire version writes CODEC_VERSION. */
  struct terms terms;
  int8_t dscp;        /* -1: none */
  uint8_t is_first;   /* the first lane of a new connection */
  uint8_t ciphers;    /* that the dialling side can use, bits 1 << enum lane_cipher; 0: in clear */
  uint8_t has_secret; /* the dialling side has a job secret; for messages */
  uint32_t process;   /* of the dialling side: see settings_process */
  uint8_t nonce[NONCE_BYTES];
  char host[HOST_TEXT_BYTES];
  char nic[NIC_TEXT_BYTES];
  struct decision decision;
  /* Where the dialling process listens, on the NIC of this dial, as in an address_list: the other
   * side asks there whether it still lives. Zeros: nowhere. */
  uint8_t listens[ADDRESS_IPV6_BYTES];
};

struct challenge {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint8_t nonce[NONCE_BYTES];
};

/* What both sides have said before the proof: what proofs and keys are made of (auth.h). */
struct transcript {
  uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES];
};

struct proof {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint8_t handle[MAC_BYTES];     /* by the key from NCCL's handle alone */
  uint8_t connection[MAC_BYTES]; /* by the connection's key, which the job secret is part of */
  struct lane_offer offer;       /* for this lane, if the hello has remote_keys */
};

enum reply_status {
  REPLY_ACCEPTED,
  REPLY_OTHER_VERSION, /* see version */
  REPLY_UNKNOWN,       /* no such listener or connection here (any more) */
  REPLY_REFUSED,       /* lane or epoch does not fit the connection */
  REPLY_NO_RESOURCES,
  REPLY_OTHER_SECRET,     /* the handle is right, the job secret is not */
  REPLY_OTHER_ENCRYPTION, /* one side wants it, the other does not */
  REPLY_OTHER_DECISIONS,  /* the ranks would choose differently */
  REPLY_STATUS_END
};

struct reply {
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  uint16_t status;
  /* Agreed. Its chunk_bytes are not sent: they are the dialling side's. The codec is that of the
   * connection with its first lane; 0 with a later one: none on that lane any more. */
  struct terms terms;
  uint64_t received_before; /* DATA frames of the lane's previous epoch that arrived */
  uint8_t cipher;           /* agreed, for this lane: enum lane_cipher */
  struct lane_offer offer;  /* answers the one in the proof; none: the lane is a TCP flow */
  uint16_t connect_port;    /* for endpoint_connect; 0: there is no endpoint */
  uint8_t has_secret;       /* the listening side has a job secret; for messages */
  uint32_t process;         /* of the listening side */
  char host[HOST_TEXT_BYTES];
  char nic[NIC_TEXT_BYTES];
  struct decision decision; /* of the listening side; for messages */
  /* The listener's, all of them; only if a first hello is accepted, and the handle has no room. */
  struct address_list addresses;
  uint8_t mac[MAC_BYTES]; /* zero for REPLY_OTHER_VERSION and REPLY_UNKNOWN: no key to make it of */
};

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES]);
void challenge_encode(const struct challenge *challenge, uint8_t bytes[CHALLENGE_BYTES]);
void proof_encode(const struct proof *proof, uint8_t bytes[PROOF_BYTES]);
void reply_encode(const struct reply *reply, uint8_t bytes[REPLY_BYTES]);

/* Looks at the first HANDSHAKE_PREFIX_BYTES. 0: the message is of this kind, has
 * handshake_bytes(*kind), and our format. */
int handshake_prefix_check(const uint8_t *bytes, enum handshake_kind *kind, uint16_t *wire_version,
                           char version[VERSION_TEXT_BYTES]);
size_t handshake_bytes(enum handshake_kind kind);

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *hello);
int challenge_decode(const uint8_t bytes[CHALLENGE_BYTES], struct challenge *challenge);
int proof_decode(const uint8_t bytes[PROOF_BYTES], struct proof *proof);
int reply_decode(const uint8_t bytes[REPLY_BYTES], struct reply *reply);
/* Does a reply of this status carry a mac? */
bool reply_has_mac(unsigned status);

/* What an address of this family, 4 or 6, takes; 0: there is no such family. */
size_t address_bytes(unsigned family);
/* Are these bytes so many addresses, and zeros up to the end of the room? */
bool addresses_are_valid(const uint8_t *bytes, size_t room, unsigned count);

/* For messages: "there is no such listener..." */
const char *reply_status_text(unsigned status);

#endif
