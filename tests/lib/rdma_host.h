/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_host: a machine whose RDMA devices are those of fake_verbs.
 * Owns: fake_verbs, from start to stop.  Threads: the test's.
 * Blocks: never.  Fails: the test, at stop for what was left behind. */
#ifndef TESTS_LIB_RDMA_HOST_H
#define TESTS_LIB_RDMA_HOST_H

#include "net_plugin/lane/rdma/rdma_device.h"
#include "tests/lib/fake_verbs.h"

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

/* The device of the NIC, or the test fails and says why there is none. */
struct rdma_device *rdma_host_open(const struct nic *nic);

/* Both by librdmacm, at this address; the dialler first. */
struct rdma_qp;
void rdma_host_connect(struct rdma_qp *dialler, struct rdma_qp *listener,
                       const struct sockaddr_storage *address);

/* The settings are read again, and that a NIC was refused a moment ago is forgotten. */
void rdma_host_configure(void);

#endif
