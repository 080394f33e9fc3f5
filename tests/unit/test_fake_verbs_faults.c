/* SPDX-License-Identifier: Apache-2.0 */
/* The faults and the time of the software provider of queue pairs. */
#include "tests/lib/fake_verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/unit.h"
#include "tests/lib/verbs_end.h"

/* ---- faults ---- */

#define CONNECTED(test) UNIT_TEST_WITH(test, verbs_end_set_up_connected, verbs_end_tear_down)

CONNECTED(nth_sends_fail_as_told) {
  static const enum ibv_wc_status kinds[] = { IBV_WC_RETRY_EXC_ERR,  IBV_WC_RNR_RETRY_EXC_ERR,
                                              IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR,
                                              IBV_WC_REM_OP_ERR,     IBV_WC_GENERAL_ERR };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    fake_verbs_fail_send(2, kinds[i], false);
    memset(end_b.buffer, 0, sizeof(end_b.buffer));
    assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
    strcpy(end_a.buffer, "again");
    assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_RDMA_WRITE, 8, 0), 0);
    verbs_end_expect(&end_a, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = verbs_end_poll(&end_a);
    assert_int_equal(wc.status, kinds[i]);
    assert_int_not_equal(wc.vendor_err, 0);
    assert_int_not_equal(wc.opcode, IBV_WC_RDMA_WRITE); /* undefined, and so nothing one expects */
    verbs_end_expect_state(&end_a, IBV_QPS_ERR);
    assert_int_equal(end_b.buffer[VERBS_END_TARGET], 0);
    assert_int_equal(verbs_end_to(&end_a, IBV_QPS_RESET), 0);
    assert_int_equal(verbs_end_to(&end_b, IBV_QPS_RESET), 0);
    memset(end_a.buffer, 0, sizeof(end_a.buffer));
    verbs_end_connect(7);
  }
}

CONNECTED(failed_sends_may_have_arrived) {
  strcpy(end_a.buffer, "lost?");
  fake_verbs_fail_send(1, IBV_WC_RETRY_EXC_ERR, true);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 6, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RETRY_EXC_ERR);
  assert_string_equal(end_b.buffer + VERBS_END_TARGET, "lost?");
}

CONNECTED(nth_receives_fail_as_told) {
  fake_verbs_fail_receive(1, IBV_WC_LOC_PROT_ERR);
  assert_int_equal(verbs_end_post_receive(&end_b, 5, 0, 64), 0);
  assert_int_equal(verbs_end_post_receive(&end_b, 6, 0, 64), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 6, 0), 0);
  verbs_end_expect(&end_b, 5, IBV_WC_LOC_PROT_ERR);
  verbs_end_expect(&end_b, 6, IBV_WC_WR_FLUSH_ERR);
  verbs_end_expect(&end_a, 1, IBV_WC_REM_OP_ERR);
}

CONNECTED(cuts_separate_devices) {
  fake_verbs_cut("fake1", "fake0", true);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 6, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RETRY_EXC_ERR);
  fake_verbs_cut("fake1", "fake0", false);
  assert_int_equal(verbs_end_post(&end_b, &end_a, 2, IBV_WR_RDMA_WRITE, 6, 0), 0);
  verbs_end_expect(&end_b, 2, IBV_WC_RETRY_EXC_ERR); /* a is broken by now, not the way */
}

#define FRESH(test) UNIT_TEST_WITH(test, verbs_end_set_up, verbs_end_tear_down)

FRESH(calls_fail_as_told) {
  fake_verbs_fail_call(FAKE_REG_MR, 2, ENOMEM);
  struct ibv_mr *mr = verbs->reg_mr(end_a.pd, end_a.buffer, 64, 0);
  assert_non_null(mr);
  assert_null(verbs->reg_mr_iova2(end_a.pd, end_a.buffer, 64, 0, IBV_ACCESS_RELAXED_ORDERING));
  assert_int_equal(errno, ENOMEM);
  assert_int_equal(verbs->dereg_mr(mr), 0);
  fake_verbs_fail_calls(FAKE_MODIFY_QP, EIO);
  assert_int_equal(verbs_end_to_init(&end_a), EIO);
  assert_int_equal(verbs_end_to_init(&end_a), EIO);
  fake_verbs_fail_calls(FAKE_MODIFY_QP, 0);
  assert_int_equal(verbs_end_to_init(&end_a), 0);
  fake_verbs_fail_call(FAKE_CREATE_QP, 1, ENOSPC);
  assert_null(verbs_end_make_qp(&end_a));
  assert_int_equal(errno, ENOSPC);
  fake_verbs_fail_call(FAKE_OPEN_DEVICE, 1, EACCES);
  assert_null(verbs_end_open("fake0"));
  assert_int_equal(errno, EACCES);
  fake_verbs_fail_call(FAKE_CREATE_CQ, 1, ENOMEM);
  assert_null(verbs->create_cq(end_a.context, 1, NULL, NULL, 0));
}

