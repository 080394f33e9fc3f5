/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols are asked for with the version whose layouts the header describes; a library that moved
 * on still has them. */
#include "net_plugin/lane/rdma/verbs_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/dynlib.h"

#define VERBS(member, since, is_required)                                                          \
  { "ibv_" #member, since, offsetof(struct verbs_api, member), is_required }
#define RDMACM(member, since)                                                                      \
  { "rdma_" #member, since, offsetof(struct rdmacm_api, member), true }

static const struct dynlib_symbol verbs_symbols[] = {
  VERBS(get_device_list, "IBVERBS_1.1", true),
  VERBS(free_device_list, "IBVERBS_1.1", true),
  VERBS(get_device_name, "IBVERBS_1.1", true),
  VERBS(open_device, "IBVERBS_1.1", true),
  VERBS(close_device, "IBVERBS_1.1", true),
  VERBS(query_device, "IBVERBS_1.1", true),
  VERBS(query_port, "IBVERBS_1.1", true),
  VERBS(query_gid, "IBVERBS_1.1", true),
  VERBS(alloc_pd, "IBVERBS_1.1", true),
  VERBS(dealloc_pd, "IBVERBS_1.1", true),
  VERBS(reg_mr, "IBVERBS_1.1", true),
  VERBS(reg_mr_iova2, "IBVERBS_1.8", false),
  VERBS(reg_dmabuf_mr, "IBVERBS_1.12", false),
  VERBS(dereg_mr, "IBVERBS_1.1", true),
  VERBS(create_comp_channel, "IBVERBS_1.0", true),
  VERBS(destroy_comp_channel, "IBVERBS_1.0", true),
  VERBS(create_cq, "IBVERBS_1.1", true),
  VERBS(destroy_cq, "IBVERBS_1.1", true),
  VERBS(get_cq_event, "IBVERBS_1.1", true),
  VERBS(ack_cq_events, "IBVERBS_1.1", true),
  VERBS(create_qp, "IBVERBS_1.1", true),
  VERBS(modify_qp, "IBVERBS_1.1", true),
  VERBS(query_qp, "IBVERBS_1.1", true),
  VERBS(destroy_qp, "IBVERBS_1.1", true),
  VERBS(get_async_event, "IBVERBS_1.1", true),
  VERBS(ack_async_event, "IBVERBS_1.1", true),
  VERBS(wc_status_str, "IBVERBS_1.1", true),
  VERBS(event_type_str, "IBVERBS_1.1", true),
  VERBS(port_state_str, "IBVERBS_1.1", true),
  VERBS(fork_init, "IBVERBS_1.1", true),
  { 0 },
};
static const char *const verbs_sonames[] = { "libibverbs.so.1", "libibverbs.so", NULL };

static const struct dynlib_symbol cm_symbols[] = {
  RDMACM(create_event_channel, "RDMACM_1.0"),
  RDMACM(destroy_event_channel, "RDMACM_1.0"),
  RDMACM(create_id, "RDMACM_1.0"),
  RDMACM(destroy_id, "RDMACM_1.0"),
  RDMACM(bind_addr, "RDMACM_1.0"),
  RDMACM(resolve_addr, "RDMACM_1.0"),
  RDMACM(resolve_route, "RDMACM_1.0"),
  RDMACM(init_qp_attr, "RDMACM_1.2"),
  RDMACM(connect, "RDMACM_1.0"),
  RDMACM(establish, "RDMACM_1.2"),
  RDMACM(listen, "RDMACM_1.0"),
  RDMACM(accept, "RDMACM_1.0"),
  RDMACM(reject, "RDMACM_1.0"),
  RDMACM(get_cm_event, "RDMACM_1.0"),
  RDMACM(ack_cm_event, "RDMACM_1.0"),
  RDMACM(event_str, "RDMACM_1.0"),
  RDMACM(get_src_port, "RDMACM_1.0"),
  RDMACM(set_option, "RDMACM_1.0"),
  { 0 },
};
static const char *const cm_sonames[] = { "librdmacm.so.1", "librdmacm.so", NULL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. Readers keep the pointers that they were given: the tables stay. */
static bool is_asked, is_cm_asked;
static const struct verbs_api *current;
static struct verbs_api loaded;
static struct rdmacm_api loaded_cm;
static char reason[DYNLIB_REASON_MAX];
static struct dynlib library, cm_library;

/* A library stays once it is there: libibverbs loses what ibv_fork_init allocated when it is
 * closed. */
static void load(void) {
  is_asked = true;
  if (!library.handle) {
    if (dynlib_open(&library, verbs_sonames, verbs_symbols, &loaded)) {
      memcpy(reason, library.reason, sizeof(reason));
      return;
    }
    /* As NCCL does, and like there before anything else: without it a child of fork() that writes
     * to registered pages takes them away from its parent on kernels before 5.12. An error says
     * that the kernel cannot, which is no reason to do without RDMA. */
    loaded.fork_init();
  }
  current = &loaded;
}

static void load_cm(void) {
  is_cm_asked = true;
  if (!cm_library.handle && dynlib_open(&cm_library, cm_sonames, cm_symbols, &loaded_cm)) {
    memcpy(reason, cm_library.reason, sizeof(reason));
    return;
  }
  loaded.cm = &loaded_cm;
}

const struct verbs_api *verbs_api_get(void) {
  pthread_mutex_lock(&lock);
  if (!is_asked) {
    load();
  }
  const struct verbs_api *api = current;
  pthread_mutex_unlock(&lock);
  return api;
}

const struct rdmacm_api *verbs_api_cm(void) {
  const struct verbs_api *api = verbs_api_get();
  pthread_mutex_lock(&lock);
  if (api == &loaded && !is_cm_asked) {
    load_cm();
  }
  const struct rdmacm_api *cm = api ? api->cm : NULL;
  pthread_mutex_unlock(&lock);
  return cm;
}

const char *verbs_api_reason(void) {
  return reason;
}

void verbs_api_replace(const struct verbs_api *api, const char *why) {
  pthread_mutex_lock(&lock);
  is_asked = true;
  current = api;
  snprintf(reason, sizeof(reason), "%s", why ? why : "");
  pthread_mutex_unlock(&lock);
}

void verbs_api_restore(void) {
  pthread_mutex_lock(&lock);
  is_asked = is_cm_asked = false;
  current = NULL;
  loaded.cm = NULL;
  reason[0] = '\0';
  pthread_mutex_unlock(&lock);
}
