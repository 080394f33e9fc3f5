/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: a star around process 0, in lock step. Each block has the number of its step, so that
 * processes that disagree about the next step are detected at once. */
#include "tuner_plugin/tools/coll/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "tuner_plugin/tools/coll/connect.h"
#include "tuner_plugin/tools/coll/message.h"

static const uint32_t magic = 0x53434f4c; /* "SCOL" */
enum { HELLO_BYTES = 148, BLOCK_HEADER_BYTES = 12, HELLO_TIMEOUT_MS = 5000 };

/* Work between two steps can take any time: a lost process is detected by its closed connection,
 * not by a timeout. */
static const uint64_t step_timeout_ns = 24 * 3600 * NS_PER_S;

struct peer {
  int fd; /* -1: none */
  char name[288];
};

struct rendezvous {
  int rank, size, gpus; /* of processes, and GPUs of each */
  uint64_t timeout_ns, token;
  uint32_t step;
  struct peer *peers; /* process 0: one for each; the others: only the first */
};

const char *rendezvous_name(const struct rendezvous *r, int process) {
  return r->peers[r->rank == 0 ? process : 0].name;
}

/* ---- bytes, with a deadline ---- */

__attribute__((noreturn)) static void fail_peer(const struct peer *peer, const char *what) {
  message_fail("%s %s", peer->name, what);
}

static void wait_for(const struct peer *peer, short events, uint64_t deadline_ns) {
  struct pollfd poll_fd = { .fd = peer->fd, .events = events };
  for (;;) {
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= deadline_ns)
      fail_peer(peer, "does not answer; is it still running?");
    int ready = poll(&poll_fd, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
    if (ready > 0)
      return;
    if (ready < 0 && errno != EINTR)
      fail_peer(peer, strerror(errno));
  }
}

static void move(struct rendezvous *r, const struct peer *peer, void *data, size_t bytes,
                 bool is_send) {
  uint64_t deadline_ns = clock_now_ns() + r->timeout_ns;
  for (size_t done = 0; done < bytes;) {
    char *at = (char *)data + done;
    ssize_t moved = is_send ? send(peer->fd, at, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(peer->fd, at, bytes - done, MSG_DONTWAIT);
    if (moved > 0)
      done += (size_t)moved;
    else if (moved == 0)
      fail_peer(peer, "has gone");
    else if (errno == EAGAIN)
      wait_for(peer, is_send ? POLLOUT : POLLIN, deadline_ns);
    else if (errno != EINTR)
      fail_peer(peer, strerror(errno));
  }
}

static void send_block(struct rendezvous *r, const struct peer *peer, const void *data,
                       size_t bytes) {
  uint8_t header[BLOCK_HEADER_BYTES];
  bytes_put_le32(header, magic);
  bytes_put_le32(header + 4, r->step);
  bytes_put_le32(header + 8, (uint32_t)bytes);
  move(r, peer, header, sizeof header, true);
  move(r, peer, (void *)(uintptr_t)data, bytes, true);
}

static void receive_block(struct rendezvous *r, const struct peer *peer, void *data, size_t bytes) {
  uint8_t header[BLOCK_HEADER_BYTES];
  move(r, peer, header, sizeof header, false);
  if (bytes_get_le32(header) != magic || bytes_get_le32(header + 4) != r->step ||
      bytes_get_le32(header + 8) != bytes)
    fail_peer(peer, "is at a different step: do all processes have the same options?");
  move(r, peer, data, bytes, false);
}

/* ---- steps ---- */

void rendezvous_gather(struct rendezvous *r, const void *mine, void *all, size_t bytes) {
  r->step++;
  if (r->rank) {
    send_block(r, &r->peers[0], mine, bytes);
    return;
  }
  if (bytes)
    memcpy(all, mine, bytes);
  for (int rank = 1; rank < r->size; rank++)
    receive_block(r, &r->peers[rank], (char *)all + bytes * (size_t)rank, bytes);
}

void rendezvous_broadcast(struct rendezvous *r, void *data, size_t bytes) {
  r->step++;
  if (r->rank) {
    receive_block(r, &r->peers[0], data, bytes);
    return;
  }
  for (int rank = 1; rank < r->size; rank++)
    send_block(r, &r->peers[rank], data, bytes);
}

void rendezvous_exchange(struct rendezvous *r, const void *mine, void *all, size_t bytes) {
  rendezvous_gather(r, mine, all, bytes);
  rendezvous_broadcast(r, all, bytes * (size_t)r->size);
}

void rendezvous_barrier(struct rendezvous *r) {
  rendezvous_gather(r, NULL, NULL, 0);
  rendezvous_broadcast(r, NULL, 0);
}

int rendezvous_find_lost(struct rendezvous *r) {
  int peers = r->rank ? 1 : r->size;
  for (int i = 0; i < peers; i++) {
    struct pollfd poll_fd = { .fd = r->peers[i].fd, .events = POLLRDHUP };
    if (poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR))
      return i;
  }
  return -1;
}

/* ---- connecting ---- */

static void put_hello(const struct world *world, uint8_t hello[HELLO_BYTES]) {
  memset(hello, 0, HELLO_BYTES);
  bytes_put_le32(hello, magic);
  bytes_put_le32(hello + 4, (uint32_t)world->size);
  bytes_put_le32(hello + 8, (uint32_t)world->rank);
  bytes_put_le64(hello + 12, world->token);
  memcpy(hello + 20, world->host, sizeof world->host);
}

