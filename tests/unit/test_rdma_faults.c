/* SPDX-License-Identifier: Apache-2.0 */
/* A connection over queue pairs in which the k-th call of a kind fails, for k = 1, 2, ... until
 * none fails any more: while it is made, while data moves and lanes are lost, while it is closed.
 * It works on, by TCP if need be, no byte is wrong, and nothing is left behind.
 *
 * And devices that do not stop queue pairs: what was on its way arrives late
 * (fake_verbs_write_late) after each message and after the close, and changes nothing that the user
 * has got. Where it could, the connection ends with an error instead, and its peer never hears that
 * the lane is fenced. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net_plugin/connection/connection_state.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

/* Polling never ends to poll, and posting to post: every k at first, then fewer and fewer. */
enum { K_MAX = 400, DENSE = 8, MESSAGES = 12, BYTES = 300000, ALL_BYTES = MESSAGES * BYTES };

#define PARAMETERS "STRATUS_FLOWS=2 STRATUS_CHUNK_BYTES=64K"
static const struct rdma_host_way roce = { &rdma_host_roce, PARAMETERS };
static const struct rdma_host_way iwarp = { &rdma_host_iwarp, PARAMETERS };
static const size_t sizes[] = { 8, 70000, 4096, BYTES };
static enum fake_call pending_call;
static unsigned pending_k;

/* ---- the k-th call fails ---- */

enum phase { WHILE_MADE, WHILE_USED, WHILE_CLOSED, PHASES };

static void set_fault(void) {
  fake_verbs_fail_call(pending_call, pending_k, EIO);
}

/* A lane is lost and made anew now and then. */
static void lose_lanes(uint64_t done) {
  if (done == 1) {
    set_fault();
  }
  if (done % 4 == 2) {
    pair_cut_flows(2);
  }
}

/* A queue pair may be destroyed before the rest of it is given to a worker. */
static void wait_until_closed(void) {
  UNTIL(fake_verbs_counts().qps + fake_verbs_counts().cqs + fake_verbs_counts().channels == 0) {
    endpoint_stop_all(); /* tries again what was refused */
  }
}

static bool is_anything_left(struct fake_counts left) {
  return left.qps || left.cqs || left.channels || left.mrs || left.pds || left.cm_ids;
}

/* Closing is asynchronous: a connection may get a last lane after its others are closed. */
static struct fake_counts let_all_go(void) {
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  struct fake_counts left;
  do {
    usleep(200);
    endpoint_stop_all();
    left = fake_verbs_counts();
  } while (is_anything_left(left) && clock_now_ns() < until_ns);
  return left;
}

/* True if the call was made as often. */
static bool run_with(enum phase phase) {
  endpoint_configure();
  if (phase == WHILE_MADE) {
    set_fault();
  }
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, sizes, 4, MESSAGES, phase == WHILE_USED ? lose_lanes : NULL);
  if (phase == WHILE_CLOSED) {
    set_fault();
  }
  pair_close(pair);
  wait_until_closed();
  bool has_failed = fake_verbs_heal_calls();
  struct fake_counts left = let_all_go(); /* a device that was held because of the fault, too */
  if (is_anything_left(left)) {
    fail_msg("call %d number %u failing in phase %d leaves %u queue pairs, %u completion queues, "
             "%u channels, %u registrations, %u domains, %u identifiers",
             (int)pending_call, pending_k, (int)phase, left.qps, left.cqs, left.channels, left.mrs,
             left.pds, left.cm_ids);
  }
  return has_failed;
}

static void run_for_all(enum phase phase) {
  for (int call = 0; call < FAKE_CALLS; call++) {
    pending_call = (enum fake_call)call;
    pending_k = 1;
    while (pending_k <= K_MAX && run_with(phase)) {
      pending_k += pending_k < DENSE ? 1 : 1 + pending_k / 2;
    }
    if (getenv("STRATUS_TEST_VERBOSE")) {
      fprintf(stderr, "phase %d call %d: up to %u\n", (int)phase, call, pending_k);
    }
  }
}

#define EACH(name) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &roce, &iwarp)
#define ROCE(name) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &roce)

EACH(calls_fail_while_it_is_made) {
  run_for_all(WHILE_MADE);
}

EACH(calls_fail_while_data_moves) {
  run_for_all(WHILE_USED);
}

EACH(calls_fail_while_it_is_closed) {
  run_for_all(WHILE_CLOSED);
}

/* ---- devices and librdmacm that cannot ---- */

static void exchange(struct pair pair) {
  pair_exchange(pair, sizes, 4, 12, NULL);
}

static void make_and_exchange(void) {
  struct pair pair = pair_make(AF_INET);
  exchange(pair);
  pair_close(pair);
}

/* Whatever is needed to make a lane always fails: it is a TCP lane then. */
ROCE(devices_that_cannot_are_done_without) {
  for (int call = 0; call < FAKE_CALLS; call++) {
    if (call > FAKE_MODIFY_QP && call < FAKE_CM_CHANNEL && call != FAKE_POST_RECV) {
      continue;
    }
    fake_verbs_fail_calls((enum fake_call)call, EPERM);
    endpoint_configure();
    make_and_exchange();
    fake_verbs_fail_calls((enum fake_call)call, 0);
    endpoint_stop_all();
    if (fake_verbs_counts().writes + fake_verbs_counts().sends > 0) {
      fail_msg("call %d failed, and yet there were sends", call);
    }
  }
}

