/* SPDX-License-Identifier: Apache-2.0 */
/* See dial.h. */
#include "net_plugin/setup/dial.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/random.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/negotiate.h"
#include "net_plugin/setup/port.h"
#include "net_plugin/setup/talk.h"

enum dial_state { DIAL_CONNECTING, DIAL_GREETING, DIAL_PROVING, DIAL_JOINING };

struct dial {
  struct talk talk; /* its timer: the deadline; until JOINING maybe an earlier one */
  uint64_t deadline_ns;
  uint64_t patience_ns; /* until the next try */
  uint64_t random;
  enum dial_state state;
  dial_done_fn *done;
  void *argument;
  const struct auth_keys *keys;
  struct nic nic;
  struct sockaddr_storage target;
  bool is_inquiry, has_offered; /* an endpoint */
  struct hello hello;
  struct reply reply; /* while JOINING */
};

void dial_cancel(struct dial *dial) {
  engine_assert_locked(dial->talk.engine);
  talk_close(&dial->talk);
  free(dial);
}

static void finish(struct dial *dial, int error, const struct reply *reply) {
  struct lane_crypto crypto = { .cipher = error ? LANE_PLAIN : terms_cipher(&reply->terms) };
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

static void set_timer(struct dial *dial, uint64_t due_ns) {
  engine_timer_set(dial->talk.engine, &dial->talk.timer,
                   due_ns < dial->deadline_ns ? due_ns : dial->deadline_ns);
}

/* A hello or a proof was sent: has it arrived? */
static void look_later(struct dial *dial) {
  uint64_t wait_ns = tcp_stats_ack_wait_ns(dial->talk.fd);
  set_timer(dial, clock_now_ns() + (wait_ns > dial->patience_ns ? wait_ns : dial->patience_ns));
}

static int connected(struct dial *dial) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(dial->talk.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) {
    error = errno;
  }
  if (error) {
    return -error;
  }
  if (dial->is_inquiry) {
    return -EISCONN;
  }
  dial->state = DIAL_GREETING;
  look_later(dial);
  engine_rewatch(dial->talk.engine, &dial->talk.source, EPOLLIN);
  return tcp_socket_send_whole(dial->talk.fd, dial->talk.transcript.hello, HELLO_BYTES);
}

/* ---- the proof ---- */

static int prove(struct dial *dial) {
  struct proof proof = { 0 };
  uint8_t bytes[PROOF_BYTES];
  dial->state = DIAL_PROVING;
  look_later(dial);
  dial->has_offered = dial->hello.terms.remote_keys && endpoint_offer(&dial->nic, &proof.offer);
  auth_prove(dial->keys, &dial->talk.transcript, &proof);
  proof_encode(&proof, bytes);
  return tcp_socket_send_whole(dial->talk.fd, bytes, PROOF_BYTES);
}

static int challenged(struct dial *dial) {
  struct challenge challenge;
  int error =
      dial->state == DIAL_GREETING ? challenge_decode(dial->talk.message, &challenge) : -EPROTO;
  if (error) {
    return error;
  }
  memcpy(dial->talk.transcript.challenge, dial->talk.message, CHALLENGE_BYTES);
  return prove(dial);
}

/* ---- the call ---- */

static void set_redial(struct dial *dial, uint64_t now_ns) {
  uint64_t wait_ns = dial->patience_ns - random_next(&dial->random) % (dial->patience_ns / 2);
  set_timer(dial, now_ns + wait_ns);
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
    error = engine_watch(dial->talk.engine, &dial->talk.source, dial->talk.fd, EPOLLOUT);
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
  dial->state = DIAL_CONNECTING;
  dial->talk.got = 0;
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
  if (dial->state == DIAL_PROVING) {
    /* It may have got the proof, and made the lane: the next dial needs a higher epoch. */
    finish(dial, -ETIMEDOUT, NULL);
  } else {
    redial(dial, now_ns);
  }
}

/* Nobody has answered so far. */
static void give_up_waiting(struct dial *dial, uint64_t now_ns) {
  struct pollfd answer = { .fd = dial->talk.fd, .events = POLLOUT };
  dial->patience_ns *= 2;
  if (dial->state == DIAL_CONNECTING && poll(&answer, 1, 0) != 0) {
    set_redial(dial, now_ns); /* the epoll set is about to say so */
  } else if (dial->state != DIAL_CONNECTING && !tcp_stats_has_unacked(dial->talk.fd)) {
    /* The peer is slow, or its answer was lost: then it will close the connection. */
    set_timer(dial, dial->deadline_ns);
  } else {
    abandon(dial, now_ns);
  }
}

