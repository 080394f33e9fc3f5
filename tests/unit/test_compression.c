/* SPDX-License-Identifier: Apache-2.0 */
/* Whether coding chunks pays: invented networks, processors and data, and what finding out costs.
 */
#include "net_plugin/policy/compression.h"

#include "common/random.h"
#include "tests/lib/unit.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define STEP_NS 100000ull
#define WINDOW_BYTES (4ull << 20)  /* that NCCL keeps posted */
#define NIC_BYTES_PER_MS 500000ull /* 4 Gb/s */
#define FAST_BYTES_PER_MS 5000000ull
#define HOSTS_MAX 4u

/* A host's sending side. Rates are bytes per millisecond, before coding but for the NIC's. */
struct host {
  struct compression compression;
  uint64_t nic;           /* what its NIC carries */
  uint64_t plain, coding; /* what its processors carry without and with coding */
  uint64_t supply;        /* what the job has to send; UINT64_MAX: more than can be sent */
  unsigned percent;       /* by which its data becomes shorter: 135 to 100 */
  unsigned noise_percent; /* of what the NIC and the processors carry, window by window */
  unsigned shift_percent; /* for a while now and then chunks become so much shorter than usual */
  uint64_t delay_ns;      /* of a byte that nothing holds up */
  uint64_t delivered, on_ns;
};

static struct host hosts[HOSTS_MAX];
static uint64_t now_ns, random_state;

static void begin(uint64_t seed, struct host host) {
  now_ns = 0;
  random_state = seed;
  for (unsigned i = 0; i < HOSTS_MAX; i++) {
    hosts[i] = host;
    compression_init(&hosts[i].compression, 0, seed + i);
  }
}

static const struct host bound_by_network = {
  .nic = NIC_BYTES_PER_MS,
  .plain = FAST_BYTES_PER_MS,
  .coding = FAST_BYTES_PER_MS,
  .supply = UINT64_MAX,
  .percent = 135,
  .delay_ns = 50000,
};

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* What the host could carry now. */
static uint64_t capacity(struct host *host, bool is_coding) {
  static uint64_t drawn_ns[HOSTS_MAX], drawn_percent[HOSTS_MAX];
  unsigned i = (unsigned)(host - hosts);
  if (now_ns / (20 * MS) != drawn_ns[i] || host->noise_percent == 0) { /* shorter noise averages */
    drawn_ns[i] = now_ns / (20 * MS);
    drawn_percent[i] = 100 - host->noise_percent;
    drawn_percent[i] +=
        host->noise_percent > 0 ? random_next(&random_state) % (2 * host->noise_percent + 1) : 0;
  }
  uint64_t nic = is_coding ? host->nic * host->percent / 100 : host->nic;
  return least(nic, is_coding ? host->coding : host->plain) * drawn_percent[i] / 100;
}

/* What the chunks of the step save. */
static uint64_t saving(const struct host *host, uint64_t bytes) {
  unsigned percent = host->percent;
  if (host->shift_percent > 0 && now_ns / (300 * MS) % 3 == (uint64_t)(host - hosts) % 3) {
    percent += host->shift_percent;
  }
  return bytes - bytes * 100 / percent;
}

/* Hosts of a ring deliver what the slowest of them can, and that waits longest in its own lanes. */
static void ring_step(unsigned count) {
  uint64_t able[HOSTS_MAX], rate = UINT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    able[i] = capacity(&hosts[i], compression_is_wanted(&hosts[i].compression));
    rate = least(rate, least(able[i], hosts[i].supply));
  }
  now_ns += STEP_NS;
  for (unsigned i = 0; i < count; i++) {
    struct compression *compression = &hosts[i].compression;
    uint64_t bytes = rate * STEP_NS / MS;
    bool is_coding = compression_is_wanted(compression);
    /* What is in flight: all that is posted, or as long as it takes. */
    uint64_t waiting = rate >= able[i] ? WINDOW_BYTES : WINDOW_BYTES / 2 * rate / able[i];
    uint64_t in_flight = least(WINDOW_BYTES, rate * hosts[i].delay_ns / MS + waiting);
    if (able[i] > 4 * rate || hosts[i].nic > FAST_BYTES_PER_MS) {
      in_flight = rate * hosts[i].delay_ns / MS;
    }
    bytes +=
        compression->outstanding_bytes > in_flight ? 0 : in_flight - compression->outstanding_bytes;
    compression_sent(compression, bytes, now_ns);
    compression_saved(compression, is_coding ? saving(&hosts[i], bytes) : 0);
    uint64_t acked = compression->outstanding_bytes - in_flight;
    compression_acked(compression, acked, WINDOW_BYTES, true, now_ns);
    hosts[i].delivered += rate * STEP_NS / MS;
    hosts[i].on_ns += is_coding ? STEP_NS : 0;
  }
}

