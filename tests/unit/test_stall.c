/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank is blocked on: what is a fault, when it is reported, and in which words. */
#include "common/time_units.h"
#include "net_plugin/connection/limits.h"
#include "tests/lib/unit.h"

#include <string.h>

#include "net_plugin/connection/connection_snapshot.h"

static const struct connection_snapshot busy = {
  .number = 7,
  .peer = "host-b (10.0.0.2:4242, eth0)",
  .nic = "eth1",
  .is_sender = true,
  .link = { .credited = 50, .lanes_up = 6, .lanes_wanted = 8 },
  .oldest = { .number = 41, .bytes = 1048576 },
  .stalled_ns = 10 * NS_PER_S,
  .silent_ns = NS_PER_S / 2,
};

UNIT_TEST(a_healthy_wait_is_no_fault) {
  struct connection_snapshot seen = busy;
  seen.oldest.number = 50;
  assert_int_equal(stall_classify(&seen), STALL_AWAITS_RECEIVE);
  seen = busy;
  seen.is_sender = false;
  assert_int_equal(stall_classify(&seen), STALL_AWAITS_SEND);
  seen.stalled_ns = 3600 * NS_PER_S; /* however long */
  assert_int_equal(stall_classify(&seen), STALL_AWAITS_SEND);
  assert_false(stall_is_fault(STALL_AWAITS_SEND));
  assert_false(stall_is_fault(STALL_AWAITS_RECEIVE));
  assert_false(stall_is_fault(STALL_NONE));
}

UNIT_TEST(a_fault_is_one) {
  struct connection_snapshot seen = busy;
  assert_int_equal(stall_classify(&seen), STALL_SEND_STUCK);
  seen.oldest.moved = 1; /* half a send is no better */
  assert_int_equal(stall_classify(&seen), STALL_SEND_STUCK);
  seen.is_sender = false;
  assert_int_equal(stall_classify(&seen), STALL_HALF_ARRIVED);
  /* A silent peer explains everything else; without a flow nobody can be heard. */
  seen.silent_ns = STALL_SILENT_NS;
  assert_int_equal(stall_classify(&seen), STALL_PEER_SILENT);
  seen.oldest.number = 50;
  seen.oldest.moved = 0;
  assert_int_equal(stall_classify(&seen), STALL_PEER_SILENT);
  seen.link.lanes_up = 0;
  assert_int_equal(stall_classify(&seen), STALL_NO_FLOW);
  for (enum stall_kind kind = STALL_NO_FLOW; kind <= STALL_HALF_ARRIVED; kind++) {
    assert_true(stall_is_fault(kind));
  }
}

UNIT_TEST(what_moves_or_is_nothing_does_not_stall) {
  struct connection_snapshot seen = busy;
  seen.stalled_ns = STALL_LEAST_NS - 1;
  assert_int_equal(stall_classify(&seen), STALL_NONE);
  seen.stalled_ns = 0;
  seen.link.lanes_up = 0;
  assert_int_equal(stall_classify(&seen), STALL_NONE);
}

UNIT_TEST(a_report_says_everything) {
  struct connection_snapshot seen = busy;
  char text[STALL_TEXT_MAX];
  seen.is_sender = false;
  seen.oldest.moved = 4096;
  stall_describe(&seen, text);
  static const char *const parts[] = {
    " eth1 waits for host-b (10.0.0.2:4242, eth0): receive 41 of connection 7",
    "for 10.0 s with 4096 of 1048576 bytes done",
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
  assert_true(strlen(stall_describe(&seen, text)) < sizeof text);
}

static bool says(const struct connection_snapshot *seen, const char *part) {
  char text[STALL_TEXT_MAX];
  return strstr(stall_describe(seen, text), part) != NULL;
}

UNIT_TEST(what_limits_the_flows_is_told) {
  struct connection_snapshot seen = busy;
  seen.oldest.number = 50; /* no credit: no fault */
  assert_true(says(&seen, "6 of 8 flows up. The network is fine"));
  seen.limited[POLICY_LIMIT_UNKNOWN] = 3;
  seen.limited[POLICY_LIMIT_NETWORK] = 1;
  seen.limited[POLICY_LIMIT_CPU] = 1; /* half is not most */
  assert_true(says(&seen, "flows up (limited by: network 1, CPU 1). The network is fine"));
  seen.limited[POLICY_LIMIT_NETWORK] = 2;
  assert_true(says(&seen, "(limited by: network 2, CPU 1). The network is what limits"));
  assert_false(says(&seen, "The network is fine"));
  seen.stalled_losses = 3;
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
