/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_host: a machine whose RDMA devices are those of fake_verbs.
 * Owns: fake_verbs, from start to stop.  Threads: the test's.
 * Blocks: while the plugin's threads are at work.  Fails: the test, at stop for what was left. */
#ifndef TESTS_LIB_RDMA_HOST_H
#define TESTS_LIB_RDMA_HOST_H

#include "net_plugin/lane/rdma/rdma_qp.h"
#include "tests/lib/fake_verbs.h"
#include "tests/lib/pair.h"

/* With one device; its settings are those of the parameters and the environment by now. */
void rdma_host_start(const struct fake_hca *hca);
void rdma_host_stop(void);

/* A machine with this device, for cmocka: one and the parameters (pair_set_parameters) are in
 * *state. set_up starts all, and captures the log. tear_down stops it; nothing may be left. */
struct rdma_host_way {
  const struct fake_hca *hca; /* NULL: no device */
  const char *parameters;
};
int rdma_host_set_up(void **state);
int rdma_host_tear_down(void **state);
/* At 127.0.0.1. */
extern const struct fake_hca rdma_host_roce, rdma_host_iwarp;

/* Sends messages until queue pairs have carried so many more (again). */
void rdma_host_expect(struct pair pair, uint64_t sends);

/* The device of the NIC, or the test fails and says why there is none. */
struct rdma_device *rdma_host_open(const struct nic *nic);
/* There is none: why has the reason. */
void rdma_host_open_none(const struct nic *nic, char why[RDMA_WHY_MAX]);

/* Two queue pairs of this process, at 127.0.0.1. */
struct rdma_host_two {
  struct nic nic;
  struct lane_tokens tokens;
  struct lane_offer offer; /* of both */
  struct rdma_qp *dialler, *listener;
  int fds[2]; /* a TCP connection, the dialler's end first */
};
/* The listener listens. */
struct rdma_host_two rdma_host_listen(void);
/* One more dialler, with these tokens; frees one that fails. 0 or the error, once all has happened.
 */
int rdma_host_dial(struct rdma_host_two *two, const struct lane_tokens *tokens,
                   struct rdma_qp **dialler);
/* Listens, and the dialler has connected. */
struct rdma_host_two rdma_host_two(void);
/* Waits until endpoint_result is another one than before, and returns it. */
int rdma_host_result(struct rdma_qp *qp, int before);
void rdma_host_free_two(struct rdma_host_two *two);

#endif