static void ring(unsigned count, uint64_t duration_ns) {
  for (uint64_t end_ns = now_ns + duration_ns; now_ns < end_ns;) {
    ring_step(count);
  }
}

static void run(uint64_t duration_ns) {
  ring(1, duration_ns);
}

/* Of what a host delivers that never codes, in per mille. */
static uint64_t per_mille_of(uint64_t bytes_per_ms, uint64_t duration_ns) {
  return hosts[0].delivered * 1000 / (bytes_per_ms * (duration_ns / MS));
}

static void assert_state(enum compression_state state) {
  while (hosts[0].compression.is_trying) {
    run(STEP_NS);
  }
  assert_int_equal(hosts[0].compression.state, state);
}

/* ---- when it is tried ---- */

/* All tries but the first, at multiples of their pause. Pauses are multiples of the shortest. */
static void hosts_try_at_the_same_time(void **state) {
  (void)state;
  struct host host = bound_by_network;
  host.coding = NIC_BYTES_PER_MS * 9 / 10; /* it does not pay */
  begin(4, host);
  unsigned begun = 0;
  ring(HOSTS_MAX, SECOND);
  while (now_ns < 60 * SECOND) {
    bool was_trying[HOSTS_MAX];
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
      was_trying[i] = hosts[i].compression.is_trying;
    }
    ring_step(HOSTS_MAX);
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
      if (hosts[i].compression.is_trying && !was_trying[i]) {
        begun++;
        assert_in_range(now_ns % COMPRESSION_INTERVAL_NS, 0, 2 * COMPRESSION_WINDOW_NS);
      }
    }
  }
  assert_in_range(begun, HOSTS_MAX, 6 * HOSTS_MAX);
}

/* ---- where it pays ---- */

static void a_network_that_is_the_limit_is_relieved_in_half_a_second(void **state) {
  (void)state;
  begin(1, bound_by_network);
  run(SECOND / 2);
  assert_state(COMPRESSION_ON);
  hosts[0].delivered = 0;
  run(60 * SECOND);
  assert_int_equal(hosts[0].compression.turns, 1);
  assert_in_range(per_mille_of(NIC_BYTES_PER_MS * 135 / 100, 60 * SECOND), 990, 1000);
}

/* Data that becomes much shorter, on lanes that need a while to be as fast as that allows. */
static void a_gain_that_comes_late_is_no_drift(void **state) {
  (void)state;
  begin(11, bound_by_network);
  hosts[0].percent = 270;
  while (hosts[0].compression.state != COMPRESSION_ON || hosts[0].compression.is_trying) {
    run(STEP_NS);
    assert_true(now_ns < SECOND / 2);
  }
  hosts[0].nic /= 2;
  run(30 * MS); /* the first window is as slow as without */
  hosts[0].nic *= 2;
  run(SECOND);
  assert_state(COMPRESSION_ON);
  assert_int_equal(hosts[0].compression.turns, 1);
}

static void small_gains_are_seen_through_noise(void **state) {
  (void)state;
  uint64_t on_ns = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct host host = bound_by_network;
    host.percent = 115;
    host.noise_percent = 5;
    begin(seed, host);
    run(60 * SECOND);
    on_ns += hosts[0].on_ns;
  }
  assert_in_range(on_ns / (40 * 60 * SECOND / 100), 90, 100);
}

