/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_api: libibverbs and librdmacm as a table of function pointers, loaded when first asked for.
 * Layouts are those of <infiniband/verbs.h>; nothing is linked, so the plugin loads anywhere.
 *
 * What the data path calls is not in the table: ibv_post_send, ibv_post_recv, ibv_poll_cq and
 * ibv_req_notify_cq are inline functions that go through the context of a queue, and work as they
 * are, with a provider in tests, too. All else must go through the table: the other inline
 * functions and macros of that header (ibv_reg_mr, ibv_query_port) want the library at link time.
 *
 * Owns: the libraries, for the life of the process: providers start threads and leave them.
 * Threads: any.  Blocks: verbs_api_get the first time, while the loader works; the functions as the
 * library's do.
 * Fails: verbs_api_get returns NULL, and the reason is text for the log. The functions fail as
 * libibverbs says: NULL or -1 with errno, or a positive errno. */
#ifndef NET_PLUGIN_LANE_RDMA_VERBS_API_H
#define NET_PLUGIN_LANE_RDMA_VERBS_API_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* librdmacm (rdma-core 23 or later), members named without rdma_. */
struct rdmacm_api {
  struct rdma_event_channel *(*create_event_channel)(void);
  void (*destroy_event_channel)(struct rdma_event_channel *channel);
  int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space space);
  int (*destroy_id)(struct rdma_cm_id *id);
  int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *address);
  int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
                      int timeout_ms);
  int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
  int (*init_qp_attr)(struct rdma_cm_id *id, struct ibv_qp_attr *attributes, int *mask);
  int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *parameters);
  int (*establish)(struct rdma_cm_id *id);
  int (*listen)(struct rdma_cm_id *id, int backlog);
  int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *parameters);
  int (*reject)(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_bytes);
  int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
  int (*ack_cm_event)(struct rdma_cm_event *event);
  const char *(*event_str)(enum rdma_cm_event_type event);
  __be16 (*get_src_port)(struct rdma_cm_id *id);
  int (*set_option)(struct rdma_cm_id *id, int level, int name, void *value, size_t value_bytes);
};

/* libibverbs, members named without ibv_. Those marked optional may be NULL. */
struct verbs_api {
  struct ibv_context *(*open_device)(struct ibv_device *device);
  int (*close_device)(struct ibv_context *context);
  int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attributes);
  /* Leaves the newer members as they were: see verbs_query_port. */
  int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes);

  struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
  int (*dealloc_pd)(struct ibv_pd *pd);
  /* Does not know IBV_ACCESS_RELAXED_ORDERING: that takes reg_mr_iova2, with the address as iova.
   */
  struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *address, size_t bytes, int access);
  struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
                                 unsigned access); /* optional, rdma-core 28 */
  struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                  int fd, int access); /* optional, rdma-core 34 */
  int (*dereg_mr)(struct ibv_mr *mr);

  struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
  int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
  struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *cq_context,
                              struct ibv_comp_channel *channel, int vector);
  int (*destroy_cq)(struct ibv_cq *cq);
  int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
  void (*ack_cq_events)(struct ibv_cq *cq, unsigned events);

  struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes);
  int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask);
  int (*destroy_qp)(struct ibv_qp *qp);

  int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
  void (*ack_async_event)(struct ibv_async_event *event);

  const char *(*wc_status_str)(enum ibv_wc_status status);
  const char *(*event_type_str)(enum ibv_event_type event);
  const char *(*port_state_str)(enum ibv_port_state state);
  int (*fork_init)(void); /* called by verbs_api_get */

  const struct rdmacm_api *cm;
};

/* NULL: there is no device for librdmacm, or one of the libraries is missing, and verbs_api_reason
 * says which. Loads them once. */
const struct verbs_api *verbs_api_get(void);
/* "librdmacm.so.1: cannot open shared object file: ...", "/dev/infiniband: No such file or
 * directory"; empty if nothing is missing. */
const char *verbs_api_reason(void);

/* Of librdmacm, with its descriptor marked (common/descriptor.h) and not blocking. NULL with errno.
 */
struct rdma_event_channel *rdmacm_open_channel(const struct rdmacm_api *cm);
/* NULL: nothing happens. */
void rdmacm_close_channel(const struct rdmacm_api *cm, struct rdma_event_channel *channel);
/* Blocks until the kernel is done with it. NULL: nothing happens. */
void rdmacm_destroy_id(const struct rdmacm_api *cm, struct rdma_cm_id *id);

/* For tests: this table from now on; NULL: none, and `reason` is why. */
void verbs_api_replace(const struct verbs_api *api, const char *reason);
/* Back to the libraries, which are loaded again where they were missing. */
void verbs_api_restore(void);

static inline int verbs_query_port(const struct verbs_api *api, struct ibv_context *context,
                                   uint8_t port, struct ibv_port_attr *attributes) {
  memset(attributes, 0, sizeof(*attributes));
  return api->query_port(context, port, attributes);
}

#endif
