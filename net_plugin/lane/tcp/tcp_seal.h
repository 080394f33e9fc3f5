/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_seal: one direction of a flow as sealed records, by AES-256-GCM or ChaCha20-Poly1305 of
 * OpenSSL's libcrypto (3 or 1.1), which is opened at run time.
 *
 *   0 u32 length of the text, 1..TCP_SEAL_TEXT_BYTES, authenticated   4 the text, encrypted
 *   then a tag of 16 bytes
 *
 * The nonce of a record is its number, which does not travel: a record that is missing, repeated or
 * out of order does not open. After TCP_SEAL_RECORDS_PER_KEY records both sides go on with a key
 * made from the one before, which is forgotten.
 *
 * The process may use the same libcrypto itself, so that nothing of it that is shared is touched:
 * OpenSSL 3 gets a library context of its own, without openssl.cnf, and no clean-up at exit is
 * registered. The library stays loaded. What it computes is compared with known results before a
 * cipher is offered: one that is missing, refused (FIPS) or wrong is not.
 *
 * Owns: its key and the library's context, from a successful start to tcp_seal_end.  Threads: one
 * at a time per struct; loading: any.  Blocks: the first call of a process, as dlopen does.  Fails:
 * tcp_seal_start false without memory or the cipher; tcp_seal_close 0 and tcp_seal_open -EBADMSG;
 * the direction is then of no use any more. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_SEAL_H
#define NET_PLUGIN_LANE_TCP_TCP_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane_crypto.h"

#define TCP_SEAL_LENGTH_BYTES 4
#define TCP_SEAL_TAG_BYTES 16
#define TCP_SEAL_OVERHEAD_BYTES (TCP_SEAL_LENGTH_BYTES + TCP_SEAL_TAG_BYTES)
#define TCP_SEAL_TEXT_BYTES (32u << 10)
#define TCP_SEAL_RECORD_BYTES (TCP_SEAL_TEXT_BYTES + TCP_SEAL_OVERHEAD_BYTES)
#define TCP_SEAL_RECORDS_PER_KEY (1u << 16)

enum tcp_seal_direction { TCP_SEAL_OPENS, TCP_SEAL_CLOSES };

struct tcp_seal {
  void *context;               /* libcrypto's; NULL: it has not started */
  uint8_t key[LANE_KEY_BYTES]; /* key and mask of the nonces */
  uint64_t records;            /* with this key */
};

bool tcp_seal_start(struct tcp_seal *seal, enum tcp_seal_direction direction,
                    enum lane_cipher cipher, const uint8_t key[LANE_KEY_BYTES]);
/* Nothing, if it has not started. */
void tcp_seal_end(struct tcp_seal *seal);

/* Writes the record of this text, which may stand at record + TCP_SEAL_LENGTH_BYTES already. The
 * size of the record, or 0: the library failed, and nothing may be sent. */
size_t tcp_seal_close(struct tcp_seal *seal, const void *text, size_t bytes, uint8_t *record);
/* The size of the whole record that begins so; 0: there is no such record. */
size_t tcp_seal_record_bytes(const uint8_t length[TCP_SEAL_LENGTH_BYTES]);
/* Opens a whole record where it stands; its text, of record size less overhead, is then at
 * record + TCP_SEAL_LENGTH_BYTES. Nothing of it may be used before this returned 0. */
int tcp_seal_open(struct tcp_seal *seal, uint8_t *record, size_t record_bytes);

#endif
