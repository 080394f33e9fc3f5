/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets in: the handshake of a lane, spoken by hand against a real listener, over loopback. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/param.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/protection.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/lane_view.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static struct meeting meeting;

/* The honest peer gets its connection, and data passes. */
static void it_still_works(void) {
  struct pair pair = meeting_pair(&meeting);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  pair_close(pair);
}

static void nobody_got_in(void) {
  meeting_accept(&meeting);
  assert_null(meeting.pair.receiver);
}

static struct by_hand_caller caller_of(const struct meeting *called, const uint8_t *job) {
  struct by_hand_caller caller = by_hand_caller(&called->handle, job);
  caller.from = "127.0.0.1";
  return caller;
}

static void caller_greet(struct by_hand_caller *caller) {
  by_hand_greet(caller);
  by_hand_take_challenge(caller);
}

/* The status of a genuine reply to its proof. */
static unsigned caller_prove(struct by_hand_caller *caller) {
  by_hand_prove(caller);
  return by_hand_reply(caller).status;
}

/* Closed without a word. */
static void assert_rejected(const struct by_hand_caller *caller) {
  uint8_t byte;
  ssize_t n = recv(caller->fd, &byte, 1, 0);
  assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static struct connection *accept_one(void) {
  UNTIL(meeting.pair.receiver) {
    meeting_accept(&meeting);
  }
  struct connection *connection = meeting.pair.receiver;
  meeting.pair.receiver = NULL;
  return connection;
}

/* It proves that it may, and gets a connection. */
static struct connection *caller_gets_in(struct by_hand_caller *caller) {
  assert_int_equal(caller_prove(caller), REPLY_ACCEPTED);
  return accept_one();
}

static int start(void **state) {
  pair_set_up(state);
  meeting = meeting_open(AF_INET);
  return test_tree_create(state);
}

static int stop(void **state) {
  meeting_close(&meeting);
  test_tree_remove(state);
  return pair_tear_down(state);
}

#define TEST(name) UNIT_TEST_WITH(name, start, stop)
#define TEST_WITH(name, parameters) UNIT_TEST_EACH(name, start, stop, parameters)

/* First, since its warning comes at most once in a while. */
TEST(a_field_out_of_range_is_told) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller.hello.params.lanes = 0;
  by_hand_greet(&caller);
  assert_rejected(&caller);
  close(caller.fd);
  assert_int_equal(log_capture_find("it does not speak this protocol"), 1);
  nobody_got_in();
}

TEST(a_recorded_handshake_is_of_no_use) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller_greet(&caller);
  struct connection *connection = caller_gets_in(&caller);
  /* Word for word, for the first lane and, with the connection there, as one that reconnects. */
  for (int i = 0; i < 2; i++) {
    struct by_hand_caller again = caller;
    caller_greet(&again);
    assert_memory_not_equal(&again.transcript.challenge, &caller.transcript.challenge,
                            CHALLENGE_BYTES);
    by_hand_say(again.fd, &caller.proof, PROOF_BYTES, false);
    assert_rejected(&again);
    close(again.fd);
    if (i == 0) {
      connection_detach(connection);
    }
  }
  nobody_got_in();
  close(caller.fd);
  it_still_works();
}

/* The connection's identity travels in clear: to know it must not be enough to add or replace a
 * lane. */
TEST(an_identity_is_not_a_key) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller_greet(&caller);
  struct connection *connection = caller_gets_in(&caller);
  struct by_hand_caller thief = caller;
  memset(&thief.keys, 0, sizeof thief.keys);
  for (unsigned lane = 0; lane < 2; lane++) {
    thief.hello.lane = (uint16_t)lane;
    thief.hello.epoch = 2;
    thief.hello.is_first = lane == 0;
    caller_greet(&thief);
    by_hand_prove(&thief);
    assert_rejected(&thief);
    close(thief.fd);
  }
  struct link_lane_view view = lane_view(connection, 0);
  assert_int_equal(view.state, LINK_LANE_UP);
  assert_int_equal(view.epoch, 1);
  assert_int_not_equal(lane_view(connection, 1).state, LINK_LANE_UP);
  /* With the connection's own key the same is welcome. */
  caller.hello.lane = 1;
  caller.hello.is_first = 0;
  close(caller.fd);
  caller_greet(&caller);
  assert_int_equal(caller_prove(&caller), REPLY_ACCEPTED);
  connection_detach(connection);
  close(caller.fd);
}

/* A peer with the keys of its own listener must not get into a connection of another one. */
TEST(keys_open_their_own_door_only) {
  struct meeting other = meeting_open(AF_INET);
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  struct by_hand_caller thief = caller_of(&other, NULL); /* the same identity of connection */
  caller_greet(&thief);                                  /* while there is no such connection yet */
  caller_greet(&caller);
  struct connection *connection = caller_gets_in(&caller);
  by_hand_prove(&thief);
  assert_rejected(&thief);
  connection_detach(connection);
  close(thief.fd);
  close(caller.fd);
  meeting_close(&other);
}

