/* SPDX-License-Identifier: Apache-2.0 */
/* What every kind of lane must do, over TCP flows and over queue pairs; and what happens to
 * connections when queue pairs, devices and registrations fail. The queue pairs are those of
 * tests/lib/fake_verbs; the rest is real: set-up, engines, links, sockets on loopback.
 *
 * With STRATUS_TEST_DEVICE=NAME the queue pairs are real, too: those of the RDMA device of this
 * name on the interface STRATUS_TEST_NIC, which has the IPv4 address STRATUS_TEST_ADDRESS
 * (tests/vm/inside/lanes). Only what all must do is tested then. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/sysfs.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/plugin/memory.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

static const struct fake_hca erdma_hca = {
  .name = "erdma_0", .addresses = { "127.0.0.1" }, .max_inline = 96, .has_no_iova2 = true
};
/* In standard mode. */
static const struct fake_hca iwarp_hca = { .name = "erdma_0",
                                           .addresses = { "127.0.0.1" },
                                           .is_iwarp = true,
                                           .max_inline = 96,
                                           .has_no_iova2 = true,
                                           .vendor_id = 0x1ded };
static const struct fake_hca *current; /* NULL: no queue pairs, or real ones */
static const char *real_device;        /* NULL: none */

/* ---- kinds ---- */

#define SOMETIMES __attribute__((unused)) /* see EACH */
#define PARAMETERS "STRATUS_FLOWS=3 STRATUS_CHUNK_BYTES=64K STRATUS_PROGRESS="
SOMETIMES static const struct rdma_host_way tcp = { NULL, PARAMETERS "auto" };
static const struct rdma_host_way tcp_threads = { NULL,
                                                  "STRATUS_PROGRESS=thread STRATUS_THREADS=2" };
static const struct rdma_host_way tcp_engines = { NULL, "STRATUS_THREADS=4" };
static const struct rdma_host_way rdma = { &rdma_host_roce, PARAMETERS "inline" };
static const struct rdma_host_way rdma_thread = { &rdma_host_roce, PARAMETERS "thread" };
SOMETIMES static const struct rdma_host_way rdma_checksums = { &rdma_host_roce, PARAMETERS
                                                               "inline STRATUS_CHECKSUM=1" };
static const struct rdma_host_way erdma = { &erdma_hca, PARAMETERS "inline" };
SOMETIMES static const struct rdma_host_way iwarp = { &iwarp_hca, PARAMETERS "inline" };
static const struct rdma_host_way real = { NULL, PARAMETERS "inline" };
static const struct rdma_host_way real_thread = { NULL, PARAMETERS "thread" };
static const struct rdma_host_way real_checksums = { NULL, PARAMETERS "inline STRATUS_CHECKSUM=1" };

static int start(void **state) {
  const struct rdma_host_way *way = *state;
  current = way->hca;
  if (real_device) {
    endpoint_configure();
  }
  return rdma_host_set_up(state);
}

static int stop(void **state) {
  rdma_host_tear_down(state);
  assert_int_equal(memory_count(), 0);
  return 0;
}

/* Packets that the device has sent. */
static uint64_t real_packets(void) {
  int64_t packets = 0;
  sysfs_read_int("/", &packets, "sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts",
                 real_device);
  return (uint64_t)packets;
}

static const size_t small[] = { 8, 100, 4000 }, large[] = { 300000 };

/* ---- what all do ---- */

static void data_arrives(void **state) {
  uint64_t before = real_device ? real_packets() : 0;
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, NULL);
  pair_exchange(pair, small, 3, 300, NULL);
  pair_exchange(pair, large, 1, 20, NULL);
  struct fake_counts counts = fake_verbs_counts(); /* none without a fake device */
  assert_true((current != NULL) == (counts.writes > 0));
  assert_true((current != NULL) == (counts.cm_accepted > 0));
  assert_true(!real_device || real_packets() - before > 1000);
  pair_close(pair);
}

static void connections_do_not_mix(void **state) {
  struct pair a = pair_make(AF_INET), b = pair_make(AF_INET);
  pair_exchange(a, small, 3, 100, NULL);
  pair_exchange(b, large, 1, 10, NULL);
  pair_exchange(a, large, 1, 10, NULL);
  pair_close(b);
  pair_exchange(a, small, 3, 100, NULL);
  pair_close(a);
}

