/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the library that NCCL's logger lies in. The interface itself does not carry the release, and
 * a lookup in the global scope alone misses a libnccl that a framework loaded with RTLD_LOCAL. */
#include "common/nccl_version.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef int get_version_fn(int *version);

static int call_version(void *symbol) {
  get_version_fn *get_version;
  memcpy(&get_version, &symbol, sizeof get_version);
  int version = 0;
  return get_version && get_version(&version) == 0 ? version : 0;
}

int nccl_version_find(nccl_version_any_fn *of_nccl) {
  void *address;
  memcpy(&address, &of_nccl, sizeof address);
  Dl_info info;
  void *library = NULL;
  if (address && dladdr(address, &info) && info.dli_fname) {
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }
  int version = call_version(dlsym(library ? library : RTLD_DEFAULT, "ncclGetVersion"));
  if (library) {
    dlclose(library);
  }
  return version;
}

int nccl_version_of_library(const char *path) {
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  return library ? call_version(dlsym(library, "ncclGetVersion")) : 0;
}

int nccl_version_installed(void) {
  static int version = -1;
  if (version < 0) {
    version = nccl_version_of_library("libnccl.so.2");
  }
  return version;
}

/* ---- levels of the log ----
 *
 * ncclDebugLogLevel, src/include/nccl_common.h: NCCL 2.19 to 2.30 have warn 2, info 3, trace 5.
 * RCCL has an error level before them in 2.27.7 (ROCm/rocm-systems, projects/rccl), not in 2.21.5
 * (ROCm/rccl); NCCLX in 2.29 and 2.30 (meta-pytorch/torchcomms, comms/ncclx). */

enum { RCCL_WITH_ERRORS = 22700 }; /* as ncclGetVersion counts */

static bool has_error_level(nccl_version_any_fn *logger) {
  void *address;
  memcpy(&address, &logger, sizeof address);
  Dl_info info;
  if (!address || !dladdr(address, &info) || !info.dli_fname) {
    return false;
  }
  const char *slash = strrchr(info.dli_fname, '/');
  if (strncmp(slash ? slash + 1 : info.dli_fname, "librccl", strlen("librccl")) == 0) {
    return nccl_version_find(logger) >= RCCL_WITH_ERRORS;
  }
  /* NCCLX has the name and versions of NCCL, and functions that only it has. */
  void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  bool is_ncclx = library && dlsym(library, "ncclWinSharedQuery");
  if (library) {
    dlclose(library);
  }
  return is_ncclx;
}

/* The logger's address and, in the lowest bit, the answer: one word, so that threads that log
 * through two libraries at once see a pair that belongs together. */
static uintptr_t known;

int nccl_level(nccl_version_any_fn *logger, enum log_level level) {
  static const int levels[] = { [LOG_LEVEL_WARN] = 2, [LOG_LEVEL_INFO] = 3, [LOG_LEVEL_TRACE] = 5 };
  uintptr_t key = (uintptr_t)logger << 1;
  uintptr_t last = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (last >> 1 != key >> 1) {
    last = key | has_error_level(logger);
    __atomic_store_n(&known, last, __ATOMIC_RELAXED);
  }
  return levels[level] + (int)(last & 1);
}
