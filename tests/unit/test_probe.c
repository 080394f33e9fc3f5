/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of stratus probe: who measures with whom, what stands out. */
#include <string.h>

#include "net_plugin/tools/probe/results.h"
#include "tests/lib/unit.h"

UNIT_TEST(every_pair_meets_once) {
  assert_int_equal(pairs_round_count(0), 0);
  assert_int_equal(pairs_round_count(1), 0);
  for (unsigned hosts = 2; hosts <= 33; hosts++) {
    unsigned met[33][33] = { { 0 } };
    for (unsigned round = 0; round < pairs_round_count(hosts); round++) {
      for (unsigned host = 0; host < hosts; host++) {
        unsigned partner = pairs_partner(hosts, round, host);
        assert_true(partner < hosts);
        assert_int_equal(pairs_partner(hosts, round, partner), host);
        met[host][partner] += partner != host;
      }
    }
    for (unsigned i = 0; i < hosts * hosts; i++) {
      assert_int_equal(met[i / hosts][i % hosts], i / hosts != i % hosts);
    }
  }
}

enum { HOSTS = 4, DEVICES = 2 };

static struct probe_result results[DEVICES * HOSTS * HOSTS];
static struct probe_report report;

/* All pairs alike. */
static void make_report(double gbps, double rtt_us) {
  memset(results, 0, sizeof results);
  report.host_count = HOSTS;
  report.device_count = DEVICES;
  report.results = results;
  for (unsigned i = 0; i < HOSTS; i++) {
    strcpy(report.hosts[i].name, "a");
    report.hosts[i].name[0] = (char)('a' + i);
    strcpy(report.hosts[i].devices[0].name, "eth0");
    strcpy(report.hosts[i].devices[1].name, "eth1");
  }
  for (unsigned i = 0; i < DEVICES * HOSTS * HOSTS; i++) {
    if (i / HOSTS % HOSTS != i % HOSTS) {
      results[i] =
          (struct probe_result){ .is_measured = true, .gbps = gbps, .rtt_us = rtt_us, .mtu = 9000 };
    }
  }
}

UNIT_TEST(what_stands_out_is_found) {
  struct finding list[8];
  make_report(10, 40);
  assert_int_equal(findings_list(&report, list, 8), 0);
  probe_at(&report, 0, 0, 1)->gbps = 7.1; /* not enough to be a word worth */
  probe_at(&report, 0, 1, 2)->gbps = 3;
  probe_at(&report, 0, 2, 3)->gbps = probe_at(&report, 0, 3, 2)->gbps = 2;
  probe_at(&report, 1, 0, 3)->rtt_us = 400;
  probe_at(&report, 1, 1, 3)->mtu = 1500;
  *probe_at(&report, 1, 3, 0) = (struct probe_result){ .error = "cannot send: timed out" };
  assert_int_equal(findings_list(&report, list, 2), 6);
  assert_int_equal(findings_list(&report, list, 8), 6);
  static const char *const texts[] = {
    "b -> c (eth0): slow in this direction only, 3.00 Gb/s where the median is 10.00",
    "c -> d (eth0): slow, 2.00 Gb/s where the median is 10.00",
    "d -> c (eth0): slow, 2.00 Gb/s where the median is 10.00",
    "a -> d (eth1): far, 400 us round trip where the median is 40",
    "b -> d (eth1): MTU 1500 where most have 9000",
    "d -> a (eth1): cannot send: timed out",
  };
  for (int i = 0; i < 6; i++) {
    assert_string_equal(list[i].text, texts[i]);
    assert_true(list[i].is_lasting == (i == 4));
  }
}
