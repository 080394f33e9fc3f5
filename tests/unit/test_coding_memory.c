/* SPDX-License-Identifier: Apache-2.0 */
/* The memory for compressed chunks: how much address space a connection takes for it, and what
 * happens where there is none. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "net_plugin/connection/connection_state.h"
#include "tests/lib/content.h"
#include "tests/lib/fault.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { LANES = 64, KIB = 1024 };
/* What a chunk takes to be decoded and to be compressed, in the pieces of connection_lanes.c. */
enum { CHUNK = 32 * KIB, DECODED_MOST = CHUNK, CODED_MOST = CHUNK + 16 * KIB };
enum { MESSAGES = 64 };
#define QUIET_NS (2 * NS_PER_S) /* no lane has come up for so long: no more will */
static const size_t large[] = { LANES * CHUNK };
static const char codes[] = "STRATUS_COMPRESS=on STRATUS_FLOWS=64 STRATUS_CHUNK_BYTES=32K";

/* Of this process, as `ulimit -v` and strict overcommit count it. */
static long address_space(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static struct link_view view_of(struct connection *connection) {
  struct link_view view;
  engine_lock(connection->engine);
  link_view(connection->link, &view);
  engine_unlock(connection->engine);
  return view;
}

static unsigned lanes_up(struct pair pair) {
  unsigned sender = view_of(pair.sender).lanes_up, receiver = view_of(pair.receiver).lanes_up;
  return sender < receiver ? sender : receiver;
}

/* With all lanes up, or all that come: a process of few descriptors has fewer. */
static struct pair make_pair(const char *parameters) {
  pair_set_parameters(parameters);
  static const size_t small[] = { 4 * KIB }; /* POLICY_LANES_BYTES */
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, small, 1, 1, NULL); /* lanes are opened when there is something to send */
  assert_int_equal(connection_lane_count(pair.sender), LANES);
  assert_int_equal(connection_lane_count(pair.receiver), LANES);
  unsigned up = 0, now_up;
  uint64_t until_ns = clock_now_ns() + QUIET_NS;
  while ((now_up = lanes_up(pair)) < LANES && clock_now_ns() < until_ns) {
    until_ns = now_up > up ? clock_now_ns() + QUIET_NS : until_ns;
    up = now_up;
    usleep(1000);
  }
  return pair;
}

/* Closes it, and waits until it is gone. */
static void end_pair(struct pair pair, long mappings_before) {
  pair_close(pair);
  UNTIL(fault_mappings() <= mappings_before);
}

/* By both ends, the least of some: a thread's first allocation reserves 64 MiB besides. */
static long taken_by_pair(const char *parameters) {
  long least = LONG_MAX;
  for (int round = 0; round < 3; round++) {
    long mappings = fault_mappings(), before = address_space();
    struct pair pair = make_pair(parameters);
    long taken = address_space() - before;
    end_pair(pair, mappings);
    least = taken < least ? taken : least;
  }
  return least;
}

LOG_CAPTURE_TEST(auto_takes_no_more_than_off) {
  long off = taken_by_pair("STRATUS_COMPRESS=off STRATUS_FLOWS=64 STRATUS_CHUNK_BYTES=128K");
  long with = taken_by_pair("STRATUS_COMPRESS=auto STRATUS_FLOWS=64 STRATUS_CHUNK_BYTES=128K");
  print_message("# two ends of 64 lanes: off %.1f MB, auto %.1f MB\n", (double)off / 1e6,
                (double)with / 1e6);
  assert_true(with <= off + 2L * 8000000);
}

/* What lanes have for compressed chunks, in bytes. */
static size_t lent_to(const struct connection *connection) {
  size_t bytes = 0;
  for (unsigned lane = 0; lane < LANES; lane++) {
    bytes += connection->slots[lane].coding_bytes;
  }
  return bytes;
}

LOG_CAPTURE_TEST(lanes_that_code_take_what_their_chunks_need) {
  content_set_codable(true);
  struct pair pair = make_pair(codes);
  assert_int_equal(lent_to(pair.sender) + lent_to(pair.receiver), 0);
  long before = address_space();
  pair_exchange(pair, large, 1, MESSAGES, NULL);
  struct link_coding coded = view_of(pair.sender).counts.coding;
  assert_int_equal(view_of(pair.receiver).counts.coding.coded, coded.coded);
  /* Not what a slow lane takes, in chunks too short for it. */
  assert_in_range(coded.bytes_before, MESSAGES * large[0] / 2, MESSAGES * large[0]);
  print_message(
      "# 64 lanes that code: sender %.1f MB, receiver %.1f MB; both in all %.1f MB more\n",
      (double)lent_to(pair.sender) / 1e6, (double)lent_to(pair.receiver) / 1e6,
      (double)(address_space() - before) / 1e6);
  assert_in_range(lent_to(pair.sender), CODED_MOST, LANES * CODED_MOST);
  assert_in_range(lent_to(pair.receiver), 1, LANES * DECODED_MOST);
  long mappings = fault_mappings();
  pair_exchange(pair, large, 1, MESSAGES, NULL); /* each lane has its own by now, or gets it */
  assert_true(fault_mappings() <= mappings + 2L * LANES);
  pair_close(pair);
  content_set_codable(false);
}

LOG_CAPTURE_TEST(a_sender_without_it_sends_chunks_as_they_are) {
  content_set_codable(true);
  struct pair pair = make_pair(codes);
  fault_refuse_mappings(1, SIZE_MAX);
  pair_exchange(pair, large, 1, MESSAGES, NULL);
  assert_true(fault_clear());
  struct link_view view = view_of(pair.sender);
  assert_int_equal(view.counts.coding.coded, 0);
  assert_int_equal(view.losses, view.stalls_cut); /* on a busy machine */
  assert_int_equal(log_capture_find("no memory to compress, expand or copy chunks of flow"), 1);
  pair_close(pair);
  content_set_codable(false);
}

/* Each lane that a compressed chunk comes on is lost once, and what follows comes as it is. */
LOG_CAPTURE_TEST(a_receiver_without_it_gets_chunks_as_they_are) {
  content_set_codable(true);
  struct pair pair = make_pair(codes);
  fault_refuse_mappings(1, DECODED_MOST);
  pair_exchange(pair, large, 1, 2 * MESSAGES, NULL);
  assert_true(fault_clear());
  struct link_view view = view_of(pair.sender);
  assert_int_equal(view_of(pair.receiver).counts.coding.coded, 0);
  assert_true(view.counts.coding.coded > 0);
  assert_in_range(view.losses - view.stalls_cut, 1, LANES);
  pair_close(pair);
  content_set_codable(false);
}
