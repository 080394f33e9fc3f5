/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_seal.h, and lane_crypto.h for what there is. libcrypto's functions are declared here, so
 * that building needs no OpenSSL; these and the numbers of the controls are the same in 1.1 and 3
 * (openssl/evp.h). */
#include "net_plugin/lane/tcp/tcp_seal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "common/bytes.h"
#include "common/dynlib.h"
#include "common/hash.h"

#define GET_TAG 0x10   /* EVP_CTRL_AEAD_GET_TAG */
#define SET_TAG 0x11   /* EVP_CTRL_AEAD_SET_TAG */
#define AS_BEFORE (-1) /* direction */

/* Of both ciphers. */
#define KEY_BYTES 32
#define NONCE_BYTES 12
_Static_assert(KEY_BYTES + NONCE_BYTES == LANE_KEY_BYTES, "a key, and the mask of the nonces");

struct libcrypto {
  void *(*OSSL_LIB_CTX_new)(void);
  const void *(*EVP_CIPHER_fetch)(void *, const char *, const char *);
  const void *(*EVP_aes_256_gcm)(void);
  const void *(*EVP_chacha20_poly1305)(void);
  const char *(*OpenSSL_version)(int);
  void *(*EVP_CIPHER_CTX_new)(void);
  void (*EVP_CIPHER_CTX_free)(void *);
  int (*EVP_CIPHER_CTX_ctrl)(void *, int, int, void *);
  int (*EVP_CipherInit_ex)(void *, const void *, void *, const uint8_t *, const uint8_t *, int);
  int (*EVP_CipherUpdate)(void *, uint8_t *, int *, const uint8_t *, int);
  int (*EVP_CipherFinal_ex)(void *, uint8_t *, int *);
  int (*ERR_set_mark)(void);
  int (*ERR_pop_to_mark)(void);
};

