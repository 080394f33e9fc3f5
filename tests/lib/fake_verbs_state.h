/* SPDX-License-Identifier: Apache-2.0 */
/* fake_verbs_state: what the files of fake_verbs share. Everything here is covered by fake.lock;
 * functions named here want it held, unless they say otherwise.
 * Owns: see fake_verbs.h.  Threads: holder of the lock.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_FAKE_VERBS_STATE_H
#define TESTS_LIB_FAKE_VERBS_STATE_H

#include <pthread.h>

#include "tests/lib/fake_verbs.h"

enum {
  FAKE_DEVICES_MAX = 16,
  FAKE_EVENTS_MAX = 64,
  FAKE_FAULTS_MAX = 16,
  FAKE_SGES_MAX = 32,
  FAKE_INLINE_MAX = 1024,
};

struct fake_device {
  struct ibv_device base;
  const struct fake_hca *hca;
  union ibv_gid gids[FAKE_ADDRESSES_MAX];
  bool is_up;
  bool is_removed;
};

struct fake_context {
  struct ibv_context base;
  struct fake_device *device;
  struct fake_context *next;
  struct ibv_async_event events[FAKE_EVENTS_MAX];
  unsigned event_head, event_count;
};

struct fake_pd {
  struct ibv_pd base;
  struct fake_pd *next;
  unsigned users;
};

struct fake_mr {
  struct ibv_mr base;
  struct fake_mr *next;
  char *memory; /* where iova is */
  uint64_t iova;
  int access;
  void *mapping; /* of a dma-buf; else NULL */
  size_t mapping_bytes;
};

struct fake_channel {
  struct ibv_comp_channel base;
  unsigned users;
  struct fake_cq *queue[FAKE_EVENTS_MAX];
  unsigned head, count;
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
  struct fake_cq *next;
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
  uint32_t inline_bytes;
  char inline_data[FAKE_INLINE_MAX];
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
  enum ibv_qp_state state; /* base.state is what the library knows */
  struct ibv_qp_cap cap;
  struct ibv_qp_attr attributes; /* as modified so far */
  struct fake_queue sends, receives;
  unsigned unacknowledged; /* asynchronous events about it */
  bool is_stop_refused;    /* see fake_verbs_write_late, which needs the following */
  uint64_t written_address, written_bytes;
  uint32_t written_key;
};

struct fake_cm_id {
  struct rdma_cm_id base;
  struct fake_cm_id *next;
  struct fake_device *device;
  struct ibv_context context;         /* librdmacm's own of the device */
  struct sockaddr_storage at, target; /* with ports */
  bool is_listening, is_accepted;
  struct fake_cm_id *peer;
  uint32_t number, psn; /* of the queue pair */
  unsigned unacknowledged;
};

enum { FAKE_CM_NOBODY_LISTENS = 8, FAKE_CM_BY_CONSUMER = 28 }; /* why it was rejected */

/* ---- shared ---- */

struct fake_call_fault {
  unsigned countdown; /* 0: none */
  int error;
  int error_always;
  bool is_held;
};
struct fake_work_fault {
  unsigned countdown; /* 0: free */
  enum ibv_wc_status status;
  bool is_delivered;
};
struct fake_cm_fault {
  unsigned times; /* 0: free */
  enum rdma_cm_event_type type;
  int becomes;
};

extern struct fake_state {
  pthread_mutex_t lock;
  pthread_cond_t has_work, is_acknowledged, may_go;
  bool is_started;
  struct verbs_api api;
  struct fake_device *devices[FAKE_DEVICES_MAX]; /* removed ones, too */
  unsigned device_count;
  struct fake_context *contexts;
  struct fake_pd *pds;
  struct fake_mr *mrs;
  struct fake_cq *cqs;
  struct fake_qp *qps;
  uint32_t next_key, next_qp_num;
  struct fake_call_fault calls[FAKE_CALLS];
  struct fake_work_fault sends[FAKE_FAULTS_MAX], receives[FAKE_FAULTS_MAX];
  struct fake_work_fault writes[FAKE_FAULTS_MAX];
  bool is_cut;
  struct fake_cm_fault cm_faults[FAKE_FAULTS_MAX];
  unsigned cm_garbled;
  unsigned held; /* calls that wait */
  fake_called_fn *called;
  bool has_thread, is_thread_stopping;
  pthread_t thread;
  uint64_t random;
  struct fake_counts counts;
} fake;

/* Fails the test; never returns. */
void fake_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The errno that this call is to fail with, or 0. Waits, without the lock, while calls of the kind
 * are held. */
int fake_call_fault(enum fake_call call);
/* True if the request that is about to complete is to fail. */
bool fake_work_fault(struct fake_work_fault *faults, struct fake_work_fault *hit);

struct fake_context *fake_context_of(struct ibv_context *context);
struct fake_device *fake_device_find(const char *name);
/* All zeroes for NULL. Needs no lock. */
void fake_gid_parse(const char *text, union ibv_gid *gid);
void fake_context_push(struct fake_context *context, enum ibv_event_type type, struct ibv_qp *qp,
                       struct ibv_cq *cq);

/* Takes away the events about this queue pair that nobody has fetched. */
void fake_context_forget(struct fake_context *context, const struct ibv_qp *qp);

void fake_cq_push(struct fake_cq *cq, const struct fake_completion *completion);
/* Completions of a queue pair that goes are forgotten as to places, not as to what poll sees. */
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp);

/* The MR of this key that covers the range in this pd with this access, or NULL. */
struct fake_mr *fake_mr_find(const struct ibv_pd *pd, uint32_t key, uint64_t address,
                             uint64_t bytes, int access);

struct fake_qp *fake_qp_find(uint32_t number);
void fake_qp_break(struct fake_qp *qp);
/* As modify_qp, by whoever may: 0 or errno. */
int fake_qp_modify(struct fake_qp *qp, const struct ibv_qp_attr *attributes, int mask);

extern struct fake_cm_id *fake_cm_ids;
static inline struct fake_cm_id *fake_cm_id_of(struct rdma_cm_id *id) {
  return (struct fake_cm_id *)id; /* base is its first member */
}
/* Drops the lock; 0, or -1 with errno. */
int fake_cm_done(int error);
struct fake_cm_id *fake_cm_new_id(struct rdma_event_channel *channel);
struct fake_device *fake_cm_find_device(const struct sockaddr_storage *address);
/* By its own address. */
void fake_cm_set_device(struct fake_cm_id *id);
/* An event on the owner's channel. */
void fake_cm_push(struct fake_cm_id *owner, struct fake_cm_id *about, enum rdma_cm_event_type type,
                  int status, const struct rdma_conn_param *told);
void fake_cm_fill_connecting(struct rdmacm_api *cm);
unsigned fake_cm_connected(void);
/* Its identifiers hear that it is removed. */
void fake_cm_remove(const struct fake_device *device);

/* Does the next send request. False if there is none or it must wait. */
bool fake_work_one(struct fake_qp *qp);
/* Does what can be done now, unless work is held. */
void fake_work_all(void);
/* One completion, or none where the request did not ask for it and nothing is wrong. */
void fake_work_complete(struct fake_qp *qp, bool is_send, const struct fake_request *request,
                        const struct ibv_wc *wc);

/* Fills in the parts of the table; take the lock themselves when called. */
void fake_verbs_fill_contexts(struct verbs_api *api);
void fake_verbs_fill_objects(struct verbs_api *api);
void fake_verbs_fill_queues(struct verbs_api *api);
void fake_verbs_fill_cm(struct verbs_api *api);
/* Inline functions of verbs.h come here. */
int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int is_solicited_only);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
