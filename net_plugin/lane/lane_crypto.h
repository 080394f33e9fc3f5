/* SPDX-License-Identifier: Apache-2.0 */
/* lane_crypto: what a lane is encrypted with, as set-up and the lanes agree.
 * Owns: nothing.  Threads: any.  Blocks: the first call of a process, as dlopen does.  Fails:
 * cannot. */
#ifndef NET_PLUGIN_LANE_LANE_CRYPTO_H
#define NET_PLUGIN_LANE_LANE_CRYPTO_H

#include <stdint.h>

/* How what a lane carries is protected. Numbers travel in the handshake. */
enum lane_cipher { LANE_PLAIN, LANE_AES256GCM, LANE_CHACHA20POLY1305, LANE_CIPHERS };

#define LANE_KEY_BYTES 44 /* a key of 32, and 12 that mask the nonces */

/* Keys of one epoch of a lane, one per direction; whoever holds them wipes them. */
struct lane_crypto {
  enum lane_cipher cipher;
  uint8_t send[LANE_KEY_BYTES], receive[LANE_KEY_BYTES];
};

/* The cipher and what computes it, for people: in `text` or a constant. */
#define LANE_CRYPTO_NAME_MAX 640
const char *lane_crypto_name(enum lane_cipher cipher, char text[LANE_CRYPTO_NAME_MAX]);

/* Which ciphers work here, as bits 1 << enum lane_cipher; 0: this host cannot encrypt. */
unsigned lane_crypto_ciphers(void);
/* "OpenSSL 3.0.19", or why this host cannot encrypt. */
const char *lane_crypto_library(void);

#endif
