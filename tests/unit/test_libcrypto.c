/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_seal: a libcrypto that is missing, refuses, is old or computes wrongly offers no cipher, and
 * then nothing is connected where encryption is wanted; the process's own use of libcrypto is left
 * alone. A process loads the library once, so each test is a process of its own. */
#include "net_plugin/lane/tcp/tcp_seal.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

#define TEXT_BYTES 5000

static const uint8_t key[LANE_KEY_BYTES] = { 7, 8, 9 };

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

struct both {
  struct tcp_seal out, in;
};

static bool start_both(struct both *both, enum lane_cipher cipher) {
  return tcp_seal_start(&both->out, TCP_SEAL_CLOSES, cipher, key) &&
         tcp_seal_start(&both->in, TCP_SEAL_OPENS, cipher, key);
}

static void end_both(struct both *both) {
  tcp_seal_end(&both->out);
  tcp_seal_end(&both->in);
}

/* What was changed does not open. */
static bool passes(struct both *both, size_t bytes) {
  static uint8_t text[TEXT_BYTES], record[TEXT_BYTES + TCP_SEAL_OVERHEAD_BYTES];
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES;
  size_t whole = bytes + TCP_SEAL_OVERHEAD_BYTES;
  for (size_t i = 0; i < bytes; i++) {
    text[i] = (uint8_t)(i * 11 + bytes);
  }
  if (tcp_seal_close(&both->out, text, bytes, record) != whole ||
      memcmp(sealed, text, bytes) == 0 || tcp_seal_open(&both->in, record, whole) != 0 ||
      memcmp(sealed, text, bytes) != 0 ||
      tcp_seal_close(&both->out, text, bytes, record) != whole) {
    return false;
  }
  sealed[bytes + 3] ^= 4;
  return tcp_seal_open(&both->in, record, whole) != 0;
}

static bool works(enum lane_cipher cipher) {
  static const size_t sizes[] = { 15, 16, 17, 60, 287, 288, 1024, TEXT_BYTES };
  struct both both;
  bool works = start_both(&both, cipher);
  for (size_t i = 0; works && i < sizeof sizes / sizeof *sizes; i++) {
    works = passes(&both, sizes[i]);
  }
  end_both(&both);
  return works;
}

static bool offers_both(void) {
  return strncmp(lane_crypto_library(), "OpenSSL", 7) == 0 && has(LANE_CHACHA20POLY1305) &&
         works(LANE_AES256GCM) && works(LANE_CHACHA20POLY1305);
}

/* It has computed what is known. */
UNIT_TEST(both_ciphers_are_offered) {
  need_libcrypto();
  in_child(NULL, offers_both);
  in_child(&(struct change){ .name = "OSSL_LIB_CTX_new" }, offers_both); /* 1.1 has none */
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
  struct both both;
  bool is_none = lane_crypto_ciphers() == 0 && strstr(lane_crypto_library(), reason) &&
                 !start_both(&both, LANE_AES256GCM) && !start_both(&both, LANE_CHACHA20POLY1305);
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
  struct tcp_seal out;
  if (!tcp_seal_start(&out, TCP_SEAL_CLOSES, LANE_AES256GCM, key) ||
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
  struct both both;
  if (!start_both(&both, LANE_AES256GCM)) {
    return false;
  }
  call("OPENSSL_cleanup");
  bool works = passes(&both, TEXT_BYTES);
  both.out.records = both.in.records = TCP_SEAL_RECORDS_PER_KEY; /* the next key */
  works = works && passes(&both, TEXT_BYTES);
  end_both(&both);
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
