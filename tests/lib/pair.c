/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include "tests/lib/pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/param.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

void pair_set_parameters(const char *words) {
  char copy[512], *rest = copy, *environment[8] = { NULL };
  assert_in_range(snprintf(copy, sizeof copy, "%s", words ? words : ""), 0, sizeof copy - 1);
  for (size_t i = 0; words && rest; i++) {
    assert_in_range(i, 0, sizeof environment / sizeof *environment - 2);
    environment[i] = strsep(&rest, " ");
  }
  param_load(environment);
}

enum { DESCRIPTORS = 1024 }; /* that are looked at */
static const char *used_nic = "lo", *used_address = "127.0.0.1";

void pair_use(const char *nic, const char *address) {
  used_nic = nic;
  used_address = address;
}

struct nic pair_loopback(int family) {
  struct nic nic = { .index = if_nametoindex(used_nic), .numa_node = -1 };
  snprintf(nic.name, sizeof nic.name, "%s", used_nic);
  if (family == AF_INET6) {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&nic.address;
    in6->sin6_family = AF_INET6;
    in6->sin6_addr = in6addr_loopback;
  } else {
    struct sockaddr_in *in = (struct sockaddr_in *)&nic.address;
    in->sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, used_address, &in->sin_addr), 1);
  }
  return nic;
}

void pair_sockets(int fds[2]) {
  const struct nic nic = pair_loopback(AF_INET);
  struct sockaddr_storage address;
  int listening = tcp_socket_listen(&nic, &address);
  fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fds[0], (struct sockaddr *)&address, tcp_address_bytes(&address)), 0);
  UNTIL((fds[1] = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0);
  descriptor_close(listening);
}

struct meeting meeting_open_nics(const struct nic *nics, unsigned count) {
  struct meeting meeting = { .nic_count = count };
  memcpy(meeting.nics, nics, count * sizeof *nics);
  assert_int_equal(listener_open(nics, count, meeting.bytes, &meeting.listener), 0);
  assert_int_equal(handle_decode(meeting.bytes, &meeting.handle), 0);
  return meeting;
}

struct meeting meeting_open(int family) {
  struct nic nic = pair_loopback(family);
  return meeting_open_nics(&nic, 1);
}

int meeting_connect(struct meeting *meeting) {
  return meeting->pair.sender ? 0
                              : connector_connect(meeting->nics, meeting->nic_count, -1, 0,
                                                  meeting->bytes, &meeting->pair.sender);
}

void meeting_accept(struct meeting *meeting) {
  if (!meeting->pair.receiver) {
    assert_int_equal(listener_accept(meeting->listener, &meeting->pair.receiver), 0);
  }
}

void meeting_step(struct meeting *meeting) {
  assert_int_equal(meeting_connect(meeting), 0);
  meeting_accept(meeting);
}

struct pair meeting_pair(struct meeting *meeting) {
  UNTIL(meeting->pair.sender && meeting->pair.receiver) {
    meeting_step(meeting);
  }
  struct pair pair = meeting->pair;
  meeting->pair = (struct pair){ NULL, NULL };
  return pair;
}

int meeting_error(struct meeting *meeting) {
  int error = 0;
  UNTIL(error) {
    error = meeting_connect(meeting);
    assert_null(meeting->pair.sender);
  }
  return error;
}

void meeting_close(struct meeting *meeting) {
  listener_close(meeting->listener);
}

struct pair pair_make(int family) {
  struct meeting meeting = meeting_open(family);
  struct pair pair = meeting_pair(&meeting);
  meeting_close(&meeting);
  return pair;
}

void pair_close(struct pair pair) {
  connection_detach(pair.sender);
  connection_detach(pair.receiver);
}

/* ---- messages ---- */

const size_t pair_sizes[PAIR_SIZES] = { 0,     1,     8,      4095,   16384,   16385,
                                        65536, 99999, 131072, 131073, 1048576, 3000001 };

void pair_end_start(struct pair_end *end, struct connection *connection, const size_t *sizes,
                    size_t kinds, uint64_t count) {
  enum memory_use use = connection_is_sender(connection) ? MEMORY_SENT : MEMORY_RECEIVED;
  size_t room = 0;
  for (size_t i = 0; i < kinds; i++) {
    room = sizes[i] + 1 > room ? sizes[i] + 1 : room;
  }
  *end =
      (struct pair_end){ .connection = connection, .sizes = sizes, .kinds = kinds, .count = count };
  for (int i = 0; i < PAIR_DEPTH; i++) {
    end->buffers[i] = malloc(room);
    assert_int_equal(memory_register(end->buffers[i], room, MEMORY_HOST, use, &end->memories[i]),
                     0);
  }
}

void pair_end_stop(struct pair_end *end) {
  for (int i = 0; i < PAIR_DEPTH; i++) {
    memory_deregister(end->memories[i]);
    free(end->buffers[i]);
  }
}

static void end_is_wrong(struct pair_end *end, const char *what, long value) {
  if (!end->wrong[0]) {
    snprintf(end->wrong, sizeof end->wrong, "%s: %s %ld; %llu posted, %llu done",
             connection_is_sender(end->connection) ? "sender" : "receiver", what, value,
             (unsigned long long)end->posted, (unsigned long long)end->done);
  }
}

