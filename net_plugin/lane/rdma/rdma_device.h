/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_device: the RDMA devices of NICs: what librdmacm finds at a NIC's address. One table has a
 * place for each NIC that was asked about:
 *
 *   CLOSED --take--> SEARCHING (a worker) --> OPEN: memory is registered with it
 *    | ^   none: no search for a while |        | lost, and its last user has left
 *    | `--------------------------------        v
 *    `<------- closed by a worker ----------- CLOSING
 *
 * A driver may take long over it: as long as a device is being removed, and the time for all memory
 * that the job has registered. The holder of the engine lock must not wait for that. A device whose
 * queue pair a driver does not give up stays lost: its NIC is used without RDMA.
 *
 * Queue pairs are made in librdmacm's context. A second one is for asynchronous events, which
 * others in the process could take away from that one: a device or port that fails is lost. A queue
 * pair that breaks completes its receives, so that its own events are of no interest.
 *
 * Owns: the table, protection domains, contexts for events, what is bound to the NICs' addresses.
 * Threads: any.  Blocks: never.
 * Fails: take returns NULL: there is no device, or none yet. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_DEVICE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/name_list.h"
#include "net_plugin/lane/nic.h"
#include "net_plugin/lane/rdma/rdma_worker.h"
#include "net_plugin/lane/rdma/verbs_api.h"

enum {
  RDMA_WHY_MAX = 256, /* texts for the log: why something is not used */
};

/* STRATUS_RDMA and NCCL's NCCL_IB_* variables with NCCL's meaning and defaults
 * (src/transport/net_ib/{init,connect}.cc at NVIDIA/nccl v2.30.7-1), but for a shorter timeout. A
 * bad value is one WARN with what is accepted, and the default is kept. */
struct rdma_settings {
  const char *off_why;   /* STRATUS_RDMA=off or NCCL_IB_DISABLE; NULL: it is not off */
  bool is_wanted;        /* STRATUS_RDMA=on: doing without is worth a warning */
  struct name_list hcas; /* NCCL_IB_HCA, with ports; rail and plane there are NCCL's own */
  int traffic_class;     /* -1: the communicator's, or else 0 */
  int service_level;     /* -1: the same */
  uint8_t timeout;       /* of a queue pair: 4.096 us * 2^timeout; 0: none */
  uint8_t retry_count;   /* 0..7 */
};

/* Two of different kinds cannot talk. */
enum rdma_transport { RDMA_ROCE, RDMA_INFINIBAND, RDMA_IWARP, RDMA_TRANSPORTS };
/* "RoCE" */
const char *rdma_transport_name(enum rdma_transport transport);

enum rdma_device_state { RDMA_CLOSED, RDMA_SEARCHING, RDMA_OPEN, RDMA_CLOSING };

struct rdma_device {
  struct nic nic;
  struct rdma_queue queue; /* whatever its driver is asked for */
  int index;               /* in the table: of its domain (lane_memory.h) */
  atomic_bool is_lost;     /* its lanes end; no new ones are opened on it */

  /* while it is OPEN */
  struct rdma_settings settings;
  const struct verbs_api *api;
  char name[NAME_LIST_NAME_MAX]; /* "mlx5_0" */
  uint8_t port;                  /* from 1 */
  enum rdma_transport transport;
  bool is_erdma;                      /* Alibaba Cloud's elastic RDMA */
  bool has_immediate;                 /* a write can bring 32 bits along */
  struct rdma_event_channel *channel; /* of all its identifiers; the worker's */
  struct rdma_cm_id *bound;           /* to the NIC's address: keeps the context */
  struct ibv_context *events;         /* lanes watch its async_fd */
  int lost_fd; /* an eventfd, readable from the moment that the device is lost */
  struct ibv_pd *pd;

  /* covered by rdma_device.c's mutex */
  enum rdma_device_state state;
  unsigned users;
  struct rdma_job job; /* searches or closes it */
  uint64_t since_ns;   /* the search */
  uint64_t until_ns;   /* no search before */
  bool may_come;       /* there is one, which could not be used then: its port was down, say */
  char why[RDMA_WHY_MAX];
  char logged[RDMA_WHY_MAX]; /* the reason that was logged last */
};

/* The settings in force. */
struct rdma_settings rdma_device_settings(void);

/* The NIC's device, with one more user. NULL: why has the reason, and is empty while it is not
 * known. */
struct rdma_device *rdma_device_take(const struct nic *nic, char why[RDMA_WHY_MAX]);
void rdma_device_release(struct rdma_device *device);
/* The NIC has a device, but the last search found it unusable. */
bool rdma_device_may_come(const struct nic *nic);
/* Logs why TCP is used through the NIC, once for each reason. */
void rdma_device_log_refusal(const struct nic *nic, const char *why);

/* It does not work any more. It stays open until its users have left. */
void rdma_device_lose(struct rdma_device *device, const char *why);
/* Reads what is waiting on events->async_fd. */
void rdma_device_take_events(struct rdma_device *device);

#endif
