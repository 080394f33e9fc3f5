/* SPDX-License-Identifier: Apache-2.0 */
/* service: what the connections of a host give to messages of each size, measured on the simulated
 * host after it has carried bulk traffic for a while, so that flows are learned and bad paths left.
 *
 *   latency   from post to arrival of a message that finds its connection idle
 *   gap       between arrivals while as many messages are in flight as NCCL has in the algorithm,
 *             each followed by another one when it arrives
 *   lead      how far a burst after a pause is ahead of that rate: token buckets are full then
 *
 * All connections of the host have the same load at the same time, as channels of a collective do.
 * Owns: nothing; struct service is plain data.  Threads: any, on different structs.
 * Blocks: never.  Fails: as the transports. */
#ifndef TESTS_SCALE_SERVICE_H
#define TESTS_SCALE_SERVICE_H

#include "tests/scale/transport.h"

#define SERVICE_SIZES 11u /* 1 KiB to 1 MiB, the largest slice of NCCL's ring */
#define SERVICE_LEAST_BYTES 1024u
#define SERVICE_SAMPLES 16u

struct service_curve { /* of a connection, in ns */
  double latency[SERVICE_SIZES][SERVICE_SAMPLES];
  double gap[SERVICE_SIZES][SERVICE_SAMPLES];
  double lead[SERVICE_SIZES];
};

struct service {
  struct service_curve connections[TRANSPORT_CONNECTIONS_MAX];
  unsigned connection_count;
  uint64_t simulated_ns; /* of all of it */
};

struct service_config {
  struct transport_config transport;
  uint64_t learn_ns;     /* bulk traffic before anything is measured */
  uint64_t learn_bytes;  /* in messages of this size */
  unsigned window;       /* messages in flight: one that arrives is followed by the next */
  unsigned posted;       /* receives: NCCL's proxy posts one for each slice of its buffer */
  uint64_t single_bytes; /* of messages of up to this size only one */
  unsigned down_nics;    /* the last ones, which go down under the load */
};

void service_measure(const struct service_config *config, struct service *service);

/* One size's values. */
struct service_point {
  double latency[SERVICE_SAMPLES], gap[SERVICE_SAMPLES], lead;
};
struct service_point service_at(const struct service_curve *curve, uint64_t bytes);

#endif
