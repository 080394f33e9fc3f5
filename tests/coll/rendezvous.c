/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: a star around process 0, in lock step. Each block has the number of its step, so that
 * processes that disagree about the next step are detected at once. */
#include "tests/coll/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/coll/message.h"

enum { RETRY_US = 20000 }; /* between two tries to reach rank 0 */

/* All hosts are of one kind: numbers go as they are. */
struct hello {
  uint32_t magic, size, rank;
  char host[sizeof((struct world *)0)->host];
};
struct block {
  uint32_t magic, step;
  uint64_t bytes;
};
static const uint32_t magic = 0x53434f4c; /* "SCOL" */

struct peer {
  int fd; /* -1: none */
  char name[WORLD_NAME_MAX + WORLD_ADDRESS_MAX];
};

struct rendezvous {
  int rank, size, gpus; /* of processes, and GPUs of each */
  uint32_t step;
  struct peer *peers; /* process 0: one for each; the others: only the first */
};

const char *rendezvous_name(const struct rendezvous *r, int process) {
  return r->peers[r->rank == 0 ? process : 0].name;
}

/* ---- bytes: what is done between two steps can take any time ---- */

static void check_moved(const struct peer *peer, ssize_t moved, size_t bytes) {
  if (moved != (ssize_t)bytes)
    message_fail("%s %s", peer->name,
                 moved >= 0 || errno == ECONNRESET || errno == EPIPE ? "has gone"
                                                                     : strerror(errno));
}

