/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols are asked for with the version whose layouts the header describes; a library that moved
 * on still has them. */
#include "net_plugin/lane/rdma/verbs_api.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "common/dynlib.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"

#define DEVICE_FILES "/dev/infiniband" /* the kernel adds rdma_cm when librdmacm asks for it */
#define VERBS(name, since, is_required)                                                            \
  { "ibv_" #name, since, offsetof(struct verbs_api, name), is_required },
#define RDMACM(name, since) { "rdma_" #name, since, offsetof(struct verbs_api, name), true },

static const struct dynlib_symbol symbols[] = {
  RDMACM_FUNCTIONS(RDMACM) VERBS_FUNCTIONS(VERBS) VERBS(query_port, "IBVERBS_1.1", true){ 0 },
};
static const char *const sonames[] = { "librdmacm.so.1", "librdmacm.so", NULL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. Readers keep the pointer that they were given: the table stays. */
static bool is_asked;
static const struct verbs_api *current;
static struct verbs_api loaded;
static char reason[DYNLIB_REASON_MAX];
static struct dynlib library;

/* Most machines have no RDMA device: the files of devices are looked for first, and again when
 * there were none. A library stays once it is there: libibverbs loses what ibv_fork_init allocated
 * when it is closed. */
static void load(void) {
  if (access(DEVICE_FILES, F_OK) != 0) {
    snprintf(reason, sizeof(reason), DEVICE_FILES ": %s", strerror(errno));
    return;
  }
  is_asked = true;
  if (!library.handle && dynlib_open(&library, sonames, symbols, &loaded)) {
    memcpy(reason, library.reason, sizeof(reason));
    return;
  }
  /* As NCCL does, and like there before anything else: without it a child of fork() that writes to
   * registered pages takes them away from its parent on kernels before 5.12. An error says that the
   * kernel cannot, which is no reason to do without RDMA. */
  loaded.fork_init();
  current = &loaded;
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

const char *verbs_api_reason(void) {
  return reason;
}

bool verbs_make_nonblocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void rdmacm_destroy_id(const struct verbs_api *api, struct rdma_cm_id *id) {
  bool is_gone = !id;
  for (unsigned tries = 0; !is_gone && tries < RDMA_DESTROY_TRIES; tries++) {
    is_gone = api->destroy_id(id) == 0;
  }
  if (!is_gone) {
    LOG_INFO("librdmacm does not give up an identifier: %s", strerror(errno));
  }
}

void verbs_api_replace(const struct verbs_api *api, const char *why) {
  pthread_mutex_lock(&lock);
  is_asked = api || why;
  current = api;
  snprintf(reason, sizeof(reason), "%s", why ? why : "");
  pthread_mutex_unlock(&lock);
}
