/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: a star around process 0, in lock step. Each block has the number of its step, so that
 * processes that disagree about the next step are detected at once. */
#include "tests/coll/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/peer_gate.h"
#include "tests/coll/connect.h"
#include "tests/coll/message.h"
#include "tests/coll/limits.h"

static const uint32_t magic = 0x53434f4c; /* "SCOL" */
enum { HOST_AT = 12, BLOCK_HEADER_BYTES = 12 };
_Static_assert(HOST_AT + sizeof((struct world *)0)->host <= PEER_HELLO_BYTES, "it fits");

struct peer {
  int fd; /* -1: none */
  char name[288];
};

struct rendezvous {
  int rank, size, gpus; /* of processes, and GPUs of each */
  uint64_t timeout_ns;
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

static void move(struct rendezvous *r, const struct peer *peer, void *data, size_t bytes,
                 bool is_send) {
  int error = peer_move(peer->fd, data, bytes, is_send, clock_now_ns() + r->timeout_ns);
  if (error)
    fail_peer(peer, error == -ECONNRESET || error == -EPIPE ? "has gone"
                    : error == -ETIMEDOUT ? "does not answer; is it still running?"
                                          : strerror(-error));
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

static void put_hello(const struct world *world, uint8_t hello[PEER_HELLO_BYTES]) {
  memset(hello, 0, PEER_HELLO_BYTES);
  bytes_put_le32(hello, magic);
  bytes_put_le32(hello + 4, (uint32_t)world->size);
  bytes_put_le32(hello + 8, (uint32_t)world->rank);
  memcpy(hello + HOST_AT, world->host, sizeof world->host);
}

/* Of a process that has proved that it is of this job. */
static void take_hello(struct rendezvous *r, int fd, const uint8_t hello[PEER_HELLO_BYTES]) {
  uint32_t size = bytes_get_le32(hello + 4), rank = bytes_get_le32(hello + 8);
  if (bytes_get_le32(hello) != magic || size != (uint32_t)r->size || rank == 0 || rank >= size)
    message_fail("process %u of %u connected; this run has %d", rank, size, r->size);
  if (r->peers[rank].fd >= 0)
    message_fail("process %u connected twice: do two have the same rank?", rank);
  char host[sizeof((struct world *)0)->host + 1] = "";
  memcpy(host, hello + HOST_AT, sizeof host - 1);
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

static void accept_all(struct rendezvous *r, int listener, const struct world *world) {
  uint8_t hello[PEER_HELLO_BYTES];
  struct peer_gate *gate = peer_gate_new(listener, &world->key);
  uint64_t deadline_ns = clock_now_ns() + r->timeout_ns;
  int fd, error = gate ? 0 : -ENOMEM;
  while (!error && count_missing(r)) {
    error = peer_gate_next(gate, deadline_ns, &fd, hello);
    if (!error)
      take_hello(r, fd, hello);
  }
  if (gate && peer_gate_refused(gate))
    message_write("refused connections to the rendezvous that were not of this job: %llu",
                  (unsigned long long)peer_gate_refused(gate));
  peer_gate_free(gate);
  if (error == -ETIMEDOUT)
    fail_missing(r, world->address);
  if (error)
    message_fail("%s: %s", world->address, strerror(-error));
}

/* Again until rank 0 has heard it: a flood of strangers can push out a connection. */
static int call_root(const struct world *world, uint64_t timeout_ns) {
  uint8_t hello[PEER_HELLO_BYTES];
  uint64_t deadline_ns = clock_now_ns() + timeout_ns;
  put_hello(world, hello);
  for (;;) {
    int fd = connect_to(world->address, timeout_ns);
    uint64_t proof_ns = clock_now_ns() + PEER_GATE_PROOF_NS;
    int error = peer_call(fd, &world->key, hello, proof_ns < deadline_ns ? proof_ns : deadline_ns);
    if (!error)
      return fd;
    close(fd);
    if (error == -EACCES)
      message_fail("rank 0 at %s has another secret, or is of another job: give all ranks the same "
                   "STRATUS_SECRET or STRATUS_SECRET_FILE",
                   world->address);
    if (error == -EPROTO)
      message_fail("what listens at %s is not rank 0 of this job", world->address);
    if (clock_now_ns() >= deadline_ns)
      message_fail("rank 0 at %s does not answer: %s", world->address, strerror(-error));
    usleep(RENDEZVOUS_RETRY_US);
  }
}

struct rendezvous *rendezvous_open(const struct world *world, int gpus, uint64_t timeout_ns) {
  struct rendezvous *r = message_allocate(1, sizeof *r);
  struct peer *peers = message_allocate((size_t)world->size, sizeof *peers);
  *r = (struct rendezvous){ world->rank, world->size, gpus, timeout_ns, 0, peers };
  for (int i = 0; i < world->size; i++)
    peers[i].fd = -1;
  if (world->size == 1)
    return r;
  if (world->rank == 0) {
    int listener = connect_listen(world->address, !world->key.is_secret);
    accept_all(r, listener, world);
    close(listener);
    connect_forget(world->address);
  } else {
    peers[0].fd = call_root(world, timeout_ns);
    snprintf(peers[0].name, sizeof peers[0].name, "the process of rank 0 at %s", world->address);
  }
  for (int i = 0; i < world->size; i++) {
    if (peers[i].fd >= 0)
      connect_tune(peers[i].fd);
  }
  rendezvous_barrier(r);
  r->timeout_ns = RENDEZVOUS_STEP_TIMEOUT_NS;
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
