/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up, engine, TCP lanes and transfer together, over loopback. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/setup.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

static const char one_thread[] = "STRATUS_PROGRESS=thread";
static const char four_engines[] = "STRATUS_THREADS=4";

/* A test that is run with each of these parameters, or NULL. */
#define EACH(name, ...) UNIT_TEST_EACH(name, pair_set_up, pair_tear_down, __VA_ARGS__)
#define TEST(name) EACH(name, NULL)

static int connect_plain(const struct sockaddr_storage *address) {
  int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)address, tcp_address_bytes(address)), 0);
  return fd;
}

/* First, since its warning comes at most once in a while. */
TEST(scanners_do_no_harm) {
  struct meeting meeting = meeting_open(AF_INET);
  int strangers[300];
  for (unsigned i = 0; i < 300; i++) {
    strangers[i] = connect_plain(&meeting.handle.addresses[0]);
    char garbage[256];
    memset(garbage, (int)i, sizeof garbage);
    if (i % 3 && send(strangers[i], garbage, i % 256, MSG_NOSIGNAL) < 0) {
      assert_int_equal(errno, EPIPE);
    }
  }
  struct pair pair = meeting_pair(&meeting);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  pair_close(pair);
  meeting_close(&meeting);
  for (unsigned i = 0; i < 300; i++) {
    close(strangers[i]);
  }
  assert_true(log_capture_find("rejected a connection") > 0);
}

static void exchange_small(uint64_t count) {
  static const size_t tiny[] = { 8 }, small[] = { 4096, 3000, 1 },
                      mixed[] = { 100, 16384, 0, 99999 };
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, tiny, 1, count, NULL);
  pair_exchange(pair, small, 3, count, NULL);
  pair_exchange(pair, mixed, 4, count / 5, NULL);
  pair_close(pair);
}

/* Small messages in a row go out together. */
EACH(small_messages_arrive_together, NULL, one_thread) {
  exchange_small(2000);
}

/* What a small socket buffer does not take of them follows. TCP waits some 10 ms each time until so
 * little room is worth a packet. */
EACH(small_messages_overflow_small_buffers, "STRATUS_SOCKET_BUFFER_BYTES=8K") {
  exchange_small(100);
}

static int lane_of_receiver(struct pair pair, bool is_next) {
  engine_lock(pair.receiver->engine);
  int lane = is_next ? pair.receiver->hot_lane : pair.receiver->last_lane;
  engine_unlock(pair.receiver->engine);
  return lane;
}

/* Messages go round. A scheduler that makes one lane look slow may change the round now and then.
 */
EACH(a_receiver_looks_where_the_next_message_comes, "STRATUS_FLOWS=4", "STRATUS_FLOWS=8") {
  enum { BYTES = 32 << 10, COUNT = 100 };
  static uint8_t from[BYTES], to[BYTES];
  struct pair pair = pair_make(AF_INET);
  unsigned right = 0, other = 0;
  for (unsigned i = 0; i < COUNT; i++) {
    int last = lane_of_receiver(pair, false), next = lane_of_receiver(pair, true);
    pair_send_one(pair, BYTES, from, NULL, to, NULL);
    right += next == lane_of_receiver(pair, false);
    other += last != lane_of_receiver(pair, false);
  }
  assert_true(other > COUNT / 2 && right > COUNT / 2);
  pair_close(pair);
}

/* Before what the other lanes of a round bring, and before anything is answered. */
EACH(what_has_arrived_is_told_at_once, "STRATUS_FLOWS=1") {
  struct pair pair = pair_make(AF_INET);
  struct engine *engine = pair.receiver->engine;
  static uint8_t from[8], to[8];
  struct request *sent, *received;
  engine_lock(engine); /* nobody else reads */
  assert_int_equal(plugin_post(pair.receiver, to, sizeof to, NULL, &received), 0);
  assert_int_equal(plugin_post(pair.sender, from, sizeof from, NULL, &sent), 0);
  connection_pump(pair.receiver, clock_now_ns());
  connection_pump(pair.sender, clock_now_ns());
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS / 10;
  while (!connection_is_done(received) && clock_now_ns() < until_ns) {
    connection_serve_lane(pair.receiver, 0, EPOLLIN, clock_now_ns());
  }
  bool is_told = connection_is_done(received);
  engine_run_deferred(engine);
  engine_unlock(engine);
  pair_close(pair);
  assert_true(is_told);
}

