/* SPDX-License-Identifier: Apache-2.0 */
/* See exact.h. */
#include "tests/scale/exact.h"

#include <stdlib.h>
#include <string.h>

/* A loop of a ring sends a slice in each step, and takes one in all but the first; in one step more
 * the last one is taken. */
struct place {
  uint64_t left; /* bytes of the channel, with this loop's */
  uint64_t slices[SCHEDULE_SLICES];
  unsigned slice_count, slice, step;
};

/* A channel on a host, and its connection to the next host. */
struct ring {
  struct exact *exact;
  unsigned host, number; /* number: of the connection */
  struct place place;
  bool is_begun, is_done, is_busy; /* busy: the kernel works on it */
  unsigned arrived;                /* from the host before, and not taken */
  unsigned in_flight;              /* to the next, and not sent */
};

struct exact {
  struct schedule_config config;
  struct transport *transport;
  struct events events;
  unsigned steps;   /* in which something is sent */
  unsigned at_work; /* channels of all hosts */
  uint64_t bytes;   /* sent in this collective */
  double *end_ns;
  struct ring rings[NETWORK_HOSTS_MAX * SCHEDULE_CHANNELS];
};

static struct ring *ring_of(struct exact *exact, unsigned host, unsigned channel) {
  return &exact->rings[host % exact->config.hosts * SCHEDULE_CHANNELS + channel];
}

static struct ring *ring_before(struct ring *ring) {
  struct exact *exact = ring->exact;
  return ring_of(exact, ring->host + exact->config.hosts - 1, ring->number % SCHEDULE_CHANNELS);
}

static void start_loop(struct ring *ring) {
  struct place *place = &ring->place;
  place->slice_count = schedule_ring_slices(place->left, ring->exact->config.hosts, place->slices);
  place->step = place->slice = 0;
}

static void post_receive(struct ring *ring) {
  struct transport *transport = ring->exact->transport;
  transport->ops->receive(transport, ring_before(ring)->number, TRANSPORT_MESSAGE_MAX);
}

static void advance(struct ring *ring);

static void go_on(struct ring *ring) {
  struct exact *exact = ring->exact;
  struct place *place = &ring->place;
  if (++place->slice < place->slice_count) {
    return;
  }
  place->slice = 0;
  if (++place->step <= exact->steps) {
    return;
  }
  uint64_t loop = (place->slices[0] + place->slices[1]) * exact->config.hosts;
  place->left -= loop < place->left ? loop : place->left;
  if (place->left > 0) {
    start_loop(ring);
    return;
  }
  ring->is_done = true;
  exact->at_work--;
  exact->end_ns[ring->host] = (double)exact->events.now_ns;
}

/* The kernel is done with a slice. */
static void slice_done(void *owner, uint64_t bytes) {
  struct ring *ring = owner;
  struct transport *transport = ring->exact->transport;
  if (ring->place.step > 0) {
    post_receive(ring);
  }
  if (ring->place.step < ring->exact->steps) {
    ring->in_flight++;
    ring->exact->bytes += bytes;
    transport->ops->send(transport, ring->number, bytes);
  }
  ring->is_busy = false;
  go_on(ring);
  advance(ring);
}

static void advance(struct ring *ring) {
  struct exact *exact = ring->exact;
  const struct place *place = &ring->place;
  if (!ring->is_begun || ring->is_done || ring->is_busy ||
      (place->step > 0 && ring->arrived == 0) ||
      (place->step < exact->steps && ring->in_flight == SCHEDULE_RING_WINDOW)) {
    return;
  }
  ring->arrived -= place->step > 0;
  ring->is_busy = true;
  uint64_t bytes = place->slices[place->slice];
  double copy_ns = (double)bytes * exact->config.copy_ps / 1000;
  events_add(&exact->events, exact->events.now_ns + (uint64_t)copy_ns, slice_done, ring, bytes);
}

static void begins(void *owner, uint64_t bytes) {
  struct ring *ring = owner;
  ring->place.left = bytes;
  ring->is_begun = true;
  start_loop(ring);
  advance(ring);
}

static void reaches_gpu(void *owner, uint64_t argument) {
  (void)argument;
  struct ring *ring = owner;
  ring->arrived++;
  advance(ring);
}

static void message_sent(void *owner, unsigned connection) {
  struct exact *exact = owner;
  exact->rings[connection].in_flight--;
  advance(&exact->rings[connection]);
}

static void message_received(void *owner, unsigned connection) {
  struct exact *exact = owner;
  struct ring *sender = &exact->rings[connection];
  struct ring *ring = ring_of(exact, sender->host + 1, connection % SCHEDULE_CHANNELS);
  events_add(&exact->events, exact->events.now_ns + (uint64_t)exact->config.hop_ns, reaches_gpu,
             ring, 0);
}

uint64_t exact_run(struct exact *exact, enum operation operation, uint64_t bytes,
                   const double *start_ns, double *end_ns) {
  unsigned hosts = exact->config.hosts;
  exact->steps = (operation == OPERATION_ALL_REDUCE ? 2 : 1) * (hosts - 1);
  exact->end_ns = end_ns;
  exact->bytes = 0;
  exact->at_work = hosts * SCHEDULE_CHANNELS;
  for (unsigned i = 0; i < exact->at_work; i++) {
    struct ring *ring = &exact->rings[i];
    ring->is_begun = ring->is_done = false;
    events_add(&exact->events, (uint64_t)start_ns[ring->host], begins, ring,
               schedule_channel_bytes(bytes));
  }
  while (exact->at_work > 0) {
    events_await(&exact->events);
  }
  return exact->bytes;
}

struct exact *exact_new(const struct schedule_config *config,
                        const struct transport_config *transport) {
  struct exact *exact = transport_memory(sizeof *exact);
  struct transport_user user = { message_sent, message_received, exact };
  exact->config = *config;
  exact->transport = transport_new(transport, &exact->events, &user);
  for (unsigned i = 0; i < config->hosts * SCHEDULE_CHANNELS; i++) {
    exact->rings[i] = (struct ring){ .exact = exact, .host = i / SCHEDULE_CHANNELS, .number = i };
  }
  for (unsigned i = 0; i < config->hosts * SCHEDULE_CHANNELS; i++) {
    for (unsigned slot = 0; slot < SCHEDULE_RING_WINDOW; slot++) {
      post_receive(&exact->rings[i]);
    }
  }
  return exact;
}

void exact_free(struct exact *exact) {
  exact->transport->ops->free(exact->transport);
  events_free(&exact->events);
  free(exact);
}
