/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of stratus perf and probe that need no network: plans, times, windows, contents,
 * places; who measures with whom, what stands out. */
#include "net_plugin/tools/perf/pattern.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/window.h"
#include "net_plugin/tools/probe/results.h"
#include "net_plugin/tools/rendezvous.h"

#include <math.h>
#include <string.h>

#include "common/cli.h"
#include "common/clock.h"
#include "tests/lib/unit.h"

static struct plan plan;

static const struct plan nothing = { .connections = 1, .timeout_ns = NS_PER_S };

/* ---- plans ---- */

UNIT_TEST(options_make_a_plan) {
  plan = nothing;
  assert_int_equal(plan_make(&plan), CLI_OK);
  assert_int_equal(plan.size_count, 1);
  assert_int_equal(plan.largest, 512 << 10);
  assert_int_equal(plan.device_count, 1);
  assert_int_equal(plan.devices[0], 0);
  assert_false(plan.is_checked);
  plan = nothing;
  plan.sizes_text = "8,512K,1K";
  plan.devices_text = "1,0";
  plan.count = 100;
  assert_int_equal(plan_make(&plan), CLI_OK);
  assert_int_equal(plan.size_count, 3);
  assert_int_equal(plan.sizes[2], 1024);
  assert_int_equal(plan.largest, 512 << 10);
  assert_true(plan.is_checked);
  assert_int_equal(plan_warmup_count(&plan), 10);
  assert_int_equal(plan.device_count, 2);
  assert_int_equal(plan.devices[0], 1);
}

UNIT_TEST(what_makes_no_sense_is_wrong_use) {
  static const struct plan cases[] = {
    { .sizes_text = "1X" },
    { .sizes_text = "" },
    { .sizes_text = "1,,2" },
    { .sizes_text = "2G" },
    { .sizes_text = "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" },
    { .devices_text = "a" },
    { .devices_text = "-1" },
    { .devices_text = "0,1,2,3,4,5,6,7,8" },
    { .sizes_text = "1G", .connections = PLAN_CONNECTIONS_MAX },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    plan = cases[i];
    assert_int_equal(plan_make(&plan), CLI_USAGE);
  }
}

/* But for paths: those of a plugin and of a file with data stay on their side; that there is one
 * with data is told. */
UNIT_TEST(the_server_gets_the_same_plan) {
  plan = nothing;
  static struct plan there;
  plan.test = PLAN_BOTH_WAYS;
  plan.sizes_text = "8,64K";
  plan.connections = 3;
  plan.devices_text = "0,1";
  plan.plugin = "/tmp/mine.so";
  plan.data_path = "/etc/passwd";
  plan.has_data = true;
  assert_int_equal(plan_make(&plan), CLI_OK);
  json_t *json = plan_to_json(&plan);
  char *text = json_dumps(json, 0);
  assert_null(strstr(text, "mine.so"));
  free(text);
  json_object_set_new(json, "plugin", json_string("/tmp/mine.so")); /* as versions before did */
  assert_int_equal(plan_from_json(&there, json), CLI_OK);
  json_decref(json);
  plan.sizes_text = plan.devices_text = plan.plugin = plan.data_path = NULL;
  assert_memory_equal(&there, &plan, sizeof plan);
}

/* Each member of a good plan in turn is missing, of another type, or out of bounds. */
UNIT_TEST(a_strange_plan_is_refused) {
  static struct plan there;
  plan = nothing;
  assert_int_equal(plan_make(&plan), CLI_OK);
  json_t *good = plan_to_json(&plan);
  json_t *bad[] = { NULL, json_integer(-1), json_integer(INT64_MAX), json_string("x"),
                    json_array() };
  const char *name;
  json_t *value;
  json_object_foreach(good, name, value) {
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
      json_t *changed = json_copy(good);
      if (bad[i]) {
        json_object_set(changed, name, bad[i]);
      } else {
        json_object_del(changed, name);
      }
      assert_int_not_equal(plan_from_json(&there, changed), CLI_OK);
      json_decref(changed);
    }
  }
  for (size_t i = 1; i < sizeof bad / sizeof bad[0]; i++) {
    json_decref(bad[i]);
  }
  json_decref(good);
}

/* ---- times ---- */

UNIT_TEST(half_round_trips_are_summed_up) {
  static struct window window;
  static const struct {
    const char *name;
    double us;
  } expected[] = { { "samples", 100001 }, { "min", 0 },  { "mean", 50 }, { "max", 100 },
                   { "p50", 50 },         { "p90", 90 }, { "p99", 99 },  { "p99.9", 99.9 } };
  plan = nothing;
  plan.test = PLAN_LATENCY;
  window_start(&window, &plan, 1);
  for (uint64_t ns = 0; ns <= 100000; ns++) {
    window_add_half_trip(&window, 100000 - ns);
  }
  json_t *json = window_to_json(&window);
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    double us = json_number_value(
        json_object_get(json_object_get(json, "half_round_trip_us"), expected[i].name));
    assert_true(fabs(us - expected[i].us) < 1e-6);
  }
  json_decref(json);
  window_start(&window, &plan, 1); /* the next size */
  json = window_to_json(&window);
  assert_true(json_is_null(json_object_get(json, "half_round_trip_us")));
  json_decref(json);
  free(window.half_trips_us);
}

