/* SPDX-License-Identifier: Apache-2.0 */
/* See dial.h. */
#include "net_plugin/setup/dial.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/random.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/negotiate.h"
#include "net_plugin/setup/talk.h"

struct dial {
  struct talk talk; /* its patience: until the next try */
  uint64_t random;
  dial_done_fn *done;
  void *argument;
  const struct auth_keys *keys;
  struct nic nic;
  struct sockaddr_storage target;
  bool is_inquiry, is_proving;
  bool has_offered; /* an endpoint */
  struct hello hello;
  struct reply reply; /* while the endpoint joins */
};

void dial_cancel(struct dial *dial) {
  engine_assert_locked(dial->talk.engine);
  talk_close(&dial->talk);
  free(dial);
}

static void finish(struct dial *dial, int error, const struct reply *reply) {
  struct lane_crypto crypto = { .cipher = error ? LANE_PLAIN : params_cipher(&reply->params) };
  if (crypto.cipher != LANE_PLAIN) {
    auth_lane_keys(dial->keys, &dial->talk.transcript, crypto.cipher, true, &crypto);
  }
  dial_done_fn *done = dial->done;
  void *argument = dial->argument;
  struct lane_path path = { .fd = dial->talk.fd, .endpoint = dial->talk.endpoint };
  path.crypto = crypto.cipher != LANE_PLAIN ? &crypto : NULL;
  talk_stop(&dial->talk);
  free(dial);
  if (error) {
    lane_path_drop(&path);
    path = (struct lane_path){ .fd = -1 };
  }
  done(argument, error, &path, reply);
  hash_wipe(&crypto, sizeof crypto);
}

/* The socket is writable. */
static void connected(struct talk *talk) {
  struct dial *dial = (struct dial *)talk;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) {
    error = errno;
  }
  error = error ? -error : dial->is_inquiry ? -EISCONN : 0;
  if (!error) {
    talk_look_later(talk);
    talk_listen(talk);
    error = tcp_socket_send_whole(talk->fd, talk->transcript.hello, HELLO_BYTES);
  }
  if (error) {
    finish(dial, error, NULL);
  }
}

/* ---- the proof ---- */

static int prove(struct dial *dial) {
  struct proof proof = { 0 };
  uint8_t bytes[PROOF_BYTES];
  dial->is_proving = true;
  talk_look_later(&dial->talk);
  dial->has_offered = dial->hello.params.remote_keys && endpoint_offer(&dial->nic, &proof.offer);
  auth_prove(dial->keys, &dial->talk.transcript, &proof);
  proof_encode(&proof, bytes);
  return tcp_socket_send_whole(dial->talk.fd, bytes, PROOF_BYTES);
}

static int challenged(struct dial *dial) {
  struct challenge challenge;
  int error = dial->is_proving ? -EPROTO : challenge_decode(dial->talk.message, &challenge);
  if (error) {
    return error;
  }
  memcpy(dial->talk.transcript.challenge, dial->talk.message, CHALLENGE_BYTES);
  return prove(dial);
}

/* ---- the call ---- */

static void set_redial(struct dial *dial, uint64_t now_ns) {
  uint64_t patience_ns = dial->talk.patience_ns;
  talk_set_timer(&dial->talk,
                 now_ns + patience_ns - random_next(&dial->random) % (patience_ns / 2));
}

/* A new socket that connects. After an error there is none. */
static int call_peer(struct dial *dial) {
  int family = dial->target.ss_family;
  int error = dial->talk.fd = tcp_socket_open(family);
  if (error < 0) {
    return error;
  }
  tcp_socket_tune(dial->talk.fd, family, dial->hello.dscp);
  error = dial->nic.address.ss_family == family
              ? tcp_socket_bind_nic(dial->talk.fd, &dial->nic, &dial->target)
              : 0;
  if (!error && connect(dial->talk.fd, (struct sockaddr *)&dial->target,
                        tcp_address_bytes(&dial->target)) != 0) {
    error = errno == EINPROGRESS ? 0 : -errno;
  }
  if (!error) {
    error = talk_watch(&dial->talk, TALK_CONNECTING);
  }
  if (error) {
    descriptor_close(dial->talk.fd);
    dial->talk.fd = -1;
  }
  return error;
}

/* A nonce of its own for every hello, also of the same lane. */
static int draw_hello(struct dial *dial) {
  int error = random_secret(dial->hello.nonce, NONCE_BYTES);
  if (!error) {
    hello_encode(&dial->hello, dial->talk.transcript.hello);
  }
  return error;
}

static void redial(struct dial *dial, uint64_t now_ns) {
  int fd = dial->talk.fd;
  engine_unwatch(dial->talk.engine, &dial->talk.source);
  descriptor_close(fd);
  dial->talk.fd = -1;
  int error = draw_hello(dial);
  error = error ? error : call_peer(dial);
  if (error) {
    finish(dial, error, NULL);
  } else {
    set_redial(dial, now_ns);
  }
}

