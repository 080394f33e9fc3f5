/* SPDX-License-Identifier: Apache-2.0 */
/* See service.h. */
#include "tests/scale/service.h"

#define NS_PER_S 1000000000ull
#define PAUSE_NS 20000000u     /* between single messages: acknowledgements have come */
#define LONG_PAUSE_NS NS_PER_S /* token buckets are full, as after a layer's computation */
#define WARM_MESSAGES 8u       /* of a phase, not counted */
#define GAPS_PER_SAMPLE 3u     /* arrivals come in bunches: means of so many */
#define LEAD_MESSAGES 40u
#define PHASE_MESSAGES (WARM_MESSAGES + GAPS_PER_SAMPLE * SERVICE_SAMPLES)

struct user {
  uint64_t to_send, sent, received; /* of this phase */
  unsigned receives;                /* posted and not complete */
  double received_ns[PHASE_MESSAGES];
};

struct load {
  struct transport *transport;
  struct events events;
  uint64_t bytes, messages; /* of a phase; messages: of each connection */
  uint64_t single_bytes;
  unsigned window, posted; /* as struct service_config's */
  uint64_t begun_ns;
  struct user users[TRANSPORT_CONNECTIONS_MAX];
};

static void post_send(struct load *load, unsigned connection) {
  load->users[connection].to_send--;
  load->transport->ops->send(load->transport, connection, load->bytes);
}

static void post_receive(struct load *load, unsigned connection) {
  load->users[connection].receives++;
  load->transport->ops->receive(load->transport, connection, TRANSPORT_MESSAGE_MAX);
}

static void load_sent(void *owner, unsigned connection) {
  struct load *load = owner;
  load->users[connection].sent++;
}

static void load_received(void *owner, unsigned connection) {
  struct load *load = owner;
  struct user *user = &load->users[connection];
  if (user->received < PHASE_MESSAGES) {
    user->received_ns[user->received] = (double)(load->events.now_ns - load->begun_ns);
  }
  user->received++;
  user->receives--;
  post_receive(load, connection);
  if (user->to_send > 0) {
    post_send(load, connection);
  }
}

static void load_begin(struct load *load, const struct service_config *config) {
  *load = (struct load){ .window = config->window,
                         .posted = config->posted,
                         .single_bytes = config->single_bytes };
  struct transport_user user = { load_sent, load_received, load };
  load->transport = transport_new(&config->transport, &load->events, &user);
}

static void load_end(struct load *load) {
  load->transport->ops->free(load->transport);
  events_free(&load->events);
}

static void phase_start(struct load *load, uint64_t bytes, uint64_t messages) {
  unsigned window = bytes > load->single_bytes ? load->window : 1;
  load->bytes = bytes;
  load->messages = messages;
  load->begun_ns = load->events.now_ns;
  for (unsigned c = 0; c < load->transport->config.connections; c++) {
    struct user *user = &load->users[c];
    user->to_send = messages;
    user->sent = user->received = 0;
    while (user->receives < load->posted) {
      post_receive(load, c);
    }
    for (unsigned i = 0; i < window && user->to_send > 0; i++) {
      post_send(load, c);
    }
  }
}

static bool phase_is_over(const struct load *load) {
  for (unsigned c = 0; c < load->transport->config.connections; c++) {
    if (load->users[c].received < load->messages || load->users[c].sent < load->messages) {
      return false;
    }
  }
  return true;
}

static void pass(struct load *load, uint64_t for_ns) {
  uint64_t until_ns = load->events.now_ns + for_ns;
  while (events_next(&load->events, until_ns)) {
  }
}

static void phase_run(struct load *load, uint64_t bytes, uint64_t messages) {
  phase_start(load, bytes, messages);
  while (!phase_is_over(load)) {
    events_await(&load->events);
  }
}

/* Of bulk traffic, a phase without an end. */
static void bulk_stop(struct load *load) {
  for (unsigned c = 0; c < load->transport->config.connections; c++) {
    struct user *user = &load->users[c];
    uint64_t posted = UINT64_MAX - user->to_send;
    user->to_send = 0;
    while (user->received < posted || user->sent < posted) {
      events_await(&load->events);
    }
  }
}