static void send_bytes(const struct peer *peer, const void *data, size_t bytes) {
  size_t done = 0;
  for (ssize_t sent = 0; done < bytes && sent >= 0; done += sent > 0 ? (size_t)sent : 0)
    sent = send(peer->fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
  check_moved(peer, done == bytes ? (ssize_t)bytes : -1, bytes);
}

static void receive_bytes(const struct peer *peer, void *data, size_t bytes) {
  if (bytes)
    check_moved(peer, recv(peer->fd, data, bytes, MSG_WAITALL), bytes);
}

static void send_block(struct rendezvous *r, const struct peer *peer, const void *data,
                       size_t bytes) {
  struct block block = { magic, r->step, bytes };
  send_bytes(peer, &block, sizeof block);
  send_bytes(peer, data, bytes);
}

static void receive_block(struct rendezvous *r, const struct peer *peer, void *data, size_t bytes) {
  struct block block = { 0 };
  receive_bytes(peer, &block, sizeof block);
  if (block.magic != magic || block.step != r->step || block.bytes != bytes)
    message_fail("%s is at a different step: do all processes have the same options?", peer->name);
  receive_bytes(peer, data, bytes);
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

static void combine(struct rendezvous *r, double *numbers, size_t count, bool is_sum) {
  size_t bytes = count * sizeof *numbers, processes = (size_t)r->size;
  if (bytes * processes > RENDEZVOUS_BYTES_MAX)
    message_fail("%zu numbers of %zu processes are too many", count, processes);
  double *all = r->rank ? NULL : message_allocate(count * processes, sizeof *all);
  rendezvous_gather(r, numbers, all, bytes);
  for (size_t i = count; all && i < count * processes; i++) {
    double *to = &numbers[i % count];
    *to = is_sum ? *to + all[i] : all[i] > *to ? all[i] : *to;
  }
  free(all);
  rendezvous_broadcast(r, numbers, bytes);
}

void rendezvous_sum(struct rendezvous *r, double *numbers, size_t count) {
  combine(r, numbers, count, true);
}

void rendezvous_most(struct rendezvous *r, double *numbers, size_t count) {
  combine(r, numbers, count, false);
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

typedef int call_fn(int fd, const struct sockaddr *address, socklen_t length);

/* A new socket after `call`, which is bind or connect; -1 with errno. */
static int open_at(int family, const void *address, socklen_t length, call_fn *call) {
  int one = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* not a Unix socket's */
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  if (!call(fd, address, length))
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static int open_address(const char *address, call_fn *call) {
  struct sockaddr_un local = { .sun_family = AF_UNIX };
  if (!strncmp(address, "unix:", 5)) {
    snprintf(local.sun_path, sizeof local.sun_path, "%s", address + 5);
    return open_at(AF_UNIX, &local, sizeof local, call);
  }
  char text[WORLD_ADDRESS_MAX], *host = text;
  snprintf(text, sizeof text, "%s", address);
  char *port = strrchr(text, ':');
  if (!port)
    message_fail("address %s: HOST:PORT or unix:PATH is wanted", address);
  *port++ = '\0';
  if (*host == '[' && host[strlen(host) - 1] == ']')
    *strrchr(host++, ']') = '\0';
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
  int error = getaddrinfo(host, port, &hints, &found);
  if (error)
    message_fail("address %s: %s", address, gai_strerror(error));
  int fd = open_at(found->ai_family, found->ai_addr, found->ai_addrlen, call);
  freeaddrinfo(found);
  return fd;
}

static void accept_one(struct rendezvous *r, int listener) {
  struct hello hello = { 0 };
  int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  struct peer stranger = { fd, "a process that connects" };
  receive_bytes(&stranger, &hello, sizeof hello);
  if (hello.magic != magic || hello.size != (uint32_t)r->size || hello.rank == 0 ||
      hello.rank >= hello.size || r->peers[hello.rank].fd >= 0)
    message_fail("process %u of %u connected; this run has %d, each once", hello.rank, hello.size,
                 r->size);
  hello.host[sizeof hello.host - 1] = '\0';
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  r->peers[hello.rank].fd = fd;
  world_name_process(r->peers[hello.rank].name, (int)hello.rank, r->gpus, hello.host);
}

static void accept_all(struct rendezvous *r, const struct world *world, uint64_t deadline_ns) {
  world_forget_address(world->address); /* left by a run that was killed */
  int listener = open_address(world->address, bind);
  if (listener < 0 || listen(listener, r->size))
    message_fail("%s: cannot listen: %s", world->address, strerror(errno));
  for (int missing = r->size - 1; missing > 0; missing--) {
    uint64_t now_ns = clock_now_ns();
    struct pollfd waiting = { .fd = listener, .events = POLLIN };
    struct timespec left = clock_timespec(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    if (ppoll(&waiting, 1, &left, NULL) <= 0)
      message_fail("%d of %d processes did not connect to %s in time", missing, r->size,
                   world->address);
    accept_one(r, listener);
  }
  close(listener);
  world_forget_address(world->address);
}

static void call_root(struct rendezvous *r, const struct world *world, uint64_t deadline_ns) {
  struct hello hello = { .magic = magic, .size = (uint32_t)r->size, .rank = (uint32_t)r->rank };
  struct peer *root = &r->peers[0];
  snprintf(hello.host, sizeof hello.host, "%s", world->host);
  snprintf(root->name, sizeof root->name, "the process of rank 0 at %s", world->address);
  while ((root->fd = open_address(world->address, connect)) < 0) {
    if (clock_now_ns() > deadline_ns)
      message_fail("rank 0 does not listen at %s: %s", world->address, strerror(errno));
    usleep(RETRY_US);
  }
  send_bytes(root, &hello, sizeof hello);
}

struct rendezvous *rendezvous_open(const struct world *world, int gpus, uint64_t timeout_ns) {
  struct rendezvous *r = message_allocate(1, sizeof *r);
  struct peer *peers = message_allocate((size_t)world->size, sizeof *peers);
  *r = (struct rendezvous){ world->rank, world->size, gpus, 0, peers };
  for (int i = 0; i < world->size; i++)
    peers[i].fd = -1;
  if (world->size == 1)
    return r;
  if (world->rank == 0)
    accept_all(r, world, clock_now_ns() + timeout_ns);
  else
    call_root(r, world, clock_now_ns() + timeout_ns);
  rendezvous_barrier(r);
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
