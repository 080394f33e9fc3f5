/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose ranks would wait for each other forever are found before they run, and good ones
 * pass. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/coll/replay/deadlock.h"

enum { TEXT_MAX = 8192, ITEMS_MAX = 256 };
static struct workload workload;
static char error[WORKLOAD_ERROR_MAX];

/* Groups: a, pairs of neighbours; b, of ranks 2 apart, where there are four. */
static int check(int ranks, const char *events) {
  static struct plan_item items[ITEMS_MAX];
  const struct plan_settings settings = { .ranks = ranks, .compute_scale = 1, .bytes_scale = 1 };
  char text[TEXT_MAX];
  snprintf(text, sizeof text,
           "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"t\", \"source\": \"t\","
           " \"batch\": 1, \"parallel\": \"events\", \"gradient_type\": \"float32\","
           " \"groups\": [%s%s], \"events\": [%s]}",
           ranks % 2 ? "" : "{\"name\": \"a\", \"size\": 2, \"stride\": 1}",
           ranks % 4 ? "" : ", {\"name\": \"b\", \"size\": 2, \"stride\": 2}", events);
  if (workload_parse(&workload, text, strlen(text), "w.json", error))
    fail_msg("%s", error);
  int64_t count = plan_make(&workload, &settings, items, ITEMS_MAX, error);
  if (count < 0)
    fail_msg("%s", error);
  assert_in_range(count, 1, ITEMS_MAX);
  strcpy(error, "good");
  int result = deadlock_check(&workload, items, (size_t)count, ranks, error);
  workload_free(&workload);
  return result;
}

#define OF(group, rank) "\"only\": {\"group\": \"" group "\", \"rank\": " #rank "}"
#define SEND(to, n) "{\"send\": " #to ", \"elements\": " #n "}"
#define RECV(from, n) "{\"recv\": " #from ", \"elements\": " #n "}"
#define EXCHANGE(parts, group, rank)                                                               \
  "{\"exchange\": [" parts "], \"group\": \"" group "\", " OF(group, rank) "}"
#define REDUCE(group) "{\"collective\": \"all_reduce\", \"elements\": 4, \"group\": \"" group "\"}"
#define REDUCE_OF(group, whose, rank)                                                              \
  "{\"collective\": \"all_reduce\", \"elements\": 4, \"group\": \"" group "\", " OF(whose, rank) "}"

static void assert_good(int ranks, const char *events) {
  int result = check(ranks, events);
  assert_string_equal(error, "good");
  assert_int_equal(result, 0);
}

static void assert_bad(int ranks, const char *events, const char *message) {
  assert_int_equal(check(ranks, events), -EINVAL);
  assert_string_equal(error, message);
}

UNIT_TEST(test_a_send_meets_its_receive) {
  assert_good(4, EXCHANGE(SEND(1, 8), "b", 0) "," EXCHANGE(RECV(0, 8), "b", 1));
  /* There and back, while all ranks reduce in two other groups between. */
  assert_good(
      8, EXCHANGE(RECV(0, 8), "b", 1) "," EXCHANGE(SEND(1, 8), "b", 0) "," REDUCE("a") "," REDUCE(
             "world") "," EXCHANGE(SEND(0, 5), "b", 1) "," EXCHANGE(RECV(1, 5), "b", 0));
}

/* One call of NCCL has both, so the order within it does not matter. */
UNIT_TEST(test_grouped_neighbours) {
  assert_good(2, EXCHANGE(SEND(1, 8) "," RECV(1, 3), "a", 0) "," EXCHANGE(SEND(0, 3) "," RECV(0, 8),
                                                                          "a", 1));
  assert_good(2, EXCHANGE(SEND(1, 8) "," RECV(1, 3), "a",
                          0) "," EXCHANGE(RECV(0, 8), "a", 1) "," EXCHANGE(SEND(0, 3), "a", 1));
  assert_good(2, "{\"exchange\": [" SEND(0, 4) "," RECV(0, 4) "], " OF("world", 0) "}");
}

/* Messages of a pair keep their order, also within a call. */
UNIT_TEST(test_order_of_messages) {
  assert_good(2, EXCHANGE(SEND(1, 8) "," SEND(1, 9), "a",
                          0) "," EXCHANGE(RECV(0, 8), "a", 1) "," EXCHANGE(RECV(0, 9), "a", 1));
  assert_bad(2,
             EXCHANGE(SEND(1, 8) "," SEND(1, 9), "a",
                      0) "," EXCHANGE(RECV(0, 9), "a", 1) "," EXCHANGE(RECV(0, 8), "a", 1),
             "t: events[0]: rank 0 sends 8 elements of float, and rank 1 receives 9 of float, in "
             "events[1]");
}

