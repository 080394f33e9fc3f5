/* SPDX-License-Identifier: Apache-2.0 */
/* See aes_gcm.h. libcrypto's functions are declared here, so that building needs no OpenSSL; these
 * and the numbers of the controls are the same in 1.1 and 3 (openssl/evp.h). */
#include "net_plugin/lane/tcp/aes_gcm.h"

#include <pthread.h>
#include <sodium/version.h>
#include <stdio.h>
#include <string.h>
#if defined __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "common/bytes.h"
#include "common/dynlib.h"
#include "common/hash.h"
#include "common/param.h"

#define GET_TAG 0x10   /* EVP_CTRL_AEAD_GET_TAG */
#define SET_TAG 0x11   /* EVP_CTRL_AEAD_SET_TAG */
#define AS_BEFORE (-1) /* direction */

struct libcrypto {
  void *(*OSSL_LIB_CTX_new)(void);
  void *(*EVP_CIPHER_fetch)(void *, const char *, const char *);
  const void *(*EVP_aes_256_gcm)(void);
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct dynlib library;
static struct libcrypto crypto;
static const void *cipher; /* libcrypto's; NULL: it is not used */
static char library_name[DYNLIB_REASON_MAX + 64];

/* ---- libcrypto ---- */

/* A context with this key; NULL: libcrypto refuses. The thread's list of errors, which may be
 * somebody else's, is as before. */
static void *new_context(enum aes_gcm_direction direction, const uint8_t *key) {
  crypto.ERR_set_mark();
  void *context = crypto.EVP_CIPHER_CTX_new();
  if (context &&
      crypto.EVP_CipherInit_ex(context, cipher, NULL, key, NULL, direction == AES_GCM_SEAL) != 1) {
    crypto.EVP_CIPHER_CTX_free(context);
    context = NULL;
  }
  crypto.ERR_pop_to_mark();
  return context;
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
static const uint8_t known_tags[][AES_GCM_TAG_BYTES] = {
  { 0x27, 0x52, 0x3d, 0xd6, 0x87, 0xc9, 0x4e, 0x86, 0x8b, 0xa2, 0x71, 0xfa, 0xcc, 0x55, 0x75,
    0xfa },
  { 0xea, 0x28, 0xf0, 0xde, 0x31, 0x4b, 0x97, 0x9e, 0x4f, 0x0e, 0xa5, 0x2f, 0x7e, 0x01, 0x7e,
    0x6c },
};

static bool known_record(struct aes_gcm *seal, struct aes_gcm *open, uint8_t number) {
  uint8_t text[KNOWN_BYTES], sealed[KNOWN_BYTES], opened[KNOWN_BYTES], tag[AES_GCM_TAG_BYTES];
  uint8_t nonce[AES_GCM_NONCE_BYTES] = { [AES_GCM_NONCE_BYTES - 1] = number }, header[4];
  bytes_put_le32(header, KNOWN_BYTES);
  for (size_t i = 0; i < sizeof text; i++) {
    text[i] = (uint8_t)(i * 7 + i / 256);
  }
  if (!aes_gcm_seal(seal, nonce, header, sizeof header, text, sizeof text, sealed, tag) ||
      memcmp(tag, known_tags[number], sizeof tag) != 0 ||
      !aes_gcm_open(open, nonce, header, sizeof header, sealed, sizeof sealed, opened, tag) ||
      memcmp(opened, text, sizeof text) != 0) {
    return false;
  }
  tag[0] ^= 1;
  return !aes_gcm_open(open, nonce, header, sizeof header, sealed, sizeof sealed, opened, tag);
}

static bool is_right(void) {
  struct aes_gcm seal, open;
  uint8_t key[AES_GCM_KEY_BYTES];
  for (size_t i = 0; i < sizeof key; i++) {
    key[i] = (uint8_t)i;
  }
  seal.context = new_context(AES_GCM_SEAL, key);
  open.context = new_context(AES_GCM_OPEN, key);
  bool right = seal.context && open.context && known_record(&seal, &open, 0) &&
               known_record(&seal, &open, 1);
  crypto.EVP_CIPHER_CTX_free(seal.context);
  crypto.EVP_CIPHER_CTX_free(open.context);
  return right;
}

/* ---- which library ---- */

static const char *find_libcrypto(void) {
  if (!param_bool(PARAM_OPENSSL)) {
    return "STRATUS_OPENSSL=0";
  }
  if (dynlib_open(&library, sonames, symbols, &crypto)) {
    return library.reason;
  }
  crypto.ERR_set_mark();
  if (crypto.OSSL_LIB_CTX_new && crypto.EVP_CIPHER_fetch) {
    void *context = crypto.OSSL_LIB_CTX_new();
    cipher = context ? crypto.EVP_CIPHER_fetch(context, "AES-256-GCM", NULL) : NULL;
  } else {
    cipher = crypto.EVP_aes_256_gcm();
  }
  bool is_usable = cipher && is_right();
  crypto.ERR_pop_to_mark();
  if (!is_usable) {
    cipher = NULL;
    return "it refuses AES-256-GCM, or computes it wrongly";
  }
  return NULL;
}

static void choose(void) {
  const char *reason = find_libcrypto();
  if (!reason) {
    snprintf(library_name, sizeof library_name, "%s", crypto.OpenSSL_version(0));
    return;
  }
  snprintf(library_name, sizeof library_name, "libsodium %s, not %s: %s", SODIUM_VERSION_STRING,
           library.soname ? library.soname : "OpenSSL", reason);
}

const char *aes_gcm_library(void) {
  pthread_once(&once, choose);
  return library_name;
}

bool aes_gcm_is_available(void) {
  if (crypto_aead_aes256gcm_is_available()) {
    return true;
  }
#if defined __aarch64__ /* libsodium 1.0.18 has no AES for it, and only claims what it has */
  pthread_once(&once, choose);
  return cipher && (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL);
#else
  return false;
#endif
}

/* ---- one direction ---- */

bool aes_gcm_start(struct aes_gcm *gcm, enum aes_gcm_direction direction,
                   const uint8_t key[AES_GCM_KEY_BYTES]) {
  pthread_once(&once, choose);
  gcm->context = cipher ? new_context(direction, key) : NULL;
  return gcm->context || crypto_aead_aes256gcm_beforenm(&gcm->sodium, key) == 0;
}

bool aes_gcm_rekey(struct aes_gcm *gcm, const uint8_t key[AES_GCM_KEY_BYTES]) {
  return gcm->context
             ? crypto.EVP_CipherInit_ex(gcm->context, NULL, NULL, key, NULL, AS_BEFORE) == 1
             : crypto_aead_aes256gcm_beforenm(&gcm->sodium, key) == 0;
}

void aes_gcm_end(struct aes_gcm *gcm) {
  if (gcm->context) {
    crypto.EVP_CIPHER_CTX_free(gcm->context); /* wipes the key */
  }
  hash_wipe(gcm, sizeof *gcm);
}

bool aes_gcm_seal(struct aes_gcm *gcm, const uint8_t nonce[AES_GCM_NONCE_BYTES], const void *header,
                  size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
                  uint8_t tag[AES_GCM_TAG_BYTES]) {
  if (!gcm->context) {
    return crypto_aead_aes256gcm_encrypt_detached_afternm(
               to, tag, NULL, from, bytes, header, header_bytes, NULL, nonce, &gcm->sodium) == 0;
  }
  return begin(gcm->context, nonce, header, header_bytes) &&
         finish(gcm->context, from, bytes, to) &&
         crypto.EVP_CIPHER_CTX_ctrl(gcm->context, GET_TAG, AES_GCM_TAG_BYTES, tag) == 1;
}

bool aes_gcm_open(struct aes_gcm *gcm, const uint8_t nonce[AES_GCM_NONCE_BYTES], const void *header,
                  size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
                  const uint8_t tag[AES_GCM_TAG_BYTES]) {
  if (!gcm->context) {
    return crypto_aead_aes256gcm_decrypt_detached_afternm(to, NULL, from, bytes, tag, header,
                                                          header_bytes, nonce, &gcm->sodium) == 0;
  }
  return begin(gcm->context, nonce, header, header_bytes) &&
         crypto.EVP_CIPHER_CTX_ctrl(gcm->context, SET_TAG, AES_GCM_TAG_BYTES,
                                    (void *)(uintptr_t)tag) == 1 &&
         finish(gcm->context, from, bytes, to);
}
