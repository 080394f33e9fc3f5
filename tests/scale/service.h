/* SPDX-License-Identifier: Apache-2.0 */
/* service: what the connections of a host give to messages of each size, measured on the simulated
 * host after it has carried bulk traffic for a while, so that flows are learned and bad paths left.
 *
 *   latency   from post to arrival of a message that finds its connection idle
 *   gap       between arrivals while as many messages are in flight as NCCL has in the algorithm,
 *             each followed by another one when it arrives
 *   lead      how far a burst after a pause is ahead of that rate: token buckets are full then
 *
 * Where packets are lost, also how late a message is of which one was lost. That is rare, so it is
 * measured by losing one on purpose, any of those that the message causes, both ways, while chance
 * takes others: a message that nothing follows, and one behind which others come.
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

enum service_place { SERVICE_ALONE, SERVICE_FOLLOWED, SERVICE_PLACES };
#define SERVICE_HITS                                                                               \
  256u /* samples of all connections: of 1000 packets one is lost in a fix, too */

struct service_hits {
  double packets; /* of a message */
  double late_ns[SERVICE_HITS];
};

struct service {
  struct service_curve connections[TRANSPORT_CONNECTIONS_MAX];
  struct service_hits hits[SERVICE_PLACES][SERVICE_SIZES];
  unsigned connection_count;
  unsigned flows;     /* of the first connection, at the end */
  double bytes_per_s; /* of all connections, in the largest messages */
  uint64_t stall_ns;  /* the longest time without an arrival on a connection, after NICs failed */
  uint64_t simulated_ns; /* of all of it, with */
  uint64_t events;       /* so many events */
};

struct service_config {
  struct transport_config transport;
  uint64_t learn_ns;    /* bulk traffic before anything is measured */
  uint64_t learn_bytes; /* in messages of this size */
  unsigned
      window; /* messages in flight on a connection: one that arrives is followed by the next */
  unsigned receives;     /* that are posted, where packets are lost */
  uint64_t single_bytes; /* of messages of up to this size only one */
  unsigned down_nics;    /* the last ones, which go down under the load */
};

void service_measure(const struct service_config *config, struct service *service);

/* One size's values. */
struct service_point {
  double latency[SERVICE_SAMPLES], gap[SERVICE_SAMPLES], lead;
};
struct service_point service_at(const struct service_curve *curve, uint64_t bytes);

/* How late a message is that may lose packets: mostly not at all. */
struct service_loss {
  const struct service_hits *hits; /* of the size below; the next one is of that above */
  double part;                     /* of the way to it */
  double chance;                   /* that a packet is lost */
};
struct service_loss service_loss_at(const struct service *service, enum service_place place,
                                    uint64_t bytes, double loss);
double service_late_ns(const struct service_loss *loss, uint64_t *random);

#endif
