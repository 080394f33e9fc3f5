/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include "tests/lib/pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/param.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

void pair_set_parameters(const char *words) {
  char copy[256], *rest = copy, *environment[8] = { NULL };
  snprintf(copy, sizeof copy, "%s", words ? words : "");
  for (size_t i = 0; words && rest; i++) {
    assert_in_range(i, 0, sizeof environment / sizeof *environment - 2);
    environment[i] = strsep(&rest, " ");
  }
  param_load(environment);
}

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

static void breathe(void) {
  usleep(20);
}

struct pair pair_connect(const struct nic *nic, uint8_t handle[HANDLE_BYTES],
                         struct listener *listener) {
  return pair_connect_nics(nic, 1, handle, listener);
}

struct pair pair_connect_nics(const struct nic *nics, unsigned count, uint8_t handle[HANDLE_BYTES],
                              struct listener *listener) {
  struct pair pair = { NULL, NULL };
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (!pair.sender || !pair.receiver) {
    assert_true(clock_now_ns() < until_ns);
    if (!pair.sender) {
      assert_int_equal(connector_connect(nics, count, -1, 0, handle, &pair.sender), 0);
    }
    if (!pair.receiver) {
      assert_int_equal(listener_accept(listener, &pair.receiver), 0);
    }
    breathe();
  }
  return pair;
}

struct pair pair_make(int family) {
  struct nic nic = pair_loopback(family);
  uint8_t handle[HANDLE_BYTES];
  struct listener *listener;
  assert_int_equal(listener_open(&nic, 1, handle, &listener), 0);
  struct pair pair = pair_connect(&nic, handle, listener);
  listener_close(listener);
  return pair;
}

void pair_close(struct pair pair) {
  connection_detach(pair.sender);
  connection_detach(pair.receiver);
}

const size_t pair_sizes[PAIR_SIZES] = { 0,     1,     8,      4095,   16384,   16385,
                                        65536, 99999, 131072, 131073, 1048576, 3000001 };

struct side {
  struct connection *connection;
  struct request *requests[8];
  uint8_t *buffers[8];
  const struct memory *memories[8];
  uint64_t posted, done;
};

/* Grows when something has happened. */
static uint64_t side_progress(const struct side *side) {
  return side->posted + side->done;
}

static void side_start(struct side *side, struct connection *connection, size_t largest) {
  enum memory_use use = connection_is_sender(connection) ? MEMORY_SENT : MEMORY_RECEIVED;
  memset(side, 0, sizeof *side);
  side->connection = connection;
  for (int i = 0; i < 8; i++) {
    side->buffers[i] = malloc(largest + 1);
    assert_int_equal(
        memory_register(side->buffers[i], largest + 1, MEMORY_HOST, use, &side->memories[i]), 0);
  }
}

static void side_end(struct side *side) {
  for (int i = 0; i < 8; i++) {
    memory_deregister(side->memories[i]);
    free(side->buffers[i]);
  }
}

/* Posts one more if there is room, tests the oldest. The receiver offers more than is sent. */
static void side_step(struct side *side, bool is_sender, const size_t *sizes, size_t kinds,
                      uint64_t count) {
  if (side->posted < count && side->posted < side->done + 8) {
    uint64_t n = side->posted;
    uint8_t *buffer = side->buffers[n % 8];
    size_t bytes = sizes[n % kinds];
    const struct memory *memory = side->memories[n % 8];
    struct request *request;
    if (is_sender) {
      content_fill(n, buffer, bytes);
      assert_int_equal(plugin_post(side->connection, buffer, bytes, memory, &request), 0);
    } else {
      assert_int_equal(plugin_post(side->connection, buffer, bytes + 1, memory, &request), 0);
    }
    if (request) {
      side->requests[n % 8] = request;
      side->posted++;
    }
  }
  if (side->done < side->posted) {
    uint64_t n = side->done;
    bool is_done;
    size_t bytes = SIZE_MAX;
    int error = plugin_test(side->requests[n % 8], &is_done, &bytes);
    if (error) {
      log_capture_print();
      fail_msg("message %llu of the %s: %s", (unsigned long long)n,
               is_sender ? "sender" : "receiver", strerror(-error));
    }
    if (is_done) {
      assert_int_equal(bytes, sizes[n % kinds]);
      size_t at = is_sender ? bytes : content_differs(n, side->buffers[n % 8], bytes);
      if (at < bytes) {
        fail_msg("message %llu of %zu bytes differs at %zu", (unsigned long long)n, bytes, at);
      }
      side->done++;
    }
  }
}

