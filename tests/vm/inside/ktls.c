/* SPDX-License-Identifier: Apache-2.0 */
/* ktls: how fast one TCP flow over loopback is, plain, sealed by libsodium, and by the kernel's TLS
 * with keys that two programs agree upon by themselves, as STRATUS_ENCRYPT's would. Emulated
 * processors: only the ratios mean something. Threads: a receiver.  Blocks: for a second per row.
 * Fails: with a message. */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

enum { RECORD = 16384, TAG = 16 };

enum way { PLAIN, SODIUM_CHACHA, SODIUM_AES256, KERNEL_AES128, KERNEL_AES256, KERNEL_CHACHA, WAYS };

static const char *const names[WAYS] = { "plain",
                                         "libsodium chacha20-poly1305",
                                         "libsodium aes-256-gcm",
                                         "kernel aes-128-gcm",
                                         "kernel aes-256-gcm",
                                         "kernel chacha20-poly1305" };

static const unsigned char key[32];
static unsigned char nonce[12];

static void die(const char *what) {
  fprintf(stderr, "ktls: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The same key both ways will do for a measurement; records count from zero. */
static int set_kernel_key(int fd, enum way way, int direction) {
  union {
    struct tls_crypto_info info;
    struct tls12_crypto_info_aes_gcm_128 aes128;
    struct tls12_crypto_info_aes_gcm_256 aes256;
    struct tls12_crypto_info_chacha20_poly1305 chacha;
  } u;
  socklen_t size = way == KERNEL_AES128   ? sizeof u.aes128
                   : way == KERNEL_AES256 ? sizeof u.aes256
                                          : sizeof u.chacha;
  memset(&u, 0, sizeof u);
  u.info.version = TLS_1_3_VERSION;
  u.info.cipher_type = way == KERNEL_AES128   ? TLS_CIPHER_AES_GCM_128
                       : way == KERNEL_AES256 ? TLS_CIPHER_AES_GCM_256
                                              : TLS_CIPHER_CHACHA20_POLY1305;
  return setsockopt(fd, SOL_TLS, direction, &u, size);
}

static bool can_start_kernel_tls(int fd, enum way way) {
  if (way < KERNEL_AES128)
    return true;
  return !setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") &&
         !set_kernel_key(fd, way, TLS_TX) && !set_kernel_key(fd, way, TLS_RX);
}

static bool transfer_all(int fd, unsigned char *bytes, size_t size, bool is_sender) {
  while (size) {
    ssize_t n = is_sender ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, 0);
    if (n <= 0)
      return false;
    bytes += n;
    size -= (size_t)n;
  }
  return true;
}

static void seal(enum way way, unsigned char *bytes, const crypto_aead_aes256gcm_state *aes) {
  if (way == SODIUM_CHACHA)
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes, bytes + RECORD, NULL, bytes, RECORD,
                                                       NULL, 0, NULL, nonce, key);
  else
    crypto_aead_aes256gcm_encrypt_detached_afternm(bytes, bytes + RECORD, NULL, bytes, RECORD, NULL,
                                                   0, NULL, nonce, aes);
}

static int unseal(enum way way, unsigned char *bytes, const crypto_aead_aes256gcm_state *aes) {
  if (way == SODIUM_CHACHA)
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, NULL, bytes, RECORD,
                                                              bytes + RECORD, NULL, 0, nonce, key);
  return crypto_aead_aes256gcm_decrypt_detached_afternm(bytes, NULL, bytes, RECORD, bytes + RECORD,
                                                        NULL, 0, nonce, aes);
}

struct end {
  int fd;
  enum way way;
  size_t bytes;
};

static void *receive(void *argument) {
  struct end *end = argument;
  static unsigned char record[RECORD + TAG];
  crypto_aead_aes256gcm_state aes;
  bool is_sealed = end->way == SODIUM_CHACHA || end->way == SODIUM_AES256;
  crypto_aead_aes256gcm_beforenm(&aes, key);
  while (transfer_all(end->fd, record, is_sealed ? sizeof record : RECORD, false)) {
    if (is_sealed && unseal(end->way, record, &aes))
      die("a record was damaged");
    end->bytes += RECORD;
  }
  return NULL;
}

static void connect_pair(int fds[2]) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  fds[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&address, &size) ||
      connect(fds[0], (struct sockaddr *)&address, size) ||
      (fds[1] = accept(listener, NULL, NULL)) < 0)
    die("loopback");
  close(listener);
}

static void measure(enum way way, double seconds) {
  int fds[2];
  static unsigned char record[RECORD + TAG];
  crypto_aead_aes256gcm_state aes;
  struct end end = { .way = way };
  pthread_t receiver;
  crypto_aead_aes256gcm_beforenm(&aes, key);
  connect_pair(fds);
  if (!can_start_kernel_tls(fds[0], way) || !can_start_kernel_tls(fds[1], way)) {
    printf("%-28s not here: %s\n", names[way], strerror(errno));
    close(fds[0]);
    close(fds[1]);
    return;
  }
  end.fd = fds[1];
  if (pthread_create(&receiver, NULL, receive, &end))
    die("pthread_create");
  double start = now();
  while (now() < start + seconds) {
    bool is_sealed = way == SODIUM_CHACHA || way == SODIUM_AES256;
    if (is_sealed)
      seal(way, record, &aes);
    if (!transfer_all(fds[0], record, is_sealed ? sizeof record : RECORD, true))
      die("send");
  }
  close(fds[0]);
  pthread_join(receiver, NULL);
  printf("%-28s %8.1f MB/s\n", names[way], (double)end.bytes / (now() - start) / 1e6);
  fflush(stdout);
  close(fds[1]);
}

int main(void) {
  if (sodium_init() < 0 || !crypto_aead_aes256gcm_is_available())
    die("libsodium has no AES here");
  for (enum way way = 0; way < WAYS; way++)
    measure(way, 2);
  return 0;
}