TEST(messages_may_come_in_pieces) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller.is_slow = true;
  caller_greet(&caller);
  connection_detach(caller_gets_in(&caller));
  close(caller.fd);
}

static void expect_unknown(struct by_hand_caller *caller) {
  by_hand_greet(caller);
  assert_int_equal(by_hand_hear_reply(caller->fd).status, REPLY_UNKNOWN);
  close(caller->fd);
}

TEST(what_is_not_known_is_refused_at_once) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller.hello.listener[0] ^= 1;
  for (uint8_t is_first = 0; is_first < 2; is_first++) {
    caller.hello.is_first = is_first;
    expect_unknown(&caller);
  }
}

TEST(only_so_many_connections_wait_for_accept) {
  struct by_hand_caller callers[LISTENER_MAX_PENDING + 1], *last = callers + LISTENER_MAX_PENDING;
  for (struct by_hand_caller *caller = callers; caller <= last; caller++) {
    *caller = caller_of(&meeting, NULL);
    caller->hello.connection[0] = (uint8_t)(caller - callers);
    auth_keys_derive(meeting.handle.secret, NULL, caller->hello.connection, &caller->keys);
    if (caller == last) {
      expect_unknown(caller);
      connection_detach(accept_one());
    }
    caller_greet(caller);
    assert_int_equal(caller_prove(caller), REPLY_ACCEPTED);
  }
  for (struct by_hand_caller *caller = callers; caller <= last; caller++) {
    close(caller->fd);
  }
}

/* ---- what a stranger makes the listening side compute, who has seen somebody's hello ---- */

enum { STRANGERS = 20 };

static atomic_ulong hashes;

/* The Makefile sends auth's calls here. */
#define COUNTED(name, parameters, arguments)                                                       \
  void __real_hash_##name parameters;                                                              \
  void __wrap_hash_##name parameters;                                                              \
  void __wrap_hash_##name parameters {                                                             \
    atomic_fetch_add(&hashes, 1);                                                                  \
    __real_hash_##name arguments;                                                                  \
  }
COUNTED(hmac_sha256,
        (const void *key, size_t key_bytes, const void *bytes, size_t count,
         uint8_t digest[HASH_SHA256_BYTES]),
        (key, key_bytes, bytes, count, digest))
COUNTED(hkdf_extract,
        (const void *salt, size_t salt_bytes, const void *secret, size_t secret_bytes,
         uint8_t key[HASH_SHA256_BYTES]),
        (salt, salt_bytes, secret, secret_bytes, key))
COUNTED(hkdf_expand,
        (const uint8_t key[HASH_SHA256_BYTES], const void *info, size_t info_bytes, void *out,
         size_t out_bytes),
        (key, info, info_bytes, out, out_bytes))

static void strangers_cost_one_hash_each(const struct by_hand_caller *seen) {
  for (int i = 0; i < STRANGERS; i++) {
    struct by_hand_caller caller = *seen;
    uint8_t byte;
    struct proof none = { 0 };
    unsigned long before = atomic_load(&hashes);
    by_hand_greet(&caller);
    by_hand_take_challenge(&caller);
    assert_int_equal(atomic_load(&hashes), before); /* a hello makes us compute nothing */
    handshake_finish(&none, HANDSHAKE_PROOF);
    by_hand_say(caller.fd, &none, PROOF_BYTES, false);
    assert_true(recv(caller.fd, &byte, 1, 0) <= 0); /* rejected */
    assert_int_equal(atomic_load(&hashes), before + 1);
    close(caller.fd);
  }
}

TEST(a_stranger_costs_one_hash) {
  struct by_hand_caller caller = by_hand_caller(&meeting.handle, NULL);
  strangers_cost_one_hash_each(&caller);
  nobody_got_in();
  /* An honest peer, and then strangers who pose as another lane of its connection. */
  caller_greet(&caller);
  struct connection *connection = caller_gets_in(&caller);
  close(caller.fd);
  caller.hello.lane = 1;
  caller.hello.is_first = 0;
  strangers_cost_one_hash_each(&caller);
  connection_detach(connection);
}

/* ---- floods ---- */

enum { FLOOD = PENDING_PEERS_MAX + 200 };
static int flood[FLOOD];

static void flood_begin(void) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  for (int i = 0; i < FLOOD; i++) {
    by_hand_dial(&caller);
    flood[i] = caller.fd;
  }
}

static void flood_end(void) {
  for (int i = 0; i < FLOOD; i++) {
    close(flood[i]);
  }
}