static const struct dynlib_symbol symbols[] = {
  DYNLIB_OPTIONAL(struct libcrypto, OSSL_LIB_CTX_new), /* 3 has both, 1.1 has none */
  DYNLIB_OPTIONAL(struct libcrypto, EVP_CIPHER_fetch),
  DYNLIB_REQUIRED(struct libcrypto, EVP_aes_256_gcm),
  DYNLIB_OPTIONAL(struct libcrypto, EVP_chacha20_poly1305), /* some builds leave it out */
  DYNLIB_REQUIRED(struct libcrypto, OpenSSL_version),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CIPHER_CTX_new),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CIPHER_CTX_free),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CIPHER_CTX_ctrl),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CipherInit_ex),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CipherUpdate),
  DYNLIB_REQUIRED(struct libcrypto, EVP_CipherFinal_ex),
  DYNLIB_REQUIRED(struct libcrypto, ERR_set_mark),
  DYNLIB_REQUIRED(struct libcrypto, ERR_pop_to_mark),
  { 0 },
};
static const char *const sonames[] = { "libcrypto.so.3", "libcrypto.so.1.1", NULL };
static const char *const names[LANE_CIPHERS] = {
  [LANE_AES256GCM] = "AES-256-GCM", [LANE_CHACHA20POLY1305] = "ChaCha20-Poly1305"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct dynlib library;
static struct libcrypto crypto;
static const void *ciphers[LANE_CIPHERS]; /* libcrypto's; NULL: it is not used */

/* ---- records ---- */

/* The thread's list of errors, which may be somebody else's, is as before. */
static bool start(struct tcp_seal *seal, enum tcp_seal_direction direction, const void *cipher,
                  const uint8_t key[LANE_KEY_BYTES]) {
  crypto.ERR_set_mark();
  *seal = (struct tcp_seal){ .context = crypto.EVP_CIPHER_CTX_new() };
  memcpy(seal->key, key, LANE_KEY_BYTES);
  if (!seal->context || crypto.EVP_CipherInit_ex(seal->context, cipher, NULL, key, NULL,
                                                 direction == TCP_SEAL_CLOSES) != 1) {
    tcp_seal_end(seal);
  }
  crypto.ERR_pop_to_mark();
  return seal->context != NULL;
}

void tcp_seal_end(struct tcp_seal *seal) {
  if (seal->context) {
    crypto.EVP_CIPHER_CTX_free(seal->context); /* wipes the key */
  }
  hash_wipe(seal, sizeof *seal);
}

static bool next_key(struct tcp_seal *seal) {
  static const char label[] = "stratus 2 next key";
  uint8_t next[LANE_KEY_BYTES];
  hash_hkdf_expand(seal->key, label, sizeof label, next, sizeof next);
  memcpy(seal->key, next, sizeof next);
  hash_wipe(next, sizeof next);
  seal->records = 0;
  return crypto.EVP_CipherInit_ex(seal->context, NULL, NULL, seal->key, NULL, AS_BEFORE) == 1;
}

/* The next record, of this length. */
static bool begin(struct tcp_seal *seal, const uint8_t length[TCP_SEAL_LENGTH_BYTES]) {
  uint8_t nonce[NONCE_BYTES] = { 0 };
  int done;
  if (seal->records == TCP_SEAL_RECORDS_PER_KEY && !next_key(seal)) {
    return false;
  }
  bytes_put_le64(nonce + NONCE_BYTES - 8, seal->records++);
  for (int i = 0; i < NONCE_BYTES; i++) {
    nonce[i] ^= seal->key[KEY_BYTES + i];
  }
  return crypto.EVP_CipherInit_ex(seal->context, NULL, NULL, NULL, nonce, AS_BEFORE) == 1 &&
         crypto.EVP_CipherUpdate(seal->context, NULL, &done, length, TCP_SEAL_LENGTH_BYTES) == 1;
}

static bool finish(void *context, const void *from, size_t bytes, uint8_t *to) {
  int done, more;
  return crypto.EVP_CipherUpdate(context, to, &done, from, (int)bytes) == 1 &&
         crypto.EVP_CipherFinal_ex(context, to + done, &more) == 1 &&
         (size_t)done + (size_t)more == bytes;
}

size_t tcp_seal_close(struct tcp_seal *seal, const void *text, size_t bytes, uint8_t *record) {
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES, *tag = sealed + bytes;
  bytes_put_le32(record, (uint32_t)bytes);
  bool is_sealed = begin(seal, record) && finish(seal->context, text, bytes, sealed) &&
                   crypto.EVP_CIPHER_CTX_ctrl(seal->context, GET_TAG, TCP_SEAL_TAG_BYTES, tag) == 1;
  return is_sealed ? bytes + TCP_SEAL_OVERHEAD_BYTES : 0;
}

size_t tcp_seal_record_bytes(const uint8_t length[TCP_SEAL_LENGTH_BYTES]) {
  uint32_t bytes = bytes_get_le32(length);
  return bytes >= 1 && bytes <= TCP_SEAL_TEXT_BYTES ? bytes + TCP_SEAL_OVERHEAD_BYTES : 0;
}

int tcp_seal_open(struct tcp_seal *seal, uint8_t *record, size_t record_bytes) {
  size_t bytes = record_bytes - TCP_SEAL_OVERHEAD_BYTES;
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES, *tag = sealed + bytes;
  bool is_right =
      begin(seal, record) &&
      crypto.EVP_CIPHER_CTX_ctrl(seal->context, SET_TAG, TCP_SEAL_TAG_BYTES, tag) == 1 &&
      finish(seal->context, sealed, bytes, sealed);
  return is_right ? 0 : -EBADMSG;
}

/* ---- is libcrypto right? ---- */

#define KNOWN_BYTES 4099 /* wide instructions and a rest */
/* Byte i of the key is i, of the text i * 7 + i / 256; the nonce is zeros, and at last 0 or 1. Tags
 * by libsodium 1.0.18 and OpenSSL 3.0.19. */
static const uint8_t known_tags[LANE_CIPHERS][2][TCP_SEAL_TAG_BYTES] = {
  [LANE_AES256GCM] = { { 0x27, 0x52, 0x3d, 0xd6, 0x87, 0xc9, 0x4e, 0x86, 0x8b, 0xa2, 0x71, 0xfa,
                         0xcc, 0x55, 0x75, 0xfa },
                       { 0xea, 0x28, 0xf0, 0xde, 0x31, 0x4b, 0x97, 0x9e, 0x4f, 0x0e, 0xa5, 0x2f,
                         0x7e, 0x01, 0x7e, 0x6c } },
  [LANE_CHACHA20POLY1305] = { { 0xe2, 0xaf, 0xe5, 0x46, 0x8b, 0x8f, 0x21, 0x44, 0x2b, 0xea, 0xda,
                                0x7b, 0x3d, 0x29, 0x5d, 0x39 },
                              { 0xa6, 0xe4, 0xf2, 0xb8, 0x45, 0xba, 0xee, 0xcc, 0x68, 0x81, 0xa5,
                                0xaf, 0x8d, 0x7e, 0xa8, 0x25 } },
};

static bool is_as_known(const void *cipher, uint8_t last, const uint8_t *known) {
  uint8_t key[LANE_KEY_BYTES] = { [LANE_KEY_BYTES - 1] = last }, text[KNOWN_BYTES];
  uint8_t record[KNOWN_BYTES + TCP_SEAL_OVERHEAD_BYTES];
  uint8_t *tag = record + sizeof record - TCP_SEAL_TAG_BYTES;
  struct tcp_seal out = { 0 }, in = { 0 };
  for (size_t i = 0; i < KEY_BYTES; i++) {
    key[i] = (uint8_t)i;
  }
  for (size_t i = 0; i < sizeof text; i++) {
    text[i] = (uint8_t)(i * 7 + i / 256);
  }
  bool is_right = start(&out, TCP_SEAL_CLOSES, cipher, key) &&
                  start(&in, TCP_SEAL_OPENS, cipher, key) &&
                  tcp_seal_close(&out, text, sizeof text, record) == sizeof record &&
                  memcmp(tag, known, TCP_SEAL_TAG_BYTES) == 0 &&
                  tcp_seal_open(&in, record, sizeof record) == 0 &&
                  memcmp(record + TCP_SEAL_LENGTH_BYTES, text, sizeof text) == 0 &&
                  tcp_seal_close(&out, text, sizeof text, record) == sizeof record;
  tag[0] ^= 1;
  is_right = is_right && tcp_seal_open(&in, record, sizeof record) != 0;
  tcp_seal_end(&out);
  tcp_seal_end(&in);
  return is_right;
}

/* ---- which ciphers ---- */

static const void *find_cipher(void *context, enum lane_cipher cipher) {
  if (crypto.OSSL_LIB_CTX_new && crypto.EVP_CIPHER_fetch) {
    return context ? crypto.EVP_CIPHER_fetch(context, names[cipher], NULL) : NULL;
  }
  return cipher == LANE_AES256GCM       ? crypto.EVP_aes_256_gcm()
         : crypto.EVP_chacha20_poly1305 ? crypto.EVP_chacha20_poly1305()
                                        : NULL;
}

static void choose(void) {
  if (dynlib_open(&library, sonames, symbols, &crypto)) {
    return;
  }
  crypto.ERR_set_mark();
  void *context = crypto.OSSL_LIB_CTX_new ? crypto.OSSL_LIB_CTX_new() : NULL;
  for (enum lane_cipher i = LANE_PLAIN + 1; i < LANE_CIPHERS; i++) {
    const void *cipher = find_cipher(context, i);
    bool is_right = cipher && is_as_known(cipher, 0, known_tags[i][0]) &&
                    is_as_known(cipher, 1, known_tags[i][1]);
    ciphers[i] = is_right ? cipher : NULL;
  }
  crypto.ERR_pop_to_mark();
}

/* In software AES is slow, and what it looks up in tables can tell the key. */
static bool has_aes_instructions(void) {
#if defined __x86_64__
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined __aarch64__
  return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL);
#else
  return false;
#endif
}

