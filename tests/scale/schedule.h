/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: NCCL's rings and trees over many hosts, message by message. When a message arrives
 * follows from when its sender had what it sends, and from what its connection gives (service.h):
 *
 *   ready    the message before was sent on, and what is to be reduced has arrived
 *   arrival  the latest of: ready and the latency; the arrival before and the gap
 *
 * Ring: a collective is cut in loops of a chunk for each rank, a chunk in two slices, which travel
 * around once (ReduceScatter, AllGather) or twice (AllReduce); four slices are in flight on a
 * connection. Of hosts with several GPUs only the last one's messages leave the host, so they
 * depend on those so many steps before. Tree: two trees, one for each channel's data, so
 * that the inner hosts of one are leaves of the other; chunks go up reduced and come down, eight
 * are in flight. Sizes as in NCCL v2.29.7-1 (src/enqueue.cc, src/device/all_reduce.h), protocol
 * Simple.
 *
 * Owns: a struct schedule, from schedule_init to schedule_free.  Threads: one.  Blocks: never.
 * Fails: without memory the program ends. */
#ifndef TESTS_SCALE_SCHEDULE_H
#define TESTS_SCALE_SCHEDULE_H

#include "tests/scale/service.h"
#include "tests/coll/operation.h"

#define SCHEDULE_CHANNELS 2u /* what NCCL opens where a host has one NIC; the first is tree 0 */
#define SCHEDULE_SLICES 2u   /* of a ring's chunk */
#define SCHEDULE_LEAST_SLICE_BYTES (32u << 10) /* a 32nd of the largest */
#define SCHEDULE_RING_WINDOW 4u                /* NCCL_STEPS 8, two for a slice */
#define SCHEDULE_TREE_WINDOW 8u

enum schedule_algorithm { SCHEDULE_RING, SCHEDULE_TREE, SCHEDULE_ALGORITHMS };

struct schedule_config {
  unsigned hosts, gpus; /* gpus: of each host */
  double hop_ns;     /* from a GPU's work to the post of a message, and from arrival to the GPU */
  double copy_ps;    /* per byte that a GPU reduces or copies */
  double inside_ns;  /* of a hop between GPUs of a host */
  double latency_ns; /* of an acknowledgement */
  double wire_ps;    /* per byte, what the NIC's wire takes */
};

/* A connection between two hosts. */
struct edge {
  double due_ns, arrived_ns;           /* at its rate; the last arrival */
  double window[SCHEDULE_TREE_WINDOW]; /* of the last arrivals */
  uint64_t count;                      /* messages */
  uint64_t bytes;
  unsigned service, connection; /* whose curve */
};

struct schedule {
  struct schedule_config config;
  const struct service *services[SCHEDULE_ALGORITHMS]; /* several */
  unsigned service_count;
  struct edge *ring;      /* [channel][host]: to the next host */
  struct edge *up, *down; /* [channel][host]: to and from the parent */
  int *parents;           /* [channel][host]; -1: the root */
  unsigned *order;        /* [channel][host]: hosts, children before parents */
  unsigned depth;
  double *scratch;
  struct service_point *points[2]; /* of the current sizes, [service][connection] */
};

/* services: for each algorithm as many; host_services: which one each host has, that of an edge is
 * the larger of its ends' (worse ones come later). */
void schedule_init(struct schedule *schedule, const struct schedule_config *config,
                   const struct service *services[SCHEDULE_ALGORITHMS], unsigned service_count,
                   const unsigned *host_services);
void schedule_free(struct schedule *schedule);

/* Times by host: when it begins, and when it has the result. Operations: AllReduce (both
 * algorithms), AllGather, ReduceScatter (ring). bytes: as nccl-tests counts them. */
void schedule_run(struct schedule *schedule, enum schedule_algorithm algorithm,
                  enum operation operation, uint64_t bytes, const double *start_ns, double *end_ns);

#endif