static bool is_waiting_for_packets(const struct dial *dial) {
  return dial->state == DIAL_CONNECTING || dial->state == DIAL_GREETING ||
         dial->state == DIAL_PROVING;
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct dial *dial = LIST_ENTRY(timer, struct dial, talk.timer);
  if (is_waiting_for_packets(dial) && now_ns < dial->deadline_ns) {
    give_up_waiting(dial, now_ns);
  } else {
    finish(dial, dial->state == DIAL_JOINING ? -ENODEV : -ETIMEDOUT, NULL);
  }
}

/* ---- endpoints ---- */

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct dial *dial = LIST_ENTRY(source, struct dial, talk.endpoint_source);
  (void)events;
  struct reply reply = dial->reply;
  finish(dial, endpoint_result(dial->talk.endpoint) ? -ENODEV : 0, &reply);
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
  if (!dial->talk.endpoint || talk_watch_endpoint(&dial->talk) != 0) {
    return -ENODEV;
  }
  uint64_t now_ns = clock_now_ns();
  uint64_t left_ns = dial->deadline_ns > now_ns ? dial->deadline_ns - now_ns : 0;
  dial->state = DIAL_JOINING;
  dial->reply = *reply;
  set_timer(dial, now_ns + left_ns / 2);
  return -EINPROGRESS;
}

/* The peer sends nothing while an endpoint takes a step, but it may close the socket. */
static void check_socket(struct dial *dial) {
  if (!tcp_socket_is_quiet(dial->talk.fd)) {
    finish(dial, -ENODEV, NULL);
  }
}

/* ---- the reply ---- */

/* Ends the dial, or nearly. Before there was a challenge, only a refusal without a mac can be
 * genuine. */
static void replied(struct dial *dial) {
  struct reply reply;
  int error = reply_decode(dial->talk.message, &reply);
  if (!error && dial->state != DIAL_PROVING && reply_has_mac(reply.status)) {
    error = -EPROTO;
  }
  if (!error && !auth_is_genuine(dial->keys, &dial->talk.transcript, dial->talk.message, &reply)) {
    error = -EKEYREJECTED;
  }
  if (!error && reply.status != REPLY_ACCEPTED) {
    error = -ENOLINK;
  }
  /* One of those that were offered; in clear only if none was. */
  unsigned offered = dial->hello.terms.ciphers;
  if (!error && (reply.terms.ciphers ? !(reply.terms.ciphers & offered) : offered != 0)) {
    error = -EPROTO;
  }
  if (!error) {
    error = connect_endpoint(dial, &reply);
  }
  if (error != -EINPROGRESS) {
    finish(dial, error, &reply);
  }
}

static void continue_dial(struct dial *dial) {
  struct reply reply = { 0 };
  enum handshake_kind kind;
  int error = talk_receive(&dial->talk, &kind, &reply.prefix);
  if (error == -EAGAIN) {
    return;
  }
  if (!error && kind == HANDSHAKE_REPLY) {
    replied(dial);
    return;
  }
  if (!error) {
    error = kind == HANDSHAKE_CHALLENGE ? challenged(dial) : -EPROTO;
  }
  if (error) {
    finish(dial, error, &reply);
  }
}

static void source_ready(struct engine_source *source, uint32_t events) {
  struct dial *dial = (struct dial *)source;
  (void)events;
  if (dial->state == DIAL_JOINING) {
    check_socket(dial);
    return;
  }
  if (dial->state != DIAL_CONNECTING) {
    continue_dial(dial);
    return;
  }
  int error = connected(dial);
  if (error) {
    finish(dial, error, NULL);
  }
}

static int prepare(struct dial *dial, const struct hello *hello, const struct auth_keys *keys) {
  dial->is_inquiry = !hello;
  if (dial->is_inquiry) {
    dial->hello.dscp = -1;
    return random_secret(&dial->random, sizeof dial->random);
  }
  dial->hello = *hello;
  memcpy(dial->hello.nic, dial->nic.name, sizeof dial->nic.name);
  port_for_hello(dial->talk.engine, &dial->nic, &dial->hello.listens);
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
  dial->talk.engine = engine;
  dial->nic = *nic;
  dial->done = done;
  dial->argument = argument;
  dial->talk.source = (struct engine_source){ .ready = source_ready, .fd = -1 };
  dial->talk.endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  dial->talk.timer.expired = timer_expired;
  dial->deadline_ns = deadline_ns;
  dial->patience_ns = DIAL_FIRST_REDIAL_NS;
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
