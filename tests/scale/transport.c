/* SPDX-License-Identifier: Apache-2.0 */
/* See transport.h. */
#include "tests/scale/transport.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/random.h"

void *transport_memory(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (!memory) {
    perror("scale");
    exit(1);
  }
  return memory;
}

double transport_uniform(uint64_t *random) {
  return (double)(random_next(random) >> 11) / 0x1p53;
}

unsigned transport_thread(unsigned connection, bool is_receiver) {
  return (2 * connection + is_receiver) % TRANSPORT_THREADS;
}

uint64_t transport_work(struct transport *transport, unsigned thread, uint64_t bytes) {
  uint64_t now_ns = transport->events->now_ns, *free_ns = &transport->free_ns[thread];
  *free_ns = *free_ns > now_ns ? *free_ns : now_ns;
  *free_ns += TRANSPORT_FRAME_NS + bytes * TRANSPORT_BYTE_PS / 1000;
  return *free_ns;
}

unsigned transport_draw_path(struct transport *transport) {
  return (unsigned)(random_next(&transport->random) % transport->config.network.paths);
}

void transport_begin(struct transport *transport, const struct transport_ops *ops,
                     const struct transport_config *config, struct events *events,
                     const struct transport_user *user) {
  transport->ops = ops;
  transport->config = *config;
  transport->user = *user;
  transport->events = events;
  transport->random = config->seed;
  network_init(&transport->network, &config->network, events);
}

struct transport *transport_new(const struct transport_config *config, struct events *events,
                                const struct transport_user *user) {
  return config->sockets > 0 ? transport_socket_new(config, events, user)
                             : transport_stratus_new(config, events, user);
}
