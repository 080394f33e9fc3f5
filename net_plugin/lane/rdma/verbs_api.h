/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_api: librdmacm, and libibverbs, which it brings along, as a table of function pointers,
 * loaded when first asked for. Layouts are those of <infiniband/verbs.h>; nothing is linked, so the
 * plugin loads anywhere.
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
#include <stdbool.h>
#include <string.h>

/* Without rdma_; each with the version of its symbol (rdma-core 23 or later). */
#define RDMACM_FUNCTIONS(X)                                                                        \
  X(create_event_channel, "RDMACM_1.0")                                                            \
  X(destroy_event_channel, "RDMACM_1.0")                                                           \
  X(create_id, "RDMACM_1.0")                                                                       \
  X(destroy_id, "RDMACM_1.0")                                                                      \
  X(bind_addr, "RDMACM_1.0")                                                                       \
  X(resolve_addr, "RDMACM_1.0")                                                                    \
  X(resolve_route, "RDMACM_1.0")                                                                   \
  X(init_qp_attr, "RDMACM_1.2")                                                                    \
  X(connect, "RDMACM_1.0")                                                                         \
  X(establish, "RDMACM_1.2")                                                                       \
  X(listen, "RDMACM_1.0")                                                                          \
  X(accept, "RDMACM_1.0")                                                                          \
  X(reject, "RDMACM_1.0")                                                                          \
  X(get_cm_event, "RDMACM_1.0")                                                                    \
  X(ack_cm_event, "RDMACM_1.0")                                                                    \
  X(event_str, "RDMACM_1.0")                                                                       \
  X(get_src_port, "RDMACM_1.0")                                                                    \
  X(set_option, "RDMACM_1.0")

/* Without ibv_. Those of version 1.8 and 1.12 may be NULL (rdma-core before 28 and 34). reg_mr does
 * not know IBV_ACCESS_RELAXED_ORDERING: that takes reg_mr_iova2, with the address as iova. */
#define VERBS_FUNCTIONS(X)                                                                         \
  X(open_device, "IBVERBS_1.1", true)                                                              \
  X(close_device, "IBVERBS_1.1", true)                                                             \
  X(query_device, "IBVERBS_1.1", true)                                                             \
  X(alloc_pd, "IBVERBS_1.1", true)                                                                 \
  X(dealloc_pd, "IBVERBS_1.1", true)                                                               \
  X(reg_mr, "IBVERBS_1.1", true)                                                                   \
  X(reg_mr_iova2, "IBVERBS_1.8", false)                                                            \
  X(reg_dmabuf_mr, "IBVERBS_1.12", false)                                                          \
  X(dereg_mr, "IBVERBS_1.1", true)                                                                 \
  X(create_comp_channel, "IBVERBS_1.0", true)                                                      \
  X(destroy_comp_channel, "IBVERBS_1.0", true)                                                     \
  X(create_cq, "IBVERBS_1.1", true)                                                                \
  X(destroy_cq, "IBVERBS_1.1", true)                                                               \
  X(get_cq_event, "IBVERBS_1.1", true)                                                             \
  X(ack_cq_events, "IBVERBS_1.1", true)                                                            \
  X(create_qp, "IBVERBS_1.1", true)                                                                \
  X(modify_qp, "IBVERBS_1.1", true)                                                                \
  X(destroy_qp, "IBVERBS_1.1", true)                                                               \
  X(get_async_event, "IBVERBS_1.1", true)                                                          \
  X(ack_async_event, "IBVERBS_1.1", true)                                                          \
  X(wc_status_str, "IBVERBS_1.1", true)                                                            \
  X(event_type_str, "IBVERBS_1.1", true)                                                           \
  X(port_state_str, "IBVERBS_1.1", true)                                                           \
  X(fork_init, "IBVERBS_1.1", true)

#define RDMACM_MEMBER(name, since) __typeof__(rdma_##name) *name;
#define VERBS_MEMBER(name, since, is_required) __typeof__(ibv_##name) *name;

struct verbs_api {
  RDMACM_FUNCTIONS(RDMACM_MEMBER)
  VERBS_FUNCTIONS(VERBS_MEMBER)
  /* Leaves the newer members as they were: see verbs_query_port. */
  int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes);
};

/* NULL: there is no device for librdmacm, or one of the libraries is missing, and verbs_api_reason
 * says which. Loads them once. */
const struct verbs_api *verbs_api_get(void);
/* "librdmacm.so.1: cannot open shared object file: ...", "/dev/infiniband: No such file or
 * directory"; empty if nothing is missing. */
const char *verbs_api_reason(void);

/* Reading the events of a library's descriptor must not block. False: errno. */
bool verbs_make_nonblocking(int fd);

/* Blocks until the kernel is done with it. NULL: nothing happens. */
void rdmacm_destroy_id(const struct verbs_api *api, struct rdma_cm_id *id);

/* For tests: this table from now on; NULL: none, and `reason` is why. Both NULL: the libraries',
 * which are loaded again where they were missing. */
void verbs_api_replace(const struct verbs_api *api, const char *reason);

static inline int verbs_query_port(const struct verbs_api *api, struct ibv_context *context,
                                   uint8_t port, struct ibv_port_attr *attributes) {
  memset(attributes, 0, sizeof(*attributes));
  return api->query_port(context, port, attributes);
}

#endif
