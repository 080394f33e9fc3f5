/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a connector believes: the handshake of a lane, spoken by hand by whoever listens, over
 * loopback. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/protection.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

struct impostor {
  int fd; /* listens */
  bool is_slow;
  uint8_t handle[HANDLE_BYTES];
  uint8_t secret[AUTH_SECRET_BYTES];
  struct transcript transcript;
  struct hello hello; /* the last one */
};

static void impostor_open(struct impostor *impostor) {
  memset(impostor, 0, sizeof *impostor);
  struct nic nic = pair_loopback(AF_INET);
  struct handle handle = { .count = 1, .secret = { 7 } };
  impostor->fd = tcp_socket_listen(&nic, &handle.addresses[0]);
  assert_true(impostor->fd >= 0);
  handle_encode(&handle, impostor->handle);
  memcpy(impostor->secret, handle.secret, AUTH_SECRET_BYTES);
}

/* Answers one dial with this status, signed by the keys of `secret` and `job`. */
static int impostor_answer(struct impostor *impostor, const uint8_t *secret, const uint8_t *job,
                           unsigned status, bool has_challenge) {
  struct transcript *said = &impostor->transcript;
  union handshake_message heard;
  struct reply reply = {
    .status = (uint16_t)status,
    .params = { .lanes = 1, .chunk_bytes = 131072, .has_secret = 1, .host = "impostor" }
  };
  struct hello *hello = &impostor->hello;
  struct auth_keys keys;
  struct proof proof;
  int fd;
  UNTIL((fd = accept4(impostor->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0);
  assert_int_equal(recv(fd, &heard, HELLO_BYTES, MSG_WAITALL), HELLO_BYTES);
  assert_int_equal(handshake_check(&heard, HANDSHAKE_HELLO), 0);
  *hello = said->hello = heard.hello;
  handshake_finish(&said->challenge, HANDSHAKE_CHALLENGE);
  if (has_challenge) {
    by_hand_say(fd, &said->challenge, CHALLENGE_BYTES, impostor->is_slow);
    assert_int_equal(recv(fd, &proof, PROOF_BYTES, MSG_WAITALL), PROOF_BYTES);
  }
  auth_keys_derive(secret, job, hello->connection, &keys);
  auth_sign_reply(&keys, said, &reply);
  by_hand_say(fd, &reply, REPLY_BYTES, impostor->is_slow);
  return fd;
}

static int connect_once(struct impostor *impostor, struct connection **connection) {
  struct nic nic = pair_loopback(AF_INET);
  return connector_connect(&nic, 1, -1, 0, impostor->handle, connection);
}

/* The outcome of the attempt in progress; 0: still none, although its dial has ended. */
static int outcome(struct impostor *impostor, int fd, struct connection **connection) {
  uint8_t byte;
  int error = 0;
  bool has_ended = false;
  while (!error && !*connection && !has_ended) {
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    has_ended = n == 0 || (n < 0 && errno == ECONNRESET);
    error = connect_once(impostor, connection);
  }
  return error;
}

#define TEST(name) UNIT_TEST_WITH(name, pair_set_up, pair_tear_down)

UNIT_TEST_EACH(a_peer_with_another_secret_ends_the_connect_at_once, pair_set_up, pair_tear_down,
               NULL, "STRATUS_SECRET=0123456789abcdef") {
  struct impostor impostor;
  struct connection *connection;
  static const uint8_t job[AUTH_KEY_BYTES] = { 1 };
  impostor_open(&impostor);
  impostor.is_slow = true;
  assert_int_equal(connect_once(&impostor, &connection), 0);
  int fd = impostor_answer(&impostor, impostor.secret, job, REPLY_OTHER_SECRET, true);
  int error = 0;
  UNTIL(error) {
    error = connect_once(&impostor, &connection);
  }
  assert_int_equal(error, -EACCES);
  assert_true(log_capture_find("STRATUS_SECRET_FILE") >= 1);
  const char *how = impostor.hello.params.has_secret
                        ? "differs from the one of impostor (127.0.0.1:"
                        : "is not set, but it is on impostor (127.0.0.1:";
  assert_true(log_capture_find(how) >= 1);
  assert_int_equal(impostor.hello.params.has_secret, protection_has_secret());
  close(fd);
  close(impostor.fd);
}

/* Whatever listens at the address without knowing the secrets gets no lane and ends no job. */
TEST(an_impostor_is_not_believed) {
  struct impostor impostor;
  struct connection *connection;
  static const uint8_t wrong[AUTH_SECRET_BYTES] = { 9 }, job[AUTH_KEY_BYTES] = { 1 };
  const struct {
    const uint8_t *secret, *job;
    unsigned status;
    bool has_challenge;
  } cases[] = {
    { wrong, NULL, REPLY_ACCEPTED, true },
    { wrong, NULL, REPLY_OTHER_SECRET, true },
    { impostor.secret, job, REPLY_ACCEPTED, true },
    { impostor.secret, NULL, REPLY_ACCEPTED, false },
    { wrong, NULL, REPLY_NO_RESOURCES, true },
  };
  impostor_open(&impostor);
  assert_int_equal(connect_once(&impostor, &connection), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int fd = impostor_answer(&impostor, cases[i].secret, cases[i].job, cases[i].status,
                             cases[i].has_challenge);
    assert_int_equal(outcome(&impostor, fd, &connection), 0);
    assert_null(connection);
    close(fd);
  }
  /* The right one comes at last. */
  int fd = impostor_answer(&impostor, impostor.secret, NULL, REPLY_ACCEPTED, true);
  assert_int_equal(outcome(&impostor, fd, &connection), 0);
  assert_non_null(connection);
  assert_int_equal(impostor.hello.is_first, 1);
  struct sockaddr_storage listens; /* where it is asked whether it is still there */
  assert_true(address_from_wire(&impostor.hello.listens, &listens));
  assert_int_not_equal(tcp_address_port(&listens), 0);
  /* A lane that reconnects must not pass for a new connection's, should this one be forgotten. */
  close(fd);
  fd = impostor_answer(&impostor, impostor.secret, NULL, REPLY_ACCEPTED, true);
  assert_int_equal(impostor.hello.is_first, 0);
  connection_detach(connection);
  close(fd);
  close(impostor.fd);
}
