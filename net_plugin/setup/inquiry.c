/* SPDX-License-Identifier: Apache-2.0 */
/* See inquiry.h. */
#include "net_plugin/setup/inquiry.h"

#include <errno.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/lane/tcp_socket.h"

void inquiry_stop(struct inquiry *inquiry) {
  if (inquiry->is_running) {
    engine_assert_locked(inquiry->engine);
    inquiry->is_running = false;
    engine_timer_stop(&inquiry->timer);
    int fd = inquiry->source.fd;
    engine_unwatch(inquiry->engine, &inquiry->source);
    if (fd >= 0) {
      descriptor_close(fd);
    }
  }
}

static void inquiry_end(struct inquiry *inquiry, int error) {
  inquiry_stop(inquiry);
  inquiry->done(inquiry->argument, error);
}

static void inquiry_ready(struct engine_source *source, uint32_t events) {
  struct inquiry *inquiry = LIST_ENTRY(source, struct inquiry, source);
  int error = 0;
  socklen_t bytes = sizeof error;
  (void)events;
  getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
  inquiry_end(inquiry, -error);
}

static void inquiry_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct inquiry *inquiry = LIST_ENTRY(timer, struct inquiry, timer);
  inquiry_end(inquiry, inquiry->error);
}

void inquiry_start(struct inquiry *inquiry, struct engine *engine,
                   const struct sockaddr_storage *address, uint64_t deadline_ns,
                   inquiry_done_fn *done, void *argument) {
  engine_assert_locked(engine);
  *inquiry = (struct inquiry){
    .source = { .ready = inquiry_ready, .fd = tcp_socket_open(address->ss_family) },
    .timer = { .expired = inquiry_expired },
    .engine = engine,
    .done = done,
    .argument = argument,
    .is_running = true,
  };
  int fd = inquiry->source.fd;
  int error = fd < 0 ? fd : 0;
  if (!error && connect(fd, (const struct sockaddr *)address, tcp_address_bytes(address)) != 0) {
    error = -errno; /* also a refusal that comes at once: the socket does not say it again */
  }
  if (error == -EINPROGRESS) {
    error = engine_watch(engine, &inquiry->source, fd, EPOLLOUT);
    inquiry->error = error ? error : -ETIMEDOUT;
    engine_timer_set(engine, &inquiry->timer, error ? clock_now_ns() : deadline_ns);
    return;
  }
  inquiry->error = error;
  engine_timer_set(engine, &inquiry->timer, clock_now_ns());
}
