/* SPDX-License-Identifier: Apache-2.0 */
/* The software provider of queue pairs: what a card does, and what it refuses. */
#include "tests/lib/fake_verbs.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/lib/verbs_end.h"

#define CONNECTED(test) UNIT_TEST_WITH(test, verbs_end_set_up_connected, verbs_end_tear_down)

CONNECTED(send_arrives) {
  strcpy(end_a.buffer, "hello");
  assert_int_equal(verbs_end_post_receive(&end_b, 7, 100, 64), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 6, IBV_SEND_SIGNALED), 0);
  struct ibv_wc wc = verbs_end_poll(&end_b);
  assert_int_equal(wc.status, IBV_WC_SUCCESS);
  assert_int_equal(wc.opcode, IBV_WC_RECV);
  assert_int_equal(wc.wr_id, 7);
  assert_int_equal(wc.byte_len, 6);
  assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, 0);
  assert_string_equal(end_b.buffer + 100, "hello");
  wc = verbs_end_poll(&end_a);
  assert_int_equal(wc.status, IBV_WC_SUCCESS);
  assert_int_equal(wc.opcode, IBV_WC_SEND);
  assert_int_equal(wc.wr_id, 1);
}

CONNECTED(inline_bytes_are_taken_at_once) {
  fake_verbs_hold(FAKE_HOLD_WORK);
  strcpy(end_a.buffer, "early");
  assert_int_equal(verbs_end_post_receive(&end_b, 7, 0, 64), 0);
  assert_int_equal(
      verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 6, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
  strcpy(end_a.buffer, "late.");
  assert_int_equal(fake_verbs_step(10), 1);
  assert_string_equal(end_b.buffer, "early");
  assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_SEND, 65, IBV_SEND_INLINE), ENOMEM);
  fake_verbs_hold(FAKE_HOLD_NOTHING);
}

CONNECTED(gathered_stretches_arrive_in_order) {
  strcpy(end_a.buffer, "headpayload");
  struct ibv_sge sges[2] = { { (uint64_t)(uintptr_t)end_a.buffer + 4, 7, end_a.mr->lkey },
                             { (uint64_t)(uintptr_t)end_a.buffer, 4, end_a.mr->lkey } };
  struct ibv_send_wr wr = { .sg_list = sges, .num_sge = 2, .opcode = IBV_WR_SEND }, *bad;
  struct ibv_sge parts[2] = { { (uint64_t)(uintptr_t)end_b.buffer, 5, end_b.mr->lkey },
                              { (uint64_t)(uintptr_t)end_b.buffer + 100, 20, end_b.mr->lkey } };
  struct ibv_recv_wr receive = { .sg_list = parts, .num_sge = 2 }, *bad_receive;
  assert_int_equal(ibv_post_recv(end_b.qp, &receive, &bad_receive), 0);
  assert_int_equal(ibv_post_send(end_a.qp, &wr, &bad), 0);
  assert_int_equal(verbs_end_poll(&end_b).byte_len, 11);
  assert_memory_equal(end_b.buffer, "paylo", 5);
  assert_memory_equal(end_b.buffer + 100, "adhead", 6);
  wr.num_sge = 3;
  assert_int_equal(ibv_post_send(end_a.qp, &wr, &bad), EINVAL);
}

CONNECTED(writes_need_no_receiver) {
  strcpy(end_a.buffer, "written");
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
  assert_string_equal(end_b.buffer + VERBS_END_TARGET, "written");
  verbs_end_expect_nothing(&end_b);
  assert_int_equal(verbs_end_poll(&end_a).opcode, IBV_WC_RDMA_WRITE);
}

CONNECTED(writes_with_immediate_take_a_receive) {
  strcpy(end_a.buffer, "written");
  assert_int_equal(
      verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 8, IBV_SEND_SIGNALED), 0);
  verbs_end_expect_nothing(&end_a); /* waits for a receive request */
  assert_int_equal(end_b.buffer[VERBS_END_TARGET], 0);
  assert_int_equal(verbs_end_post_receive(&end_b, 9, 0, 1), 0);
  struct ibv_wc wc = verbs_end_poll(&end_b);
  assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
  assert_int_equal(be32toh(wc.imm_data), 0xabcd);
  assert_int_equal(wc.byte_len, 8);
  assert_string_equal(end_b.buffer + VERBS_END_TARGET, "written");
  verbs_end_expect(&end_a, 1, IBV_WC_SUCCESS);
}