/* None of them delivers more while it codes alone. */
static void hosts_of_a_ring_find_it_together(void **state) {
  (void)state;
  for (unsigned count = 2; count <= HOSTS_MAX; count += 2) {
    for (unsigned percent = 115; percent <= 135; percent += 20) {
      struct host host = bound_by_network;
      host.percent = percent;
      host.noise_percent = 3;
      host.shift_percent = 20;
      begin(2 + percent, host);
      ring(count, 10 * SECOND);
      for (unsigned i = 0; i < count; i++) {
        hosts[i].delivered = 0;
      }
      ring(count, 60 * SECOND);
      /* The noise of the slowest of four is 2 % of it. */
      assert_in_range(per_mille_of(NIC_BYTES_PER_MS * percent / 100, 60 * SECOND), 900, 1000);
    }
  }
}

static void data_that_becomes_shorter_later_is_heard_of(void **state) {
  (void)state;
  begin(3, bound_by_network);
  hosts[0].percent = 100;
  run(20 * SECOND);
  assert_state(COMPRESSION_LISTENING);
  assert_int_equal(hosts[0].compression.tries, 1);
  hosts[0].percent = 135;
  run(SECOND / 2);
  assert_state(COMPRESSION_ON);
}

static void a_network_that_becomes_the_limit_later_is_relieved(void **state) {
  (void)state;
  struct host host = bound_by_network;
  host.nic = FAST_BYTES_PER_MS;
  host.coding = FAST_BYTES_PER_MS / 2;
  begin(4, host);
  run(20 * SECOND);
  assert_state(COMPRESSION_OFF);
  hosts[0].nic = NIC_BYTES_PER_MS;
  run(5 * SECOND);
  assert_state(COMPRESSION_ON);
}

/* ---- where it does not ---- */

static const struct host bound_by_processors = {
  .nic = FAST_BYTES_PER_MS,
  .plain = FAST_BYTES_PER_MS / 2,
  .coding = FAST_BYTES_PER_MS / 4,
  .supply = UINT64_MAX,
  .percent = 135,
  .delay_ns = 50000,
};

static void processors_that_are_the_limit_are_left_alone(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin(seed, bound_by_processors);
    run(60 * SECOND);
    assert_state(COMPRESSION_OFF);
    assert_in_range(per_mille_of(FAST_BYTES_PER_MS / 2, 60 * SECOND), 990, 1000);
  }
}

/* What a measurement of two seconds loses that begins after half a second. */
static void what_a_short_job_loses(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin(seed, bound_by_processors);
    hosts[0].noise_percent = 5;
    run(SECOND / 2);
    hosts[0].delivered = 0;
    run(2 * SECOND);
    assert_in_range(per_mille_of(FAST_BYTES_PER_MS / 2, 2 * SECOND), 980, 1020);
  }
}

static void coding_that_is_a_little_slower_is_seen_through_noise(void **state) {
  (void)state;
  uint64_t on_ns = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin(seed, bound_by_processors);
    hosts[0].coding = hosts[0].plain * 90 / 100;
    hosts[0].noise_percent = 10;
    run(60 * SECOND);
    on_ns += hosts[0].on_ns;
  }
  assert_in_range(on_ns / (40 * 60 * SECOND / 100), 0, 10);
}

static void an_idle_network_is_not_even_tried(void **state) {
  (void)state;
  struct host host = bound_by_network;
  host.nic = 2 * FAST_BYTES_PER_MS;
  host.supply = NIC_BYTES_PER_MS;
  begin(5, host);
  run(60 * SECOND);
  assert_int_equal(hosts[0].compression.tries, 0);
}

static void random_data_is_only_listened_to(void **state) {
  (void)state;
  begin(6, bound_by_network);
  hosts[0].percent = 100;
  run(600 * SECOND);
  assert_state(COMPRESSION_LISTENING);
  assert_int_equal(hosts[0].compression.tries, 1);
}

/* One host's NIC is slower: the others have little to do, and what they code brings nothing. */
static void a_slow_host_is_no_reason_to_code_on_another(void **state) {
  (void)state;
  begin(7, bound_by_network);
  hosts[1].nic = NIC_BYTES_PER_MS / 8;
  hosts[1].percent = 100;
  ring(2, 60 * SECOND);
  assert_in_range(per_mille_of(NIC_BYTES_PER_MS / 8, 60 * SECOND), 990, 1000);
}

