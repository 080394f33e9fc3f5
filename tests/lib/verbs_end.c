/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, connects and takes down the two ends. */
#include "tests/lib/verbs_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "tests/lib/unit.h"

const struct fake_hca verbs_end_hca_a = { .name = "fake0",
                                          .netdev = "d0",
                                          .gids = { "fe80::1", "10.0.0.1" } };
const struct fake_hca verbs_end_hca_b = { .name = "fake1",
                                          .netdev = "d1",
                                          .gids = { "fe80::2", "10.0.0.2" } };
const struct verbs_api *verbs;
struct verbs_end end_a, end_b;

struct ibv_context *verbs_end_open(const char *name) {
  int count;
  struct ibv_device **list = verbs->get_device_list(&count);
  struct ibv_context *context = NULL;
  for (int i = 0; i < count; i++) {
    if (!strcmp(verbs->get_device_name(list[i]), name)) {
      context = verbs->open_device(list[i]);
    }
  }
  verbs->free_device_list(list);
  return context;
}

struct ibv_qp *verbs_end_make_qp(struct verbs_end *end) {
  struct ibv_qp_init_attr init = {
    .send_cq = end->cq,
    .recv_cq = end->cq,
    .qp_type = IBV_QPT_RC,
    .cap = { .max_send_wr = VERBS_END_PLACES,
             .max_recv_wr = VERBS_END_PLACES,
             .max_send_sge = 2,
             .max_recv_sge = 2,
             .max_inline_data = 64 },
  };
  return verbs->create_qp(end->pd, &init);
}

static void open_end(struct verbs_end *end, const char *name) {
  memset(end->buffer, 0, sizeof(end->buffer));
  end->context = verbs_end_open(name);
  assert_non_null(end->context);
  end->pd = verbs->alloc_pd(end->context);
  end->channel = verbs->create_comp_channel(end->context);
  assert_int_equal(fcntl(end->channel->fd, F_SETFL, O_NONBLOCK), 0);
  assert_int_equal(fcntl(end->context->async_fd, F_SETFL, O_NONBLOCK), 0);
  end->cq = verbs->create_cq(end->context, 64, end, end->channel, 0);
  end->mr = verbs->reg_mr(end->pd, end->buffer, sizeof(end->buffer), VERBS_END_ACCESS);
  end->qp = verbs_end_make_qp(end);
  assert_non_null(end->qp);
  assert_int_equal(verbs->query_gid(end->context, 1, 1, &end->gid), 0);
}