FRESH(missing_features_are_missed) {
  static const struct fake_hca small = { .name = "small",
                                         .gids = { "10.0.0.9" },
                                         .has_no_dmabuf = true,
                                         .has_no_iova2 = true,
                                         .max_inline = 16,
                                         .max_recv_sge = 1 };
  fake_verbs_add(&small);
  struct ibv_context *context = verbs_end_open("small");
  struct ibv_pd *pd = verbs->alloc_pd(context);
  assert_null(verbs->reg_dmabuf_mr(pd, 0, 64, 0, 0, 0));
  assert_int_equal(errno, EOPNOTSUPP);
  assert_null(verbs->reg_mr_iova2(pd, end_a.buffer, 64, 0, 0));
  struct ibv_cq *cq = verbs->create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp_init_attr init = { .send_cq = cq,
                                   .recv_cq = cq,
                                   .qp_type = IBV_QPT_RC,
                                   .cap = { .max_send_wr = 1, .max_inline_data = 17 } };
  assert_null(verbs->create_qp(pd, &init));
  init.cap.max_inline_data = 16;
  init.cap.max_recv_sge = 2;
  assert_null(verbs->create_qp(pd, &init));
  init.cap.max_recv_sge = 1;
  struct ibv_qp *qp = verbs->create_qp(pd, &init);
  assert_non_null(qp);
  assert_int_equal(verbs->dealloc_pd(pd), EBUSY);
  assert_int_equal(verbs->destroy_cq(cq), EBUSY);
  assert_int_equal(verbs->destroy_qp(qp), 0);
  assert_int_equal(verbs->destroy_cq(cq), 0);
  assert_int_equal(verbs->dealloc_pd(pd), 0);
  assert_int_equal(verbs->close_device(context), 0);
}

CONNECTED(dmabufs_are_reached_by_their_iova) {
  int fd = memfd_create("dmabuf", MFD_CLOEXEC);
  assert_int_equal(ftruncate(fd, 8192), 0);
  struct ibv_mr *mr = verbs->reg_dmabuf_mr(end_b.pd, 4096, 4096, 0x10000, fd, VERBS_END_ACCESS);
  assert_non_null(mr);
  strcpy(end_a.buffer, "device");
  struct ibv_sge sge = { (uint64_t)(uintptr_t)end_a.buffer, 7, end_a.mr->lkey };
  struct ibv_send_wr wr = { .sg_list = &sge,
                            .num_sge = 1,
                            .opcode = IBV_WR_RDMA_WRITE,
                            .send_flags = IBV_SEND_SIGNALED,
                            .wr.rdma = { 0x10000 + 16, mr->rkey } };
  struct ibv_send_wr *bad;
  assert_int_equal(ibv_post_send(end_a.qp, &wr, &bad), 0);
  assert_int_equal(verbs_end_poll(&end_a).status, IBV_WC_SUCCESS);
  char text[7];
  assert_int_equal(pread(fd, text, sizeof(text), 4096 + 16), sizeof(text));
  assert_string_equal(text, "device");
  assert_int_equal(verbs->dereg_mr(mr), 0);
  close(fd);
}

/* ---- time ---- */

CONNECTED(held_completions_are_not_seen) {
  fake_verbs_hold(FAKE_HOLD_COMPLETIONS);
  assert_int_equal(ibv_req_notify_cq(end_a.cq, 0), 0);
  strcpy(end_a.buffer, "there");
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 6, IBV_SEND_SIGNALED), 0);
  assert_string_equal(end_b.buffer + VERBS_END_TARGET, "there");
  verbs_end_expect_nothing(&end_a);
  assert_false(verbs_end_has_event(&end_a));
  assert_int_equal(fake_verbs_step(5), 1);
  assert_true(verbs_end_has_event(&end_a));
  verbs_end_expect(&end_a, 1, IBV_WC_SUCCESS);
  fake_verbs_hold(FAKE_HOLD_NOTHING);
}

CONNECTED(a_thread_does_the_work_in_order) {
  enum { ROUNDS = 500 };
  fake_verbs_thread(true);
  uint64_t sent = 0, received = 0, posted = 0;
  while (received < ROUNDS) {
    while (posted < ROUNDS && posted < received + VERBS_END_PLACES) {
      assert_int_equal(
          verbs_end_post_receive(&end_b, posted, (size_t)(posted % VERBS_END_PLACES) * 8, 8), 0);
      posted++;
    }
    if (sent < ROUNDS) {
      memcpy(end_a.buffer, &sent, sizeof(sent));
      sent += verbs_end_post(&end_a, &end_b, sent, IBV_WR_SEND, 8,
                             IBV_SEND_INLINE | IBV_SEND_SIGNALED) == 0;
    }
    struct ibv_wc wc;
    while (ibv_poll_cq(end_a.cq, 1, &wc) == 1) {
      assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
    while (ibv_poll_cq(end_b.cq, 1, &wc) == 1) {
      uint64_t value;
      memcpy(&value, end_b.buffer + received % VERBS_END_PLACES * 8, sizeof(value));
      assert_int_equal(wc.wr_id, received);
      assert_int_equal(value, received++);
    }
  }
}

UNIT_MAIN(NULL, NULL)