/* The kernel sends nothing of it again. */
static void abandon(struct dial *dial, uint64_t now_ns) {
  const struct linger at_once = { .l_onoff = 1 };
  setsockopt(dial->talk.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  if (dial->is_proving) {
    /* It may have got the proof, and made the lane: the next dial needs a higher epoch. */
    finish(dial, -ETIMEDOUT, NULL);
  } else {
    redial(dial, now_ns);
  }
}

/* Nobody has answered so far. */
static void unheard(struct talk *talk, uint64_t now_ns) {
  struct dial *dial = (struct dial *)talk;
  struct pollfd answer = { .fd = talk->fd, .events = POLLOUT };
  if (talk->state == TALK_CONNECTING && poll(&answer, 1, 0) != 0) {
    set_redial(dial, now_ns); /* the epoll set is about to say so */
  } else {
    abandon(dial, now_ns);
  }
}

/* ---- endpoints ---- */

static void joined(struct talk *talk, int error) {
  struct dial *dial = (struct dial *)talk;
  struct reply reply = dial->reply;
  finish(dial, error ? -ENODEV : 0, &reply);
}

/* 0: the lane is a TCP flow. -EINPROGRESS: the endpoint is being connected, and the dial goes on
 * when that is over; a driver that hangs leaves time for another dial. */
static int connect_endpoint(struct dial *dial, const struct reply *reply) {
  struct lane_tokens tokens;
  if (lane_offer_is_none(&reply->offer) || !dial->has_offered) {
    return lane_offer_is_none(&reply->offer) ? 0 : -EPROTO;
  }
  auth_endpoint_tokens(dial->keys, &dial->talk.transcript, &tokens);
  const struct endpoint_peer peer = { &reply->offer, &tokens, dial->talk.fd, dial->hello.dscp };
  dial->talk.endpoint = endpoint_connect(&dial->nic, &peer, reply->connect_port);
  hash_wipe(&tokens, sizeof tokens);
  uint64_t now_ns = clock_now_ns(), deadline_ns = dial->talk.deadline_ns;
  uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
  dial->reply = *reply;
  bool is_joining = dial->talk.endpoint && talk_join(&dial->talk, left_ns / 2) == 0;
  return is_joining ? -EINPROGRESS : -ENODEV;
}

/* ---- the reply ---- */

/* Ends the dial, or nearly. Before there was a challenge, only a refusal without a mac can be
 * genuine. */
static void replied(struct dial *dial) {
  struct reply reply;
  int error = reply_decode(dial->talk.message, &reply);
  if (!error && !dial->is_proving && reply_has_mac(reply.status)) {
    error = -EPROTO;
  }
  if (!error && !auth_is_genuine(dial->keys, &dial->talk.transcript, dial->talk.message, &reply)) {
    error = -EKEYREJECTED;
  }
  if (!error && reply.status != REPLY_ACCEPTED) {
    error = -ENOLINK;
  }
  /* One of those that were offered; in clear only if none was. */
  unsigned offered = dial->hello.params.ciphers;
  if (!error && (reply.params.ciphers ? !(reply.params.ciphers & offered) : offered != 0)) {
    error = -EPROTO;
  }
  if (!error) {
    error = connect_endpoint(dial, &reply);
  }
  if (error != -EINPROGRESS) {
    finish(dial, error, &reply);
  }
}

static void heard(struct talk *talk, int error, enum handshake_kind kind,
                  const struct handshake_prefix *prefix) {
  struct dial *dial = (struct dial *)talk;
  const struct reply reply = { .prefix = *prefix };
  if (!error && kind == HANDSHAKE_REPLY) {
    replied(dial);
    return;
  }
  if (!error) {
    error = kind == HANDSHAKE_CHALLENGE ? challenged(dial) : -EPROTO;
  }
  if (error) {
    finish(dial, talk->state == TALK_JOINING ? -ENODEV : error, &reply);
  }
}

static const struct talk_ops dial_ops = { connected, heard, unheard, joined };

static int prepare(struct dial *dial, const struct hello *hello, const struct auth_keys *keys) {
  dial->is_inquiry = !hello;
  if (dial->is_inquiry) {
    dial->hello.dscp = -1;
    return random_secret(&dial->random, sizeof dial->random);
  }
  dial->hello = *hello;
  int error = draw_hello(dial);
  if (error) {
    return error;
  }
  memcpy(&dial->random, dial->hello.nonce, sizeof dial->random);
  dial->keys = keys;
  return 0;
}

struct dial *dial_start(struct engine *engine, const struct nic *nic,
                        const struct sockaddr_storage *address, const struct hello *hello,
                        const struct auth_keys *keys, uint64_t deadline_ns, dial_done_fn *done,
                        void *argument, int *error) {
  engine_assert_locked(engine);
  struct dial *dial = calloc(1, sizeof *dial);
  *error = -ENOMEM;
  if (!dial) {
    return NULL;
  }
  talk_init(&dial->talk, engine, &dial_ops, deadline_ns);
  dial->talk.patience_ns = DIAL_FIRST_REDIAL_NS;
  dial->nic = *nic;
  dial->done = done;
  dial->argument = argument;
  dial->target = *address;
  tcp_address_set_scope(&dial->target, nic);
  *error = prepare(dial, hello, keys);
  if (!*error) {
    *error = call_peer(dial);
  }
  if (*error) {
    free(dial);
    return NULL;
  }
  set_redial(dial, clock_now_ns());
  return dial;
}