void pair_end_post(struct pair_end *end) {
  if (end->posted == end->count || end->posted == end->done + PAIR_DEPTH) {
    return;
  }
  uint64_t n = end->posted;
  size_t bytes = end->sizes[n % end->kinds], at = n % PAIR_DEPTH;
  bool is_sender = connection_is_sender(end->connection);
  if (is_sender) {
    content_fill(n, end->buffers[at], bytes);
  }
  int error = plugin_post(end->connection, end->buffers[at], bytes + !is_sender, end->memories[at],
                          &end->requests[at]);
  if (error) {
    end_is_wrong(end, "posting fails with", error);
  }
  end->posted += !error && end->requests[at];
}

void pair_end_test(struct pair_end *end) {
  uint64_t n = end->done;
  bool is_done = false;
  size_t bytes = 0, wanted = end->sizes[n % end->kinds];
  if (n == end->posted) {
    return;
  }
  int error = plugin_test(end->requests[n % PAIR_DEPTH], &is_done, &bytes);
  if (error) {
    end_is_wrong(end, "a test fails with", error);
  }
  if (!is_done) {
    return;
  }
  size_t same = connection_is_sender(end->connection)
                    ? wanted
                    : content_differs(n, end->buffers[n % PAIR_DEPTH], wanted);
  if (bytes != wanted || same < wanted) {
    end_is_wrong(end, bytes != wanted ? "bytes in all:" : "the first wrong byte:",
                 (long)(bytes != wanted ? bytes : same));
  }
  end->done++;
}

/* Grows when something has happened. */
static uint64_t end_step(struct pair_end *end) {
  pair_end_post(end);
  pair_end_test(end);
  if (end->wrong[0]) {
    log_capture_print();
    fail_msg("%s", end->wrong);
  }
  return end->posted + end->done;
}

void pair_exchange(struct pair pair, const size_t *sizes, size_t kinds, uint64_t count,
                   pair_disturb_fn *disturb) {
  struct pair_end from, to;
  pair_end_start(&from, pair.sender, sizes, kinds, count);
  pair_end_start(&to, pair.receiver, sizes, kinds, count);
  uint64_t before = 0, now = 0, seen = 0;
  uint64_t until_ns = clock_now_ns() + 3 * PATIENCE_NS;
  while (to.done < count || from.done < count) {
    assert_true(clock_now_ns() < until_ns);
    before = now;
    now = end_step(&from) + end_step(&to);
    if (now == before) {
      usleep(20);
    }
    if (disturb && to.done != seen) {
      seen = to.done;
      disturb(seen);
    }
  }
  pair_end_stop(&from);
  pair_end_stop(&to);
}

void pair_cut_flows(unsigned keep_every) {
  unsigned n = 0;
  for (int fd = 3; fd < DESCRIPTORS; fd++) {
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) &&
        (!keep_every || n++ % keep_every)) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

void pair_cut_some(uint64_t done) {
  if (done % 7 == 3) {
    pair_cut_flows(3);
  }
}

static void pair_cut_all(uint64_t done) {
  if (done == 10 || done == 23) {
    pair_cut_flows(0);
  }
}

void pair_exchange_with_cuts(int family) {
  struct pair pair = pair_make(family);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, pair_cut_some);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, pair_cut_all);
  pair_close(pair);
}

void pair_half_step(struct pair_half *half) {
  size_t bytes;
  if (half->is_done || half->error) {
    return;
  }
  if (half->request) {
    half->error = plugin_test(half->request, &half->is_done, &bytes);
  } else {
    half->error =
        plugin_post(half->connection, half->data, half->bytes, half->memory, &half->request);
  }
}

void pair_halves(struct pair_half *from, struct pair_half *to) {
  UNTIL(from->error || to->error || (from->is_done && to->is_done)) {
    pair_half_step(from);
    pair_half_step(to);
  }
}

void pair_send_one(struct pair pair, size_t bytes, void *from, const struct memory *from_memory,
                   void *to, const struct memory *to_memory) {
  struct pair_half sent = { pair.sender, from, bytes, from_memory, NULL, false, 0 };
  struct pair_half received = { pair.receiver, to, bytes, to_memory, NULL, false, 0 };
  pair_halves(&sent, &received);
  assert_int_equal(sent.error | received.error, 0);
}

struct request *pair_post(struct connection *connection, void *data, size_t bytes) {
  struct request *request;
  assert_int_equal(plugin_post(connection, data, bytes, NULL, &request), 0);
  assert_non_null(request);
  return request;
}

int pair_wait(struct request *request) {
  bool is_done = false;
  size_t bytes;
  int error = 0;
  UNTIL(error || is_done) {
    error = plugin_test(request, &is_done, &bytes);
  }
  return error;
}

int pair_set_up(void **state) {
  pair_set_parameters(*state);
  log_capture_start();
  return 0;
}

int pair_tear_down(void **state) {
  setup_stop();
  log_capture_stop();
  pair_set_parameters(NULL);
  return 0;
}
