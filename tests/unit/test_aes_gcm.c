/* SPDX-License-Identifier: Apache-2.0 */
/* aes_gcm: OpenSSL and libsodium give the same bits; a libcrypto that is missing, refuses, is old
 * or wrong is not used; the process's own use of libcrypto is left alone. A process loads the
 * library once, so each test is a process of its own. */
#include "net_plugin/lane/tcp/aes_gcm.h"

#include <dlfcn.h>
#include <sodium/core.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/param.h"
#include "net_plugin/lane/tcp/tcp_seal.h"
#include "tests/lib/unit.h"

#define TEXT_BYTES 5000

static const uint8_t key[AES_GCM_KEY_BYTES] = { 7, 8, 9 }, other_key[AES_GCM_KEY_BYTES] = { 1 };
static const uint8_t header[4] = { 4, 3, 2, 1 };

/* ---- libcrypto's functions, one of them changed; the Makefile wraps dlopen and dlsym ---- */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

static bool is_missing, updates_fail;
static const char *changed_name;
static void *changed_to; /* NULL: the library does not have it */
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
  return changed_name && strcmp(name, changed_name) == 0 ? changed_to : found;
}

static void *refuse(void) {
  return NULL;
}

/* As a library that has no such cipher, or may not use it. */
static void *fetch_nothing(void *context, const char *name, const char *properties) {
  (void)name;
  return real_fetch(context, "AES-256-NONE", properties);
}

