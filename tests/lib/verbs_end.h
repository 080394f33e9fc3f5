/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_end: two ends of a connection on two fake devices, for tests of the provider itself.
 * Owns: both ends and the provider, from set_up to tear_down.  Threads: the test's.
 * Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_VERBS_END_H
#define TESTS_LIB_VERBS_END_H

#include "tests/lib/fake_verbs.h"

enum {
  VERBS_END_PLACES = 8, /* in each queue */
  VERBS_END_BYTES = 4096,
  VERBS_END_TARGET = 1024, /* where in the buffer writes go */
  VERBS_END_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

struct verbs_end {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_comp_channel *channel;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  struct ibv_mr *mr;
  union ibv_gid gid;
  char buffer[VERBS_END_BYTES];
};

/* On fake0 and fake1; their descriptors do not block. */
extern struct verbs_end end_a, end_b;
extern const struct fake_hca verbs_end_hca_a, verbs_end_hca_b;
/* The table, for short. */
extern const struct verbs_api *verbs;

/* For cmocka: ends with queue pairs in RESET, or connected. tear_down checks that nothing is left.
 */
int verbs_end_set_up(void **state);
int verbs_end_set_up_connected(void **state);
int verbs_end_tear_down(void **state);

struct ibv_context *verbs_end_open(const char *name); /* NULL with errno, or if there is none */
struct ibv_qp *verbs_end_make_qp(struct verbs_end *end);
int verbs_end_to_init(struct verbs_end *end);
/* To RTR and RTS. */
int verbs_end_to_ready(struct verbs_end *end, const struct verbs_end *other, uint32_t psn,
                       uint32_t other_psn, uint8_t rnr_retry);
int verbs_end_to(struct verbs_end *end, enum ibv_qp_state state);
void verbs_end_connect(uint8_t rnr_retry);

int verbs_end_post_receive(struct verbs_end *end, uint64_t id, size_t offset, uint32_t bytes);
/* Sends or writes what the buffer begins with. */
int verbs_end_post(struct verbs_end *from, const struct verbs_end *to, uint64_t id,
                   enum ibv_wr_opcode opcode, uint32_t bytes, unsigned flags);

struct ibv_wc verbs_end_poll(struct verbs_end *end); /* there must be a completion */
void verbs_end_expect(struct verbs_end *end, uint64_t id, enum ibv_wc_status status);
void verbs_end_expect_nothing(struct verbs_end *end);
void verbs_end_expect_state(struct verbs_end *end, enum ibv_qp_state state);
bool verbs_end_has_event(struct verbs_end *end);

#endif
