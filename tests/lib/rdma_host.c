/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_host.h. */
#include "tests/lib/rdma_host.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

const struct fake_hca rdma_host_roce = { .name = "fake0", .addresses = { "127.0.0.1" } };
const struct fake_hca rdma_host_iwarp = { .name = "fake0",
                                          .addresses = { "127.0.0.1" },
                                          .is_iwarp = true };
static bool is_started; /* by rdma_host_set_up */

void rdma_host_start(const struct fake_hca *hca) {
  fake_verbs_start();
  fake_verbs_add(hca);
  endpoint_configure();
}

void rdma_host_stop(void) {
  endpoint_stop_all();
  fake_verbs_stop();
  endpoint_configure();
}

void rdma_host_expect(struct pair pair, uint64_t sends) {
  static const size_t sizes[] = { 8, 70000, 4096 };
  uint64_t least = fake_verbs_counts().sends + sends;
  UNTIL(fake_verbs_counts().sends >= least) {
    pair_exchange(pair, sizes, 3, 6, NULL);
  }
}

struct rdma_device *rdma_host_open(const struct nic *nic) {
  char why[RDMA_WHY_MAX];
  endpoint_wait(nic, 1, false);
  struct rdma_device *device = rdma_device_take(nic, why);
  if (!device) {
    fail_msg("%s", why);
  }
  return device;
}

void rdma_host_open_none(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  endpoint_wait(nic, 1, false);
  assert_null(rdma_device_take(nic, why));
}

/* ---- two queue pairs ---- */

int rdma_host_result(struct rdma_qp *qp, int before) {
  struct pollfd news = { .fd = endpoint_fd(&qp->endpoint), .events = POLLIN };
  int result;
  while ((result = endpoint_result(&qp->endpoint)) == before) {
    assert_int_equal(poll(&news, 1, 20000), 1);
  }
  return result;
}

struct rdma_host_two rdma_host_listen(void) {
  struct rdma_host_two two = { .nic = pair_loopback(AF_INET), .tokens = { { 1 }, { 2 } } };
  pair_sockets(two.fds);
  endpoint_wait(&two.nic, 1, false);
  assert_true(endpoint_offer(&two.nic, &two.offer));
  const struct endpoint_peer peer = { &two.offer, &two.tokens, two.fds[1], -1 };
  two.listener = rdma_qp_of(endpoint_accept(&two.nic, &peer));
  assert_non_null(two.listener);
  assert_int_equal(rdma_host_result(two.listener, -EINPROGRESS), 0);
  assert_true(two.listener->endpoint.port != 0);
  return two;
}

int rdma_host_dial(struct rdma_host_two *two, const struct lane_tokens *tokens,
                   struct rdma_qp **dialler) {
  const struct endpoint_peer peer = { &two->offer, tokens, two->fds[0], 10 };
  struct rdma_qp *qp = rdma_qp_of(endpoint_connect(&two->nic, &peer, two->listener->endpoint.port));
  assert_non_null(qp);
  int error = rdma_host_result(qp, -EINPROGRESS);
  if (error) {
    endpoint_free(&qp->endpoint);
    qp = NULL;
  }
  UNTIL(!qp || atomic_load(&two->listener->is_connected));
  pthread_mutex_lock(&two->listener->in_use); /* the worker has done with it */
  pthread_mutex_unlock(&two->listener->in_use);
  *dialler = qp;
  return error;
}

struct rdma_host_two rdma_host_two(void) {
  struct rdma_host_two two = rdma_host_listen();
  assert_int_equal(rdma_host_dial(&two, &two.tokens, &two.dialler), 0);
  return two;
}

void rdma_host_free_two(struct rdma_host_two *two) {
  endpoint_free(two->dialler ? &two->dialler->endpoint : NULL);
  endpoint_free(two->listener ? &two->listener->endpoint : NULL);
  close(two->fds[0]);
  close(two->fds[1]);
}

/* ---- for cmocka ---- */

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