int verbs_end_to_init(struct verbs_end *end) {
  struct ibv_qp_attr attributes = {
    .qp_state = IBV_QPS_INIT,
    .port_num = 1,
    .qp_access_flags = VERBS_END_ACCESS,
  };
  return verbs->modify_qp(end->qp, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int verbs_end_to_ready(struct verbs_end *end, const struct verbs_end *other, uint32_t psn,
                       uint32_t other_psn, uint8_t rnr_retry) {
  struct ibv_qp_attr attributes = {
    .qp_state = IBV_QPS_RTR,
    .path_mtu = IBV_MTU_4096,
    .dest_qp_num = other->qp->qp_num,
    .rq_psn = other_psn,
    .max_dest_rd_atomic = 1,
    .min_rnr_timer = 12,
    .ah_attr = { .is_global = 1,
                 .port_num = 1,
                 .grh = { .dgid = other->gid, .sgid_index = 1, .hop_limit = 64 } },
  };
  int rc = verbs->modify_qp(end->qp, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (rc) {
    return rc;
  }
  attributes = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
                                     .timeout = 14,
                                     .retry_cnt = 7,
                                     .rnr_retry = rnr_retry,
                                     .sq_psn = psn,
                                     .max_rd_atomic = 1 };
  return verbs->modify_qp(end->qp, &attributes,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_end_to(struct verbs_end *end, enum ibv_qp_state state) {
  struct ibv_qp_attr attributes = { .qp_state = state };
  return verbs->modify_qp(end->qp, &attributes, IBV_QP_STATE);
}

void verbs_end_connect(uint8_t rnr_retry) {
  assert_int_equal(verbs_end_to_init(&end_a), 0);
  assert_int_equal(verbs_end_to_init(&end_b), 0);
  assert_int_equal(verbs_end_to_ready(&end_a, &end_b, 11, 22, rnr_retry), 0);
  assert_int_equal(verbs_end_to_ready(&end_b, &end_a, 22, 11, rnr_retry), 0);
}

int verbs_end_set_up(void **state) {
  (void)state;
  fake_verbs_start();
  verbs = verbs_api_get();
  fake_verbs_add(&verbs_end_hca_a);
  fake_verbs_add(&verbs_end_hca_b);
  open_end(&end_a, "fake0");
  open_end(&end_b, "fake1");
  return 0;
}

int verbs_end_set_up_connected(void **state) {
  verbs_end_set_up(state);
  verbs_end_connect(7);
  return 0;
}

static void close_end(struct verbs_end *end) {
  struct ibv_async_event event;
  while (verbs->get_async_event(end->context, &event) == 0) {
    verbs->ack_async_event(&event);
  }
  if (end->qp) {
    assert_int_equal(verbs->destroy_qp(end->qp), 0);
  }
  assert_int_equal(verbs->destroy_cq(end->cq), 0);
  assert_int_equal(verbs->destroy_comp_channel(end->channel), 0);
  if (end->mr) {
    assert_int_equal(verbs->dereg_mr(end->mr), 0);
  }
  assert_int_equal(verbs->dealloc_pd(end->pd), 0);
  assert_int_equal(verbs->close_device(end->context), 0);
}

int verbs_end_tear_down(void **state) {
  (void)state;
  fake_verbs_thread(false);
  close_end(&end_a);
  close_end(&end_b);
  fake_verbs_stop();
  return 0;
}

/* ---- requests ---- */

int verbs_end_post_receive(struct verbs_end *end, uint64_t id, size_t offset, uint32_t bytes) {
  struct ibv_sge sge = { (uint64_t)(uintptr_t)end->buffer + offset, bytes, end->mr->lkey };
  struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
  return ibv_post_recv(end->qp, &wr, &bad);
}

int verbs_end_post(struct verbs_end *from, const struct verbs_end *to, uint64_t id,
                   enum ibv_wr_opcode opcode, uint32_t bytes, unsigned flags) {
  struct ibv_sge sge = { (uint64_t)(uintptr_t)from->buffer, bytes, from->mr->lkey };
  struct ibv_send_wr wr = {
    .wr_id = id,
    .sg_list = &sge,
    .num_sge = 1,
    .opcode = opcode,
    .send_flags = flags,
    .imm_data = htobe32(0xabcd),
    .wr.rdma = { (uint64_t)(uintptr_t)to->buffer + VERBS_END_TARGET, to->mr->rkey },
  };
  struct ibv_send_wr *bad = NULL;
  int rc = ibv_post_send(from->qp, &wr, &bad);
  assert_ptr_equal(bad, rc ? &wr : NULL);
  return rc;
}

struct ibv_wc verbs_end_poll(struct verbs_end *end) {
  struct ibv_wc wc;
  assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 1);
  return wc;
}

void verbs_end_expect(struct verbs_end *end, uint64_t id, enum ibv_wc_status status) {
  struct ibv_wc wc = verbs_end_poll(end);
  assert_int_equal(wc.wr_id, id);
  assert_int_equal(wc.status, status);
  assert_int_equal(wc.qp_num, end->qp->qp_num);
}

void verbs_end_expect_nothing(struct verbs_end *end) {
  struct ibv_wc wc;
  assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}

void verbs_end_expect_state(struct verbs_end *end, enum ibv_qp_state state) {
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr init;
  assert_int_equal(verbs->query_qp(end->qp, &attributes, IBV_QP_STATE, &init), 0);
  assert_int_equal(attributes.qp_state, state);
}

bool verbs_end_has_event(struct verbs_end *end) {
  struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };
  return poll(&fd, 1, 0) == 1;
}