void pair_exchange(struct pair pair, const size_t *sizes, size_t kinds, uint64_t count,
                   pair_disturb_fn *disturb) {
  size_t largest = 0;
  for (size_t i = 0; i < kinds; i++) {
    largest = sizes[i] > largest ? sizes[i] : largest;
  }
  struct side from, to;
  side_start(&from, pair.sender, largest);
  side_start(&to, pair.receiver, largest);
  uint64_t until_ns = clock_now_ns() + 3 * PATIENCE_NS, seen = 0;
  while (to.done < count || from.done < count) {
    assert_true(clock_now_ns() < until_ns);
    uint64_t before = side_progress(&from) + side_progress(&to);
    side_step(&from, true, sizes, kinds, count);
    side_step(&to, false, sizes, kinds, count);
    if (side_progress(&from) + side_progress(&to) == before) {
      breathe();
    }
    if (disturb && to.done != seen) {
      seen = to.done;
      disturb(seen);
    }
  }
  side_end(&from);
  side_end(&to);
}

void pair_cut_flows(unsigned keep_every) {
  DIR *directory = opendir("/proc/self/fd");
  struct dirent *entry;
  unsigned n = 0;
  while ((entry = readdir(directory))) {
    int fd = atoi(entry->d_name), type = 0;
    socklen_t bytes = sizeof type;
    struct sockaddr_storage peer;
    socklen_t peer_bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
        getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) &&
        (!keep_every || n++ % keep_every)) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  closedir(directory);
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

static void wait_for(struct request *request) {
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  bool is_done = false;
  size_t bytes;
  while (!is_done) {
    assert_true(clock_now_ns() < until_ns);
    assert_int_equal(plugin_test(request, &is_done, &bytes), 0);
    breathe();
  }
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
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (!from->error && !to->error && !(from->is_done && to->is_done)) {
    assert_true(clock_now_ns() < until_ns);
    pair_half_step(from);
    pair_half_step(to);
    breathe();
  }
}

int pair_error(struct request *request) {
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  bool is_done = false;
  size_t bytes;
  int error = 0;
  while (!error && !is_done && clock_now_ns() < until_ns) {
    error = plugin_test(request, &is_done, &bytes);
    breathe();
  }
  return error;
}

void pair_send_and_close(struct pair pair) {
  enum { COUNT = 8, BYTES = 4000 };
  struct request *requests[COUNT];
  uint8_t sent[COUNT][BYTES], got[COUNT][BYTES];
  for (unsigned i = 0; i < COUNT; i++) {
    memset(sent[i], (int)i + 1, BYTES);
    assert_int_equal(plugin_post(pair.sender, sent[i], BYTES, NULL, &requests[i]), 0);
    assert_non_null(requests[i]);
  }
  for (unsigned i = 0; i < COUNT; i++) {
    wait_for(requests[i]);
  }
  connection_detach(pair.sender);
  for (unsigned i = 0; i < COUNT; i++) {
    assert_int_equal(plugin_post(pair.receiver, got[i], BYTES, NULL, &requests[i]), 0);
    assert_non_null(requests[i]);
  }
  for (unsigned i = 0; i < COUNT; i++) {
    wait_for(requests[i]);
    assert_memory_equal(got[i], sent[i], BYTES);
  }
  connection_detach(pair.receiver);
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
