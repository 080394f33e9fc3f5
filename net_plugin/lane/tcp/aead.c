/* SPDX-License-Identifier: Apache-2.0 */
/* See aead.h. libcrypto's functions are declared here, so that building needs no OpenSSL; these
 * and the numbers of the controls are the same in 1.1 and 3 (openssl/evp.h). */
#include "net_plugin/lane/tcp/aead.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "common/bytes.h"
#include "common/dynlib.h"

#define GET_TAG 0x10   /* EVP_CTRL_AEAD_GET_TAG */
#define SET_TAG 0x11   /* EVP_CTRL_AEAD_SET_TAG */
#define AS_BEFORE (-1) /* direction */

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

/* ---- libcrypto ---- */

/* The thread's list of errors, which may be somebody else's, is as before. */
static bool start(struct aead *aead, enum aead_direction direction, const void *cipher,
                  const uint8_t *key) {
  crypto.ERR_set_mark();
  aead->context = crypto.EVP_CIPHER_CTX_new();
  if (aead->context && crypto.EVP_CipherInit_ex(aead->context, cipher, NULL, key, NULL,
                                                direction == AEAD_SEAL) != 1) {
    aead_end(aead);
  }
  crypto.ERR_pop_to_mark();
  return aead->context != NULL;
}

static bool begin(void *context, const uint8_t *nonce, const void *header, size_t header_bytes) {
  int done;
  return crypto.EVP_CipherInit_ex(context, NULL, NULL, NULL, nonce, AS_BEFORE) == 1 &&
         crypto.EVP_CipherUpdate(context, NULL, &done, header, (int)header_bytes) == 1;
}

static bool finish(void *context, const void *from, size_t bytes, uint8_t *to) {
  int done, more;
  return crypto.EVP_CipherUpdate(context, to, &done, from, (int)bytes) == 1 &&
         crypto.EVP_CipherFinal_ex(context, to + done, &more) == 1 &&
         (size_t)done + (size_t)more == bytes;
}

/* ---- is libcrypto right? ---- */

#define KNOWN_BYTES 4099 /* wide instructions and a rest */
/* Byte i of the key is i, of the text i * 7 + i / 256; the nonce ends with the record's number, the
 * header is the length in 4 bytes. Tags by libsodium 1.0.18 and OpenSSL 3.0.19. */
static const uint8_t known_tags[LANE_CIPHERS][2][AEAD_TAG_BYTES] = {
  [LANE_AES256GCM] = { { 0x27, 0x52, 0x3d, 0xd6, 0x87, 0xc9, 0x4e, 0x86, 0x8b, 0xa2, 0x71, 0xfa,
                         0xcc, 0x55, 0x75, 0xfa },
                       { 0xea, 0x28, 0xf0, 0xde, 0x31, 0x4b, 0x97, 0x9e, 0x4f, 0x0e, 0xa5, 0x2f,
                         0x7e, 0x01, 0x7e, 0x6c } },
  [LANE_CHACHA20POLY1305] = { { 0xe2, 0xaf, 0xe5, 0x46, 0x8b, 0x8f, 0x21, 0x44, 0x2b, 0xea, 0xda,
                                0x7b, 0x3d, 0x29, 0x5d, 0x39 },
                              { 0xa6, 0xe4, 0xf2, 0xb8, 0x45, 0xba, 0xee, 0xcc, 0x68, 0x81, 0xa5,
                                0xaf, 0x8d, 0x7e, 0xa8, 0x25 } },
};

static bool known_record(struct aead *seal, struct aead *open, uint8_t number,
                         const uint8_t *known) {
  uint8_t text[KNOWN_BYTES], sealed[KNOWN_BYTES], opened[KNOWN_BYTES], tag[AEAD_TAG_BYTES];
  uint8_t nonce[AEAD_NONCE_BYTES] = { [AEAD_NONCE_BYTES - 1] = number }, header[4];
  bytes_put_le32(header, KNOWN_BYTES);
  for (size_t i = 0; i < sizeof text; i++) {
    text[i] = (uint8_t)(i * 7 + i / 256);
  }
  if (!aead_seal(seal, nonce, header, sizeof header, text, sizeof text, sealed, tag) ||
      memcmp(tag, known, sizeof tag) != 0 ||
      !aead_open(open, nonce, header, sizeof header, sealed, sizeof sealed, opened, tag) ||
      memcmp(opened, text, sizeof text) != 0) {
    return false;
  }
  tag[0] ^= 1;
  return !aead_open(open, nonce, header, sizeof header, sealed, sizeof sealed, opened, tag);
}

static bool is_right(const void *cipher, const uint8_t known[2][AEAD_TAG_BYTES]) {
  struct aead seal, open;
  uint8_t key[AEAD_KEY_BYTES];
  for (size_t i = 0; i < sizeof key; i++) {
    key[i] = (uint8_t)i;
  }
  bool can_seal = start(&seal, AEAD_SEAL, cipher, key);
  bool can_open = start(&open, AEAD_OPEN, cipher, key);
  bool right = can_seal && can_open && known_record(&seal, &open, 0, known[0]) &&
               known_record(&seal, &open, 1, known[1]);
  aead_end(&seal);
  aead_end(&open);
  return right;
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
    ciphers[i] = cipher && is_right(cipher, known_tags[i]) ? cipher : NULL;
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

/* ---- one direction ---- */

bool aead_start(struct aead *aead, enum aead_direction direction, enum lane_cipher cipher,
                const uint8_t key[AEAD_KEY_BYTES]) {
  pthread_once(&once, choose);
  aead->context = NULL;
  return ciphers[cipher] && start(aead, direction, ciphers[cipher], key);
}

bool aead_rekey(struct aead *aead, const uint8_t key[AEAD_KEY_BYTES]) {
  return crypto.EVP_CipherInit_ex(aead->context, NULL, NULL, key, NULL, AS_BEFORE) == 1;
}

void aead_end(struct aead *aead) {
  if (aead->context) {
    crypto.EVP_CIPHER_CTX_free(aead->context); /* wipes the key */
    aead->context = NULL;
  }
}

bool aead_seal(struct aead *aead, const uint8_t nonce[AEAD_NONCE_BYTES], const void *header,
               size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
               uint8_t tag[AEAD_TAG_BYTES]) {
  return begin(aead->context, nonce, header, header_bytes) &&
         finish(aead->context, from, bytes, to) &&
         crypto.EVP_CIPHER_CTX_ctrl(aead->context, GET_TAG, AEAD_TAG_BYTES, tag) == 1;
}

bool aead_open(struct aead *aead, const uint8_t nonce[AEAD_NONCE_BYTES], const void *header,
               size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
               const uint8_t tag[AEAD_TAG_BYTES]) {
  return begin(aead->context, nonce, header, header_bytes) &&
         crypto.EVP_CIPHER_CTX_ctrl(aead->context, SET_TAG, AEAD_TAG_BYTES,
                                    (void *)(uintptr_t)tag) == 1 &&
         finish(aead->context, from, bytes, to);
}
