/* SPDX-License-Identifier: Apache-2.0 */
/* aead: libcrypto computes as the standards say; one that is missing, refuses, is old or wrong
 * offers no cipher, and then nothing is connected where encryption is wanted; the process's own use
 * of libcrypto is left alone. A process loads the library once, so each test is a process of its
 * own. */
#include "net_plugin/lane/tcp/aead.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/hex.h"
#include "net_plugin/lane/tcp/tcp_seal.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

#define TEXT_BYTES 5000

static const uint8_t key[AEAD_KEY_BYTES] = { 7, 8, 9 }, other_key[AEAD_KEY_BYTES] = { 1 };
static const uint8_t header[4] = { 4, 3, 2, 1 };

/* ---- libcrypto's functions, one of them changed; the Makefile wraps dlopen and dlsym ---- */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

static bool is_missing, updates_fail;
static struct change {
  const char *name;
  void (*to)(void);   /* NULL: the library does not have it */
  const char *reason; /* why such a library is of no use */
} change;
#define AS(function) (void (*)(void))(uintptr_t)(function)
static void *(*real_fetch)(void *, const char *, const char *);
static int (*real_update)(void *, uint8_t *, int *, const uint8_t *, int);

void *__wrap_dlopen(const char *name, int flags) {
  return __real_dlopen(is_missing ? "libstratus-is-not-there.so" : name, flags);
}

void *__wrap_dlsym(void *handle, const char *name) {
  void *found = __real_dlsym(handle, name);
  if (strcmp(name, "EVP_CipherUpdate") == 0) {
    memcpy(&real_update, &found, sizeof found);
  } else if (strcmp(name, "EVP_CIPHER_fetch") == 0) {
    memcpy(&real_fetch, &found, sizeof found);
  }
  if (change.name && strcmp(name, change.name) == 0) {
    memcpy(&found, &change.to, sizeof found);
  }
  return found;
}

static void *refuse(void) {
  return NULL;
}

/* As a library that has no such cipher, or may not use it. */
static void *fetch_nothing(void *context, const char *name, const char *properties) {
  (void)name;
  return real_fetch(context, "AES-256-NONE", properties);
}

static void *fetch_aes_only(void *context, const char *name, const char *properties) {
  return real_fetch(context, strncmp(name, "AES", 3) == 0 ? name : "none", properties);
}

static int accept_all(void *context, uint8_t *to, int *done) {
  (void)to;
  *done = 0;
  return 1;
}

static int change_a_bit(void *context, uint8_t *to, int *done, const uint8_t *from, int bytes) {
  int result = real_update(context, to, done, from, bytes);
  if (to && bytes > 4000) {
    to[4000] ^= 1;
  }
  return result;
}

static int fail_on_demand(void *context, uint8_t *to, int *done, const uint8_t *from, int bytes) {
  return updates_fail ? 0 : real_update(context, to, done, from, bytes);
}

/* ---- processes ---- */

