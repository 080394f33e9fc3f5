/* SPDX-License-Identifier: Apache-2.0 */
/* fake_verbs: a provider of reliable-connected queue pairs inside this process, behind the tables
 * of verbs_api.h, librdmacm's included, and the faults that no software device can be made to have.
 * That the calls are right for a real one is for tests/vm.
 *
 * Devices talk through memory. Checked are keys, bounds, rights, the order of states, room in the
 * queues (an unsignalled request holds its place until a later completion was polled), and objects
 * that are still in use. Work is done when it is posted, or by a thread (fake_verbs_thread).
 *
 * Owns: all its objects, which a test frees through the table; fake_verbs_stop fails the test for
 * those it left.  Threads: any; one mutex.  Blocks: as fake_verbs_hold_calls says.
 * Fails: the test, for wrong use that a card would not survive either. */
#ifndef TESTS_LIB_FAKE_VERBS_H
#define TESTS_LIB_FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/rdma/verbs_api.h"

enum { FAKE_ADDRESSES_MAX = 2 };

/* One device with one port. Zeroes mean an ordinary RoCE device. */
struct fake_hca {
  const char *name;                          /* "fake0" */
  const char *addresses[FAKE_ADDRESSES_MAX]; /* that librdmacm finds it by: "10.0.0.1", "::1" */
  bool is_infiniband, is_iwarp, is_down;
  bool has_no_iova2;
  uint32_t max_inline; /* 0: 256 */
  uint32_t vendor_id;
};

/* Replaces the table until stop. */
void fake_verbs_start(void);
void fake_verbs_stop(void);
const struct verbs_api *fake_verbs_api(void);

/* The device is found from now on. hca, and what it points to, must stay. */
void fake_verbs_add(const struct fake_hca *hca);
/* Unplugged: its queue pairs break, librdmacm and an event tell it, and it is not found any more.
 * Adding it again makes a new one. */
void fake_verbs_remove(const char *name);
/* The port goes down or comes up, with the event; work that needs it fails meanwhile. */
void fake_verbs_set_port(const char *name, bool is_up);

/* ---- faults ---- */

enum fake_call {
  FAKE_OPEN_DEVICE,
  FAKE_QUERY_DEVICE,
  FAKE_QUERY_PORT,
  FAKE_ALLOC_PD,
  FAKE_REG_MR, /* with or without iova */
  FAKE_CREATE_CHANNEL,
  FAKE_CREATE_CQ,
  FAKE_REQ_NOTIFY,
  FAKE_CREATE_QP,
  FAKE_MODIFY_QP,
  FAKE_POST_SEND,
  FAKE_POST_RECV,
  FAKE_POLL_CQ,
  FAKE_STOP_QP, /* modify_qp to ERR; it is a FAKE_MODIFY_QP, too */
  FAKE_DESTROY_QP,
  FAKE_DESTROY_CQ,
  FAKE_DESTROY_CHANNEL,
  FAKE_DEREG_MR,
  FAKE_DEALLOC_PD,
  FAKE_CM_DESTROY_ID, /* librdmacm's from here on */
  FAKE_CM_REJECT,
  FAKE_CM_OPTION,
  FAKE_CM_EVENT,   /* rdma_get_cm_event */
  FAKE_CM_CHANNEL, /* without the following none is connected */
  FAKE_CM_ID,
  FAKE_CM_BIND,
  FAKE_CM_LISTEN,
  FAKE_CM_ADDRESS, /* rdma_resolve_addr */
  FAKE_CM_ROUTE,
  FAKE_CM_ATTRIBUTES, /* rdma_init_qp_attr */
  FAKE_CM_CONNECT,
  FAKE_CM_ACCEPT,
  FAKE_CM_ESTABLISH,
  FAKE_CALLS,
};
/* The nth call of this kind from now on, the first being 1, fails with this errno. */
void fake_verbs_fail_call(enum fake_call call, unsigned nth, int error);
/* All of them from now on; error 0: none any more. */
void fake_verbs_fail_calls(enum fake_call call, int error);
/* No call fails or is held any more. False: the nth call of some kind was still to come. */
bool fake_verbs_heal_calls(void);

/* Packets that were on their way: every queue pair that takes writes, although modify_qp was asked
 * to stop it, takes the last one once more, with other bytes. Returns how many were written; the
 * others found no queue pair, right, or registration any more. */
unsigned fake_verbs_write_late(void);

enum fake_work { FAKE_SEND, FAKE_WRITE, FAKE_RECEIVE, FAKE_WORKS };
/* The nth request of this kind (FAKE_SEND: or write) that is carried out from now on completes with
 * this status, and its queue pair breaks. is_delivered: the receiver got it all the same, as when
 * an acknowledgement is lost. This takes the place of what was said of this kind before. */
void fake_verbs_fail_work(enum fake_work work, unsigned nth, enum ibv_wc_status status,
                          bool is_delivered);

/* Calls of this kind take until this is over. */
void fake_verbs_hold_calls(enum fake_call call, bool is_held);
/* How many calls take until then now. */
unsigned fake_verbs_held(void);
/* Called at each call, by its thread, which must not use devices there. NULL: nothing is. */
typedef void fake_called_fn(enum fake_call call);
void fake_verbs_on_call(fake_called_fn *called);

/* The next event of librdmacm of this type is of another one, with an error as status, or never
 * comes. This takes the place of what was said before. */
enum { FAKE_CM_NOTHING = -1 };
void fake_verbs_change_cm_event(enum rdma_cm_event_type type, int becomes);
/* What requests and answers carry is garbage, or missing, until it is turned off. */
void fake_verbs_garble_cm(bool is_on);

/* A thread does the work, some time later. */
void fake_verbs_thread(bool is_on);

/* ---- what happened ---- */

struct fake_counts {
  unsigned contexts, pds, mrs, channels, cqs, qps; /* that exist now */
  uint64_t sends, writes;                          /* requests done without an error */
  uint64_t written_bytes, sent_bytes;
  uint64_t waits;                    /* receiver not ready: a send found no receive request */
  uint64_t refused;                  /* writes without the right to */
  unsigned remote_mrs, remote_qps;   /* of those that exist, which a peer may write to */
  unsigned cm_channels, cm_ids;      /* that exist now */
  uint64_t cm_accepted, cm_rejected; /* requests to be connected */
};
struct fake_counts fake_verbs_counts(void);

#endif