static void data_survives_lost_lanes(void **state) {
  pair_exchange_with_cuts(AF_INET);
}

/* The sender leaves as soon as they are sent. */
static void small_messages_survive_a_close(void **state) {
  enum { COUNT = 8, BYTES = 4000 };
  struct request *requests[COUNT];
  uint8_t sent[COUNT][BYTES], got[COUNT][BYTES];
  struct pair pair = pair_make(AF_INET);
  for (unsigned i = 0; i < COUNT; i++) {
    memset(sent[i], (int)i + 1, BYTES);
    requests[i] = pair_post(pair.sender, sent[i], BYTES);
  }
  for (unsigned i = 0; i < COUNT; i++) {
    assert_int_equal(pair_wait(requests[i]), 0);
  }
  connection_detach(pair.sender);
  for (unsigned i = 0; i < COUNT; i++) {
    requests[i] = pair_post(pair.receiver, got[i], BYTES);
  }
  for (unsigned i = 0; i < COUNT; i++) {
    assert_int_equal(pair_wait(requests[i]), 0);
    assert_memory_equal(got[i], sent[i], BYTES);
  }
  connection_detach(pair.receiver);
}

static void leave(struct pair_half *half) {
  connection_detach(half->connection);
  memory_deregister(half->memory);
  free(half->data);
}

/* One end leaves in the middle; its memory is freed at once, and nobody touches it (SAN=address).
 */
static void leave_early(bool is_sender_first) {
  enum { TOTAL = 4 << 20 };
  struct pair pair = pair_make(AF_INET);
  struct pair_half sent = { .connection = pair.sender, .bytes = TOTAL };
  struct pair_half received = { .connection = pair.receiver, .bytes = TOTAL };
  struct pair_half *first = is_sender_first ? &sent : &received;
  struct pair_half *other = is_sender_first ? &received : &sent;
  sent.data = calloc(1, TOTAL);
  received.data = calloc(1, TOTAL);
  assert_int_equal(memory_register(sent.data, TOTAL, MEMORY_HOST, MEMORY_SENT, &sent.memory), 0);
  assert_int_equal(
      memory_register(received.data, TOTAL, MEMORY_HOST, MEMORY_RECEIVED, &received.memory), 0);
  for (int i = 0; i < 4; i++) { /* the first posts */
    pair_half_step(&received);
    pair_half_step(&sent);
  }
  leave(first);
  uint64_t until_ns = clock_now_ns() + NS_PER_S / 5;
  while (clock_now_ns() < until_ns && !other->error && !other->is_done) {
    pair_half_step(other);
  }
  leave(other);
}

static void a_sender_may_leave_early(void **state) {
  leave_early(true);
}

static void a_receiver_may_leave_early(void **state) {
  leave_early(false);
}

/* ---- what queue pairs do besides ---- */

static void small_messages_are_sent_and_large_ones_written(void **state) {
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, small, 3, 50, NULL);
  assert_int_equal(fake_verbs_counts().writes, 0);
  assert_true(fake_verbs_counts().sends >= 50);
  pair_exchange(pair, large, 1, 20, NULL);
  struct fake_counts counts = fake_verbs_counts();
  assert_true(counts.written_bytes >= 15u * 300000);
  assert_int_equal(counts.waits, 0); /* no send ever found no receive */
  pair_close(pair);
}

static const enum ibv_wc_status statuses[] = {
  IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR,
  IBV_WC_WR_FLUSH_ERR,  IBV_WC_FATAL_ERR,         IBV_WC_GENERAL_ERR,
};

/* Few enough that those before have happened. */
static void fail_some(uint64_t done) {
  unsigned kind = (unsigned)(done / 8 % (sizeof statuses / sizeof *statuses));
  if (done % 8 == 1) {
    fake_verbs_fail_work(FAKE_SEND, 1 + (unsigned)done % 5, statuses[kind], done % 16 == 1);
  } else if (done % 24 == 5) {
    fake_verbs_fail_work(FAKE_RECEIVE, 2, IBV_WC_LOC_LEN_ERR, false);
  }
}

