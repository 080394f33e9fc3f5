/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers that do not come back (fake_verbs_hold_calls) while queue pairs are made: connections on
 * the same engine go on, and NCCL's calls return. If one waited for the driver, the test would
 * never end. And what becomes of a driver's late answer: the connection, the engine or the process
 * that wanted it may be gone. Under sanitizers no such call is made with an engine's lock. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fork_guard.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/lane_memory.h"
#include "net_plugin/lane/rdma/rdma_worker.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

enum { BYTES = 70000 };

#define PARAMETERS "STRATUS_FLOWS=2 STRATUS_THREADS=1 STRATUS_PROGRESS="
static const struct rdma_host_way roce = { &rdma_host_roce, PARAMETERS "inline" };
static const struct rdma_host_way roce_with_thread = { &rdma_host_roce, PARAMETERS "thread" };
static const struct rdma_host_way roce_hasty = { &rdma_host_roce,
                                                 PARAMETERS "inline STRATUS_CONNECT_TIMEOUT=1s" };
static const struct rdma_host_way iwarp = { &rdma_host_iwarp, PARAMETERS "inline" };

/* ---- calls with an engine's lock ---- */

static atomic_int calls_with_lock; /* that may take long */

#ifdef STRATUS_CHECKED
static atomic_uint polls_with_lock; /* which do not: those are seen */

/* A stop is allowed, when a lane ends (rdma_qp.h); it is a FAKE_MODIFY_QP, too, which came first.
 */
static void note_call(enum fake_call call) {
  if (!engine_is_any_locked()) {
    return;
  }
  switch (call) {
  case FAKE_POLL_CQ:
    atomic_fetch_add(&polls_with_lock, 1);
    break;
  case FAKE_POST_SEND:
  case FAKE_POST_RECV:
  case FAKE_REQ_NOTIFY:
  case FAKE_CM_EVENT:
    break;
  case FAKE_STOP_QP:
    atomic_fetch_sub(&calls_with_lock, 1);
    break;
  default:
    atomic_fetch_add(&calls_with_lock, 1);
    break;
  }
}
#endif

static int start(void **state) {
  rdma_host_set_up(state);
  atomic_store(&calls_with_lock, 0);
#ifdef STRATUS_CHECKED
  fake_verbs_on_call(note_call);
#endif
  return 0;
}

static int stop(void **state) {
  fake_verbs_on_call(NULL);
  rdma_host_tear_down(state);
  assert_int_equal(atomic_load(&calls_with_lock), 0);
  return 0;
}

/* ---- a connection that is made meanwhile ---- */

static void step_until_held(struct meeting *meeting) {
  UNTIL(fake_verbs_held() > 0) {
    meeting_step(meeting);
  }
}

static struct pair finish(struct meeting *meeting) {
  struct pair pair = meeting_pair(meeting);
  meeting_close(meeting);
  return pair;
}

/* Memory that is not registered: registering asks the driver, too. */
static void exchange_one(struct pair pair) {
  static uint8_t from[BYTES], to[BYTES];
  from[0]++;
  pair_send_one(pair, BYTES, from, NULL, to, NULL);
  assert_memory_equal(from, to, BYTES);
}

/* Until queue pairs carry the data. */
static void expect_rdma(struct pair pair) {
  rdma_host_expect(pair, 50);
#ifdef STRATUS_CHECKED
  assert_true(atomic_load(&polls_with_lock) > 0);
#endif
}

static void go_on_while_held(enum fake_call call) {
  struct pair other = pair_make(AF_INET);
  exchange_one(other);
  fake_verbs_hold_calls(call, true);
  struct meeting meeting = meeting_open(AF_INET);
  step_until_held(&meeting);
  for (int i = 0; i < 20; i++) {
    exchange_one(other);
    meeting_step(&meeting);
    usleep(20);
  }
  assert_true(fake_verbs_held() > 0);
  fake_verbs_hold_calls(call, false);
  struct pair pair = finish(&meeting);
  expect_rdma(pair);
  pair_close(pair);
  pair_close(other);
}

