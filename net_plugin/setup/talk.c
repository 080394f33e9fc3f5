/* SPDX-License-Identifier: Apache-2.0 */
/* See talk.h. */
#include "net_plugin/setup/talk.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/descriptor.h"

int talk_receive(struct talk *talk, enum handshake_kind *kind, struct handshake_prefix *prefix) {
  for (size_t wanted = HANDSHAKE_PREFIX_BYTES;;) {
    if (talk->got >= HANDSHAKE_PREFIX_BYTES) {
      int error = handshake_prefix_check(talk->message, kind, prefix);
      if (error) {
        return error;
      }
      wanted = handshake_bytes(*kind);
    }
    if (talk->got == wanted) {
      talk->got = 0;
      return 0;
    }
    ssize_t n = recv(talk->fd, talk->message + talk->got, wanted - talk->got, MSG_DONTWAIT);
    if (n <= 0) {
      return n == 0 ? -ECONNRESET : errno == EINTR ? -EAGAIN : -errno;
    }
    talk->got += (size_t)n;
  }
}

int talk_watch_endpoint(struct talk *talk) {
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