/* Accepts a connection whose hello is valid; any other is closed and the wait continues. */
static void take_hello(struct rendezvous *r, int fd, const uint8_t hello[HELLO_BYTES]) {
  uint32_t size = bytes_get_le32(hello + 4), rank = bytes_get_le32(hello + 8);
  if (bytes_get_le32(hello) != magic || bytes_get_le64(hello + 12) != r->token) {
    message_write("refused a connection to the rendezvous that is not of this job");
    close(fd);
    return;
  }
  if (size != (uint32_t)r->size || rank == 0 || rank >= size)
    message_fail("process %u of %u connected; this run has %d", rank, size, r->size);
  if (r->peers[rank].fd >= 0)
    message_fail("process %u connected twice: do two have the same rank?", rank);
  char host[HELLO_BYTES - 20 + 1] = "";
  memcpy(host, hello + 20, HELLO_BYTES - 20);
  r->peers[rank].fd = fd;
  world_name_process(r->peers[rank].name, (int)rank, r->gpus, host);
}

static int count_missing(const struct rendezvous *r) {
  int missing = 0;
  for (int rank = 1; rank < r->size; rank++)
    missing += r->peers[rank].fd < 0;
  return missing;
}

__attribute__((noreturn)) static void fail_missing(const struct rendezvous *r,
                                                   const char *address) {
  char list[256] = "";
  for (int rank = 1; rank < r->size && strlen(list) < sizeof list - 16; rank++) {
    if (r->peers[rank].fd < 0)
      snprintf(list + strlen(list), sizeof list - strlen(list), " %d", rank);
  }
  message_fail("%d of %d processes did not connect to %s in time:%s", count_missing(r), r->size,
               address, list);
}

/* Connections whose hello is still on its way. */
struct waiting {
  int fd;
  size_t received;
  uint64_t deadline_ns;
  uint8_t hello[HELLO_BYTES];
};
enum { WAITING_MAX = 64 };

/* True when the connection is settled, one way or the other. */
static bool read_hello(struct rendezvous *r, struct waiting *w) {
  ssize_t got = recv(w->fd, w->hello + w->received, HELLO_BYTES - w->received, MSG_DONTWAIT);
  if (got > 0)
    w->received += (size_t)got;
  bool has_failed = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (w->received == HELLO_BYTES)
    take_hello(r, w->fd, w->hello);
  else if (has_failed || clock_now_ns() > w->deadline_ns)
    close(w->fd);
  else
    return false;
  return true;
}

static void accept_all(struct rendezvous *r, int listener, const char *address) {
  struct waiting waiting[WAITING_MAX];
  int count = 0;
  uint64_t deadline_ns = clock_now_ns() + r->timeout_ns;
  while (count_missing(r)) {
    if (clock_now_ns() > deadline_ns)
      fail_missing(r, address);
    struct pollfd poll_fds[WAITING_MAX + 1] = { { .fd = count < WAITING_MAX ? listener : -1,
                                                  .events = POLLIN } };
    for (int i = 0; i < count; i++)
      poll_fds[i + 1] = (struct pollfd){ .fd = waiting[i].fd, .events = POLLIN };
    poll(poll_fds, (nfds_t)count + 1, 100);
    for (int i = count - 1; i >= 0; i--) {
      if (read_hello(r, &waiting[i]))
        waiting[i] = waiting[--count];
    }
    int fd = poll_fds[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (fd >= 0)
      waiting[count++] =
          (struct waiting){ .fd = fd,
                            .deadline_ns = clock_now_ns() + HELLO_TIMEOUT_MS * NS_PER_MS };
  }
  for (int i = 0; i < count; i++)
    close(waiting[i].fd);
}

struct rendezvous *rendezvous_open(const struct world *world, int gpus, uint64_t timeout_ns) {
  struct rendezvous *r = calloc(1, sizeof *r);
  struct peer *peers = calloc((size_t)world->size, sizeof *peers);
  if (!r || !peers)
    message_fail("out of memory");
  *r = (struct rendezvous){ world->rank, world->size, gpus, timeout_ns, world->token, 0, peers };
  for (int i = 0; i < world->size; i++)
    peers[i].fd = -1;
  if (world->size == 1)
    return r;
  if (world->rank == 0) {
    int listener = connect_listen(world->address);
    accept_all(r, listener, world->address);
    close(listener);
    connect_forget(world->address);
  } else {
    uint8_t hello[HELLO_BYTES];
    put_hello(world, hello);
    peers[0].fd = connect_to(world->address, timeout_ns);
    snprintf(peers[0].name, sizeof peers[0].name, "the process of rank 0 at %s", world->address);
    move(r, &peers[0], hello, sizeof hello, true);
  }
  for (int i = 0; i < world->size; i++) {
    if (peers[i].fd >= 0)
      connect_tune(peers[i].fd);
  }
  rendezvous_barrier(r);
  r->timeout_ns = step_timeout_ns;
  return r;
}

void rendezvous_close(struct rendezvous *r) {
  for (int i = 0; i < r->size; i++) {
    if (r->peers[i].fd >= 0)
      close(r->peers[i].fd);
  }
  free(r->peers);
  free(r);
}
