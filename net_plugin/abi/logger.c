/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL shows INFO only with NCCL_DEBUG=INFO and only for the subsystems in NCCL_DEBUG_SUBSYS, by
 * default INIT, BOOTSTRAP and ENV: INIT is what makes the banner visible, NET what lets a user ask
 * for the network's messages alone. */
#include "net_plugin/abi/logger.h"

#include <dlfcn.h>
#include <pthread.h>

#include "common/log.h"
#include "common/nccl_version.h"

static nccl_logger_fn *current_logger;

static void write_to_nccl(enum log_level level, const char *file, int line, const char *text) {
  nccl_logger_fn *logger = __atomic_load_n(&current_logger, __ATOMIC_ACQUIRE);
  if (!logger) {
    return;
  }
  logger((enum nccl_log_level)nccl_level((nccl_version_any_fn *)logger, level),
         NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_NET, file, line, "NET/stratus: %s", text);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  nccl_logger_fn *logger;
  unsigned users;
} loggers[LOGGERS_MAX];

static void set_current(nccl_logger_fn *logger) {
  __atomic_store_n(&current_logger, logger, __ATOMIC_RELEASE);
  log_set_sink(logger ? write_to_nccl : NULL);
}

/* The place of the logger, or a free one; LOGGERS_MAX: there is none. */
static int find(nccl_logger_fn *logger) {
  int found = LOGGERS_MAX;
  for (int i = 0; i < LOGGERS_MAX; i++) {
    if (loggers[i].users == 0 ? found == LOGGERS_MAX : loggers[i].logger == logger) {
      found = i;
    }
  }
  return found;
}

void logger_use(nccl_logger_fn *logger) {
  pthread_mutex_lock(&lock);
  int place = find(logger);
  if (place < LOGGERS_MAX) {
    loggers[place].logger = logger;
    loggers[place].users++;
    set_current(logger);
  }
  pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static void use_another(void) {
  nccl_logger_fn *next = NULL;
  for (int i = 0; i < LOGGERS_MAX; i++) {
    next = loggers[i].users > 0 ? loggers[i].logger : next;
  }
  set_current(next);
}

void logger_leave(nccl_logger_fn *logger) {
  pthread_mutex_lock(&lock);
  int place = find(logger);
  bool is_known = place < LOGGERS_MAX && loggers[place].users > 0;
  if (is_known && --loggers[place].users == 0 && logger == current_logger) {
    use_another();
  }
  pthread_mutex_unlock(&lock);
}

void logger_keep(nccl_logger_fn *logger) {
  Dl_info library;
  if (dladdr((void *)logger, &library) != 0) {
    dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
  logger_use(logger);
}
