/* SPDX-License-Identifier: Apache-2.0 */
/* network: what a host sends through: NICs, each with paths of a fabric, and streams of bytes that
 * have drawn one of them.
 *
 *   stream --+
 *   stream --+--> path, at most flow_rate --+
 *   stream -----> path, at most flow_rate --+--> NIC, at most nic_rate --> latency --> arrival
 *
 * Paths with something to send take turns, and so do the streams of a path, a segment each; rates
 * are token buckets. With shares it is the class tree of tests/netns/cluster: HTB lets a class send
 * what it is guaranteed, an even part of the NIC, whatever the NIC has left, before any that borrow
 * (net/sched/sch_htb.c: a class that can send is in its own level's row, and its parents are only
 * charged). So paths that were idle pass their bursts beyond the NIC's rate, and the others wait
 * until the NIC has made up for that. And classes take turns in the order of their numbers, a
 * packet each (a row is a tree by number, and the next one's turn comes when the quantum is used
 * up, which is a packet of 64 KiB there): who comes last may be served first. There is no slow
 * start, and nothing is lost. A NIC that is down sends nothing.
 *
 * Owns: NICs and paths; streams are their users', who set `departed` and `arrived`.
 * Threads: one.  Blocks: never.  Fails: without memory the program ends. */
#ifndef TESTS_SCALE_NETWORK_H
#define TESTS_SCALE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tests/scale/events.h"

#define NETWORK_NICS_MAX 4u /* of a host */
#define NETWORK_HOSTS_MAX 32u

struct network_config {
  uint64_t nic_rate, flow_rate; /* bytes per second; flow_rate 0: no cap */
  uint64_t wire_rate;           /* bytes per second while there are tokens; at least nic_rate */
  uint32_t burst_bytes;         /* of each token bucket */
  bool has_switch;              /* whose ports towards hosts have the NIC's rate */
  bool has_shares;              /* see above */
  uint32_t segment_bytes;       /* what a stream sends at a time */
  uint64_t latency_ns;          /* one way */
  unsigned hosts, nics, paths;  /* nics: of each host; paths: of each NIC */
};

struct bucket {
  uint64_t rate;    /* 0: no limit */
  uint64_t full_ns; /* when it is full again */
  uint64_t burst_ns;
};

struct stream {
  struct path *path;  /* NULL: not open */
  struct nic_out *to; /* the NIC at the other end */
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
  struct bucket bucket, share; /* share: what it need not borrow */
  struct nic_out *nic;
  TAILQ_ENTRY(path) next;
  bool is_waiting; /* in the queue of its NIC */
  TAILQ_HEAD(, stream) waiting;
};

struct nic_out {
  struct network *network;
  struct bucket bucket;
  struct bucket port; /* of a switch, towards the host */
  bool is_down;
  uint64_t ready_ns; /* the segment before has left */
  uint64_t wake_ns;  /* of the event that counts */
  uint64_t wake_number, sent_bytes;
  TAILQ_HEAD(, path) waiting;
  struct path *paths;
  unsigned served[2]; /* classes, last: of those that borrow, of those that do not */
};

struct network {
  struct network_config config;
  struct events *events;
  struct nic_out nics[NETWORK_HOSTS_MAX * NETWORK_NICS_MAX];
};

void network_init(struct network *network, const struct network_config *config,
                  struct events *events);
void network_free(struct network *network);

/* Counts begin at 0. */
void network_open(struct network *network, struct stream *stream, unsigned nic, unsigned to,
                  unsigned path);
/* What is queued or on the way never arrives. */
void network_close(struct stream *stream);
void network_write(struct stream *stream, uint64_t bytes);
/* The stream is open. */
uint64_t network_busy_ns(const struct stream *stream);
void network_set_down(struct network *network, unsigned nic, bool is_down);

#endif