static int accept_all(void *context, uint8_t *to, int *done) {
  (void)context;
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

#define CHANGE(name, function)                                                                     \
  do {                                                                                             \
    changed_name = name;                                                                           \
    memcpy(&changed_to, &(void *(*)(void)){ (void *(*)(void))(uintptr_t)(function) },              \
           sizeof changed_to);                                                                     \
  } while (0)

/* ---- processes ---- */

static void in_child(bool (*test)(void)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    _exit(sodium_init() >= 0 && test() ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* libsodium 1.0.18 has no AES for ARM; OpenSSL need not be installed. */
static void need_both(void) {
  if (sodium_init() < 0 || !crypto_aead_aes256gcm_is_available() ||
      !__real_dlopen("libcrypto.so.3", RTLD_NOW)) {
    SKIP_BECAUSE("no AES-GCM by libsodium, or no libcrypto.so.3");
  }
}

static bool is_by(const char *library) {
  bool is = strncmp(aes_gcm_library(), library, strlen(library)) == 0;
  if (!is) {
    print_error("%s, and not %s\n", aes_gcm_library(), library);
  }
  return is;
}

/* ---- what each library must do ---- */

static bool round_trip(void) {
  static uint8_t text[TEXT_BYTES], sealed[TEXT_BYTES], opened[TEXT_BYTES];
  uint8_t nonce[AES_GCM_NONCE_BYTES] = { 5 }, tag[AES_GCM_TAG_BYTES];
  struct aes_gcm seal, open;
  memset(text, 3, sizeof text);
  bool works = aes_gcm_start(&seal, AES_GCM_SEAL, key) && aes_gcm_start(&open, AES_GCM_OPEN, key) &&
               aes_gcm_seal(&seal, nonce, header, sizeof header, text, TEXT_BYTES, sealed, tag) &&
               aes_gcm_open(&open, nonce, header, sizeof header, sealed, TEXT_BYTES, opened, tag) &&
               memcmp(text, opened, TEXT_BYTES) == 0;
  tag[3] ^= 4;
  works =
      works && !aes_gcm_open(&open, nonce, header, sizeof header, sealed, TEXT_BYTES, opened, tag);
  aes_gcm_end(&seal);
  aes_gcm_end(&open);
  return works;
}

/* A record by aes_gcm opens in libsodium, and the other way round. */
static bool crosses(struct aes_gcm *seal, struct aes_gcm *open, const uint8_t *with, size_t bytes) {
  static uint8_t text[TEXT_BYTES], sealed[TEXT_BYTES], opened[TEXT_BYTES];
  uint8_t nonce[AES_GCM_NONCE_BYTES] = { (uint8_t)bytes }, tag[AES_GCM_TAG_BYTES];
  for (size_t i = 0; i < bytes; i++) {
    text[i] = (uint8_t)(i * 11 + bytes);
  }
  memcpy(sealed, text, bytes);
  if (!aes_gcm_seal(seal, nonce, header, sizeof header, sealed, bytes, sealed, tag) ||
      crypto_aead_aes256gcm_decrypt_detached(opened, NULL, sealed, bytes, tag, header,
                                             sizeof header, nonce, with) != 0 ||
      memcmp(opened, text, bytes) != 0) {
    return false;
  }
  nonce[1]++;
  return crypto_aead_aes256gcm_encrypt_detached(sealed, tag, NULL, text, bytes, header,
                                                sizeof header, NULL, nonce, with) == 0 &&
         aes_gcm_open(open, nonce, header, sizeof header, sealed, bytes, opened, tag) &&
         memcmp(opened, text, bytes) == 0;
}

static bool both_ways(void) {
  static const size_t sizes[] = { 1, 15, 16, 17, 60, 287, 288, 1024, TEXT_BYTES };
  struct aes_gcm seal, open;
  bool works = aes_gcm_start(&seal, AES_GCM_SEAL, key) && aes_gcm_start(&open, AES_GCM_OPEN, key);
  for (size_t i = 0; works && i < 2 * sizeof sizes / sizeof *sizes; i++) {
    if (i == sizeof sizes / sizeof *sizes) {
      works = aes_gcm_rekey(&seal, other_key) && aes_gcm_rekey(&open, other_key);
    }
    const uint8_t *with = i < sizeof sizes / sizeof *sizes ? key : other_key;
    works = works && crosses(&seal, &open, with, sizes[i % (sizeof sizes / sizeof *sizes)]);
  }
  aes_gcm_end(&seal);
  aes_gcm_end(&open);
  return works;
}

static bool openssl_and_back(void) {
  return is_by("OpenSSL") && round_trip() && both_ways();
}

static bool old_openssl(void) {
  changed_name = "OSSL_LIB_CTX_new"; /* 1.1 has no library contexts */
  return openssl_and_back();
}

UNIT_TEST(both_libraries_give_the_same_bits) {
  need_both();
  in_child(openssl_and_back);
  in_child(old_openssl);
}

/* ---- without libcrypto ---- */

static bool by_choice(void) {
  char choice[] = "STRATUS_OPENSSL=0", *environment[] = { choice, NULL };
  param_load(environment);
  return is_by("libsodium") && strstr(aes_gcm_library(), "STRATUS_OPENSSL=0") && round_trip();
}

static bool missing(void) {
  is_missing = true;
  return is_by("libsodium") && strstr(aes_gcm_library(), "libstratus-is-not-there.so") &&
         round_trip() && both_ways();
}

static bool lacks_a_function(void) {
  changed_name = "ERR_set_mark";
  return is_by("libsodium") && strstr(aes_gcm_library(), "ERR_set_mark") && round_trip();
}

static bool refuses_the_cipher(void) {
  CHANGE("EVP_CIPHER_fetch", fetch_nothing);
  return is_by("libsodium") && strstr(aes_gcm_library(), "refuses AES-256-GCM") && round_trip();
}

static bool refuses_contexts(void) {
  CHANGE("EVP_CIPHER_CTX_new", refuse);
  return is_by("libsodium") && round_trip();
}

static bool computes_wrongly(void) {
  CHANGE("EVP_CipherUpdate", change_a_bit);
  return is_by("libsodium") && round_trip();
}

static bool accepts_any_tag(void) {
  CHANGE("EVP_CipherFinal_ex", accept_all);
  return is_by("libsodium") && round_trip();
}

UNIT_TEST(a_libcrypto_of_no_use_is_not_used) {
  need_both();
  in_child(by_choice);
  in_child(missing);
  in_child(lacks_a_function);
  in_child(refuses_the_cipher);
  in_child(refuses_contexts);
  in_child(computes_wrongly);
  in_child(accepts_any_tag);
}

/* ---- libcrypto that fails later, and its other user ---- */

static bool fails_later(void) {
  CHANGE("EVP_CipherUpdate", fail_on_demand);
  static uint8_t text[TEXT_BYTES], record[TEXT_BYTES + TCP_SEAL_OVERHEAD_BYTES];
  uint8_t lane_key[LANE_KEY_BYTES] = { 1 };
  struct tcp_seal out;
  if (!is_by("OpenSSL") || !tcp_seal_start(&out, AES_GCM_SEAL, LANE_AES256GCM, lane_key) ||
      tcp_seal_close(&out, text, TEXT_BYTES, record) != sizeof record) {
    return false;
  }
  updates_fail = true;
  bool nothing = tcp_seal_close(&out, text, TEXT_BYTES, record) == 0;
  tcp_seal_end(&out);
  return nothing;
}

UNIT_TEST(what_cannot_be_sealed_is_not_sent) {
  need_both();
  in_child(fails_later);
}

static void call(const char *name) {
  void *found = __real_dlsym(__real_dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD), name);
  void (*function)(void);
  memcpy(&function, &found, sizeof found);
  function();
}

/* The process ends and cleans libcrypto up, while lanes still work. */
static bool outlives_the_clean_up(void) {
  struct aes_gcm seal, open;
  if (!is_by("OpenSSL") || !aes_gcm_start(&seal, AES_GCM_SEAL, key) ||
      !aes_gcm_start(&open, AES_GCM_OPEN, key)) {
    return false;
  }
  call("OPENSSL_cleanup");
  bool works = crosses(&seal, &open, key, TEXT_BYTES) && aes_gcm_rekey(&seal, other_key) &&
               aes_gcm_rekey(&open, other_key) && crosses(&seal, &open, other_key, TEXT_BYTES);
  aes_gcm_end(&seal);
  aes_gcm_end(&open);
  return works;
}

static bool leaves_errors_alone(void) {
  void *library = __real_dlopen("libcrypto.so.3", RTLD_NOW),
       *found = __real_dlsym(library, "ERR_peek_error");
  unsigned long (*peek_error)(void);
  memcpy(&peek_error, &found, sizeof found);
  CHANGE("EVP_CIPHER_fetch", fetch_nothing);
  return is_by("libsodium") && peek_error() == 0;
}

UNIT_TEST(the_process_may_use_libcrypto_itself) {
  need_both();
  in_child(outlives_the_clean_up);
  in_child(leaves_errors_alone);
}

UNIT_MAIN(NULL, NULL)