/* A post is held only while NCCL brings more of them: not when it has tested twice. */
EACH(a_held_post_is_sent, NULL, one_thread) {
  struct pair pair = pair_make(AF_INET);
  static uint8_t from[2][8], to[2][8];
  for (int round = 0; round < (unit_has_time() ? 200 : 20); round++) {
    struct request *sent[2], *received[2];
    for (int i = 0; i < 2; i++) {
      received[i] = pair_post(pair.receiver, to[i], 8);
    }
    for (int i = 0; i < 2; i++) {
      sent[i] = pair_post(pair.sender, from[i], 8);
    }
    for (int i = 0; i < 2; i++) {
      assert_int_equal(pair_wait(sent[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
      assert_int_equal(pair_wait(received[i]), 0);
    }
  }
  pair_close(pair);
}

/* Do lanes know that more messages follow, where so many are sent in a row? */
static bool are_followed(struct pair pair, unsigned count) {
  static uint8_t from[8000], to[8000];
  struct request *sent[8], *received[8];
  for (unsigned i = 0; i < count; i++) {
    received[i] = pair_post(pair.receiver, to, sizeof to);
  }
  for (unsigned i = 0; i < count; i++) {
    sent[i] = pair_post(pair.sender, from, sizeof from);
  }
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(pair_wait(sent[i]) | pair_wait(received[i]), 0);
  }
  bool are = false;
  engine_lock(pair.sender->engine);
  for (uint64_t lanes = pair.sender->opened; lanes != 0; lanes &= lanes - 1) {
    are |= pair.sender->slots[__builtin_ctzll(lanes)].lane->has_followers;
  }
  engine_unlock(pair.sender->engine);
  return are;
}

EACH(lanes_gather_what_is_sent_in_a_row, "STRATUS_FLOWS=1") {
  struct pair pair = pair_make(AF_INET);
  bool are = false;
  for (unsigned i = 0; i < 10 && !are; i++) { /* this thread may not be given a CPU */
    are = are_followed(pair, 8);
  }
  assert_true(are);
  assert_false(are_followed(pair, 1));
  pair_close(pair);
}

/* More of lost flows: test_lanes.c. */
TEST(what_a_connection_has_seen_is_told_at_its_end) {
  /* A cut is a failure where it is seen as a reset; as an end of file it looks like a peer that
   * leaves. */
  for (unsigned i = 0; i < 20 && log_capture_find(" lost: ") == 0; i++) {
    pair_exchange_with_cuts(AF_INET);
  }
  UNTIL(log_capture_find(" closed after ") > 0);
  const char *told = NULL;
  for (size_t i = 0; !told; i++) {
    told = strstr(log_capture_text(i), " closed after ");
  }
  assert_true(strtod(told + strlen(" closed after "), NULL) * NS_PER_S < 2 * PATIENCE_NS);
}

static uint64_t stalled_ns(struct connection *connection) {
  struct connection_snapshot seen;
  engine_lock(connection->engine);
  connection_snapshot(connection, clock_now_ns(), &seen);
  engine_unlock(connection->engine);
  return seen.stalled_ns;
}

/* From the post, not from the last look at it, nor from what another request waited for before. */
EACH(a_wait_is_counted_from_its_post, "STRATUS_STALL_REPORT=2s") {
  struct pair pair = pair_make(AF_INET);
  uint8_t from[8] = { 0 }, to[8];
  struct pair_half sent = { .connection = pair.sender, .data = from, .bytes = 8 };
  struct pair_half received = { .connection = pair.receiver, .data = to, .bytes = 8 };
  uint64_t posted_ns = clock_now_ns();
  while (clock_now_ns() < posted_ns + 1200 * NS_PER_MS) {
    pair_half_step(&received);
    usleep(20);
  }
  uint64_t stalled = stalled_ns(pair.receiver);
  assert_in_range(stalled, 900 * NS_PER_MS, clock_now_ns() - posted_ns);
  pair_halves(&sent, &received);
  received = (struct pair_half){ .connection = pair.receiver, .data = to, .bytes = 8 };
  posted_ns = clock_now_ns();
  do { /* the engine's thread may be busy with it */
    pair_half_step(&received);
    stalled = stalled_ns(pair.receiver);
  } while (stalled > clock_now_ns() - posted_ns && clock_now_ns() < posted_ns + 200 * NS_PER_MS);
  assert_true(stalled <= clock_now_ns() - posted_ns);
  pair_close(pair);
}

EACH(a_vanished_peer_is_named, "STRATUS_LINK_TIMEOUT=300ms") {
  struct pair pair = pair_make(AF_INET);
  static uint8_t data[1 << 20];
  connection_detach(pair.receiver);
  int error = pair_wait(pair_post(pair.sender, data, sizeof data));
  assert_true(error == -ECONNRESET || error == -ETIMEDOUT);
  assert_true(log_capture_find("127.0.0.1:") > 0);
  assert_true(log_capture_find("lo") > 0);
  connection_detach(pair.sender);
}

/* All flows are cut, and before any reconnects the receiver fails: it has nothing to say it
 * with. The sender hears of it when it dials, and not after its own timeout. */
TEST(a_peer_that_failed_unheard_is_no_riddle) {
  struct pair pair = pair_make(AF_INET);
  static uint8_t data[1 << 20];
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  struct engine *engine = pair.receiver->engine;
  engine_lock(engine);
  pair_cut_flows(0);
  connection_fail(pair.receiver, -EIO);
  engine_unlock(engine);
  assert_int_equal(pair_wait(pair_post(pair.sender, data, sizeof data)), -ECONNRESET);
  pair_close(pair);
}

TEST(another_version_is_told_apart) {
  struct meeting meeting = meeting_open(AF_INET);
  struct hello hello = { .params.lanes = 1, .epoch = 1 };
  memcpy(hello.listener, meeting.handle.listener, TOKEN_BYTES);
  handshake_finish(&hello, HANDSHAKE_HELLO);
  hello.prefix.wire_version = 77;
  strcpy(hello.prefix.version, "9.9.9");
  int fd = connect_plain(&meeting.handle.addresses[0]);
  assert_int_equal(send(fd, &hello, HELLO_BYTES, 0), HELLO_BYTES);
  assert_int_equal(by_hand_hear_reply(fd).status, REPLY_OTHER_VERSION);
  close(fd);
  meeting_accept(&meeting);
  assert_null(meeting.pair.receiver);
  assert_true(log_capture_find("9.9.9") > 0);
  meeting_close(&meeting);

  /* And from the other side: the peer's handle is of another release, or of another transport. */
  meeting.bytes[4] = 77;
  assert_int_equal(meeting_connect(&meeting), -EPROTONOSUPPORT);
  assert_true(log_capture_find("wire version 77") > 0);
  meeting.bytes[0] = 0;
  assert_int_equal(meeting_connect(&meeting), -EPROTO);
  assert_true(log_capture_find("NCCL_NET_PLUGIN") > 0);
}

/* At this address, where no listener of ours is. */
static int connect_error(const struct sockaddr_storage *address) {
  struct meeting meeting = { .nics = { pair_loopback(AF_INET) }, .nic_count = 1 };
  struct handle handle = { .count = 1, .addresses = { *address } };
  handle_encode(&handle, meeting.bytes);
  return meeting_error(&meeting);
}

static int connect_error_at_port_1(void) {
  struct nic nic = pair_loopback(AF_INET);
  ((struct sockaddr_in *)&nic.address)->sin_port = htons(1);
  return connect_error(&nic.address);
}

EACH(nobody_there_is_an_error_in_time, "STRATUS_CONNECT_TIMEOUT=200ms") {
  assert_int_equal(connect_error_at_port_1(), -ECONNREFUSED);
  assert_true(log_capture_find("127.0.0.1:1, for 0.2 s (STRATUS_CONNECT_TIMEOUT)") > 0);
}

/* Its listener has gone, so its process has: not two minutes, as for one that does not answer. */
TEST(a_dead_peer_is_an_error_in_seconds) {
  assert_int_equal(connect_error_at_port_1(), -ECONNREFUSED);
  assert_true(log_capture_find("for 4 s (the peer's process is gone") > 0);
}

/* The dial may not take longer than what is left, though one has seconds (PATIENCE_NS is more). */
EACH(who_does_not_answer_is_an_error_in_time, "STRATUS_CONNECT_TIMEOUT=200ms") {
  struct nic nic = pair_loopback(AF_INET);
  struct sockaddr_storage address;
  int fd = tcp_socket_listen(&nic, &address);
  uint64_t start_ns = clock_now_ns();
  assert_int_equal(connect_error(&address), -ETIMEDOUT);
  assert_true(clock_now_ns() - start_ns < CONNECT_DIAL_TIMEOUT_NS);
  close(fd);
}

/* Anybody on the way can say it, so it costs time only: the deadline ends it, and the user is told
 * at once what was said. */
EACH(a_refusal_without_proof_is_not_the_end, "STRATUS_CONNECT_TIMEOUT=300ms") {
  struct meeting meeting = meeting_open(AF_INET);
  meeting.bytes[HANDLE_LISTENER_AT] ^= 1;         /* nobody has this identity */
  bool is_told = false;                           /* while it is still tried */
  for (unsigned i = 0; i < 10 && !is_told; i++) { /* this thread may not be given a CPU */
    uint64_t start_ns = clock_now_ns();
    int error = 0;
    log_capture_start();
    UNTIL(error) {
      is_told = is_told || log_capture_find("does not know this connection") > 0;
      error = meeting_connect(&meeting);
    }
    assert_int_equal(error, -ECONNREFUSED);
    assert_true(clock_now_ns() - start_ns >= 300 * NS_PER_MS);
  }
  assert_true(is_told);
  meeting_close(&meeting);
}

static unsigned count_connections(struct engine *engine) {
  unsigned count = 0;
  engine_lock(engine);
  for (struct connection *each = NULL; (each = connection_next(engine, each));) {
    count++;
  }
  engine_unlock(engine);
  return count;
}

/* NCCL aborts, and calls connect no more: what came of it goes by itself. The token in the handle
 * is for one listener only. */
EACH(a_connection_that_nobody_asks_for_goes, "STRATUS_CONNECT_TIMEOUT=100ms STRATUS_THREADS=1") {
  struct meeting first = meeting_open(AF_INET), second = meeting_open(AF_INET);
  struct engine *engine;
  assert_int_equal(engine_get(first.nics, ENGINE_DIALS, &engine), 0);
  assert_int_equal(meeting_connect(&first), 0);
  uint64_t token = handle_pending(first.bytes);
  handle_set_pending(second.bytes, token);
  assert_int_equal(meeting_connect(&second), 0);
  assert_null(second.pair.sender);
  assert_true(token != 0 && handle_pending(second.bytes) != token);
  UNTIL(first.pair.receiver) {
    meeting_accept(&first);
  }
  connection_detach(first.pair.receiver);
  UNTIL(count_connections(engine) <= 1); /* one waits in the second listener */
  meeting_close(&first);
  meeting_close(&second);
}

/* NCCL aborts before it has taken a connection, or without closing it: the peers are told at once,
 * and nobody is waited for. */
EACH(the_last_finalize_closes_what_nobody_does, NULL, four_engines) {
  for (unsigned i = 0; i < 2; i++) {
    struct meeting meeting = meeting_open(AF_INET);
    UNTIL(meeting.pair.sender) {
      assert_int_equal(meeting_connect(&meeting), 0);
    }
    UNTIL(i == 1 || meeting.pair.receiver) {
      meeting_accept(&meeting);
    }
  }
  uint64_t start_ns = clock_now_ns();
  setup_stop();
  assert_true(clock_now_ns() - start_ns < SETUP_CLOSE_NS);
}

/* Engines that get no port of their own leave their listeners to the first. */
TEST(a_narrow_port_range_is_enough) {
  struct nic nic = pair_loopback(AF_INET);
  struct sockaddr_storage address;
  int fd = tcp_socket_listen(&nic, &address);
  assert_true(fd >= 0);
  close(fd);
  unsigned port = ntohs(((struct sockaddr_in *)&address)->sin_port);
  char range[64];
  snprintf(range, sizeof range, "STRATUS_PORT_RANGE=%u-%u STRATUS_THREADS=3", port, port);
  pair_set_parameters(range);
  for (int i = 0; i < 3; i++) {
    struct pair pair = pair_make(AF_INET);
    pair_exchange(pair, pair_sizes, 4, 8, NULL);
    pair_close(pair);
  }
}

enum { LISTENERS = 6 };
static pthread_barrier_t together;

static void *listen_with_the_others(void *fd) {
  struct nic nic = pair_loopback(AF_INET);
  struct sockaddr_storage address;
  pthread_barrier_wait(&together);
  *(int *)fd = tcp_socket_listen(&nic, &address);
  return NULL;
}

/* Several can bind a port at the same time, of which one can listen: the others take the next. */
EACH(ranks_of_a_host_share_a_port_range, "STRATUS_PORT_RANGE=41000-41050") {
  pthread_barrier_init(&together, NULL, LISTENERS);
  for (int round = 0; round < (unit_has_time() ? 200 : 20); round++) {
    pthread_t threads[LISTENERS];
    int fds[LISTENERS];
    for (int i = 0; i < LISTENERS; i++) {
      assert_int_equal(pthread_create(&threads[i], NULL, listen_with_the_others, &fds[i]), 0);
    }
    for (int i = 0; i < LISTENERS; i++) {
      pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < LISTENERS; i++) {
      assert_true(fds[i] >= 0);
      descriptor_close(fds[i]);
    }
  }
  pthread_barrier_destroy(&together);
}