#define BOTH(name) UNIT_TEST_EACH(name, start, stop, &roce, &roce_with_thread)

BOTH(others_go_on_while_a_driver_makes_a_queue_pair) {
  static const enum fake_call calls[] = { FAKE_CREATE_CHANNEL, FAKE_CREATE_CQ, FAKE_CREATE_QP,
                                          FAKE_REG_MR, FAKE_MODIFY_QP };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    go_on_while_held(calls[i]);
  }
}

#define TEST(name, way) UNIT_TEST_EACH(name, start, stop, &(way))

TEST(others_go_on_while_librdmacm_connects, iwarp) {
  static const enum fake_call calls[] = { FAKE_CM_ID,      FAKE_CM_BIND,  FAKE_CM_LISTEN,
                                          FAKE_CM_ADDRESS, FAKE_CM_ROUTE, FAKE_CM_CONNECT,
                                          FAKE_CM_ACCEPT };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    go_on_while_held(calls[i]);
  }
}

/* A driver that hangs costs the lane its queue pair, not the connection. */
TEST(a_connection_is_made_without_a_driver_that_hangs, roce) {
  fake_verbs_hold_calls(FAKE_CREATE_QP, true);
  struct pair pair = pair_make(AF_INET);
  assert_true(fake_verbs_held() > 0);
  exchange_one(pair);
  assert_int_equal(fake_verbs_counts().sends, 0);
  fake_verbs_hold_calls(FAKE_CREATE_QP, false);
  pair_close(pair);
}

/* It is not answered when its endpoint is ready, or would be: NCCL would get a connection without a
 * peer. */
TEST(who_leaves_while_a_driver_hangs_gets_no_connection, roce_hasty) {
  fake_verbs_hold_calls(FAKE_CREATE_QP, true);
  struct meeting meeting = meeting_open(AF_INET);
  for (int error = 0; !error; usleep(20)) {
    error = meeting_connect(&meeting);
    meeting_accept(&meeting);
    assert_null(meeting.pair.receiver);
  }
  assert_true(fake_verbs_held() > 0);
  uint64_t until_ns = clock_now_ns() + ACCEPT_PATIENCE_NS + NS_PER_S / 2;
  while (clock_now_ns() < until_ns) {
    meeting_accept(&meeting);
    assert_null(meeting.pair.receiver);
    usleep(1000);
  }
  fake_verbs_hold_calls(FAKE_CREATE_QP, false);
  meeting_close(&meeting);
}

static atomic_int dial_error; /* 1: it goes on */

static void note_end(void *argument, int error, const struct lane_path *path,
                     const struct reply *reply) {
  (void)argument, (void)path, (void)reply;
  dial_error = error;
}

static void take_message(struct engine *engine, int fd, uint8_t *bytes, size_t count) {
  UNTIL(recv(fd, bytes, count, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)count) {
    engine_progress(engine);
  }
  assert_int_equal(recv(fd, bytes, count, 0), count);
}

