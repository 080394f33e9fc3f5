/* SPDX-License-Identifier: Apache-2.0 */
/* Rings and trees over simulated hosts: bytes by the formulas, times that are known. */
#include <math.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/scale/schedule.h"

#define HOSTS_MAX 130u
#define MIB (1u << 20)

static struct service service; /* of all hosts */
static struct schedule schedule;
static double start[HOSTS_MAX], end[HOSTS_MAX];
static unsigned host_services[HOSTS_MAX]; /* 0 */

/* latency and gap of a message: a constant and so much for a byte. */
static void begin(unsigned hosts, unsigned gpus, double latency_ns, double gap_ns_per_byte) {
  struct schedule_config config = { .hosts = hosts, .gpus = gpus };
  service = (struct service){ .connection_count = 2 * SCHEDULE_CHANNELS };
  for (unsigned c = 0; c < 2 * SCHEDULE_CHANNELS; c++) {
    for (unsigned size = 0; size < SERVICE_SIZES; size++) {
      for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
        service.connections[c].latency[size][i] = latency_ns;
        service.connections[c].gap[size][i] = gap_ns_per_byte * (SERVICE_LEAST_BYTES << size);
      }
    }
  }
  const struct service *services[] = { &service, &service };
  schedule_init(&schedule, &config, services, 1, host_services);
  for (unsigned host = 0; host < hosts; host++) {
    start[host] = 1e6;
  }
}

static void run(enum schedule_algorithm algorithm, enum operation operation, uint64_t bytes) {
  schedule_run(&schedule, algorithm, operation, bytes, start, end);
}

/* That left all hosts so far. */
static uint64_t sent_bytes(void) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < SCHEDULE_CHANNELS * schedule.config.hosts; i++) {
    bytes += schedule.ring[i].bytes + schedule.up[i].bytes + schedule.down[i].bytes;
  }
  return bytes;
}

/* All hosts end then. */
static void assert_end(double ns) {
  for (unsigned host = 0; host < schedule.config.hosts; host++) {
    assert_true(fabs(end[host] - 1e6 - ns) < 1e-3);
  }
}

UNIT_TEST(every_byte_is_sent_as_often_as_the_formulas_say) {
  static const unsigned numbers[] = { 2, 3, 4, 8, 20, 125 };
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    unsigned hosts = numbers[i];
    uint64_t bytes = (uint64_t)hosts * MIB, before = 0;
    begin(hosts, 1, 1000, 0.1);
    run(SCHEDULE_RING, OPERATION_ALL_REDUCE, bytes);
    assert_int_equal(sent_bytes(), 2 * (hosts - 1) * bytes);
    before = sent_bytes();
    run(SCHEDULE_RING, OPERATION_ALL_GATHER, bytes);
    assert_int_equal(sent_bytes() - before, (hosts - 1) * bytes);
    before = sent_bytes();
    run(SCHEDULE_RING, OPERATION_REDUCE_SCATTER, bytes);
    assert_int_equal(sent_bytes() - before, (hosts - 1) * bytes);
    before = sent_bytes();
    run(SCHEDULE_TREE, OPERATION_ALL_REDUCE, bytes);
    assert_int_equal(sent_bytes() - before, 2 * (hosts - 1) * bytes);
    schedule_free(&schedule);
  }
}

/* Hosts of 8 GPUs send of each GPU's part what hosts of one send of theirs. */
UNIT_TEST(gpus_of_a_host_share_its_nic) {
  begin(5, 8, 1000, 0.1);
  run(SCHEDULE_RING, OPERATION_ALL_REDUCE, 40 * MIB);
  assert_int_equal(sent_bytes(), 5 * 2ull * 39 * MIB);
  schedule_free(&schedule);
}

/* No rate: each of 2 (n - 1) steps takes the latency, slices at the same time. */
UNIT_TEST(a_ring_of_latency_takes_its_steps) {
  for (unsigned hosts = 2; hosts <= 10; hosts++) {
    begin(hosts, 1, 5000, 0);
    run(SCHEDULE_RING, OPERATION_ALL_REDUCE, hosts * MIB);
    assert_end(2 * (hosts - 1) * 5000.0);
    schedule_free(&schedule);
  }
}

/* No latency: a connection passes all its bytes one after the other, 2 (n - 1) / n of its half. */
UNIT_TEST(a_ring_of_bandwidth_takes_its_bytes) {
  for (unsigned hosts = 2; hosts <= 10; hosts++) {
    begin(hosts, 1, 0, 0.25);
    run(SCHEDULE_RING, OPERATION_ALL_REDUCE, hosts * MIB);
    double slice_ns = 0.25 * MIB / 4, slices = 2 * 2 * (hosts - 1);
    assert_end((slices - 1) * slice_ns); /* the first takes its latency, which is none */
    schedule_free(&schedule);
  }
}

/* All hosts wait for one that is late, in every step the same. */
UNIT_TEST(a_late_host_holds_up_all) {
  begin(6, 1, 5000, 0);
  start[3] += 1e5;
  run(SCHEDULE_RING, OPERATION_ALL_REDUCE, 6 * MIB);
  for (unsigned host = 0; host < 6; host++) {
    assert_true(end[host] >= start[3] + 5 * 5000.0);
  }
  schedule_free(&schedule);
}

UNIT_TEST(a_tree_of_latency_takes_its_depth_twice) {
  begin(8, 1, 5000, 0);
  run(SCHEDULE_TREE, OPERATION_ALL_REDUCE, 32u << 10); /* one chunk in each tree */
  double latest = 0;
  for (unsigned host = 0; host < 8; host++) {
    latest = fmax(latest, end[host] - 1e6);
  }
  assert_true(fabs(latest - 2 * schedule.depth * 5000.0) < 1e-3);
  schedule_free(&schedule);
}

UNIT_TEST(both_trees_reach_everybody_and_share_the_work) {
  for (unsigned hosts = 2; hosts <= HOSTS_MAX; hosts++) {
    begin(hosts, 1, 0, 0);
    unsigned children[2][HOSTS_MAX] = { { 0 } };
    for (unsigned tree = 0; tree < 2; tree++) {
      unsigned roots = 0;
      for (unsigned host = 0; host < hosts; host++) {
        int parent = schedule.parents[tree * hosts + host];
        assert_in_range(parent + 1, 0, hosts);
        roots += parent < 0;
        if (parent >= 0) {
          children[tree][parent]++;
        }
      }
      assert_int_equal(roots, 1);
    }
    for (unsigned host = 0; host < hosts && hosts > 2; host++) {
      assert_in_range(children[0][host], 0, 2);
      bool is_inside_of_both = children[0][host] > 1 && children[1][host] > 1;
      assert_false(is_inside_of_both);
    }
    assert_true(schedule.depth <= 1 + (unsigned)ceil(log2(hosts)));
    schedule_free(&schedule);
  }
}

UNIT_TEST(one_host_has_nothing_to_send) {
  begin(1, 8, 1000, 1);
  run(SCHEDULE_RING, OPERATION_ALL_REDUCE, MIB);
  assert_end(0);
  assert_int_equal(sent_bytes(), 0);
  schedule_free(&schedule);
}
