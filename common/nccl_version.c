/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the library that NCCL's logger lies in. The interface itself does not carry the release, and
 * a lookup in the global scope alone misses a libnccl that a framework loaded with RTLD_LOCAL. */
#include "common/nccl_version.h"

#include <dlfcn.h>
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
