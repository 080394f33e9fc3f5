/* SPDX-License-Identifier: Apache-2.0 */
/* net_exchange: connects a plugin with itself and sends messages the way NCCL's proxy does: a
 * window of requests, of which the oldest is tested. Whatever goes wrong ends the process. */
#ifndef TESTS_ABI_NET_EXCHANGE_H
#define TESTS_ABI_NET_EXCHANGE_H

#include "tests/abi/net_calls.h"

enum { EXCHANGE_WINDOW = 8 };

struct exchange_pair {
  const struct host *host;
  void *listen, *send, *recv;
};

/* Both ends in this thread, each asked again until it is there. */
void exchange_connect(const struct host *host, void *context, struct exchange_pair *pair);

/* Any order is allowed: 0 sender, 1 receiver or 2 listener first. */
void exchange_close(struct exchange_pair *pair, int order);

/* Sends messages of these sizes, the sender in a thread of its own, and checks what arrives. */
void exchange_run(const struct exchange_pair *pair, const size_t *sizes, int count);

/* ---- the parts, for tests that stop half-way ---- */

struct exchange_half {
  const struct host *host;
  void *comm, *mhandle;
  unsigned char *buffer; /* EXCHANGE_WINDOW parts */
  size_t part_bytes;
  const size_t *sizes;
  int count;
  bool is_sender;
};

/* Maps and registers the buffer, which the caller unmaps. */
void exchange_start(struct exchange_half *half, const struct exchange_pair *pair, bool is_sender,
                    const size_t *sizes, int count);
void exchange_post(struct exchange_half *half, int message, void **request);
void exchange_deregister(const struct exchange_half *half);

#endif
