/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank is blocked on: what is a fault, when it is reported, and in which words. */
#include "common/time_units.h"
#include "net_plugin/observe/limits.h"
#include "tests/lib/unit.h"

#include <string.h>

#include "net_plugin/observe/stall.h"

#define NOW_NS (1000 * NS_PER_S)

static const struct stall_facts busy = {
  .is_waiting = true,
  .is_sender = true,
  .has_credit = true,
  .stalled_ns = 10 * NS_PER_S,
  .silent_ns = NS_PER_S,
  .flows_up = 8,
};

UNIT_TEST(a_healthy_wait_is_no_fault) {
  struct stall_facts facts = busy;
  facts.has_credit = false;
  assert_int_equal(stall_classify(&facts), STALL_AWAITS_RECEIVE);
  facts = busy;
  facts.is_sender = false;
  assert_int_equal(stall_classify(&facts), STALL_AWAITS_SEND);
  facts.stalled_ns = 3600 * NS_PER_S; /* however long */
  assert_int_equal(stall_classify(&facts), STALL_AWAITS_SEND);
  assert_false(stall_is_fault(STALL_AWAITS_SEND));
  assert_false(stall_is_fault(STALL_AWAITS_RECEIVE));
  assert_false(stall_is_fault(STALL_NONE));
}

UNIT_TEST(a_fault_is_one) {
  struct stall_facts facts = busy;
  assert_int_equal(stall_classify(&facts), STALL_SEND_STUCK);
  facts.done_bytes = 1; /* half a send is no better */
  assert_int_equal(stall_classify(&facts), STALL_SEND_STUCK);
  facts.is_sender = false;
  assert_int_equal(stall_classify(&facts), STALL_HALF_ARRIVED);
  /* A silent peer explains everything else; without a flow nobody can be heard. */
  facts.silent_ns = STALL_SILENT_NS;
  assert_int_equal(stall_classify(&facts), STALL_PEER_SILENT);
  facts.has_credit = false;
  facts.done_bytes = 0;
  assert_int_equal(stall_classify(&facts), STALL_PEER_SILENT);
  facts.flows_up = 0;
  assert_int_equal(stall_classify(&facts), STALL_NO_FLOW);
  for (enum stall_kind kind = STALL_NO_FLOW; kind <= STALL_HALF_ARRIVED; kind++) {
    assert_true(stall_is_fault(kind));
  }
}

UNIT_TEST(what_moves_or_is_nothing_does_not_stall) {
  struct stall_facts facts = busy;
  facts.stalled_ns = STALL_LEAST_NS - 1;
  assert_int_equal(stall_classify(&facts), STALL_NONE);
  facts = busy;
  facts.is_waiting = false;
  facts.flows_up = 0;
  assert_int_equal(stall_classify(&facts), STALL_NONE);
}

UNIT_TEST(reports_are_due_at_doubling_times) {
  unsigned reports = 0;
  uint64_t told_at[8];
  for (uint64_t second = 0; second <= 320; second++) {
    if (stall_is_due(second * NS_PER_S, reports, 5 * NS_PER_S)) {
      assert_in_range(reports, 0, 7);
      told_at[reports++] = second;
    }
  }
  static const uint64_t expected[] = { 5, 10, 20, 40, 80, 160, 320 };
  assert_int_equal(reports, 7);
  assert_memory_equal(told_at, expected, sizeof expected);
  assert_false(stall_is_due(UINT64_MAX, 0, 0));
  assert_false(stall_is_due(UINT64_MAX / 2, 200, 1));
}

static struct connection_snapshot half_received(void) {
  return (struct connection_snapshot){
    .number = 7,
    .peer = "host-b (10.0.0.2:4242, eth0)",
    .nic = "eth1",
    .created_ns = 1,
    .lanes = 64,
    .link = { .credited = 50, .heard_ns = NOW_NS - NS_PER_S / 2, .lanes_up = 6, .lanes_wanted = 8 },
    .has_oldest = true,
    .oldest = { .number = 41, .bytes = 1048576, .moved = 4096 },
    .still_ns = NOW_NS - 6 * NS_PER_S,
  };
}