static void small_traffic_is_left_alone(void **state) {
  (void)state;
  begin(8, bound_by_network);
  for (now_ns = 0; now_ns < 60 * SECOND; now_ns += STEP_NS) {
    compression_sent(&hosts[0].compression, 10000, now_ns);
    compression_acked(&hosts[0].compression, 10000, 10000, true, now_ns + STEP_NS / 2);
  }
  assert_int_equal(hosts[0].compression.tries, 0);
}

/* ---- what changes ---- */

static void what_does_not_pay_any_more_ends(void **state) {
  (void)state;
  struct host host = bound_by_network;
  host.coding = FAST_BYTES_PER_MS / 4;
  begin(9, host);
  run(20 * SECOND);
  assert_state(COMPRESSION_ON);
  hosts[0].nic = FAST_BYTES_PER_MS; /* now the processors are the limit */
  run(3 * SECOND);
  assert_state(COMPRESSION_OFF);
}

/* The network is slow and fast in turn: never worse than without, but for what finding out costs.
 */
static void a_rate_that_flaps_costs_little(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct host host = bound_by_network;
    host.coding = FAST_BYTES_PER_MS / 4;
    begin(seed, host);
    uint64_t without = 0;
    for (unsigned i = 0; i < 60; i++) {
      hosts[0].nic = i % 2 == 0 ? NIC_BYTES_PER_MS : FAST_BYTES_PER_MS / 2;
      without += hosts[0].nic * (SECOND / MS);
      run(SECOND);
    }
    assert_in_range(hosts[0].delivered * 100 / without, 95, 135);
  }
}

static void noise_makes_it_try_little(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin(seed, seed % 2 == 0 ? bound_by_network : bound_by_processors);
    hosts[0].noise_percent = 20;
    run(600 * SECOND);
    assert_in_range(hosts[0].compression.tries, 3, 40);
    assert_in_range(hosts[0].compression.turns, 0, 20);
    if (seed % 2 != 0) {
      assert_in_range(per_mille_of(FAST_BYTES_PER_MS / 2, 600 * SECOND), 980, 1020);
    }
  }
}

static void it_waits_while_another_thing_is_tried(void **state) {
  (void)state;
  begin(10, bound_by_network);
  struct compression *compression = &hosts[0].compression;
  for (now_ns = 0; now_ns < SECOND; now_ns += STEP_NS) {
    compression_sent(compression, 50000 + (now_ns == 0 ? WINDOW_BYTES : 0), now_ns);
    compression_acked(compression, 50000, WINDOW_BYTES, false, now_ns + STEP_NS / 2);
  }
  assert_int_equal(compression->tries, 0);
  run(50 * MS);
  assert_int_equal(compression->tries, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hosts_try_at_the_same_time),
    cmocka_unit_test(a_network_that_is_the_limit_is_relieved_in_half_a_second),
    cmocka_unit_test(a_gain_that_comes_late_is_no_drift),
    cmocka_unit_test(small_gains_are_seen_through_noise),
    cmocka_unit_test(hosts_of_a_ring_find_it_together),
    cmocka_unit_test(data_that_becomes_shorter_later_is_heard_of),
    cmocka_unit_test(a_network_that_becomes_the_limit_later_is_relieved),
    cmocka_unit_test(processors_that_are_the_limit_are_left_alone),
    cmocka_unit_test(what_a_short_job_loses),
    cmocka_unit_test(coding_that_is_a_little_slower_is_seen_through_noise),
    cmocka_unit_test(an_idle_network_is_not_even_tried),
    cmocka_unit_test(random_data_is_only_listened_to),
    cmocka_unit_test(a_slow_host_is_no_reason_to_code_on_another),
    cmocka_unit_test(small_traffic_is_left_alone),
    cmocka_unit_test(what_does_not_pay_any_more_ends),
    cmocka_unit_test(a_rate_that_flaps_costs_little),
    cmocka_unit_test(noise_makes_it_try_little),
    cmocka_unit_test(it_waits_while_another_thing_is_tried),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
