/* SPDX-License-Identifier: Apache-2.0 */
/* Teardown in NCCL's order: a buffer is deregistered, freed, and then its connection is closed,
 * whatever is in flight (sendProxyFree and recvProxyFree in NCCL's src/transport/net.cc). From the
 * moment that it is deregistered nobody reads or writes it: it is unmapped here, or its address
 * belongs to somebody else by then. Over TCP, sealed TCP and queue pairs (tests/lib/fake_verbs), in
 * each way to move the bytes. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net_plugin/connection/connection.h"
#include "tests/lib/lane_view.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

/* Some of it is in flight for milliseconds. ThreadSanitizer notes each byte. */
#ifdef __SANITIZE_THREAD__
#define LARGE_BYTES (3u << 20)
#else
#define LARGE_BYTES (12u << 20)
#endif
#define SMALL_BYTES 600u
#define SETTLE_NS (40 * NS_PER_MS) /* in which the old code wrote megabytes */
#define SENT 0xc3
#define FOREIGN 0x5a

#define PARAMETERS                                                                                 \
  "STRATUS_FLOWS=4 STRATUS_SECRET=0123456789abcdef0123456789abcdef STRATUS_PROGRESS="
static const struct rdma_host_way tcp_inline = { NULL, PARAMETERS "inline" };
static const struct rdma_host_way tcp_thread = { NULL, PARAMETERS "thread" };
static const struct rdma_host_way sealed_inline = { NULL, PARAMETERS "inline STRATUS_ENCRYPT=on" };
static const struct rdma_host_way sealed_thread = { NULL, PARAMETERS "thread STRATUS_ENCRYPT=on" };
static const struct rdma_host_way rdma_inline = { &rdma_host_roce, PARAMETERS "inline" };
static const struct rdma_host_way rdma_thread = { &rdma_host_roce, PARAMETERS "thread" };

static bool is_rdma(void **state) {
  return ((const struct rdma_host_way *)*state)->hca;
}

static int set_up(void **state) {
  rdma_host_set_up(state);
  if (is_rdma(state)) {
    fake_verbs_thread(true);
  }
  return 0;
}

static int tear_down(void **state) {
  assert_true(!is_rdma(state) || fake_verbs_counts().sends > 0); /* no lane was a TCP flow */
  return rdma_host_tear_down(state);
}

/* ---- one side of a connection, with a buffer of its own ---- */

#define REQUESTS 48

struct side {
  struct connection *connection;
  bool is_sender;
  uint8_t *buffer;
  size_t buffer_bytes;
  const struct memory *memory;
  struct request *requests[REQUESTS];
  unsigned posted, done;
  int error;
};

/* Over what is mapped there, in one step: another thread would map something in between. */
static uint8_t *map_at(void *at, size_t bytes, int content) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
  uint8_t *buffer = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  assert_ptr_not_equal(buffer, MAP_FAILED);
  memset(buffer, content, bytes);
  return buffer;
}

static struct side side_make(struct connection *connection, size_t bytes) {
  struct side side = { .connection = connection,
                       .is_sender = connection_is_sender(connection),
                       .buffer_bytes = bytes };
  side.buffer = map_at(NULL, bytes, side.is_sender ? SENT : 0);
  assert_int_equal(memory_register(side.buffer, bytes, MEMORY_HOST,
                                   side.is_sender ? MEMORY_SENT : MEMORY_RECEIVED, &side.memory),
                   0);
  return side;
}

static void side_post(struct side *side, size_t offset, size_t bytes) {
  struct request **request = &side->requests[side->posted++];
  uint8_t *data = side->buffer + offset;
  assert_int_equal(plugin_post(side->connection, data, bytes, side->memory, request), 0);
  assert_non_null(*request);
}

/* Tests the oldest request, as NCCL's progress thread does. */
static void side_step(struct side *side) {
  bool is_done = false;
  size_t bytes;
  if (side->done < side->posted && !side->error) {
    side->error = plugin_test(side->requests[side->done], &is_done, &bytes);
    side->done += is_done;
  }
}

static void side_run(struct side *side, uint64_t for_ns) {
  for (uint64_t until_ns = clock_now_ns() + for_ns; clock_now_ns() < until_ns;) {
    side_step(side);
    usleep(100);
  }
}

static void side_finish(struct side *side, struct side *peer) {
  UNTIL(side->done == side->posted) {
    side_step(side);
    side_step(peer);
    assert_int_equal(side->error, 0);
  }
}