/* Spoken by hand, to a driver that hangs then. What the dial ends with. */
static int dial_while_held(bool does_peer_leave) {
  struct nic nic = pair_loopback(AF_INET);
  const struct hello hello = {
    .params = { .lanes = 1, .chunk_bytes = 131072, .remote_keys = 1, .host = "here" },
    .epoch = 1,
    .dscp = -1
  };
  static const struct auth_keys keys = { .handle = { 1 } };
  struct reply reply = { .params = hello.params, .connect_port = 1 };
  struct transcript transcript = { 0 };
  union handshake_message heard;
  struct engine *engine;
  struct sockaddr_storage address;
  int listening = tcp_socket_listen(&nic, &address), fd, error;
  uint64_t deadline_ns = clock_now_ns() + (does_peer_leave ? PATIENCE_NS : 4 * NS_PER_S);
  endpoint_wait(&nic, 1, false);
  assert_int_equal(engine_get(&nic, ENGINE_DIALS, &engine), 0);
  fake_verbs_hold_calls(FAKE_CM_ADDRESS, true);
  dial_error = 1;
  engine_lock(engine);
  assert_non_null(
      dial_start(engine, &nic, &address, &hello, &keys, deadline_ns, note_end, NULL, &error));
  engine_unlock(engine);
  UNTIL((fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0);
  take_message(engine, fd, (uint8_t *)&transcript.hello, HELLO_BYTES);
  handshake_finish(&transcript.challenge, HANDSHAKE_CHALLENGE);
  by_hand_say(fd, &transcript.challenge, CHALLENGE_BYTES, false);
  take_message(engine, fd, (uint8_t *)&heard, PROOF_BYTES);
  assert_int_equal(handshake_check(&heard, HANDSHAKE_PROOF), 0);
  reply.offer = heard.proof.offer;
  auth_sign_reply(&keys, &transcript, &reply);
  by_hand_say(fd, &reply, REPLY_BYTES, false);
  UNTIL(fake_verbs_held() > 0) {
    engine_progress(engine);
  }
  assert_int_equal(dial_error, 1);
  if (does_peer_leave) {
    shutdown(fd, SHUT_WR);
  }
  UNTIL(dial_error != 1) {
    engine_progress(engine);
  }
  fake_verbs_hold_calls(FAKE_CM_ADDRESS, false);
  close(fd);
  close(listening);
  return dial_error;
}

/* So that the next dial comes without one. */
TEST(an_endpoint_that_does_not_connect_is_the_reason, roce) {
  assert_int_equal(dial_while_held(true), -ENODEV);
  assert_int_equal(dial_while_held(false), -ENODEV);
}

/* ---- the user's memory ---- */

static void *register_memory(void *memory) {
  return lane_memory_register(memory, BYTES, LANE_MEMORY_LOCAL, NULL);
}

BOTH(others_go_on_while_a_user_registers) {
  void *memory = malloc(BYTES), *registered = NULL;
  struct pair other = pair_make(AF_INET);
  expect_rdma(other);
  pthread_t thread;
  fake_verbs_hold_calls(FAKE_REG_MR, true);
  assert_int_equal(pthread_create(&thread, NULL, register_memory, memory), 0);
  UNTIL(fake_verbs_held() > 0);
  struct meeting meeting = meeting_open(AF_INET);
  for (int i = 0; i < 200; i++) {
    exchange_one(other);
    meeting_step(&meeting);
    usleep(20);
  }
  fake_verbs_hold_calls(FAKE_REG_MR, false);
  pthread_join(thread, &registered);
  struct pair pair = finish(&meeting);
  exchange_one(pair);
  pair_close(pair);
  pair_close(other);
  lane_memory_free(registered);
  free(memory);
}

/* ---- answers that nobody waits for ---- */

static void *let_go_soon(void *call) {
  usleep(100000); /* so that the test's thread waits by then, most times */
  fake_verbs_hold_calls((enum fake_call)(uintptr_t)call, false);
  return NULL;
}

/* The engine ends while the driver is at work for both sides of a handshake. */
BOTH(the_end_waits_for_the_driver) {
  static const enum fake_call calls[] = { FAKE_CREATE_QP, FAKE_MODIFY_QP };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    pthread_t thread;
    fake_verbs_hold_calls(calls[i], true);
    struct meeting meeting = meeting_open(AF_INET);
    step_until_held(&meeting);
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, (void *)(uintptr_t)calls[i]), 0);
    setup_stop();
    pthread_join(thread, NULL);
    struct fake_counts left = fake_verbs_counts();
    assert_int_equal(left.qps + left.cqs + left.channels + left.mrs + left.pds, 0);
  }
}