UNIT_TEST(facts_are_read_from_a_snapshot) {
  struct connection_snapshot seen = half_received();
  struct stall_facts facts;
  stall_find_facts(&seen, NOW_NS, &facts);
  assert_true(facts.is_waiting && facts.has_credit && !facts.is_sender);
  assert_int_equal(facts.stalled_ns, 6 * NS_PER_S);
  assert_int_equal(facts.silent_ns, NS_PER_S / 2);
  assert_int_equal(stall_classify(&facts), STALL_HALF_ARRIVED);

  seen.is_sender = true;
  seen.oldest.number = 50; /* the first without credit */
  stall_find_facts(&seen, NOW_NS, &facts);
  assert_int_equal(stall_classify(&facts), STALL_AWAITS_RECEIVE);
  seen.link.heard_ns = 0; /* never: since it was made */
  stall_find_facts(&seen, NOW_NS, &facts);
  assert_int_equal(facts.silent_ns, NOW_NS - 1);
  seen.is_detached = true;
  stall_find_facts(&seen, NOW_NS, &facts);
  assert_int_equal(stall_classify(&facts), STALL_NONE);
}

UNIT_TEST(a_report_says_everything) {
  struct connection_snapshot seen = half_received();
  char text[STALL_TEXT_MAX];
  stall_describe(&seen, NOW_NS, "host-a", text);
  static const char *const parts[] = {
    "host-a eth1 waits for host-b (10.0.0.2:4242, eth0): receive 41 of connection 7",
    "for 6.0 s with 4096 of 1048576 bytes done",
    "the rest of the message is missing",
    "last data from the peer 0.5 s ago, 6 of 8 flows up. ",
  };
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (!strstr(text, parts[i])) {
      fail_msg("'%s' is not in '%s'", parts[i], text);
    }
  }
  memset(seen.peer, 'x', sizeof seen.peer - 1);
  memset(seen.nic, 'y', sizeof seen.nic - 1);
  assert_true(strlen(stall_describe(&seen, NOW_NS, "host-a", text)) < sizeof text);
}

static bool says(const struct connection_snapshot *seen, const char *part) {
  char text[STALL_TEXT_MAX];
  return strstr(stall_describe(seen, NOW_NS, "host-a", text), part) != NULL;
}

UNIT_TEST(what_limits_the_flows_is_told) {
  struct connection_snapshot seen = half_received();
  seen.is_sender = true;
  seen.oldest.number = 50; /* no credit: no fault */
  assert_true(says(&seen, "6 of 8 flows up. The network is fine"));
  seen.limited[POLICY_LIMIT_UNKNOWN] = 3;
  seen.limited[POLICY_LIMIT_NETWORK] = 1;
  seen.limited[POLICY_LIMIT_CPU] = 1; /* half is not most */
  assert_true(says(&seen, "flows up (limited by: network 1, CPU 1). The network is fine"));
  seen.limited[POLICY_LIMIT_NETWORK] = 2;
  assert_true(says(&seen, "(limited by: network 2, CPU 1). The network is what limits"));
  assert_false(says(&seen, "The network is fine"));
  seen.still_losses = 3;
  assert_true(says(&seen, "Flows were lost meanwhile: look at the network first"));
  seen.oldest.number = 41; /* a fault keeps its advice */
  assert_true(says(&seen, "(limited by: network 2, CPU 1). Check the network"));
  for (unsigned limit = 0; limit <= POLICY_LIMIT_NETWORK; limit++) {
    seen.limited[limit] = UINT32_MAX;
  }
  memset(seen.peer, 'x', sizeof seen.peer - 1);
  memset(seen.nic, 'y', sizeof seen.nic - 1);
  assert_true(says(&seen, "application 4294967295). "));
  assert_true(says(&seen, "and the log of that host"));
}

UNIT_MAIN(NULL, NULL)