CONNECTED(reads_bring_bytes) {
  strcpy(end_b.buffer + VERBS_END_TARGET, "there");
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_READ, 6, IBV_SEND_SIGNALED), 0);
  assert_int_equal(verbs_end_poll(&end_a).opcode, IBV_WC_RDMA_READ);
  assert_string_equal(end_a.buffer, "there");
}

CONNECTED(unsignalled_requests_keep_their_places) {
  for (int i = 0; i < VERBS_END_PLACES; i++) {
    unsigned flags = i == VERBS_END_PLACES / 2 ? IBV_SEND_SIGNALED : 0;
    assert_int_equal(verbs_end_post(&end_a, &end_b, (uint64_t)i, IBV_WR_RDMA_WRITE, 8, flags), 0);
  }
  /* All are done, but no completion was polled. */
  assert_int_equal(verbs_end_post(&end_a, &end_b, 90, IBV_WR_RDMA_WRITE, 8, 0), ENOMEM);
  verbs_end_expect(&end_a, VERBS_END_PLACES / 2, IBV_WC_SUCCESS);
  for (int i = 0; i < VERBS_END_PLACES / 2 + 1; i++) {
    assert_int_equal(verbs_end_post(&end_a, &end_b, 91, IBV_WR_RDMA_WRITE, 8, 0), 0);
  }
  assert_int_equal(verbs_end_post(&end_a, &end_b, 92, IBV_WR_RDMA_WRITE, 8, 0), ENOMEM);
}

CONNECTED(receivers_that_are_not_ready_are_waited_for) {
  strcpy(end_a.buffer, "wait");
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 5, IBV_SEND_SIGNALED), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_RDMA_WRITE, 5, IBV_SEND_SIGNALED), 0);
  verbs_end_expect_nothing(&end_a); /* the write stays behind the send */
  struct fake_counts counts = fake_verbs_counts();
  assert_true(counts.waits > 0);
  assert_int_equal(counts.writes, 0);
  assert_int_equal(verbs_end_post_receive(&end_b, 3, 0, 64), 0);
  verbs_end_expect(&end_b, 3, IBV_WC_SUCCESS);
  verbs_end_expect(&end_a, 1, IBV_WC_SUCCESS);
  verbs_end_expect(&end_a, 2, IBV_WC_SUCCESS);
}

#define FRESH(test) UNIT_TEST_WITH(test, verbs_end_set_up, verbs_end_tear_down)

