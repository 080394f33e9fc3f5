/* SPDX-License-Identifier: Apache-2.0 */
/* See proxy.h. */
#include "tests/lib/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/handshake.h"
#include "tests/lib/unit.h"

#define MAX_CONNECTIONS 512
#define BLOCK_BYTES 32768
#define TAIL_BYTES 64
#define POLL_MS 20
#define LAST_POLLS 250

/* One direction of a connection. */
struct way {
  int from, to;
  uint64_t passed, handshake;
  uint8_t tail[TAIL_BYTES]; /* the last bytes, for the pattern */
};

struct through {
  struct way ways[2]; /* from the dialling side, from the listening side */
  bool is_open, is_flipped, is_found;
};

struct proxy {
  int fd;
  struct sockaddr_storage target;
  struct proxy_plan plan;
  struct through all[MAX_CONNECTIONS];
  struct proxy_result result;
  uint64_t until_flip;
  atomic_bool is_held, is_stopping;
  pthread_t thread;
};

static void look_for_pattern(struct proxy *proxy, struct way *way, const uint8_t *bytes, size_t n) {
  static uint8_t whole[TAIL_BYTES + BLOCK_BYTES];
  memcpy(whole, way->tail, TAIL_BYTES);
  memcpy(whole + TAIL_BYTES, bytes, n);
  size_t from = TAIL_BYTES - (proxy->plan.pattern_bytes - 1);
  if (proxy->plan.pattern &&
      memmem(whole + from, n + TAIL_BYTES - from, proxy->plan.pattern, proxy->plan.pattern_bytes)) {
    proxy->result.seen++;
  }
  memcpy(way->tail, whole + n, TAIL_BYTES);
}

static void maybe_flip(struct proxy *proxy, struct through *through, uint8_t *bytes, size_t n) {
  if (!proxy->plan.flip_every_bytes || through->is_flipped ||
      through->ways[0].passed < through->ways[0].handshake) {
    return;
  }
  if (proxy->until_flip >= n) {
    proxy->until_flip -= n;
    return;
  }
  bytes[proxy->until_flip] ^= (uint8_t)(1u << proxy->result.flipped % 8);
  proxy->until_flip = proxy->plan.flip_every_bytes + proxy->result.flipped * 977;
  proxy->result.flipped++;
  through->is_flipped = true;
}

static void send_all(int fd, const uint8_t *bytes, size_t count) {
  while (count > 0) {
    ssize_t n = send(fd, bytes, count, MSG_NOSIGNAL);
    if (n <= 0) {
      return; /* the other end of this way has left; its own way says so */
    }
    bytes += n;
    count -= (size_t)n;
  }
}

static void end(struct proxy *proxy, struct through *through) {
  if (through->is_flipped && !through->is_found) {
    through->is_found = true;
    proxy->result.found++;
  }
  close(through->ways[0].from);
  close(through->ways[1].from);
  through->is_open = false;
}

/* Bytes of the handshake pass one message at a time, so that a block never has both. */
static void pass(struct proxy *proxy, struct through *through, int direction) {
  static uint8_t block[BLOCK_BYTES];
  struct way *way = &through->ways[direction];
  size_t most = way->passed < way->handshake ? (size_t)(way->handshake - way->passed) : BLOCK_BYTES;
  ssize_t n = recv(way->from, block, most, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) {
    return;
  }
  if (n <= 0) {
    end(proxy, through);
    return;
  }
  look_for_pattern(proxy, way, block, (size_t)n);
  if (direction == 0) {
    maybe_flip(proxy, through, block, (size_t)n);
  }
  way->passed += (uint64_t)n;
  proxy->result.bytes += (uint64_t)n;
  send_all(way->to, block, (size_t)n);
}

static void admit(struct proxy *proxy) {
  int from = accept4(proxy->fd, NULL, NULL, SOCK_CLOEXEC), one = 1;
  if (from < 0) {
    return;
  }
  int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct through *through = &proxy->all[proxy->result.connections % MAX_CONNECTIONS];
  if (through->is_open ||
      connect(to, (struct sockaddr *)&proxy->target, tcp_address_bytes(&proxy->target)) != 0) {
    close(from);
    close(to);
    return;
  }
  setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  *through = (struct through){
    .is_open = true,
    .ways = { { .from = from, .to = to, .handshake = HELLO_BYTES + PROOF_BYTES },
              { .from = to, .to = from, .handshake = CHALLENGE_BYTES + REPLY_BYTES } },
  };
  proxy->result.connections++;
}

static void *run(void *argument) {
  struct proxy *proxy = argument;
  static struct pollfd fds[1 + 2 * MAX_CONNECTIONS];
  int last = LAST_POLLS;
  while (!atomic_load(&proxy->is_stopping) ||
         (proxy->result.found < proxy->result.flipped && last-- > 0)) {
    fds[0] =
        (struct pollfd){ .fd = atomic_load(&proxy->is_held) ? -1 : proxy->fd, .events = POLLIN };
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
      for (int way = 0; way < 2; way++) {
        int fd = proxy->all[i].is_open ? proxy->all[i].ways[way].from : -1;
        fds[1 + 2 * i + way] = (struct pollfd){ .fd = fd, .events = POLLIN };
      }
    }
    poll(fds, 1 + 2 * MAX_CONNECTIONS, POLL_MS);
    for (int i = 0; i < 2 * MAX_CONNECTIONS; i++) {
      if (fds[1 + i].revents && proxy->all[i / 2].is_open) {
        pass(proxy, &proxy->all[i / 2], i % 2);
      }
    }
    if (fds[0].revents) {
      admit(proxy);
    }
  }
  return NULL;
}

struct proxy *proxy_start(const struct sockaddr_storage *target, const struct proxy_plan *plan,
                          struct sockaddr_storage *address) {
  struct proxy *proxy = calloc(1, sizeof *proxy);
  struct nic nic = { .name = "lo", .address = *target };
  assert_non_null(proxy);
  proxy->target = *target;
  proxy->plan = *plan;
  proxy->until_flip = plan->flip_every_bytes;
  atomic_store(&proxy->is_held, plan->is_held);
  proxy->fd = tcp_socket_listen(&nic, address);
  assert_true(proxy->fd >= 0);
  assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
  return proxy;
}

void proxy_let_pass(struct proxy *proxy) {
  atomic_store(&proxy->is_held, false);
}

struct proxy_result proxy_stop(struct proxy *proxy) {
  atomic_store(&proxy->is_stopping, true);
  pthread_join(proxy->thread, NULL);
  struct proxy_result result = proxy->result;
  for (int i = 0; i < MAX_CONNECTIONS; i++) {
    if (proxy->all[i].is_open) {
      close(proxy->all[i].ways[0].from);
      close(proxy->all[i].ways[1].from);
    }
  }
  close(proxy->fd);
  free(proxy);
  return result;
}
