/* SPDX-License-Identifier: Apache-2.0 */
/* handshake: the first messages on every new lane. PURE.
 *
 *   dialling side                                   listening side
 *        hello      which connection, a nonce ------------->
 *        <------------------- another nonce      challenge      or a refusal, as a reply
 *        proof      of knowing the secrets ---------------->    (auth.h)
 *        <-------- what is agreed, and a proof       reply
 *
 * All are structs of fixed size without padding, little-endian as every host that NCCL runs on,
 * with a CRC32C at the end. The prefix of each stays as it is in every wire version, so that two
 * releases that cannot talk can at least tell each other why.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: -EPROTO not one of ours (a scanner, another service), -EPROTONOSUPPORT another wire
 * version, -EINVAL ours, but with a field out of range. */
#ifndef NET_PLUGIN_SETUP_HANDSHAKE_H
#define NET_PLUGIN_SETUP_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/lane/lane_offer.h"

#define HANDSHAKE_WIRE_VERSION 15
#define HANDLE_BYTES 128 /* NCCL_NET_HANDLE_MAXSIZE */
#define HELLO_BYTES 432
#define CHALLENGE_BYTES 60
#define PROOF_BYTES 96
#define REPLY_BYTES 528
#define REPLY_MAC_AT 492
#define TOKEN_BYTES 16
#define NONCE_BYTES 32
#define MAC_BYTES 32
#define VERSION_TEXT_BYTES 16
#define ADDRESSES_MAX 8
#define HOST_TEXT_BYTES 64
#define NIC_TEXT_BYTES 16
#define CHOICES_TEXT_BYTES 190 /* a few variables with their values; the hash has all of them */

enum handshake_kind {
  HANDSHAKE_HELLO,
  HANDSHAKE_CHALLENGE,
  HANDSHAKE_PROOF,
  HANDSHAKE_REPLY,
  HANDSHAKE_KINDS
};

struct handshake_prefix {
  uint32_t magic;
  uint16_t wire_version, bytes; /* of the whole message */
  char version[VERSION_TEXT_BYTES];
};
#define HANDSHAKE_PREFIX_BYTES sizeof(struct handshake_prefix)

/* What ranks must have alike to choose alike: profile_decision_hash of common/profile.h, with the
 * user's variables of NCCL where the profile decides. For messages the hash of the whole profile, 0
 * for none, and these variables, "NCCL_ALGO=ring NCCL_PROTO=ll", cut if they are longer. */
struct decision {
  uint64_t hash, profile;
  uint16_t version; /* PROFILE_DECISION_VERSION */
  char choices[CHOICES_TEXT_BYTES];
};

/* Where a listener is reached (handle.h). All zeros: nowhere, and the end of a list. */
struct wire_address {
  uint8_t ip[16];  /* IPv4: mapped */
  uint8_t port[2]; /* in network order */
};

/* Who one side is, and what it offers, or what both agree on (params_agreed). */
struct conn_params {
  struct decision decision;
  uint32_t process; /* see settings_identity */
  /* As link_config's. */
  uint32_t chunk_bytes, eager_bytes;
  uint16_t lanes;
  uint8_t wants_checksums; /* 0 or 1 */
  uint8_t remote_keys;     /* of remote buffers (link.h) that it can use; 0: none */
  uint8_t codec;           /* version that it can write or read; 0: none */
  /* That it can use, bits 1 << enum lane_cipher; 0: in clear. Agreed: one. */
  uint8_t ciphers;
  uint8_t has_secret; /* it has a job secret; for messages */
  char host[HOST_TEXT_BYTES];
  char nic[NIC_TEXT_BYTES];
  uint8_t zeros[5];
};