static void failed_work_is_done_again(void **state) {
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, fail_some);
  pair_exchange(pair, large, 1, 60, fail_some);
  pair_close(pair);
}

static void remove_in_the_middle(uint64_t done) {
  if (done == 10) {
    fake_verbs_remove(current->name);
  }
}

static void tcp_goes_on_without_the_device(void **state) {
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, large, 1, 40, remove_in_the_middle);
  uint64_t before = fake_verbs_counts().sends;
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 30, NULL);
  assert_int_equal(fake_verbs_counts().sends, before);
  fake_verbs_add(current);
  rdma_host_expect(pair, 100);
  pair_close(pair);
}

/* Of a GPU's memory devices read what is sent; what a device wrote there would need a flush. */
static void devices_do_not_write_to_gpu_memory(void **state) {
  enum { TOTAL = 300000 };
  uint8_t *from = malloc(TOTAL), *to = calloc(1, TOTAL);
  const struct memory *from_memory, *to_memory, *host_memory;
  struct pair pair = pair_make(AF_INET);
  content_fill(7, from, TOTAL);
  assert_int_equal(memory_register(from, TOTAL, MEMORY_GPU, MEMORY_SENT, &from_memory), 0);
  assert_int_equal(memory_register(to, TOTAL, MEMORY_GPU, MEMORY_RECEIVED, &to_memory), 0);
  pair_send_one(pair, TOTAL, from, from_memory, to, to_memory);
  assert_int_equal(content_differs(7, to, TOTAL), TOTAL);
  assert_int_equal(fake_verbs_counts().written_bytes, 0);
  assert_true(fake_verbs_counts().sent_bytes >= TOTAL);
  assert_int_equal(memory_register(to, TOTAL, MEMORY_HOST, MEMORY_RECEIVED, &host_memory), 0);
  pair_send_one(pair, TOTAL, from, from_memory, to, host_memory);
  assert_true(fake_verbs_counts().written_bytes >= TOTAL);
  pair_close(pair);
  memory_deregister(from_memory);
  memory_deregister(to_memory);
  memory_deregister(host_memory);
  free(from);
  free(to);
}

#define TEST(name, way)                                                                            \
  cmocka_unit_test_prestate_setup_teardown(name, start, stop, (void *)(uintptr_t) & (way))
/* ThreadSanitizer: where threads of ours meet. */
#ifdef __SANITIZE_THREAD__
#define SOME(name) TEST(name, tcp_engines), TEST(name, rdma_thread)
#define EACH(name) SOME(name), TEST(name, tcp_threads)
#else
#define SOME(name)                                                                                 \
  TEST(name, tcp), TEST(name, tcp_engines), TEST(name, rdma_thread), TEST(name, iwarp)
#define EACH(name) SOME(name), TEST(name, tcp_threads), TEST(name, rdma), TEST(name, rdma_checksums)
#endif

#define RDMA(name) TEST(name, rdma)

#define EACH_REAL(name) TEST(name, real), TEST(name, real_thread), TEST(name, real_checksums)

static int test_real_device(void) {
  const struct CMUnitTest tests[] = {
    EACH_REAL(data_arrives),
    EACH_REAL(connections_do_not_mix),
    EACH_REAL(data_survives_lost_lanes),
    EACH_REAL(small_messages_survive_a_close),
    EACH_REAL(a_sender_may_leave_early),
    EACH_REAL(a_receiver_may_leave_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
  real_device = getenv("STRATUS_TEST_DEVICE");
  if (real_device) {
    pair_use(getenv("STRATUS_TEST_NIC"), getenv("STRATUS_TEST_ADDRESS"));
    return test_real_device();
  }
  const struct CMUnitTest tests[] = {
    EACH(data_arrives),
    TEST(data_arrives, erdma),
    SOME(connections_do_not_mix),
    EACH(data_survives_lost_lanes),
    SOME(small_messages_survive_a_close),
    SOME(a_sender_may_leave_early),
    SOME(a_receiver_may_leave_early),
    RDMA(small_messages_are_sent_and_large_ones_written),
    RDMA(failed_work_is_done_again),
    RDMA(tcp_goes_on_without_the_device),
    RDMA(devices_do_not_write_to_gpu_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
