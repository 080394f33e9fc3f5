/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_host.h. */
#include "tests/lib/rdma_host.h"

#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

const struct fake_hca rdma_host_roce = { .name = "fake0", .addresses = { "127.0.0.1" } };
const struct fake_hca rdma_host_iwarp = { .name = "fake0",
                                          .addresses = { "127.0.0.1" },
                                          .is_iwarp = true };
static bool is_started; /* by rdma_host_set_up */

void rdma_host_configure(void) {
  rdma_device_configure(NULL);
}

void rdma_host_start(const struct fake_hca *hca) {
  fake_verbs_start();
  fake_verbs_add(hca);
  rdma_host_configure();
}

struct rdma_device *rdma_host_open(const struct nic *nic) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_open(nic, why);
  if (!device) {
    fail_msg("%s", why);
  }
  return device;
}

void rdma_host_connect(struct rdma_qp *dialler, struct rdma_qp *listener,
                       const struct sockaddr_storage *address) {
  static const struct lane_tokens tokens = { { 1 }, { 2 } };
  struct sockaddr_storage to = *address;
  struct rdma_facts facts;
  uint16_t port;
  rdma_qp_facts(dialler, &facts);
  assert_int_equal(rdma_qp_listen(listener, &facts, address, &tokens, &port), 0);
  tcp_address_set_port(&to, port);
  rdma_qp_facts(listener, &facts);
  assert_int_equal(rdma_qp_connect(dialler, &facts, address, &to, &tokens, -1), 0);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(rdma_qp_advance(dialler), 0);
    assert_int_equal(rdma_qp_advance(listener), 0);
  }
  assert_true(dialler->is_connected && listener->is_connected);
}

void rdma_host_stop(void) {
  fake_verbs_stop();
  rdma_device_configure(NULL);
}

int rdma_host_set_up(void **state) {
  const struct rdma_host_way *way = *state;
  pair_set_parameters(way->parameters);
  is_started = way->hca;
  if (is_started) {
    rdma_host_start(way->hca);
  }
  log_capture_start();
  return 0;
}

int rdma_host_tear_down(void **state) {
  if (is_started) {
    fake_verbs_heal_calls();
  }
  setup_stop();
  if (is_started) {
    rdma_host_stop();
  }
  return pair_tear_down(state);
}
