/* SPDX-License-Identifier: Apache-2.0 */
/* See talk.h. */
#include "net_plugin/setup/talk.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"

/* -EAGAIN: not yet; else as talk_ops.heard. Reads no byte beyond the message: what follows the last
 * one belongs to the lane. Looks at the prefix before the rest is there: who is none of ours sends
 * less, and another wire version may have messages of another size. */
static int receive(struct talk *talk, enum handshake_kind *kind) {
  for (size_t wanted = HANDSHAKE_PREFIX_BYTES;;) {
    if (talk->got >= HANDSHAKE_PREFIX_BYTES) {
      int error = handshake_prefix_check(&talk->message.prefix, kind);
      if (error) {
        return error;
      }
      wanted = handshake_bytes(*kind);
    }
    if (talk->got == wanted) {
      talk->got = 0;
      return handshake_check(&talk->message, *kind);
    }
    ssize_t n =
        recv(talk->fd, (uint8_t *)&talk->message + talk->got, wanted - talk->got, MSG_DONTWAIT);
    if (n <= 0) {
      return n == 0 ? -ECONNRESET : errno == EINTR ? -EAGAIN : -errno;
    }
    talk->got += (size_t)n;
  }
}

static void source_ready(struct engine_source *source, uint32_t events) {
  struct talk *talk = (struct talk *)source;
  enum handshake_kind kind = HANDSHAKE_KINDS;
  (void)events;
  if (talk->state == TALK_CONNECTING) {
    talk->ops->connected(talk);
  } else if (talk->state == TALK_LISTENING) {
    int error = receive(talk, &kind);
    if (error != -EAGAIN) {
      talk->ops->heard(talk, error, kind);
    }
  } else if (!tcp_socket_is_quiet(talk->fd)) {
    talk->ops->heard(talk, -ECONNRESET, kind);
  }
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct talk *talk = LIST_ENTRY(timer, struct talk, timer);
  if (talk->state == TALK_JOINING) {
    talk->ops->joined(talk, -ETIMEDOUT);
  } else if (now_ns >= talk->deadline_ns) {
    talk->ops->heard(talk, -ETIMEDOUT, HANDSHAKE_KINDS);
  } else if (talk->state == TALK_CONNECTING || tcp_stats_has_unacked(talk->fd)) {
    talk->ops->unheard(talk, now_ns);
  } else {
    /* The peer is slow, or its answer was lost: then it will close the connection. */
    talk_set_timer(talk, talk->deadline_ns);
  }
}

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct talk *talk = LIST_ENTRY(source, struct talk, endpoint_source);
  (void)events;
  talk->ops->joined(talk, endpoint_result(talk->endpoint));
}

void talk_init(struct talk *talk, struct engine *engine, const struct talk_ops *ops,
               uint64_t deadline_ns) {
  talk->source = (struct engine_source){ .ready = source_ready, .fd = -1 };
  talk->endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  talk->timer.expired = timer_expired;
  talk->engine = engine;
  talk->ops = ops;
  talk->deadline_ns = deadline_ns;
  talk->fd = -1;
}

int talk_watch(struct talk *talk, enum talk_state state) {
  talk->state = state;
  talk->got = 0;
  return engine_watch(talk->engine, &talk->source, talk->fd,
                      state == TALK_CONNECTING ? EPOLLOUT : EPOLLIN);
}

void talk_listen(struct talk *talk) {
  talk->state = TALK_LISTENING;
  engine_rewatch(talk->engine, &talk->source, EPOLLIN);
}

void talk_set_timer(struct talk *talk, uint64_t due_ns) {
  engine_timer_set(talk->engine, &talk->timer,
                   due_ns < talk->deadline_ns ? due_ns : talk->deadline_ns);
}

void talk_look_later(struct talk *talk) {
  uint64_t wait_ns = tcp_stats_ack_wait_ns(talk->fd);
  talk_set_timer(talk,
                 clock_now_ns() + (wait_ns > talk->patience_ns ? wait_ns : talk->patience_ns));
}

int talk_join(struct talk *talk, uint64_t wait_ns) {
  talk->state = TALK_JOINING;
  engine_timer_set(talk->engine, &talk->timer, clock_now_ns() + wait_ns);
  return engine_watch(talk->engine, &talk->endpoint_source, endpoint_fd(talk->endpoint), EPOLLIN);
}

void talk_drop_endpoint(struct talk *talk) {
  engine_unwatch(talk->engine, &talk->endpoint_source);
  endpoint_free(talk->endpoint);
  talk->endpoint = NULL;
}

void talk_stop(struct talk *talk) {
  engine_unwatch(talk->engine, &talk->source);
  engine_unwatch(talk->engine, &talk->endpoint_source);
  engine_timer_stop(&talk->timer);
}

void talk_close(struct talk *talk) {
  talk_stop(talk);
  endpoint_free(talk->endpoint);
  if (talk->fd >= 0) {
    descriptor_close(talk->fd);
  }
}
