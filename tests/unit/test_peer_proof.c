/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in where tools listen: callers that know the key, whatever others do meanwhile. */
#include "common/peer_proof.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "tests/lib/fault.h"
#include "tests/lib/unit.h"

#define LIMIT_NS (60 * NS_PER_S) /* of a busy machine */

static struct peer_key ours, others;
static struct sockaddr_in address;
static struct peer_listener listener;

static int begin(void **state) {
  socklen_t length = sizeof address;
  peer_key_of_token("test", "0123456789abcdef", 16, &ours);
  peer_key_of_token("test", "0123456789abcdeF", 16, &others);
  address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096) ||
      getsockname(fd, (struct sockaddr *)&address, &length)) {
    return -1;
  }
  listener = (struct peer_listener){ .fd = fd, .key = ours };
  return 0;
}

static int end(void **state) {
  peer_listener_close(&listener);
  return 0;
}

static int dial(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* One that knows `key`. */
struct caller {
  const struct peer_key *key;
  int error;
  pthread_t thread;
};

static void *call(void *argument) {
  struct caller *caller = argument;
  uint8_t hello[PEER_HELLO_BYTES] = "it is me";
  int fd = dial();
  caller->error = peer_call(fd, caller->key, hello, clock_now_ns() + LIMIT_NS);
  close(fd);
  return NULL;
}

static void start(struct caller *caller, const struct peer_key *key) {
  caller->key = key;
  assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static int let_in(uint64_t for_ns) {
  uint8_t hello[PEER_HELLO_BYTES] = "";
  int fd = -1, error = peer_accept(&listener, clock_now_ns() + for_ns, &fd, hello);
  if (!error) {
    assert_string_equal((char *)hello, "it is me");
    assert_true(fd >= 0);
    close(fd);
  }
  return error;
}

static void expect_caller(struct caller *caller, int error) {
  pthread_join(caller->thread, NULL);
  assert_int_equal(caller->error, error);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, end)

TEST(who_knows_the_key_is_let_in_and_another_key_is_refused_and_told) {
  struct caller wrong, right;
  start(&wrong, &others);
  assert_int_equal(let_in(NS_PER_S), -ETIMEDOUT);
  expect_caller(&wrong, -EACCES);
  start(&right, &ours);
  assert_int_equal(let_in(LIMIT_NS), 0);
  expect_caller(&right, 0);
}

/* A recorded answer, and one with any bit of the hello or the proof changed. */
TEST(an_answer_counts_once_and_as_it_is) {
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES], verdict[PEER_VERDICT_BYTES];
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  assert_int_equal(peer_make_challenge(challenge), 0);
  assert_int_equal(send(ends[0], challenge, sizeof challenge, 0), sizeof challenge);
  uint8_t hello[PEER_HELLO_BYTES] = "rank 1";
  uint64_t soon_ns = clock_now_ns() + 50 * NS_PER_MS;
  assert_int_equal(peer_call(ends[1], &ours, hello, soon_ns), -ETIMEDOUT); /* has answered */
  assert_int_equal(recv(ends[0], answer, sizeof answer, MSG_WAITALL), sizeof answer);
  assert_true(peer_judge(&ours, challenge, answer, verdict));
  for (size_t bit = 0; bit < 8 * sizeof answer; bit++) {
    answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_false(peer_judge(&ours, challenge, answer, verdict));
    answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  assert_false(peer_judge(&others, challenge, answer, verdict));
  assert_int_equal(peer_make_challenge(challenge), 0);
  assert_false(peer_judge(&ours, challenge, answer, verdict));
  close(ends[0]);
  close(ends[1]);
}

/* Who listens in place of the real one: sends the caller's own proof back as his. */
TEST(an_impostor_is_noticed) {
  uint8_t challenge[PEER_CHALLENGE_BYTES], answer[PEER_ANSWER_BYTES];
  uint8_t verdict[PEER_VERDICT_BYTES] = { 'y' };
  struct caller caller;
  start(&caller, &ours);
  int fd = accept(listener.fd, NULL, NULL);
  while (fd < 0) {
    poll(&(struct pollfd){ .fd = listener.fd, .events = POLLIN }, 1, 1000);
    fd = accept(listener.fd, NULL, NULL);
  }
  assert_int_equal(peer_make_challenge(challenge), 0);
  assert_int_equal(send(fd, challenge, sizeof challenge, 0), sizeof challenge);
  assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
  memcpy(verdict + 1, answer + PEER_ANSWER_BYTES - PEER_KEY_BYTES, PEER_KEY_BYTES);
  assert_int_equal(send(fd, verdict, sizeof verdict, 0), sizeof verdict);
  expect_caller(&caller, -EPROTO);
  close(fd);
}

/* ---- strangers ---- */

static bool is_closed(int fd) {
  uint8_t challenge[PEER_CHALLENGE_BYTES];
  ssize_t got;
  while ((got = recv(fd, challenge, sizeof challenge, MSG_DONTWAIT)) > 0) {
  }
  return got == 0 || errno != EAGAIN;
}

enum { STRANGERS = PEER_CALLERS_MAX / 2 };

/* Connect and close, other protocols, silence: none keeps a caller out, and none is waited for.
 * One after the other they would take a minute. */
TEST(strangers_keep_nobody_out) {
  struct caller callers[2];
  int silent[STRANGERS];
  uint64_t begin_ns = clock_now_ns();
  for (int i = 0; i < STRANGERS; i++) {
    close(dial());
    int fd = dial();
    send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    close(fd);
    silent[i] = dial();
  }
  for (int i = 0; i < 2; i++) {
    start(&callers[i], &ours);
    assert_int_equal(let_in(LIMIT_NS), 0);
    expect_caller(&callers[i], 0);
    close(silent[i]); /* others are heard on */
  }
  assert_true(clock_now_ns() - begin_ns < STRANGERS * PEER_PROOF_NS / 2);
  assert_int_equal(let_in(NS_PER_S), -ETIMEDOUT);
  unsigned known = listener.count;
  for (int i = 2; i < STRANGERS; i++) {
    known += is_closed(silent[i]); /* on a busy machine */
    close(silent[i]);
  }
  assert_int_equal(known, STRANGERS - 2);
}

/* Says a byte now and then, which does not prolong the time that it has. */
static void *trickle(void *argument) {
  while (send(*(int *)argument, "x", 1, MSG_NOSIGNAL) == 1) {
    usleep(100000);
  }
  return NULL;
}

/* More of them than are heard at a time: a caller comes in when their time is over. */
TEST(strangers_have_their_time) {
  struct caller caller;
  int silent[PEER_CALLERS_MAX];
  pthread_t slow;
  uint64_t begin_ns = clock_now_ns();
  for (int i = 0; i < PEER_CALLERS_MAX; i++) {
    silent[i] = dial();
  }
  assert_int_equal(pthread_create(&slow, NULL, trickle, &silent[0]), 0);
  start(&caller, &ours);
  assert_int_equal(let_in(LIMIT_NS), 0);
  expect_caller(&caller, 0);
  assert_true(clock_now_ns() - begin_ns >= PEER_PROOF_NS);
  assert_int_equal(let_in(2 * PEER_PROOF_NS), -ETIMEDOUT);
  pthread_join(slow, NULL);
  for (int i = 0; i < PEER_CALLERS_MAX; i++) {
    assert_true(is_closed(silent[i]));
    close(silent[i]);
  }
}

/* What fails of the socket stays, and accept fails again at once: it is told. What fails of a
 * connection goes with it. */
TEST(a_socket_that_fails_is_told) {
  static const int errors[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };
  int fd = dial();
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    fault_refuse(FAULT_ACCEPT, errors[i]);
    assert_int_equal(let_in(NS_PER_S), -errors[i]);
    fault_clear();
  }
  struct caller caller;
  start(&caller, &ours);
  fault_fail(FAULT_ACCEPT, 1, ECONNABORTED);
  assert_int_equal(let_in(LIMIT_NS), 0);
  fault_clear();
  expect_caller(&caller, 0);
  close(fd);
}

TEST(with_no_secret_the_key_says_so) {
  struct peer_key key;
  char error[PEER_ERROR_MAX] = "";
  unsetenv("STRATUS_SECRET");
  unsetenv("STRATUS_SECRET_FILE");
  assert_int_equal(peer_key_of_job("test", &key, error), 0);
  assert_false(key.is_secret);
  setenv("STRATUS_SECRET_FILE", "/dev/null", 1);
  assert_int_equal(peer_key_of_job("test", &key, error), -ENODATA);
  assert_non_null(strstr(error, "/dev/null"));
  setenv("STRATUS_SECRET", "0123456789abcdef", 1);
  assert_int_equal(peer_key_of_job("test", &key, error), 0);
  assert_true(key.is_secret);
  assert_memory_equal(key.bytes, ours.bytes, PEER_KEY_BYTES);
  assert_int_equal(peer_key_of_job("other", &key, error), 0);
  assert_memory_not_equal(key.bytes, ours.bytes, PEER_KEY_BYTES);
  unsetenv("STRATUS_SECRET");
  unsetenv("STRATUS_SECRET_FILE");
}

TEST(which_addresses_are_local) {
  static const struct {
    const char *text;
    bool is_local;
  } four[] = { { "127.0.0.1", true },
               { "127.9.0.1", true },
               { "10.0.0.1", false },
               { "0.0.0.0", false } },
    six[] = {
      { "::1", true }, { "::ffff:127.0.0.1", true }, { "::", false }, { "fd00::1", false }
    };
  for (int i = 0; i < 4; i++) {
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    assert_int_equal(inet_pton(AF_INET, four[i].text, &v4.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, six[i].text, &v6.sin6_addr), 1);
    assert_int_equal(peer_is_local((struct sockaddr *)&v4), four[i].is_local);
    assert_int_equal(peer_is_local((struct sockaddr *)&v6), six[i].is_local);
  }
  struct sockaddr_un local = { .sun_family = AF_UNIX };
  assert_true(peer_is_local((struct sockaddr *)&local));
}