/* As NCCL ends an aborted connection. Meanwhile the peer, and the engine's thread, go on. */
static void side_abort(struct side *side, struct side *peer, bool is_reused) {
  plugin_deregister(side->connection, side->memory);
  /* A large one fails, unless it completed while this thread got no CPU. */
  assert_true(side->buffer_bytes < LARGE_BYTES || side->done == side->posted ||
              connection_error(side->connection) < 0 ||
              connection_is_done(side->requests[side->done]));
  uint8_t *foreign = is_reused ? map_at(side->buffer, side->buffer_bytes, FOREIGN) : NULL;
  if (!foreign) {
    assert_int_equal(munmap(side->buffer, side->buffer_bytes), 0);
  }
  side_run(peer, SETTLE_NS);
  connection_detach(side->connection);
  side_run(peer, SETTLE_NS / 4);
  if (foreign) { /* as a whole: sanitizers look at each access of ours */
    assert_int_equal(foreign[0], FOREIGN);
    assert_memory_equal(foreign, foreign + 1, side->buffer_bytes - 1);
    munmap(foreign, side->buffer_bytes);
  }
  /* The kernel says so where a thread of ours would have been killed. */
  assert_int_equal(log_capture_find("Bad address"), 0);
}

static void side_free_buffer(struct side *side) {
  plugin_deregister(side->connection, side->memory);
  munmap(side->buffer, side->buffer_bytes);
}

static void side_end(struct side *side) {
  side_free_buffer(side);
  connection_detach(side->connection);
}

/* ---- the scenarios, over everything ---- */

#define SCENARIO(name)                                                                             \
  UNIT_TEST_EACH(name, set_up, tear_down, &tcp_inline, &tcp_thread, &sealed_inline,                \
                 &sealed_thread, &rdma_inline, &rdma_thread)

struct scene {
  struct side sender, receiver;
};

static struct scene scene_make(size_t sender_bytes, size_t receiver_bytes) {
  struct pair pair = pair_make(AF_INET);
  return (struct scene){ side_make(pair.sender, sender_bytes),
                         side_make(pair.receiver, receiver_bytes) };
}

/* A message has arrived, and its receive was posted and not looked at. */
SCENARIO(an_eager_message_waits) {
  for (int is_reused = 0; is_reused <= 1; is_reused++) {
    struct scene scene = scene_make(SMALL_BYTES, SMALL_BYTES);
    side_post(&scene.sender, 0, SMALL_BYTES);
    side_run(&scene.sender, SETTLE_NS / 2);
    side_post(&scene.receiver, 0, SMALL_BYTES);
    side_abort(&scene.receiver, &scene.sender, is_reused);
    side_end(&scene.sender);
  }
}

/* 2 to 7 in a row: what is held goes nowhere. */
SCENARIO(sends_are_held) {
  for (unsigned count = 2; count <= 7; count++) {
    struct scene scene = scene_make(8 * SMALL_BYTES, 8 * SMALL_BYTES);
    for (unsigned i = 0; i < count; i++) {
      side_post(&scene.sender, i * SMALL_BYTES, SMALL_BYTES);
    }
    side_post(&scene.receiver, 0, SMALL_BYTES);
    side_abort(&scene.sender, &scene.receiver, false);
    side_end(&scene.receiver);
  }
}

/* Some have gone out together, some wait in lanes, some are held. */
SCENARIO(sends_are_coalesced) {
  struct scene scene = scene_make(REQUESTS * SMALL_BYTES, REQUESTS * SMALL_BYTES);
  for (unsigned i = 0; i < REQUESTS; i++) {
    side_post(&scene.sender, i * SMALL_BYTES, SMALL_BYTES);
    if (i % 5 == 0) {
      side_step(&scene.sender);
    }
    if (i % 9 == 0) {
      side_post(&scene.receiver, i * SMALL_BYTES, SMALL_BYTES);
    }
  }
  side_abort(&scene.sender, &scene.receiver, false);
  side_end(&scene.receiver);
}

static bool has_bytes(struct connection *connection) {
  bool has = false;
  for (unsigned i = 0; !has && i < connection_lane_count(connection); i++) {
    has = lane_view(connection, i).counts.bytes_received > 0;
  }
  return has;
}