FRESH(receivers_that_are_not_ready_are_given_up) {
  verbs_end_connect(0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 5, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
  verbs_end_expect_state(&end_a, IBV_QPS_ERR);
  verbs_end_expect_state(&end_b, IBV_QPS_RTS);
}

/* ---- keys, bounds, states ---- */

static void expect_access_error(uint64_t address, uint32_t rkey, uint32_t bytes) {
  struct ibv_sge sge = { (uint64_t)(uintptr_t)end_a.buffer, bytes, end_a.mr->lkey };
  struct ibv_send_wr wr = { .wr_id = 1,
                            .sg_list = &sge,
                            .num_sge = 1,
                            .opcode = IBV_WR_RDMA_WRITE,
                            .wr.rdma = { address, rkey } };
  struct ibv_send_wr *bad;
  assert_int_equal(ibv_post_send(end_a.qp, &wr, &bad), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_REM_ACCESS_ERR);
  verbs_end_expect_state(&end_a, IBV_QPS_ERR);
  verbs_end_expect_state(&end_b, IBV_QPS_ERR);
  struct ibv_async_event event;
  assert_int_equal(verbs->get_async_event(end_b.context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  assert_ptr_equal(event.element.qp, end_b.qp);
  verbs->ack_async_event(&event);
}

CONNECTED(writes_with_a_wrong_key_are_refused) {
  assert_int_equal(verbs_end_post_receive(&end_b, 5, 0, 8), 0);
  expect_access_error((uint64_t)(uintptr_t)end_b.buffer, end_b.mr->rkey + 1, 8);
  verbs_end_expect(&end_b, 5, IBV_WC_WR_FLUSH_ERR);
}

CONNECTED(writes_beyond_the_end_are_refused) {
  expect_access_error((uint64_t)(uintptr_t)end_b.buffer + VERBS_END_BYTES - 7, end_b.mr->rkey, 8);
}

CONNECTED(writes_with_the_key_of_another_device_are_refused) {
  expect_access_error((uint64_t)(uintptr_t)end_a.buffer, end_a.mr->rkey, 8);
}

CONNECTED(keys_given_back_are_refused) {
  uint32_t key = end_b.mr->rkey;
  assert_int_equal(verbs->dereg_mr(end_b.mr), 0);
  end_b.mr = verbs->reg_mr(end_b.pd, end_b.buffer, sizeof(end_b.buffer), VERBS_END_ACCESS);
  assert_int_not_equal(end_b.mr->rkey, key);
  expect_access_error((uint64_t)(uintptr_t)end_b.buffer, key, 8);
}

CONNECTED(memory_without_remote_access_is_refused) {
  assert_null(verbs->reg_mr(end_b.pd, end_b.buffer, 64, IBV_ACCESS_REMOTE_WRITE));
  assert_int_equal(errno, EINVAL);
  struct ibv_mr *local = verbs->reg_mr(end_b.pd, end_b.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
  expect_access_error((uint64_t)(uintptr_t)end_b.buffer, local->rkey, 8);
  assert_int_equal(verbs->dereg_mr(local), 0);
}

CONNECTED(bad_local_keys_break_the_sender) {
  struct ibv_sge sge = { (uint64_t)(uintptr_t)end_a.buffer, 8, end_b.mr->lkey };
  struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
  struct ibv_send_wr *bad;
  assert_int_equal(verbs_end_post_receive(&end_b, 5, 0, 64), 0);
  assert_int_equal(ibv_post_send(end_a.qp, &wr, &bad), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_LOC_PROT_ERR);
  verbs_end_expect_nothing(&end_b);
}

CONNECTED(messages_longer_than_the_receive_break_both) {
  assert_int_equal(verbs_end_post_receive(&end_b, 5, 0, 7), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 8, 0), 0);
  verbs_end_expect(&end_b, 5, IBV_WC_LOC_LEN_ERR);
  verbs_end_expect(&end_a, 1, IBV_WC_REM_INV_REQ_ERR);
}

FRESH(states_go_in_order) {
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 8, 0), EINVAL);
  assert_int_equal(verbs_end_post_receive(&end_a, 1, 0, 8), EINVAL);
  assert_int_equal(verbs_end_to_ready(&end_a, &end_b, 1, 2, 7), EINVAL); /* not from RESET */
  assert_int_equal(verbs_end_to_init(&end_a), 0);
  assert_int_equal(verbs_end_post_receive(&end_a, 1, 0, 8), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 8, 0), EINVAL);
  struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RTR };
  assert_int_equal(verbs->modify_qp(end_a.qp, &attributes, IBV_QP_STATE), EINVAL); /* needs more */
  assert_int_equal(verbs_end_to_ready(&end_a, &end_b, 1, 2, 7), 0);
  verbs_end_expect_state(&end_a, IBV_QPS_RTS);
}

FRESH(the_other_end_must_be_the_right_one) {
  assert_int_equal(verbs_end_to_init(&end_a), 0);
  assert_int_equal(verbs_end_to_init(&end_b), 0);
  assert_int_equal(verbs_end_to_ready(&end_a, &end_b, 11, 22, 7), 0);
  assert_int_equal(verbs_end_to_ready(&end_b, &end_a, 22, 12, 7),
                   0); /* another PSN than a sends with */
  assert_int_equal(verbs_end_post_receive(&end_b, 5, 0, 64), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 8, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RETRY_EXC_ERR);
}

