/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks send in an uneven alltoall or an exchange is what their peers receive, and lies in the
 * buffers without a gap. */
#include "tests/lib/unit.h"
#include "tests/coll/replay/transfers.h"

enum { RANKS = 4, EXPERTS = 8 };

static struct workload_item alltoall(bool is_received) {
  return (struct workload_item){ .kind = WORKLOAD_COLLECTIVE,
                                 .operation = OPERATION_ALLTOALL,
                                 .type = ELEMENT_FLOAT,
                                 .is_received = is_received,
                                 .count = EXPERTS,
                                 .counts = { 5, 0, 0, 0, 7, 1, 2, 30 } };
}

static const struct operation_transfer *find(const struct operation_transfer *transfers,
                                             size_t count, bool is_send, int peer) {
  for (size_t i = 0; i < count; i++) {
    if (transfers[i].is_send == is_send && transfers[i].peer == peer)
      return &transfers[i];
  }
  return NULL;
}

/* Of two experts a rank: 5, 0, 8 and 32 for ranks 0 to 3. */
static void check_pairs(bool is_received) {
  static const size_t parts[RANKS] = { 5, 0, 8, 32 };
  struct operation_transfer transfers[RANKS][2 * RANKS];
  size_t counts[RANKS];
  const struct workload_item item = alltoall(is_received);
  for (int rank = 0; rank < RANKS; rank++) {
    const struct workload_place place = { .ranks = RANKS, .rank = rank };
    counts[rank] = transfers_of(&item, &place, NULL, transfers[rank]);
  }
  for (int a = 0; a < RANKS; a++) {
    for (int b = 0; b < RANKS; b++) {
      const struct operation_transfer *send = find(transfers[a], counts[a], true, b);
      const struct operation_transfer *recv = find(transfers[b], counts[b], false, a);
      size_t wanted = parts[is_received ? a : b];
      assert_int_equal(send ? send->count : 0, wanted);
      assert_int_equal(recv ? recv->count : 0, wanted);
      assert_true(!send == !recv && (!send || send->place == recv->place));
    }
  }
  struct operation_counts mine = transfers_counts(transfers[2], counts[2], 4);
  assert_int_equal(mine.send, is_received ? 4 * 8 : 45);
  assert_int_equal(mine.recv, is_received ? 45 : 4 * 8);
  assert_int_equal(mine.bytes, 45 * 4);
}

UNIT_TEST(test_alltoall) {
  check_pairs(false);
  check_pairs(true);
}

UNIT_TEST(test_no_gaps) {
  struct operation_transfer transfers[2 * RANKS];
  const struct workload_item item = alltoall(false);
  const struct workload_place place = { .ranks = RANKS, .rank = 3 };
  size_t count = transfers_of(&item, &place, NULL, transfers), next[2] = { 0, 0 };
  assert_int_equal(count, 3 + 4); /* nothing is for rank 1 */
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(transfers[i].first, next[transfers[i].is_send]);
    next[transfers[i].is_send] += transfers[i].count;
  }
}

static struct workload_item exchange(int peer, uint64_t sent, uint64_t received) {
  return (struct workload_item){
    .kind = WORKLOAD_EXCHANGE, .peer = peer, .sent = sent, .received = received
  };
}

/* Messages of a pair are known by their order, however calls of NCCL divide them. */
UNIT_TEST(test_messages_of_a_pair) {
  uint32_t sent[2] = { 0 }, received[2] = { 0 }, other_sent[2] = { 0 }, other_received[2] = { 0 };
  const struct transfers_so_far from = { .sent = sent, .received = received };
  const struct transfers_so_far to = { .sent = other_sent, .received = other_received };
  const struct workload_item calls[] = { exchange(1, 10, 0), exchange(1, 20, 7) };
  const struct workload_item others[] = { exchange(0, 7, 10), exchange(0, 0, 20) };
  const struct workload_place place = { .ranks = 2 };
  struct operation_transfer a[3], b[3];
  assert_int_equal(transfers_of(&calls[0], &place, &from, a), 1);
  assert_int_equal(transfers_of(&calls[1], &place, &from, a + 1), 2);
  assert_int_equal(transfers_of(&others[0], &place, &to, b), 2);
  assert_int_equal(transfers_of(&others[1], &place, &to, b + 2), 1);
  assert_true(a[0].place == b[1].place && a[0].count == b[1].count);
  assert_true(a[1].place == b[2].place && a[2].place == b[0].place);
  assert_true(a[0].place != a[1].place);
  assert_int_equal(a[1].first, 0);
  assert_int_equal(a[2].first, 0);
}

UNIT_MAIN(NULL, NULL)