/* ---- windows ---- */

UNIT_TEST(a_timed_window_follows_the_warm_up) {
  static struct window window;
  plan = nothing;
  plan.time_ns = 1000;
  plan.warmup_ns = 100;
  assert_int_equal(plan_make(&plan), CLI_OK);
  window_start(&window, &plan, 1);
  window_update(&window, 5000); /* nothing has come yet */
  window.now.messages_received = window.now.bytes_received = 1;
  window_update(&window, 6000);
  assert_int_equal(window.state, WINDOW_WARMUP);
  window.now.messages_received = window.now.bytes_received = 10;
  window_update(&window, 6100);
  assert_int_equal(window.state, WINDOW_MEASURING);
  window.now.messages_received = window.now.bytes_received = 110;
  window_update(&window, 7099);
  assert_int_equal(window.state, WINDOW_MEASURING);
  window_update(&window, 7200);
  assert_int_equal(window.state, WINDOW_OVER);
  assert_int_equal(window.length_ns, 1100);
  window.now.messages_received = 500; /* comes too late */
  window_update(&window, 9000);
  assert_int_equal(window.counts.messages_received, 100);
  assert_true(window.threads >= 1);
}

UNIT_TEST(a_counted_window_is_of_all_streams) {
  static struct window window;
  plan = nothing;
  plan.count = 20;
  assert_int_equal(plan_make(&plan), CLI_OK);
  window_start(&window, &plan, 2);
  window.now.messages_sent = 3;
  window_update(&window, 100);
  assert_int_equal(window.state, WINDOW_WARMUP);
  window.now.messages_received = 1;
  window_update(&window, 200);
  assert_int_equal(window.state, WINDOW_MEASURING);
  window.now.messages_sent = window.now.messages_received = 22;
  window_update(&window, 700);
  assert_int_equal(window.state, WINDOW_OVER);
  assert_int_equal(window.length_ns, 500);
  assert_int_equal(window.counts.messages_sent, 19);
  assert_int_equal(window.counts.messages_received, 21);
}

/* ---- contents ---- */

UNIT_TEST(any_contents_say_what_they_are) {
  uint8_t bytes[77] = { 0 };
  for (size_t size = 1; size <= sizeof bytes; size++) {
    for (size_t at = 0; at < size; at++) {
      pattern_seal(bytes, size, pattern_seed(3, 9));
      assert_true(pattern_seal_matches(bytes, size, pattern_seed(3, 9)));
      assert_true(size < PATTERN_SEAL_BYTES ||
                  !pattern_seal_matches(bytes, size, pattern_seed(3, 8)));
      bytes[at] ^= 1;
      assert_false(pattern_seal_matches(bytes, size, pattern_seed(3, 9)));
    }
  }
}

UNIT_TEST(every_wrong_byte_shows) {
  uint8_t bytes[77];
  for (size_t size = 1; size <= sizeof bytes; size++) {
    for (size_t at = 0; at < size; at++) {
      pattern_fill(bytes, size, pattern_seed(3, 9));
      assert_true(pattern_matches(bytes, size, pattern_seed(3, 9)));
      bytes[at] ^= 1;
      assert_false(pattern_matches(bytes, size, pattern_seed(3, 9)));
    }
  }
}

UNIT_TEST(messages_and_streams_differ) {
  uint8_t bytes[64];
  pattern_fill(bytes, sizeof bytes, pattern_seed(3, 9));
  assert_false(pattern_matches(bytes, sizeof bytes, pattern_seed(3, 10)));
  assert_false(pattern_matches(bytes, sizeof bytes, pattern_seed(4, 9)));
  pattern_fill(bytes, 32, pattern_seed(3, 9));
  pattern_fill(bytes + 32, 32, pattern_seed(3, 9)); /* a half in the wrong place */
  assert_false(pattern_matches(bytes, sizeof bytes, pattern_seed(3, 9)));
}

/* ---- places ---- */

UNIT_TEST(places_have_hosts_and_ports) {
  static const struct {
    const char *text, *host;
    int port;
  } cases[] = {
    { "a.b", "a.b", 7 }, { "a:80", "a", 80 },       { "10.0.0.1:1", "10.0.0.1", 1 },
    { "::1", "::1", 7 }, { "[::1]:80", "::1", 80 }, { "[fd00::1]", "fd00::1", 7 },
    { ":80", "", 80 },
  };
  struct rendezvous_address place;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(rendezvous_parse(cases[i].text, 7, &place), CLI_OK);
    assert_string_equal(place.host, cases[i].host);
    assert_int_equal(place.port, cases[i].port);
  }
  assert_int_equal(rendezvous_parse("a:0", 7, &place), CLI_USAGE);
  assert_int_equal(rendezvous_parse("a:65536", 7, &place), CLI_USAGE);
  assert_int_equal(rendezvous_parse("a:b", 7, &place), CLI_USAGE);
}

/* ---- probe ---- */

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