unsigned lane_crypto_ciphers(void) {
  pthread_once(&once, choose);
  return (ciphers[LANE_AES256GCM] && has_aes_instructions() ? 1u << LANE_AES256GCM : 0) |
         (ciphers[LANE_CHACHA20POLY1305] ? 1u << LANE_CHACHA20POLY1305 : 0);
}

const char *lane_crypto_library(void) {
  pthread_once(&once, choose);
  return !library.handle         ? library.reason
         : lane_crypto_ciphers() ? crypto.OpenSSL_version(0)
                                 : "it refuses AES-256-GCM and ChaCha20-Poly1305, or computes them "
                                   "wrongly";
}

const char *lane_crypto_name(enum lane_cipher cipher, char text[LANE_CRYPTO_NAME_MAX]) {
  if (cipher == LANE_PLAIN) {
    return "nothing";
  }
  snprintf(text, LANE_CRYPTO_NAME_MAX, "%s (%s)", names[cipher], lane_crypto_library());
  return text;
}

bool tcp_seal_start(struct tcp_seal *seal, enum tcp_seal_direction direction,
                    enum lane_cipher cipher, const uint8_t key[LANE_KEY_BYTES]) {
  pthread_once(&once, choose);
  *seal = (struct tcp_seal){ 0 };
  return ciphers[cipher] && start(seal, direction, ciphers[cipher], key);
}