/* Half of the time with all NICs. */
static void learn(struct load *load, const struct service_config *config) {
  const struct network_config *network = &config->transport.network;
  phase_start(load, config->learn_bytes, UINT64_MAX);
  pass(load, config->learn_ns / 2);
  for (unsigned i = 0; i < config->down_nics; i++) {
    network_set_down(&load->transport->network, network->nics - 1 - i);
  }
  pass(load, config->learn_ns / 2);
  bulk_stop(load);
}

/* ---- the three figures of a size ---- */

static double mean(const double values[SERVICE_SAMPLES]) {
  double sum = 0;
  for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
    sum += values[i];
  }
  return sum / SERVICE_SAMPLES;
}

static void measure_gaps(struct load *load, unsigned size, uint64_t bytes,
                         struct service *service) {
  phase_run(load, bytes, PHASE_MESSAGES + WARM_MESSAGES); /* all connections send to the end */
  for (unsigned c = 0; c < service->connection_count; c++) {
    const double *at = load->users[c].received_ns + WARM_MESSAGES - 1;
    for (unsigned i = 0; i < SERVICE_SAMPLES; i++, at += GAPS_PER_SAMPLE) {
      service->connections[c].gap[size][i] = (at[GAPS_PER_SAMPLE] - at[0]) / GAPS_PER_SAMPLE;
    }
  }
}

static void measure_latency(struct load *load, unsigned size, uint64_t bytes,
                            struct service *service) {
  for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
    pass(load, PAUSE_NS);
    phase_run(load, bytes, 1);
    for (unsigned c = 0; c < service->connection_count; c++) {
      service->connections[c].latency[size][i] = load->users[c].received_ns[0];
    }
  }
}

static void measure_lead(struct load *load, unsigned size, uint64_t bytes,
                         struct service *service) {
  pass(load, LONG_PAUSE_NS);
  phase_run(load, bytes, LEAD_MESSAGES);
  for (unsigned c = 0; c < service->connection_count; c++) {
    struct service_curve *curve = &service->connections[c];
    double latency = mean(curve->latency[size]), gap = mean(curve->gap[size]), lead = 0;
    for (unsigned i = 0; i < LEAD_MESSAGES; i++) {
      double ahead = latency + i * gap - load->users[c].received_ns[i];
      lead = ahead > lead ? ahead : lead;
    }
    curve->lead[size] = lead;
  }
}

void service_measure(const struct service_config *config, struct service *service) {
  struct load load;
  load_begin(&load, config);
  *service = (struct service){ .connection_count = config->transport.connections };
  learn(&load, config);
  for (unsigned size = 0; size < SERVICE_SIZES; size++) {
    uint64_t bytes = (uint64_t)SERVICE_LEAST_BYTES << size;
    measure_gaps(&load, size, bytes, service);
    measure_latency(&load, size, bytes, service);
    measure_lead(&load, size, bytes, service);
  }
  service->simulated_ns = load.events.now_ns;
  load_end(&load);
}

/* ---- between the measured sizes ---- */

/* The size below, and the part of the way to the one above. */
static unsigned size_below(uint64_t bytes, double *part) {
  unsigned size = 0;
  while (size + 2 < SERVICE_SIZES && bytes > (uint64_t)SERVICE_LEAST_BYTES << (size + 1)) {
    size++;
  }
  double low = (double)((uint64_t)SERVICE_LEAST_BYTES << size);
  *part = ((double)bytes - low) / low;
  *part = *part > 0 ? *part : 0;
  return size;
}

struct service_point service_at(const struct service_curve *curve, uint64_t bytes) {
  double part;
  unsigned size = size_below(bytes, &part);
  struct service_point point;
  for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
    const double *latency = &curve->latency[size][i], *gap = &curve->gap[size][i];
    point.latency[i] = latency[0] + part * (latency[SERVICE_SAMPLES] - latency[0]);
    point.gap[i] = gap[0] + part * (gap[SERVICE_SAMPLES] - gap[0]);
  }
  point.lead = curve->lead[size] + part * (curve->lead[size + 1] - curve->lead[size]);
  return point;
}
