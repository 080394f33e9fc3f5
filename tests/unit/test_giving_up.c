/* SPDX-License-Identifier: Apache-2.0 */
/* Who gives up says why, to its peer and to those of all connections that end with this one. */
#include "tests/lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "net_plugin/connection/connection_state.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/plugin/plugin.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"

/* Posts by a thread of its own: which thread posts tells whose connections end together. */
struct posting {
  struct connection *connection;
  void *data;
  size_t bytes;
  struct request *request;
  int error;
};

static void *post_receive(void *argument) {
  struct posting *posting = argument;
  posting->error =
      plugin_post(posting->connection, posting->data, posting->bytes, NULL, &posting->request);
  return NULL;
}

static void *post_receives(void *argument) {
  post_receive(argument);
  return post_receive((struct posting *)argument + 1);
}

static void post_elsewhere(void *(*post)(void *), struct posting *postings, unsigned count) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, post, postings), 0);
  pthread_join(thread, NULL);
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(postings[i].error, 0);
  }
}

/* A message that begins with the first, and has the others behind it, in this order. */
static bool find_in_turn(const char *first, const char *second, const char *third) {
  for (size_t i = 0; *log_capture_text(i); i++) {
    const char *text = log_capture_text(i);
    const char *at = strncmp(text, first, strlen(first)) ? NULL : strstr(text, second);
    if (at && strstr(at, third)) {
      return true;
    }
  }
  log_capture_print();
  return false;
}

#define IN_BOTH_MODES(name)                                                                        \
  UNIT_TEST_EACH(name, pair_set_up, pair_tear_down, NULL, "STRATUS_PROGRESS=thread")

/* A receive that is too small ends both ends, and both say why. */
IN_BOTH_MODES(a_peer_that_gives_up_is_named) {
  struct pair pair = pair_make(AF_INET);
  static uint8_t data[1 << 20];
  struct posting posting = { pair.receiver, data, 4096, NULL, 0 };
  post_elsewhere(post_receive, &posting, 1);
  struct request *sent = pair_post(pair.sender, data, sizeof data);
  assert_int_equal(pair_wait(posting.request), -EMSGSIZE);
  assert_int_equal(pair_wait(sent), -ECONNABORTED);
  /* A framework shows it to its user: who and why, what to do, then details; no words of the errno.
   */
  assert_true(find_in_turn("lost ",
                           ": the sender sends more than the receive can hold. Check that ",
                           "Connection from "));
  assert_true(find_in_turn("lost ", ": it gave up, its reason: the sender sends more than ",
                           "look there first. Connection to "));
  assert_int_equal(log_capture_find(strerror(EMSGSIZE)), 0);
  assert_true(log_capture_find("request 0, 0 of 1048576 bytes") > 0);
  pair_close(pair);
}

/* NCCL's progress thread ends with its first error: nothing that it drives will move again. */
IN_BOTH_MODES(what_one_thread_drives_ends_together) {
  struct pair broken = pair_make(AF_INET), other = pair_make(AF_INET);
  struct request *waiting;
  static uint8_t data[1 << 20];
  size_t bytes;
  bool is_done = false;
  struct posting postings[] = { { broken.receiver, data, 4096, NULL, 0 },
                                { other.receiver, data, 8, NULL, 0 } };
  post_elsewhere(post_receives, postings, 2);
  pair_post(broken.sender, data, sizeof data);
  assert_int_equal(pair_wait(postings[0].request), -EMSGSIZE);
  assert_int_equal(plugin_test(postings[1].request, &is_done, &bytes), -ESHUTDOWN);
  int error = 0;
  UNTIL(error) {
    error = plugin_post(other.sender, data, 8, NULL, &waiting);
    connection_progress(other.sender);
  }
  assert_int_equal(error, -ECONNABORTED);
  assert_true(find_in_turn("lost ",
                           ": the sender sends more than the receive can hold. Look at that ",
                           "which gave up. Connection to "));
  pair_close(broken);
  pair_close(other);
}

/* As the kernel does for a process that ends with unread data. */
static void reset_flows(struct connection *connection) {
  static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
  assert_true(connection->opened != 0);
  for (uint64_t lanes = connection->opened; lanes != 0; lanes &= lanes - 1) {
    int fd = connection->slots[__builtin_ctzll(lanes)].lane->fd;
    assert_int_equal(connect(fd, &nobody, sizeof nobody), 0);
  }
}

/* What the sender writes next meets the reset. What came ahead of that tells why. */
IN_BOTH_MODES(a_reset_hides_no_reason) {
  struct pair pair = pair_make(AF_INET);
  static uint8_t data[1 << 20];
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  struct engine *engine = pair.receiver->engine; /* of both ends */
  engine_lock(engine);
  connection_fail(pair.receiver, -EIO);
  reset_flows(pair.receiver);
  struct request *sent = pair_post(pair.sender, data, sizeof data);
  engine_unlock(engine);
  assert_int_equal(pair_wait(sent), -ECONNABORTED);
  pair_close(pair);
}
