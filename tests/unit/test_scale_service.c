/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated host: what is posted arrives, at rates that are known, the same in every run. */
#include <string.h>

#include "common/random.h"
#include "tests/lib/unit.h"
#include "tests/scale/service.h"

#define MB 1000000ull
#define SECOND 1000000000ull
#define MESSAGES 200u

static struct transport_config config_of(unsigned sockets) {
  return (struct transport_config){
    .network = { .nic_rate = 500 * MB,
                 .wire_rate = 500 * MB,
                 .burst_bytes = 128u << 10,
                 .latency_ns = 20000,
                 .nics = 1,
                 .paths = 32 },
    .connections = 2,
    .seed = 1,
    .sockets = sockets,
  };
}

/* ---- conservation ---- */

static unsigned sent[2], received[2];

static void count_sent(void *user, unsigned connection) {
  (void)user;
  sent[connection]++;
}

static void count_received(void *user, unsigned connection) {
  (void)user;
  received[connection]++;
}

/* Posts messages of all sizes at random times, and lets `nic` fail in the middle; -1: none. */
static uint64_t exchange(const struct transport_config *config, int nic) {
  struct events events = { 0 };
  struct transport_user user = { count_sent, count_received, NULL };
  struct transport *transport = transport_new(config, &events, &user);
  uint64_t random = 7, posted_bytes = 0;
  memset(sent, 0, sizeof sent);
  memset(received, 0, sizeof received);
  for (unsigned i = 0; i < MESSAGES; i++) {
    uint64_t bytes = 1 + random_next(&random) % (1u << random_next(&random) % 21);
    posted_bytes += bytes;
    transport->ops->receive(transport, i % 2, TRANSPORT_MESSAGE_MAX);
    transport->ops->send(transport, i % 2, bytes);
    for (uint64_t until_ns = events.now_ns + 5000000; events_next(&events, until_ns);) {
    }
    if (nic >= 0 && i == MESSAGES / 2) {
      network_set_down(&transport->network, (unsigned)nic, true);
    }
  }
  for (uint64_t until_ns = events.now_ns + 20 * SECOND; events_next(&events, until_ns);) {
  }
  uint64_t left_bytes = 0;
  for (unsigned i = 0; i < config->network.nics; i++) {
    left_bytes += transport->network.nics[i].sent_bytes;
  }
  transport->ops->free(transport);
  events_free(&events);
  for (unsigned c = 0; c < 2; c++) {
    assert_int_equal(sent[c], MESSAGES / 2);
    assert_int_equal(received[c], MESSAGES / 2);
  }
  assert_true(left_bytes >= posted_bytes);
  return left_bytes - posted_bytes;
}

UNIT_TEST(every_byte_arrives) {
  struct transport_config socket = config_of(1), sockets = config_of(16), stratus = config_of(0);
  assert_int_equal(exchange(&socket, -1), 0);
  assert_int_equal(exchange(&sockets, -1), 0);
  assert_in_range(exchange(&stratus, -1), MESSAGES * 40, 2 * MB); /* headers, acknowledgements */
  stratus.network.flow_rate = 10 * MB;
  exchange(&stratus, -1);
}

UNIT_TEST(every_byte_arrives_though_a_nic_fails) {
  struct transport_config stratus = config_of(0);
  stratus.network.nics = 2;
  exchange(&stratus, 1);
}

/* ---- rates ---- */

static struct service_config service_of(unsigned sockets, uint64_t flow_rate) {
  struct service_config config = {
    .transport = config_of(sockets), .learn_ns = 3 * SECOND, .learn_bytes = 512u << 10, .window = 4
  };
  config.transport.network.flow_rate = flow_rate;
  return config;
}

static struct service service;

static double of_nic(const struct service_config *config) {
  double bytes_per_ns = 0;
  service_measure(config, &service);
  for (unsigned c = 0; c < service.connection_count; c++) {
    double ns = 0;
    for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
      ns += service.connections[c].gap[SERVICE_SIZES - 1][i] / SERVICE_SAMPLES;
    }
    bytes_per_ns += (SERVICE_LEAST_BYTES << (SERVICE_SIZES - 1)) / ns;
  }
  return bytes_per_ns * 1e9 / (double)config->transport.network.nic_rate;
}

UNIT_TEST(a_socket_has_what_its_flow_has) {
  struct service_config config = service_of(1, 50 * MB);
  double part = of_nic(&config);
  assert_true(part > 0.199 && part < 0.201);
  struct service_point point = service_at(&service.connections[0], 128u << 10);
  assert_true(point.gap[0] > 0.999 * 131072 / 0.05 && point.gap[0] < 1.001 * 131072 / 0.05);
  /* The burst is what it has ahead after a pause. */
  assert_true(point.lead > 0.3 * 131072 / 0.05 && point.lead < 1.1 * 131072 / 0.05);
}

UNIT_TEST(without_caps_all_fill_the_nic) {
  for (unsigned sockets = 0; sockets <= 16; sockets += 8) {
    struct service_config config = service_of(sockets, 0);
    double part = of_nic(&config);
    assert_true(part > 0.9 && part < 1.15);
  }
}

UNIT_TEST(stratus_learns_how_many_flows_fill_it) {
  struct service_config config = service_of(0, 500 * MB / 32);
  config.transport.network.paths = 1024;
  assert_true(of_nic(&config) > 0.85);
}

UNIT_TEST(a_nic_that_fails_leaves_the_rest) {
  struct service_config config = service_of(0, 0);
  config.transport.network.nics = 2;
  config.down_nics = 1;
  config.learn_ns = 20 * SECOND;
  double part = of_nic(&config); /* of one */
  assert_true(part > 0.8 && part < 1.15);
}

UNIT_TEST(a_run_is_repeated_exactly) {
  static struct service again;
  for (unsigned sockets = 0; sockets <= 16; sockets += 16) {
    struct service_config config = service_of(sockets, 60 * MB);
    service_measure(&config, &service);
    service_measure(&config, &again);
    assert_memory_equal(&service, &again, sizeof service);
    config.transport.seed = 2;
    service_measure(&config, &again);
    assert_memory_not_equal(&service, &again, sizeof service);
  }
}

UNIT_MAIN(NULL, NULL)