static atomic_uint event_reads;

static void note_event_reads(enum fake_call call) {
  atomic_fetch_add(&event_reads, call == FAKE_CM_EVENT);
}

/* What is there to be read stays there. */
ROCE(events_that_cannot_be_read_are_read_once) {
  fake_verbs_on_call(note_event_reads);
  fake_verbs_fail_calls(FAKE_CM_EVENT, EIO);
  struct pair pair = pair_make(AF_INET);
  exchange(pair);
  assert_in_range(atomic_load(&event_reads), 1, 20); /* of each device that was opened meanwhile */
  fake_verbs_on_call(NULL);
  fake_verbs_fail_calls(FAKE_CM_EVENT, 0);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

/* For each event that ends the attempt, in place of each that should come; and for each that never
 * comes: there the deadlines decide. */
EACH(events_go_wrong) {
  static const struct {
    enum rdma_cm_event_type type;
    int becomes;
  } cases[] = {
    { RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR },
    { RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DEVICE_REMOVAL },
    { RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_UNREACHABLE },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_ERROR },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_DEVICE_REMOVAL },
    { RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_CONNECT_ERROR },
    { RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake_verbs_change_cm_event(cases[i].type, cases[i].becomes);
    make_and_exchange();
  }
}

ROCE(events_that_never_come_hold_nobody_up) {
  fake_verbs_change_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST, FAKE_CM_NOTHING);
  struct pair pair = pair_make(AF_INET);
  exchange(pair);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