UNIT_TEST(test_types_that_differ) {
  assert_bad(2,
             EXCHANGE(RECV(1, 8), "a", 0) ",{\"exchange\": [" SEND(
                 0, 8) "], \"type\": \"half\", \"group\": \"a\", " OF("a", 1) "}",
             "t: events[1]: rank 1 sends 8 elements of half, and rank 0 receives 8 of float, in "
             "events[0]");
}

/* Both send before they receive: NCCL may let small ones pass, and does not promise it. */
UNIT_TEST(test_two_that_send_first) {
  assert_bad(2,
             EXCHANGE(SEND(1, 8), "a", 0) "," EXCHANGE(RECV(1, 8), "a", 0) "," EXCHANGE(
                 SEND(0, 8), "a", 1) "," EXCHANGE(RECV(0, 8), "a", 1),
             "t: ranks would wait for each other forever: rank 0 sends to rank 1 in events[0]; "
             "rank 1 sends to rank 0 in events[2]");
}

UNIT_TEST(test_a_ring_that_waits) {
  assert_bad(3,
             "{\"exchange\": [" RECV(2, 1) "], " OF(
                 "world", 0) "},"
                             "{\"exchange\": [" RECV(0, 1) "], " OF(
                                 "world", 1) "},"
                                             "{\"exchange\": [" RECV(1, 1) "], " OF("world", 2) "}",
             "t: ranks would wait for each other forever: rank 0 receives from rank 2 in "
             "events[0]; rank 2 receives from rank 1 in events[2]; rank 1 receives from rank 0 in "
             "events[1]");
}

UNIT_TEST(test_a_send_without_receive) {
  assert_bad(2, EXCHANGE(SEND(1, 8), "a", 0),
             "t: ranks would wait for each other forever: rank 0 sends to rank 1 in events[0], "
             "which is at its end");
  /* The same peer in another communicator is none. */
  assert_bad(2,
             EXCHANGE(SEND(1, 8), "a", 0) ",{\"exchange\": [" RECV(0, 8) "], " OF("world", 1) "}",
             "t: ranks would wait for each other forever: rank 0 sends to rank 1 in events[0]; "
             "rank 1 receives from rank 0 in events[1]");
}

/* Communicators that are used in different orders. */
UNIT_TEST(test_order_of_groups) {
  assert_good(4, REDUCE_OF("a", "b", 0) "," REDUCE("b") "," REDUCE_OF("a", "b", 1));
  assert_bad(
      4,
      EXCHANGE(SEND(1, 8), "b", 0) "," REDUCE("a") "," REDUCE("b") "," EXCHANGE(RECV(0, 8), "b", 1),
      "t: ranks would wait for each other forever: rank 0 sends to rank 2 in events[0]; rank 2 "
      "waits in a collective for rank 0 in events[2]");
}

/* Ranks of a group may take part by events of their own, which must be alike. */
UNIT_TEST(test_a_collective_in_two_events) {
  assert_good(2, REDUCE_OF("world", "a", 0) "," REDUCE_OF("world", "a", 1));
  assert_good(4, REDUCE_OF("a", "world", 1) "," REDUCE("b") "," REDUCE_OF(
                     "a", "world", 0) "," REDUCE_OF("a", "b", 1));
  assert_bad(2,
             REDUCE_OF("world", "a",
                       0) ",{\"collective\": \"all_gather\", \"elements\": 4, " OF("a", 1) "}",
             "t: events[0]: rank 0 starts all_reduce of 4 elements, and rank 1 all_gather of 4, in "
             "events[1], where both must do the same");
}

UNIT_TEST(test_a_collective_that_some_leave_out) {
  assert_bad(2, REDUCE("world") "," REDUCE_OF("world", "a", 1),
             "t: ranks would wait for each other forever: rank 1 waits in a collective for rank 0 "
             "in events[1], which is at its end");
}

UNIT_TEST(test_waits_of_others) {
  assert_bad(
      2,
      "{\"collective\": \"all_reduce\", \"elements\": 4, \"id\": 1},"
      "{\"exchange\": [" SEND(1, 8) "], \"group\": \"a\", \"id\": 2, " OF("a", 0) "}," EXCHANGE(
          RECV(0, 8), "a", 1) ", {\"wait\": 1, " OF("a", 1) "}, {\"wait\": 2}",
      "t: events[4]: rank 1 waits for events[1], which it does not start");
}

UNIT_MAIN(NULL, NULL)
