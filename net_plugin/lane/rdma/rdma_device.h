/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_device: the RDMA device of a NIC: what librdmacm finds at the NIC's address, opened, shared
 * by the lanes and registrations that use it, and given up when it breaks.
 *
 *   rdma_device_open --shared by all holders--> OPEN --async event--> LOST --last close--> gone
 *
 * A lost device stays lost. rdma_device_open then asks librdmacm again, so that one that came back,
 * under whatever name, is used again.
 *
 * Owns: context and protection domain, from open to the last close.
 * Threads: any; a mutex guards the list of open devices and the reading of events.
 * Blocks: open for as long as drivers take, some milliseconds, or as long as they take to remove a
 * device, and only one at a time: see rdma_opener.h. A NIC without a usable device is not asked
 * about again for a second, or for longer if asking took long.
 * Fails: open returns NULL and says why, in words for the log. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_DEVICE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/lane/rdma/rdma_facts.h"
#include "net_plugin/lane/rdma/rdma_settings.h"
#include "net_plugin/lane/rdma/rdma_worker.h"
#include "net_plugin/lane/rdma/verbs_api.h"

enum { RDMA_WHY_MAX = 256 }; /* texts for the log: why something is not used */

/* What is known about a port; a plain value. */
struct rdma_port {
  char name[RDMA_HCA_NAME_MAX]; /* "mlx5_0" */
  uint8_t port;                 /* from 1 */
  enum rdma_transport transport;
  bool is_erdma;      /* Alibaba Cloud's elastic RDMA */
  bool can_gather;    /* two pieces of memory in one send */
  bool has_immediate; /* a write can bring 32 bits along */
};

struct rdma_device {
  struct rdma_port port;
  struct rdma_settings settings;
  struct nic nic;
  const struct verbs_api *api;
  struct ibv_context *context;
  struct ibv_pd *pd;
  int lost_fd;             /* an eventfd, readable from the moment that the device is lost */
  atomic_bool is_lost;     /* its lanes end, too; no new lanes are opened on it */
  atomic_bool is_attached; /* rdma_memory.c's: memory is registered with it */
  /* covered by rdma_device.c's mutex */
  unsigned holders;
  struct rdma_device *next;
  struct rdma_job closing;
};

/* The context of every queue pair that is made on a device must point to one of these: it learns of
 * the events of that queue pair alone. It may go once the queue pair is destroyed. */
struct rdma_watch {
  atomic_int event; /* enum ibv_event_type + 1 of the event that broke the queue pair; 0: none */
};

/* The settings from now on; NULL: those of the environment. Why NICs had no device is forgotten,
 * devices that are open stay as they are. */
void rdma_device_configure(const struct rdma_settings *settings);
/* Those in force. */
struct rdma_settings rdma_device_settings(void);

/* Do they stand for the same device? */
bool rdma_device_is_same_nic(const struct nic *a, const struct nic *b);

/* The device of this NIC, opened or shared. Close it as often. NULL: none, `why` says why. */
struct rdma_device *rdma_device_open(const struct nic *nic, char why[RDMA_WHY_MAX]);
/* The same if it is open already, and memory is registered with it; never blocks. NULL: why is
 * empty unless a search failed a moment ago, or the settings exclude it. */
struct rdma_device *rdma_device_find(const struct nic *nic, char why[RDMA_WHY_MAX]);
/* The NIC has a device, but the last search found it unusable: its port was down, for example. */
bool rdma_device_may_come(const struct nic *nic);
/* Not searched again for a while. */
void rdma_device_refuse(const struct nic *nic, const char *why);
/* Logs why TCP is used through the NIC, once for each reason. */
void rdma_device_log_refusal(const struct nic *nic, const char *why);
/* One more holder of a device that is held. */
void rdma_device_hold(struct rdma_device *device);
void rdma_device_close(struct rdma_device *device);
/* The same, and never blocks: a worker does what is to be done after the last holder. */
void rdma_device_release(struct rdma_device *device);

/* Reads what is waiting on context->async_fd, which lanes watch beside lost_fd: marks the device
 * lost, or sets the watch of the queue pair that an event is for. Never blocks. */
void rdma_device_take_events(struct rdma_device *device);
/* The caller has found out otherwise that the device does not work any more. */
void rdma_device_lose(struct rdma_device *device, const char *why);

#endif
