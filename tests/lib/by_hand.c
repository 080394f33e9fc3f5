/* SPDX-License-Identifier: Apache-2.0 */
/* See by_hand.h. */
#include "tests/lib/by_hand.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/lane/tcp_address.h"
#include "tests/lib/unit.h"

void by_hand_hello(const struct handle *handle, const uint8_t *job, struct hello *hello,
                   struct auth_keys *keys) {
  *hello = (struct hello){
    .params = { .lanes = 2, .chunk_bytes = 131072, .host = "caller", .nic = "lo" },
    .epoch = 1,
    .dscp = -1,
    .is_first = 1
  };
  memset(hello->connection, 0x5a, TOKEN_BYTES);
  memcpy(hello->listener, handle->listener, TOKEN_BYTES);
  auth_keys_derive(handle->secret, job, hello->connection, keys);
}

void by_hand_say(int fd, const void *message, size_t count, bool is_slow) {
  const uint8_t *bytes = message;
  size_t n = is_slow ? 5 : count;
  for (size_t i = 0; i < count; i += n) {
    n = n < count - i ? n : count - i;
    assert_int_equal(send(fd, bytes + i, n, MSG_NOSIGNAL), n);
    if (is_slow) {
      usleep(50);
    }
  }
}

struct by_hand_caller by_hand_caller(const struct handle *handle, const uint8_t *job) {
  struct by_hand_caller caller = { .to = handle->addresses[0], .fd = -1 };
  by_hand_hello(handle, job, &caller.hello, &caller.keys);
  return caller;
}

void by_hand_dial(struct by_hand_caller *caller) {
  const struct sockaddr *to = (const struct sockaddr *)&caller->to;
  struct sockaddr_in source = { .sin_family = AF_INET };
  int one = 1;
  caller->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(caller->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (caller->from) {
    assert_int_equal(inet_pton(AF_INET, caller->from, &source.sin_addr), 1);
    assert_int_equal(bind(caller->fd, (struct sockaddr *)&source, sizeof source), 0);
  }
  assert_int_equal(connect(caller->fd, to, tcp_address_bytes(&caller->to)), 0);
}

void by_hand_greet(struct by_hand_caller *caller) {
  caller->transcript.hello = caller->hello;
  handshake_finish(&caller->transcript.hello, HANDSHAKE_HELLO);
  by_hand_dial(caller);
  by_hand_say(caller->fd, &caller->transcript.hello, HELLO_BYTES, caller->is_slow);
}

void by_hand_take_challenge(struct by_hand_caller *caller) {
  assert_int_equal(recv(caller->fd, &caller->transcript.challenge, CHALLENGE_BYTES, MSG_WAITALL),
                   CHALLENGE_BYTES);
}

void by_hand_prove(struct by_hand_caller *caller) {
  caller->proof = (struct proof){ 0 };
  auth_prove(&caller->keys, &caller->transcript, &caller->proof);
  handshake_finish(&caller->proof, HANDSHAKE_PROOF);
  by_hand_say(caller->fd, &caller->proof, PROOF_BYTES, caller->is_slow);
}

struct reply by_hand_hear_reply(int fd) {
  union handshake_message heard;
  assert_int_equal(recv(fd, &heard, REPLY_BYTES, MSG_WAITALL), REPLY_BYTES);
  assert_int_equal(handshake_check(&heard, HANDSHAKE_REPLY), 0);
  return heard.reply;
}

struct reply by_hand_reply(const struct by_hand_caller *caller) {
  struct reply reply = by_hand_hear_reply(caller->fd);
  assert_true(auth_is_genuine(&caller->keys, &caller->transcript, &reply));
  return reply;
}