struct hello {
  struct handshake_prefix prefix;
  uint8_t listener[TOKEN_BYTES];   /* from NCCL's handle: whom the lane is for */
  uint8_t connection[TOKEN_BYTES]; /* drawn by the dialling side: where the lane belongs */
  struct conn_params params;       /* of the dialling side; without remote_keys no offer follows */
  uint32_t epoch;                  /* of this lane, from 1 */
  uint16_t lane;                   /* this one of params.lanes */
  /* Where the dialling process listens, on the NIC of this dial: the other side asks there whether
   * it still lives. */
  struct wire_address listens;
  int8_t dscp;      /* -1: none */
  uint8_t is_first; /* the first lane of a new connection */
  uint8_t nonce[NONCE_BYTES];
  uint8_t zeros[2];
  uint32_t crc;
};

struct challenge {
  struct handshake_prefix prefix;
  uint8_t nonce[NONCE_BYTES];
  uint32_t crc;
};

/* What both sides have said before the proof, as it was sent: what proofs and keys are made of
 * (auth.h). */
struct transcript {
  struct hello hello;
  struct challenge challenge;
};
#define TRANSCRIPT_BYTES (HELLO_BYTES + CHALLENGE_BYTES)

struct proof {
  struct handshake_prefix prefix;
  uint8_t handle[MAC_BYTES];     /* by the key from NCCL's handle alone */
  uint8_t connection[MAC_BYTES]; /* by the connection's key, which the job secret is part of */
  struct lane_offer offer;       /* for this lane, if the hello has remote_keys */
  uint8_t zeros[2];
  uint32_t crc;
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
  struct handshake_prefix prefix;
  /* Of the listening side; agreed, if the status is REPLY_ACCEPTED. The codec is that of the
   * connection with its first lane; 0 with a later one: none on that lane any more. */
  struct conn_params params;
  uint16_t status;
  uint16_t connect_port;   /* for endpoint_connect; 0: there is no endpoint */
  struct lane_offer offer; /* answers the one in the proof; none: the lane is a TCP flow */
  /* The listener's, all of them; only with a first hello, and if the handle has no room. */
  struct wire_address addresses[ADDRESSES_MAX];
  uint8_t zeros[6];
  uint8_t mac[MAC_BYTES]; /* zero for REPLY_OTHER_VERSION and REPLY_UNKNOWN: no key to make it of */
  uint32_t crc;
};

_Static_assert(sizeof(struct hello) == HELLO_BYTES && sizeof(struct challenge) == CHALLENGE_BYTES &&
                   sizeof(struct proof) == PROOF_BYTES && sizeof(struct reply) == REPLY_BYTES &&
                   offsetof(struct reply, mac) == REPLY_MAC_AT &&
                   offsetof(struct transcript, challenge) == HELLO_BYTES,
               "what is sent");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the structs are sent as they are");

/* Any of them, as it arrives. */
union handshake_message {
  struct handshake_prefix prefix;
  struct hello hello;
  struct challenge challenge;
  struct proof proof;
  struct reply reply;
};

size_t handshake_bytes(enum handshake_kind kind);
/* Makes a struct of this kind the message that is sent: makes its texts plain, and fills in prefix
 * and checksum. */
void handshake_finish(void *message, enum handshake_kind kind);
/* Of a message whose prefix has arrived. 0: it is of this kind, and has handshake_bytes(*kind).
 * -EPROTONOSUPPORT: its version is plain now, for logs. */
int handshake_prefix_check(struct handshake_prefix *prefix, enum handshake_kind *kind);
/* Of a whole message. 0: it is of this kind, undamaged, and every field is within its limits. One
 * whose texts are not plain, for logs, counts as damaged. */
int handshake_check(union handshake_message *message, enum handshake_kind kind);
/* Of ours: the lesser of each; checksums where one side wants them; the codec where both have the
 * same, and no queue pair carries the data: what they carry is placed, and never compressed; the
 * first cipher that both have. Both sides compute it, the listening one from the hello and the
 * dialling one from the reply, with the same result. */
struct conn_params params_agreed(const struct conn_params *ours, const struct conn_params *theirs);
enum lane_cipher params_cipher(const struct conn_params *agreed);

/* Does a reply of this status carry a mac? */
bool reply_has_mac(unsigned status);

/* For messages: "there is no such listener..." */
const char *reply_status_text(unsigned status);

#endif