/* One address takes all places; a peer that came before it, and one that comes now, are served. */
TEST(a_flood_evicts_itself) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller.transcript.hello = caller.hello;
  handshake_finish(&caller.transcript.hello, HANDSHAKE_HELLO);
  const uint8_t *hello = (const uint8_t *)&caller.transcript.hello;
  caller.from = "127.0.0.2";
  by_hand_dial(&caller);
  by_hand_say(caller.fd, hello, 100, false);
  flood_begin();
  it_still_works();
  by_hand_say(caller.fd, hello + 100, HELLO_BYTES - 100, false);
  by_hand_take_challenge(&caller);
  connection_detach(caller_gets_in(&caller));
  close(caller.fd);
  flood_end();
}

/* Also one that comes from the address of a peer of the job, while that one proves who it is. */
TEST(a_flood_spares_who_has_said_hello) {
  struct by_hand_caller caller = caller_of(&meeting, NULL);
  caller_greet(&caller);
  flood_begin();
  connection_detach(caller_gets_in(&caller));
  close(caller.fd);
  flood_end();
}

/* ---- job secrets ---- */

/* Its name may hold spaces. */
static void use_secret_file(const char *path) {
  char variable[TREE_PATH_MAX + 32];
  snprintf(variable, sizeof variable, "STRATUS_SECRET_FILE=%s", path);
  param_load((char *[]){ variable, NULL });
}

static void use_secret_in_tree(mode_t mode) {
  char path[TREE_PATH_MAX];
  tree_write(&test_tree, "secret", "%s\n", SECRET);
  assert_int_equal(chmod(tree_path(&test_tree, "secret", path), mode), 0);
  use_secret_file(path);
}

static void expect_refused(void) {
  struct listener *listener;
  uint8_t bytes[HANDLE_BYTES];
  assert_int_equal(listener_open(meeting.nics, 1, bytes, &listener), -EACCES);
}

TEST_WITH(a_job_with_a_secret_works, "STRATUS_SECRET=" SECRET) {
  it_still_works();
  /* The same from a file. */
  use_secret_in_tree(0600);
  it_still_works();
  assert_int_equal(log_capture_find("chmod 600"), 0);
  assert_int_equal(log_capture_find("0123456789abcdef"), 0);
}

TEST(a_secret_that_cannot_be_read_ends_the_job) {
  pair_set_parameters("STRATUS_SECRET_FILE=/nonexistent/secret");
  expect_refused();
  assert_int_equal(log_capture_find("STRATUS_SECRET_FILE=/nonexistent/secret"), 1);
  assert_int_equal(meeting_connect(&meeting), -EACCES);
}

TEST(a_secret_that_others_can_read_or_guess_ends_the_job) {
  static const mode_t modes[] = { 0644, 0640, 0604, 0660, 0620 };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    use_secret_in_tree(modes[i]);
    expect_refused();
  }
  assert_int_equal(log_capture_find("chmod 600"), sizeof modes / sizeof *modes);
  pair_set_parameters("STRATUS_SECRET=0123456789abcde"); /* 15 characters */
  expect_refused();
  assert_int_equal(log_capture_find("the secret in STRATUS_SECRET has 15 characters"), 1);
  assert_int_equal(log_capture_find("0123456789abcde"), 0);
}

static void *check(void *error) {
  *(int *)error = protection_check();
  return NULL;
}

/* Handshakes ask for it with the engine lock meanwhile: if that waited for the file, this would
 * never end. */
TEST(a_secret_from_a_fifo_is_read_to_its_end) {
  char path[TREE_PATH_MAX];
  pthread_t reader;
  int error = -1, fd;
  assert_int_equal(mkfifo(tree_path(&test_tree, "fifo", path), 0600), 0);
  use_secret_file(path);
  assert_int_equal(pthread_create(&reader, NULL, check, &error), 0);
  UNTIL((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0); /* it has opened the file */
  assert_int_equal(write(fd, "0123456789", 10), 10);
  usleep(50000); /* so that it sees ten bytes */
  assert_false(protection_has_secret());
  assert_int_equal(write(fd, "abcdef\n", 7), 7);
  close(fd);
  pthread_join(reader, NULL);
  assert_int_equal(error, 0);
  assert_true(protection_has_secret());
  pair_set_parameters(NULL);
  assert_int_equal(protection_check(), 0);
  assert_false(protection_has_secret());
}

/* Who has read the handle in NCCL's bootstrap and does not know the secret. */
TEST_WITH(a_handle_without_the_secret_is_not_enough, "STRATUS_SECRET=" SECRET) {
  static const uint8_t wrong[AUTH_KEY_BYTES] = { 1 };
  const uint8_t *jobs[] = { NULL, wrong };
  for (int i = 0; i < 2; i++) {
    struct by_hand_caller caller = caller_of(&meeting, jobs[i]);
    caller_greet(&caller);
    assert_int_equal(caller_prove(&caller), REPLY_OTHER_SECRET);
    close(caller.fd);
  }
  nobody_got_in();
  assert_true(log_capture_find("STRATUS_SECRET") >= 1);
  assert_true(log_capture_find("is set, but not on caller (127.0.0.1:") >= 1);
  assert_int_equal(log_capture_find("0123456789abcdef"), 0);
  it_still_works();
}
