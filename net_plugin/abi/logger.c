/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL shows INFO only with NCCL_DEBUG=INFO and only for the subsystems in NCCL_DEBUG_SUBSYS, by
 * default INIT, BOOTSTRAP and ENV: INIT is what makes the banner visible, NET what lets a user ask
 * for the network's messages alone. */
#include "net_plugin/abi/logger.h"

#include <dlfcn.h>

#include "common/log.h"
#include "common/nccl_version.h"

static nccl_logger_fn *current_logger;

static void write_to_nccl(enum log_level level, const char *file, int line, const char *text) {
  nccl_logger_fn *logger = __atomic_load_n(&current_logger, __ATOMIC_ACQUIRE);
  logger((enum nccl_log_level)nccl_level((nccl_version_any_fn *)logger, level),
         NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_NET, file, line, "NET/stratus: %s", text);
}

void logger_use(nccl_logger_fn *logger) {
  Dl_info library;
  if (!logger) { /* another thread may be writing by the one before, which stays */
    log_set_sink(NULL);
    return;
  }
  if (__atomic_exchange_n(&current_logger, logger, __ATOMIC_ACQ_REL) != logger &&
      dladdr((void *)logger, &library) != 0) {
    dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
  log_set_sink(write_to_nccl);
}