CONNECTED(errors_flush_what_is_left) {
  fake_verbs_hold(FAKE_HOLD_WORK);
  assert_int_equal(verbs_end_post_receive(&end_a, 1, 0, 8), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_RDMA_WRITE, 8, 0), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 3, IBV_WR_RDMA_WRITE, 8, 0), 0);
  assert_int_equal(verbs_end_to(&end_a, IBV_QPS_ERR), 0);
  verbs_end_expect(&end_a, 2, IBV_WC_WR_FLUSH_ERR);
  verbs_end_expect(&end_a, 3, IBV_WC_WR_FLUSH_ERR);
  verbs_end_expect(&end_a, 1, IBV_WC_WR_FLUSH_ERR);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 4, IBV_WR_RDMA_WRITE, 8, 0), 0);
  verbs_end_expect(&end_a, 4, IBV_WC_WR_FLUSH_ERR);
  fake_verbs_hold(FAKE_HOLD_NOTHING);
  assert_int_equal(end_b.buffer[VERBS_END_TARGET], 0); /* nothing was written after the error */
}

/* ---- events ---- */

CONNECTED(completions_wake_who_asked) {
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
  assert_false(verbs_end_has_event(&end_a)); /* nobody asked */
  assert_int_equal(ibv_req_notify_cq(end_a.cq, 0), 0);
  assert_false(verbs_end_has_event(&end_a)); /* what is there already does not count */
  assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 3, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
  assert_true(verbs_end_has_event(&end_a));
  struct ibv_cq *cq;
  void *context;
  assert_int_equal(verbs->get_cq_event(end_a.channel, &cq, &context), 0);
  assert_ptr_equal(cq, end_a.cq);
  assert_ptr_equal(context, &end_a);
  assert_int_equal(verbs->get_cq_event(end_a.channel, &cq, &context), -1); /* one for all */
  assert_int_equal(errno, EAGAIN);
  verbs->ack_cq_events(end_a.cq, 1);
}

CONNECTED(solicited_events_are_for_solicited_messages) {
  assert_int_equal(verbs_end_post_receive(&end_b, 1, 0, 8), 0);
  assert_int_equal(verbs_end_post_receive(&end_b, 2, 0, 8), 0);
  assert_int_equal(ibv_req_notify_cq(end_b.cq, 1), 0);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_SEND, 8, 0), 0);
  assert_false(verbs_end_has_event(&end_b));
  assert_int_equal(verbs_end_post(&end_a, &end_b, 2, IBV_WR_SEND, 8, IBV_SEND_SOLICITED), 0);
  assert_true(verbs_end_has_event(&end_b)); /* destroyed with the queue */
}

CONNECTED(removed_devices_break_and_come_back) {
  assert_int_equal(verbs_end_post_receive(&end_b, 1, 0, 8), 0);
  fake_verbs_remove("fake1");
  struct ibv_async_event event;
  assert_int_equal(verbs->get_async_event(end_b.context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
  verbs->ack_async_event(&event);
  verbs_end_expect(&end_b, 1, IBV_WC_WR_FLUSH_ERR);
  assert_null(verbs->reg_mr(end_b.pd, end_b.buffer, 64, IBV_ACCESS_LOCAL_WRITE));
  assert_int_equal(errno, EIO);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 8, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RETRY_EXC_ERR);
  assert_null(verbs_end_open("fake1"));
  fake_verbs_add(&verbs_end_hca_b);
  struct ibv_context *again = verbs_end_open("fake1");
  assert_non_null(again);
  assert_int_equal(verbs->close_device(again), 0);
}

CONNECTED(ports_go_down_and_up) {
  struct ibv_port_attr port;
  fake_verbs_set_port("fake0", false);
  assert_int_equal(verbs_query_port(verbs, end_a.context, 1, &port), 0);
  assert_int_equal(port.state, IBV_PORT_DOWN);
  assert_int_equal(verbs_end_post(&end_a, &end_b, 1, IBV_WR_RDMA_WRITE, 8, 0), 0);
  verbs_end_expect(&end_a, 1, IBV_WC_RETRY_EXC_ERR);
  fake_verbs_set_port("fake0", true);
  struct ibv_async_event event;
  assert_int_equal(verbs->get_async_event(end_a.context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
  assert_int_equal(verbs->get_async_event(end_a.context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
  assert_int_equal(event.element.port_num, 1);
}

UNIT_MAIN(NULL, NULL)
