/* SPDX-License-Identifier: Apache-2.0 */
/* fake_verbs_state: what the files of fake_verbs share. All is covered by fake.lock; functions want
 * it held.
 *
 *   fake_verbs.c         devices, faults
 *   fake_verbs_memory.c  registrations, completions
 *   fake_verbs_work.c    queue pairs, and what a card does
 *   fake_verbs_cm.c      librdmacm
 *
 * Owns: see fake_verbs.h.  Threads: holder of the lock.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_FAKE_VERBS_STATE_H
#define TESTS_LIB_FAKE_VERBS_STATE_H

#include <pthread.h>

#include "tests/lib/fake_verbs.h"

enum { FAKE_DEVICES_MAX = 24, FAKE_SGES_MAX = 2, FAKE_INLINE_MAX = 256 };

struct fake_device {
  struct ibv_device base;
  struct ibv_context context; /* librdmacm's */
  const struct fake_hca *hca;
  bool is_up, is_removed;
};

/* One that was opened for events. */
struct fake_context {
  struct ibv_context base;
  struct fake_context *next;
  enum ibv_event_type event; /* the last */
};

struct fake_pd {
  struct ibv_pd base; /* the first member, here and below */
  unsigned users;
};

struct fake_mr {
  struct ibv_mr base;
  struct fake_mr *next;
  int access;
};

struct fake_cq;
struct fake_channel {
  struct ibv_comp_channel base;
  struct fake_cq *cq; /* the only one */
};

struct fake_qp;
struct fake_completion {
  struct ibv_wc wc;
  struct fake_qp *qp; /* NULL: destroyed meanwhile */
  bool is_send;
  uint64_t sequence; /* of the request in its queue */
};

struct fake_cq {
  struct ibv_cq base;
  struct fake_channel *channel;
  unsigned users;
  bool is_armed;
  unsigned unacknowledged; /* events given out */
  struct fake_completion *ring;
  unsigned head, count;
};

struct fake_request {
  uint64_t wr_id;
  enum ibv_wr_opcode opcode;
  unsigned flags;
  __be32 imm;
  uint64_t remote_address;
  uint32_t rkey;
  int sge_count;
  struct ibv_sge sges[FAKE_SGES_MAX];
  char inline_data[FAKE_INLINE_MAX]; /* with IBV_SEND_INLINE, where sges[0].addr points */
};

/* A queue of requests. polled <= done <= posted. A place is free again when polled has passed it.
 */
struct fake_queue {
  struct fake_request *ring;
  uint32_t capacity;
  uint64_t posted, done, polled;
};

struct fake_qp {
  struct ibv_qp base;
  struct fake_qp *next;
  enum ibv_qp_state state;
  uint32_t max_inline;
  unsigned access;
  uint32_t remote; /* the number of the other queue pair */
  struct fake_queue sends, receives;
  bool is_stop_refused; /* see fake_verbs_write_late, which needs the last write: */
  struct fake_request written;
  uint64_t written_bytes;
};

struct fake_work_fault {
  unsigned countdown; /* 0: none */
  enum ibv_wc_status status;
  bool is_delivered;
};

extern struct fake_state {
  pthread_mutex_t lock;
  pthread_cond_t has_work, may_go;
  bool is_started;
  struct verbs_api api;
  struct fake_device *devices[FAKE_DEVICES_MAX]; /* removed ones, too */
  unsigned device_count;
  struct fake_context *contexts;
  struct fake_mr *mrs;
  struct fake_qp *qps;
  uint32_t next_key, next_qp_num;
  struct {
    unsigned countdown; /* 0: none */
    int error, error_always;
    bool is_held;
  } calls[FAKE_CALLS];
  struct fake_work_fault work[FAKE_WORKS];
  struct fake_cm_fault {
    bool is_set;
    enum rdma_cm_event_type type;
    int becomes;
  } cm_fault;
  bool is_cm_garbled;
  unsigned held; /* calls that wait */
  fake_called_fn *called;
  bool has_thread, is_thread_stopping;
  pthread_t thread;
  uint64_t random;
  struct fake_counts counts;
} fake;

/* Fails the test; never returns. */
void fake_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Takes the lock. The errno that this call is to fail with, or 0. Waits, without the lock, while
 * calls of the kind are held. */
int fake_begin(enum fake_call call);
/* The same, also for what asks this device. */
int fake_begin_on(const struct ibv_context *context, enum fake_call call);
/* With the lock. */
int fake_call_fault(enum fake_call call);
/* Drops the lock. Returns the error, which is also in errno. */
int fake_end(int error);
/* True if the request that is about to complete is to fail. */
bool fake_work_fault(enum fake_work work, struct fake_work_fault *hit);

static inline struct fake_device *fake_device_of(const struct ibv_context *context) {
  return (struct fake_device *)context->device;
}
static inline bool fake_is_iwarp(const struct ibv_context *context) {
  return fake_device_of(context)->hca->is_iwarp;
}

void fake_cq_push(struct fake_cq *cq, const struct fake_completion *completion);
/* Completions of a queue pair that goes are forgotten as to places, not as to what poll sees. */
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp);
/* Where the range that the key covers in this pd with this access is; NULL: it does not. */
char *fake_mr_find(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t bytes,
                   int access);

struct fake_qp *fake_qp_find(uint32_t number);
void fake_qp_break(struct fake_qp *qp);
/* As modify_qp, by whoever may: 0 or errno. */
int fake_qp_modify(struct fake_qp *qp, const struct ibv_qp_attr *attributes, int mask);
/* Does up to `most` send requests that can be done now; how many it did. */
unsigned fake_work_some(unsigned most);
/* Does all, or lets the thread do it. */
void fake_work_all(void);

/* The identifiers of the device hear that it is removed. */
void fake_cm_remove(const struct fake_device *device);

/* What the table has. */
#define FAKE_CM_FUNCTION(name, since) __typeof__(rdma_##name) fake_##name;
#define FAKE_VERBS_FUNCTION(name, since, is_required) __typeof__(ibv_##name) fake_##name;
RDMACM_FUNCTIONS(FAKE_CM_FUNCTION)
VERBS_FUNCTIONS(FAKE_VERBS_FUNCTION)
/* Inline functions of verbs.h come here. */
int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int is_solicited_only);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