/* `changed` may be NULL. */
static void in_child(const struct change *changed, bool (*test)(void)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    change = changed ? *changed : change;
    _exit(test() ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* Closed again: a child loads it itself. */
static void need_libcrypto(void) {
  void *library = __real_dlopen("libcrypto.so.3", RTLD_NOW);
  if (!library) {
    SKIP_BECAUSE("no libcrypto.so.3");
  }
  dlclose(library);
}

static bool has(enum lane_cipher cipher) {
  return (lane_crypto_ciphers() >> cipher & 1) != 0;
}

/* ---- what it must do ---- */

/* Galois/Counter Mode (McGrew and Viega), test case 16; RFC 8439, section 2.8.2. */
static const struct vector {
  enum lane_cipher cipher;
  const char *key, *nonce, *header, *text, *tag;
} vectors[] = {
  { LANE_AES256GCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
    "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    "76fc6ece0f4e1768cddf8853bb2d551b" },
  { LANE_CHACHA20POLY1305, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
    "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
    "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
    "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
    "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
    "637265656e20776f756c642062652069742e",
    "1ae10b594f09e26a7e902ecbd0600691" },
};

static size_t from_hex(const char *text, uint8_t *bytes) {
  size_t count = strlen(text) / 2;
  return hex_read(text, bytes, count) ? count : 0;
}

static bool is_as_known(const struct vector *known) {
  uint8_t secret[AEAD_KEY_BYTES], nonce[AEAD_NONCE_BYTES], head[32], text[128], sealed[128],
      tag[AEAD_TAG_BYTES], wanted[AEAD_TAG_BYTES];
  struct aead seal;
  from_hex(known->key, secret);
  from_hex(known->nonce, nonce);
  from_hex(known->tag, wanted);
  size_t head_bytes = from_hex(known->header, head), bytes = from_hex(known->text, text);
  bool works = aead_start(&seal, AEAD_SEAL, known->cipher, secret) &&
               aead_seal(&seal, nonce, head, head_bytes, text, bytes, sealed, tag) &&
               memcmp(tag, wanted, sizeof tag) == 0;
  aead_end(&seal);
  return works;
}

/* In place, and not; what was changed does not open. */
static bool passes(struct aead *seal, struct aead *open, size_t bytes) {
  static uint8_t text[TEXT_BYTES], sealed[TEXT_BYTES], opened[TEXT_BYTES];
  uint8_t nonce[AEAD_NONCE_BYTES] = { (uint8_t)bytes }, tag[AEAD_TAG_BYTES];
  for (size_t i = 0; i < bytes; i++) {
    sealed[i] = text[i] = (uint8_t)(i * 11 + bytes);
  }
  if (!aead_seal(seal, nonce, header, sizeof header, sealed, bytes, sealed, tag) ||
      memcmp(sealed, text, bytes) == 0 ||
      !aead_open(open, nonce, header, sizeof header, sealed, bytes, opened, tag) ||
      memcmp(opened, text, bytes) != 0) {
    return false;
  }
  tag[3] ^= 4;
  return !aead_open(open, nonce, header, sizeof header, sealed, bytes, opened, tag);
}

static bool works(enum lane_cipher cipher) {
  static const size_t sizes[] = { 15, 16, 17, 60, 287, 288, 1024, TEXT_BYTES };
  struct aead seal, open;
  bool works =
      aead_start(&seal, AEAD_SEAL, cipher, key) && aead_start(&open, AEAD_OPEN, cipher, key);
  for (size_t i = 0; works && i < 2 * sizeof sizes / sizeof *sizes; i++) {
    if (i == sizeof sizes / sizeof *sizes) {
      works = aead_rekey(&seal, other_key) && aead_rekey(&open, other_key);
    }
    works = works && passes(&seal, &open, sizes[i % (sizeof sizes / sizeof *sizes)]);
  }
  aead_end(&seal);
  aead_end(&open);
  return works;
}

static bool as_the_standards_say(void) {
  return strncmp(lane_crypto_library(), "OpenSSL", 7) == 0 && has(LANE_CHACHA20POLY1305) &&
         is_as_known(&vectors[0]) && is_as_known(&vectors[1]) && works(LANE_AES256GCM) &&
         works(LANE_CHACHA20POLY1305);
}

UNIT_TEST(both_ciphers_are_those_of_the_standards) {
  need_libcrypto();
  in_child(NULL, as_the_standards_say);
  in_child(&(struct change){ .name = "OSSL_LIB_CTX_new" }, as_the_standards_say); /* 1.1 has none */
}

static bool without_chacha(void) {
  return !has(LANE_CHACHA20POLY1305) && works(LANE_AES256GCM);
}

UNIT_TEST(a_cipher_that_is_refused_is_not_offered) {
  need_libcrypto();
  in_child(&(struct change){ "EVP_CIPHER_fetch", AS(fetch_aes_only), NULL }, without_chacha);
}

/* ---- without libcrypto ---- */

static bool offers_nothing(const char *reason) {
  struct aead seal;
  bool is_none = lane_crypto_ciphers() == 0 && strstr(lane_crypto_library(), reason) &&
                 !aead_start(&seal, AEAD_SEAL, LANE_AES256GCM, key) &&
                 !aead_start(&seal, AEAD_SEAL, LANE_CHACHA20POLY1305, key);
  if (!is_none) {
    print_error("ciphers %x, %s\n", lane_crypto_ciphers(), lane_crypto_library());
  }
  return is_none;
}

static bool missing(void) {
  is_missing = true;
  return offers_nothing("libstratus-is-not-there.so");
}

static bool is_of_no_use(void) {
  return offers_nothing(change.reason);
}

UNIT_TEST(a_libcrypto_of_no_use_is_not_used) {
  const struct change cases[] = {
    { "ERR_set_mark", NULL, "ERR_set_mark" },
    { "EVP_CIPHER_fetch", AS(fetch_nothing), "refuses AES-256-GCM" },
    { "EVP_CIPHER_CTX_new", AS(refuse), "refuses" },
    { "EVP_CipherUpdate", AS(change_a_bit), "wrongly" },
    { "EVP_CipherFinal_ex", AS(accept_all), "wrongly" },
  };
  need_libcrypto();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    in_child(&cases[i], is_of_no_use);
  }
}

/* One warning, which says what to install. */
static bool is_refused(int error) {
  bool is = error == -EACCES && log_capture_count(LOG_LEVEL_WARN) == 1 &&
            strstr(log_capture_text(0), "libcrypto cannot be used: ") &&
            strstr(log_capture_text(0), "no connection is made") &&
            strstr(log_capture_text(0), "libstratus-is-not-there.so");
  log_capture_start();
  return is;
}

static bool connects_nobody(void) {
  uint8_t unused[HANDLE_BYTES];
  struct listener *none;
  is_missing = true;
  struct meeting meeting = meeting_open(AF_INET); /* in clear nothing is needed */
  pair_set_parameters("STRATUS_ENCRYPT=on");
  log_capture_start();
  return missing() && is_refused(listener_open(meeting.nics, 1, unused, &none)) &&
         is_refused(meeting_connect(&meeting)) && !meeting.pair.sender;
}

UNIT_TEST(without_libcrypto_nothing_is_encrypted) {
  in_child(NULL, missing);
  in_child(NULL, connects_nobody);
}

/* ---- libcrypto that fails later, and its other user ---- */

static bool fails_later(void) {
  static uint8_t text[TEXT_BYTES], record[TEXT_BYTES + TCP_SEAL_OVERHEAD_BYTES];
  uint8_t lane_key[LANE_KEY_BYTES] = { 1 };
  struct tcp_seal out;
  if (!tcp_seal_start(&out, AEAD_SEAL, LANE_AES256GCM, lane_key) ||
      tcp_seal_close(&out, text, TEXT_BYTES, record) != sizeof record) {
    return false;
  }
  updates_fail = true;
  bool nothing = tcp_seal_close(&out, text, TEXT_BYTES, record) == 0;
  tcp_seal_end(&out);
  return nothing;
}

UNIT_TEST(what_cannot_be_sealed_is_not_sent) {
  need_libcrypto();
  in_child(&(struct change){ "EVP_CipherUpdate", AS(fail_on_demand), NULL }, fails_later);
}

static void call(const char *name) {
  void *found = __real_dlsym(__real_dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD), name);
  void (*function)(void);
  memcpy(&function, &found, sizeof found);
  function();
}

/* The process ends and cleans libcrypto up, while lanes still work. */
static bool outlives_the_clean_up(void) {
  struct aead seal, open;
  if (!aead_start(&seal, AEAD_SEAL, LANE_AES256GCM, key) ||
      !aead_start(&open, AEAD_OPEN, LANE_AES256GCM, key)) {
    return false;
  }
  call("OPENSSL_cleanup");
  bool works = passes(&seal, &open, TEXT_BYTES) && aead_rekey(&seal, other_key) &&
               aead_rekey(&open, other_key) && passes(&seal, &open, TEXT_BYTES);
  aead_end(&seal);
  aead_end(&open);
  return works;
}

static bool leaves_errors_alone(void) {
  void *library = __real_dlopen("libcrypto.so.3", RTLD_NOW),
       *found = __real_dlsym(library, "ERR_peek_error");
  unsigned long (*peek_error)(void);
  memcpy(&peek_error, &found, sizeof found);
  return offers_nothing(change.reason) && peek_error() == 0;
}

UNIT_TEST(the_process_may_use_libcrypto_itself) {
  need_libcrypto();
  in_child(NULL, outlives_the_clean_up);
  in_child(&(struct change){ "EVP_CIPHER_fetch", AS(fetch_nothing), "refuses" },
           leaves_errors_alone);
}