EACH(garbage_connects_nothing) {
  fake_verbs_garble_cm(true);
  struct pair pair = pair_make(AF_INET);
  exchange(pair);
  assert_int_equal(fake_verbs_counts().sends, 0);
  assert_int_equal(fake_verbs_counts().cm_accepted, 0);
  assert_true(fake_verbs_counts().cm_rejected > 0);
  fake_verbs_garble_cm(false);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

/* ---- devices that do not stop ---- */

/* One message after the other, each into memory of its own, all of which is looked at after each
 * late write. */
struct transfer {
  struct pair pair;
  uint8_t *from, *to;
  const struct memory *from_memory, *to_memory;
  unsigned sent;
};

static struct transfer transfer_start(void) {
  struct transfer transfer = { .pair = pair_make(AF_INET) };
  transfer.from = calloc(MESSAGES, BYTES);
  transfer.to = calloc(MESSAGES, BYTES);
  for (size_t i = 0; i < ALL_BYTES; i++) {
    transfer.from[i] = (uint8_t)(i / BYTES + i % 251);
  }
  assert_int_equal(
      memory_register(transfer.from, ALL_BYTES, MEMORY_HOST, MEMORY_SENT, &transfer.from_memory),
      0);
  assert_int_equal(
      memory_register(transfer.to, ALL_BYTES, MEMORY_HOST, MEMORY_RECEIVED, &transfer.to_memory),
      0);
  return transfer;
}

static void transfer_stop(struct transfer *transfer) {
  memory_deregister(transfer->from_memory);
  memory_deregister(transfer->to_memory);
  free(transfer->from);
  free(transfer->to);
}

/* Of the next message. */
static struct pair_half half_of(const struct transfer *transfer, bool is_sender) {
  const struct pair *pair = &transfer->pair;
  return (struct pair_half){
    .connection = is_sender ? pair->sender : pair->receiver,
    .data = (is_sender ? transfer->from : transfer->to) + (size_t)transfer->sent * BYTES,
    .bytes = BYTES,
    .memory = is_sender ? transfer->from_memory : transfer->to_memory,
  };
}

/* Every other one breaks the sender's queue pair, with a write that has arrived, or has not: the
 * receiver's has to be stopped. Returns whether the receiver got it. */
static bool send_next(struct transfer *transfer, struct pair_half *from, struct pair_half *to) {
  *from = half_of(transfer, true);
  *to = half_of(transfer, false);
  if (transfer->sent % 2 == 1) {
    fake_verbs_fail_work(FAKE_WRITE, 1, IBV_WC_RETRY_EXC_ERR, transfer->sent % 4 == 1);
  }
  pair_halves(from, to);
  transfer->sent += to->is_done;
  return to->is_done;
}

static void expect_untouched(const struct transfer *transfer) {
  assert_memory_equal(transfer->to, transfer->from, (size_t)transfer->sent * BYTES);
}

/* A connection begins with one lane: it is an RDMA lane, and data has been written through it. */
static void use_queue_pairs(struct transfer *transfer) {
  struct pair_half from, to;
  UNTIL(fake_verbs_counts().qps >= 2 && fake_verbs_counts().written_bytes >= 2 * BYTES) {
    assert_true(send_next(transfer, &from, &to));
    expect_untouched(transfer);
    transfer->sent = 0;
  }
  memset(transfer->to, 0, ALL_BYTES);
}

/* What has arrived stays as it is, whatever comes late, also after the close. */
static void send_all_with_late_writes(void) {
  struct pair_half from, to;
  struct transfer transfer = transfer_start();
  use_queue_pairs(&transfer);
  while (transfer.sent < MESSAGES) {
    if (!send_next(&transfer, &from, &to)) {
      fail_msg("message %u: %s", transfer.sent, strerror(-(from.error ? from.error : to.error)));
    }
    fake_verbs_write_late();
    expect_untouched(&transfer);
  }
  pair_close(transfer.pair);
  fake_verbs_write_late();
  expect_untouched(&transfer);
  transfer_stop(&transfer);
}

EACH(late_writes_change_nothing_where_a_stop_fails) {
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  send_all_with_late_writes();
  assert_true(log_capture_find("ibv_modify_qp does not stop a queue pair") > 0);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  fake_verbs_heal_calls();
  wait_until_closed();
}

EACH(late_writes_change_nothing_where_nothing_is_destroyed) {
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  send_all_with_late_writes();
  assert_true(log_capture_find("neither stops (ibv_modify_qp: Input/output error) nor destroys "
                               "(ibv_destroy_qp: Device or resource busy)") > 0);
  fake_verbs_heal_calls();
}

/* A receive that the peer may write: the link has taken it. */
static void receive_is_taken(struct connection *receiver, const struct pair_half *half) {
  bool is_taken = false;
  UNTIL(is_taken) {
    engine_lock(receiver->engine);
    is_taken = half->request->number < receiver->taken &&
               link_needs_memory(receiver->link, half->request->number);
    engine_unlock(receiver->engine);
  }
}

/* Closed in the middle of a message: the memory is the user's, whatever the device does. */
EACH(closed_memory_is_left_alone) {
  struct pair_half to;
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  struct transfer transfer = transfer_start();
  use_queue_pairs(&transfer);
  to = half_of(&transfer, false);
  while (!to.request) {
    pair_half_step(&to);
  }
  pair_half_step(&to); /* asked for, so sent */
  receive_is_taken(transfer.pair.receiver, &to);
  connection_detach(transfer.pair.receiver);
  memset(transfer.to, 3, ALL_BYTES);
  assert_int_equal(fake_verbs_write_late(), 0);
  for (size_t i = 0; i < ALL_BYTES; i++) {
    assert_int_equal(transfer.to[i], 3);
  }
  connection_detach(transfer.pair.sender);
  fake_verbs_heal_calls();
  transfer_stop(&transfer);
}

/* Nothing keeps the device from writing: no message that it could change is ever done. */
EACH(where_nothing_helps_the_connection_ends) {
  static bool was_told; /* once in a while */
  struct pair_half from = { 0 }, to = { 0 };
  struct transfer transfer = transfer_start();
  use_queue_pairs(&transfer);
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  fake_verbs_fail_calls(FAKE_DEREG_MR, ENOMEM);
  while (transfer.sent < MESSAGES && send_next(&transfer, &from, &to)) {
    expect_untouched(&transfer);
  }
  assert_true(from.error || to.error);
  assert_false(from.is_done && to.is_done);
  UNTIL(from.error && to.error) { /* both get to know */
    pair_half_step(&from);
    pair_half_step(&to);
  }
  assert_int_equal(to.error, -ENOTRECOVERABLE);
  was_told |= log_capture_find("cannot deregister memory (ibv_dereg_mr: Cannot allocate") > 0;
  assert_true(was_told);
  assert_int_equal(log_capture_find("may still write where a receive was (ibv_dereg_mr: Cannot "
                                    "allocate memory)"),
                   1);
  assert_int_equal(log_capture_find(": an RDMA device of this host does not stop writing. "), 1);
  fake_verbs_heal_calls();
  pair_close(transfer.pair);
  transfer_stop(&transfer);
}

/* ---- rights ---- */

EACH(only_receives_can_be_written) {
  struct transfer transfer = transfer_start();
  use_queue_pairs(&transfer);
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.remote_mrs, 1); /* of to; not from, the link, the slots */
  assert_true(counts.mrs > 3);
  assert_int_equal(counts.qps, 2);
  assert_int_equal(counts.remote_qps, 1);
  assert_int_equal(counts.refused, 0);
  pair_close(transfer.pair);
  transfer_stop(&transfer);
}

/* NCCL may use a handle on another connection (regIsGlobal). */
EACH(receives_into_memory_for_sends_are_copied) {
  struct pair_half from, to;
  struct transfer transfer = transfer_start();
  memory_deregister(transfer.to_memory);
  assert_int_equal(
      memory_register(transfer.to, ALL_BYTES, MEMORY_HOST, MEMORY_SENT, &transfer.to_memory), 0);
  while (transfer.sent < MESSAGES) {
    assert_true(send_next(&transfer, &from, &to));
    expect_untouched(&transfer);
  }
  assert_int_equal(fake_verbs_counts().written_bytes, 0);
  assert_int_equal(fake_verbs_counts().refused, 0);
  pair_close(transfer.pair);
  transfer_stop(&transfer);
}
