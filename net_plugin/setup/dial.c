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
};

void dial_cancel(struct dial *dial) {
  engine_assert_locked(dial->talk.engine);
  talk_close(&dial->talk);
  free(dial);
}

static void finish(struct dial *dial, int error) {
  const struct reply *reply = &dial->talk.message.reply;
  struct lane_crypto crypto = { .cipher = error ? LANE_PLAIN : params_cipher(&reply->params) };
  if (crypto.cipher != LANE_PLAIN) {
    auth_lane_keys(dial->keys, &dial->talk.transcript, crypto.cipher, true, &crypto);
  }
  struct lane_path path = { .fd = dial->talk.fd, .endpoint = dial->talk.endpoint };
  path.crypto = crypto.cipher != LANE_PLAIN ? &crypto : NULL;
  talk_stop(&dial->talk);
  if (error) {
    lane_path_drop(&path);
    path = (struct lane_path){ .fd = -1 };
  }
  dial->done(dial->argument, error, &path, reply);
  free(dial);
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
    error = tcp_socket_send_whole(talk->fd, &talk->transcript.hello, HELLO_BYTES);
  }
  if (error) {
    finish(dial, error);
  }
}

/* Challenged. */
static int prove(struct dial *dial) {
  struct proof proof = { 0 };
  struct transcript *transcript = &dial->talk.transcript;
  dial->is_proving = true;
  transcript->challenge = dial->talk.message.challenge;
  talk_look_later(&dial->talk);
  dial->has_offered =
      transcript->hello.params.remote_keys && endpoint_offer(&dial->nic, &proof.offer);
  auth_prove(dial->keys, transcript, &proof);
  handshake_finish(&proof, HANDSHAKE_PROOF);
  return tcp_socket_send_whole(dial->talk.fd, &proof, PROOF_BYTES);
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
  tcp_socket_tune(dial->talk.fd, family, dial->talk.transcript.hello.dscp);
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
  struct hello *hello = &dial->talk.transcript.hello;
  int error = random_secret(hello->nonce, NONCE_BYTES);
  handshake_finish(hello, HANDSHAKE_HELLO);
  return error;
}

static void redial(struct dial *dial, uint64_t now_ns) {
  int fd = dial->talk.fd;
  engine_unwatch(dial->talk.engine, &dial->talk.source);
  descriptor_close(fd);
  dial->talk.fd = -1;
  dial->talk.patience_ns *= 2; /* not after each look: see DIAL_FIRST_REDIAL_NS */
  int error = draw_hello(dial);
  error = error ? error : call_peer(dial);
  if (error) {
    finish(dial, error);
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
    finish(dial, -ETIMEDOUT);
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
  finish((struct dial *)talk, error ? -ENODEV : 0);
}

/* 0: the lane is a TCP flow. -EINPROGRESS: the endpoint is being connected, and the dial goes on
 * when that is over; a driver that hangs leaves time for another dial. */
static int connect_endpoint(struct dial *dial) {
  const struct reply *reply = &dial->talk.message.reply;
  struct lane_tokens tokens;
  if (!reply->offer.kind || !dial->has_offered) {
    return reply->offer.kind ? -EPROTO : 0;
  }
  auth_endpoint_tokens(dial->keys, &dial->talk.transcript, &tokens);
  const struct endpoint_peer peer = { &reply->offer, &tokens, dial->talk.fd,
                                      dial->talk.transcript.hello.dscp };
  dial->talk.endpoint = endpoint_connect(&dial->nic, &peer, reply->connect_port);
  hash_wipe(&tokens, sizeof tokens);
  uint64_t now_ns = clock_now_ns(), deadline_ns = dial->talk.deadline_ns;
  uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
  bool is_joining = dial->talk.endpoint && talk_join(&dial->talk, left_ns / 2) == 0;
  return is_joining ? -EINPROGRESS : -ENODEV;
}

/* ---- the reply ---- */

/* Ends the dial, or nearly. Before there was a challenge, only a refusal without a mac can be
 * genuine. */
static int replied(struct dial *dial) {
  const struct reply *reply = &dial->talk.message.reply;
  unsigned offered = dial->talk.transcript.hello.params.ciphers, taken = reply->params.ciphers;
  if (!dial->is_proving && reply_has_mac(reply->status)) {
    return -EPROTO;
  }
  if (!auth_is_genuine(dial->keys, &dial->talk.transcript, reply)) {
    return -EKEYREJECTED;
  }
  if (reply->status != REPLY_ACCEPTED) {
    return -ENOLINK;
  }
  /* One of those that were offered; in clear only if none was. */
  if (taken ? !(taken & offered) : offered != 0) {
    return -EPROTO;
  }
  return connect_endpoint(dial);
}

static void heard(struct talk *talk, int error, enum handshake_kind kind) {
  struct dial *dial = (struct dial *)talk;
  if (!error && kind == HANDSHAKE_CHALLENGE && !dial->is_proving) {
    error = prove(dial);
    if (!error) {
      return;
    }
  } else if (!error) {
    error = kind == HANDSHAKE_REPLY ? replied(dial) : -EPROTO;
  }
  if (error != -EINPROGRESS) {
    finish(dial, talk->state == TALK_JOINING ? -ENODEV : error);
  }
}

static const struct talk_ops dial_ops = { connected, heard, unheard, joined };

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
  dial->is_inquiry = !hello;
  dial->keys = keys;
  dial->talk.transcript.hello = hello ? *hello : (struct hello){ .dscp = -1 };
  *error = draw_hello(dial);
  memcpy(&dial->random, dial->talk.transcript.hello.nonce, sizeof dial->random);
  *error = *error ? *error : call_peer(dial);
  if (*error) {
    free(dial);
    return NULL;
  }
  set_redial(dial, clock_now_ns());
  return dial;
}
