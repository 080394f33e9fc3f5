/* SPDX-License-Identifier: Apache-2.0 */
/* network: what a host sends through: NICs, each with paths of a fabric, and streams of bytes that
 * have drawn one of them.
 *
 *   stream --+
 *   stream --+--> path, at most flow_rate --+
 *   stream -----> path, at most flow_rate --+--> NIC, at most nic_rate --> latency --> arrival
 *
 * Paths with something to send take turns, and so do the streams of a path, a segment each; rates
 * are token buckets. There is no slow start, and nothing is lost. A NIC that is down sends nothing.
 *
 * Owns: NICs and paths; streams are their users', who set `departed` and `arrived`.
 * Threads: one.  Blocks: never.  Fails: without memory the program ends. */
#ifndef TESTS_SCALE_NETWORK_H
#define TESTS_SCALE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tests/scale/events.h"

#define NETWORK_NICS_MAX 4u
#define NETWORK_SEGMENT_BYTES (64u << 10) /* what a stream sends at a time */

struct network_config {
  uint64_t nic_rate, flow_rate; /* bytes per second; flow_rate 0: no cap */
  uint64_t wire_rate;           /* bytes per second while there are tokens; at least nic_rate */
  uint32_t burst_bytes;         /* of each token bucket */
  uint64_t latency_ns;          /* one way */
  unsigned nics, paths;         /* paths: of each NIC */
};

struct bucket {
  uint64_t rate;    /* 0: no limit */
  uint64_t full_ns; /* when it is full again */
  uint64_t burst_ns;
};

struct stream {
  struct path *path; /* NULL: not open */
  TAILQ_ENTRY(stream) next;
  bool is_waiting;       /* in the queue of its path */
  uint32_t epoch;        /* one more with each network_close */
  uint64_t queued_bytes; /* written and not sent */
  uint64_t written_bytes, arrived_bytes;
  uint64_t busy_ns, busy_since_ns; /* with bytes that have not arrived; until the last of them */
  bool is_app_limited;             /* when what arrived last was sent, nothing more was queued */
  void (*departed)(struct stream *stream); /* some of it was sent: queued_bytes fell */
  void (*arrived)(struct stream *stream);  /* arrived_bytes rose */
  void *user;
};

struct path {
  struct bucket bucket;
  struct nic_out *nic;
  TAILQ_ENTRY(path) next;
  bool is_waiting; /* in the queue of its NIC */
  TAILQ_HEAD(, stream) waiting;
};

struct nic_out {
  struct network *network;
  struct bucket bucket;
  bool is_down;
  uint64_t ready_ns; /* the segment before has left */
  uint64_t wake_ns;  /* of the event that counts */
  uint64_t wake_number, sent_bytes;
  TAILQ_HEAD(, path) waiting;
  struct path *paths;
};

struct network {
  struct network_config config;
  struct events *events;
  struct nic_out nics[NETWORK_NICS_MAX];
};

void network_init(struct network *network, const struct network_config *config,
                  struct events *events);
void network_free(struct network *network);

/* Counts begin at 0. */
void network_open(struct network *network, struct stream *stream, unsigned nic, unsigned path);
/* What is queued or on the way never arrives. */
void network_close(struct stream *stream);
void network_write(struct stream *stream, uint64_t bytes);
/* The stream is open. */
uint64_t network_busy_ns(const struct stream *stream);
/* For good. */
void network_set_down(struct network *network, unsigned nic);

#endif
