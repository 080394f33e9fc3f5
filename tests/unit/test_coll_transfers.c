/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks send in an uneven alltoall or an exchange is what their peers receive, and lies in the
 * buffers without a gap. */
#include "tests/lib/unit.h"
#include "tests/coll/replay/transfers.h"

enum { RANKS = 4, EXPERTS = 8 };

static struct plan_collective alltoall(bool is_received) {
  static const uint64_t counts[EXPERTS] = { 5, 0, 0, 0, 7, 1, 2, 30 };
  static _Alignas(struct plan_split) char room[sizeof(struct plan_split) + sizeof counts];
  struct plan_split *split = (void *)room;
  split->is_received = is_received;
  split->count = EXPERTS;
  for (int i = 0; i < EXPERTS; i++)
    split->counts[i] = counts[i];
  return (struct plan_collective){ .operation = OPERATION_ALLTOALL,
                                   .type = ELEMENT_FLOAT,
                                   .redop = PATTERN_NONE,
                                   .root = -1,
                                   .split = split,
                                   .split_scale = 1 };
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
  const struct plan_collective collective = alltoall(is_received);
  for (int rank = 0; rank < RANKS; rank++) {
    const struct plan_group group = { .ranks = RANKS, .rank = rank };
    counts[rank] = transfers_of_alltoall(&collective, &group, transfers[rank]);
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
  const struct plan_collective collective = alltoall(false);
  const struct plan_group group = { .ranks = RANKS, .rank = 3 };
  size_t count = transfers_of_alltoall(&collective, &group, transfers), next[2] = { 0, 0 };
  assert_int_equal(count, 3 + 4); /* nothing is for rank 1 */
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(transfers[i].first, next[transfers[i].is_send]);
    next[transfers[i].is_send] += transfers[i].count;
  }
}

static struct plan_item part(enum plan_kind kind, int peer, uint64_t elements) {
  return (struct plan_item){ .kind = kind, .collective = { .root = peer, .elements = elements } };
}

/* Messages of a pair are known by their order, however calls of NCCL divide them. */
UNIT_TEST(test_messages_of_a_pair) {
  uint32_t sent[2] = { 0 }, received[2] = { 0 };
  const struct transfers_so_far from = { .sent = sent, .received = received };
  const struct plan_item sends[] = { part(PLAN_SEND, 1, 10), part(PLAN_SEND, 1, 20),
                                     part(PLAN_RECV, 1, 7) };
  struct operation_transfer a[3], b[3];
  assert_int_equal(transfers_of_exchange(sends, 3, &from, a), 3);
  uint32_t other_sent[2] = { 0 }, other_received[2] = { 0 };
  const struct transfers_so_far to = { .sent = other_sent, .received = other_received };
  const struct plan_item recvs[] = { part(PLAN_RECV, 0, 10), part(PLAN_RECV, 0, 20),
                                     part(PLAN_SEND, 0, 7) };
  assert_int_equal(transfers_of_exchange(&recvs[0], 1, &to, &b[0]), 1);
  assert_int_equal(transfers_of_exchange(&recvs[1], 2, &to, &b[1]), 2);
  for (int i = 0; i < 3; i++)
    assert_true(a[i].place == b[i].place && a[i].count == b[i].count);
  assert_true(a[0].place != a[1].place);
  assert_int_equal(a[1].first, 10);
  assert_int_equal(b[1].first, 0);
  assert_int_equal(a[2].first, 0);
}

UNIT_MAIN(NULL, NULL)