/* Some bytes have arrived, more are on their way. */
static struct scene large_in_flight(void) {
  for (unsigned tries = 1;; tries++) {
    struct scene scene = scene_make(LARGE_BYTES, LARGE_BYTES);
    side_post(&scene.receiver, 0, LARGE_BYTES);
    side_step(&scene.receiver);
    side_post(&scene.sender, 0, LARGE_BYTES);
    UNTIL(has_bytes(scene.receiver.connection)) {
      side_step(&scene.sender);
      side_step(&scene.receiver);
    }
    if (!connection_is_done(scene.receiver.requests[0])) {
      return scene;
    }
    /* This thread got no CPU in between. */
    assert_in_range(tries, 1, 20);
    side_finish(&scene.receiver, &scene.sender);
    side_finish(&scene.sender, &scene.receiver);
    side_end(&scene.receiver);
    side_end(&scene.sender);
  }
}

SCENARIO(a_large_receive_is_in_progress) {
  for (int is_reused = 0; is_reused <= 1; is_reused++) {
    struct scene scene = large_in_flight();
    side_abort(&scene.receiver, &scene.sender, is_reused);
    side_end(&scene.sender);
  }
}

SCENARIO(a_large_send_is_in_progress) {
  struct scene scene = large_in_flight();
  side_abort(&scene.sender, &scene.receiver, false);
  side_end(&scene.receiver);
}

/* The peer may send, and does so when the memory is gone. */
SCENARIO(receives_are_granted) {
  for (int is_large = 0; is_large <= 1; is_large++) {
    size_t bytes = is_large ? LARGE_BYTES : SMALL_BYTES;
    struct scene scene = scene_make(bytes, bytes);
    side_post(&scene.receiver, 0, bytes);
    side_run(&scene.receiver, SETTLE_NS / 4);
    side_post(&scene.sender, 0, bytes);
    side_abort(&scene.receiver, &scene.sender, true);
    side_end(&scene.sender);
  }
}

/* They wait for the peer's receives, which come when the memory is gone. */
SCENARIO(sends_wait_for_credit) {
  struct scene scene = scene_make(LARGE_BYTES, LARGE_BYTES);
  side_post(&scene.sender, 0, LARGE_BYTES / 2);
  side_post(&scene.sender, LARGE_BYTES / 2, LARGE_BYTES / 2);
  side_run(&scene.sender, SETTLE_NS / 4);
  side_post(&scene.receiver, 0, LARGE_BYTES / 2);
  side_post(&scene.receiver, LARGE_BYTES / 2, LARGE_BYTES / 2);
  side_abort(&scene.sender, &scene.receiver, false);
  side_end(&scene.receiver);
}

/* The link has failed in the middle, and NCCL has not closed it yet; bytes, and the end of flows,
 * still arrive. */
SCENARIO(the_link_has_failed) {
  for (int is_receiver = 0; is_receiver <= 1; is_receiver++) {
    struct scene scene = large_in_flight();
    struct side *side = is_receiver ? &scene.receiver : &scene.sender;
    struct side *peer = is_receiver ? &scene.sender : &scene.receiver;
    /* The peer gives up, too, while data is in the sockets. */
    plugin_deregister(peer->connection, peer->memory);
    side_run(side, SETTLE_NS / 4);
    pair_cut_flows(0);
    peer->memory = NULL;
    side_abort(side, peer, is_receiver);
    side_end(peer);
  }
}

/* Buffers whose requests are complete go at any time, and cost the others nothing. */
SCENARIO(finished_buffers_go_while_others_are_in_flight) {
  struct scene scene = scene_make(LARGE_BYTES, LARGE_BYTES);
  struct side first = side_make(scene.sender.connection, 100000);
  struct side second = side_make(scene.receiver.connection, 100000);
  side_post(&first, 0, 100000);
  side_post(&second, 0, 100000);
  side_post(&scene.sender, 0, LARGE_BYTES);
  side_post(&scene.receiver, 0, LARGE_BYTES);
  side_finish(&second, &first);
  side_finish(&first, &second);
  assert_int_equal(second.buffer[0], SENT);
  side_free_buffer(&first);
  side_free_buffer(&second);
  side_finish(&scene.receiver, &scene.sender);
  side_finish(&scene.sender, &scene.receiver);
  for (size_t i = 0; i < LARGE_BYTES; i += 509) {
    assert_int_equal(scene.receiver.buffer[i], SENT);
  }
  side_end(&scene.sender);
  side_end(&scene.receiver);
}
