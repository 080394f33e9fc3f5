/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a library and fills a struct of function pointers from a table. */
#include "common/dynlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void clear_functions(const struct dynlib_symbol *symbols, void *functions) {
  for (; symbols->name; symbols++) {
    memset((char *)functions + symbols->offset, 0, sizeof(void *));
  }
}

static int open_first(struct dynlib *lib, const char *const *sonames) {
  size_t used = 0;
  lib->reason[0] = '\0';
  for (; *sonames; sonames++) {
    /* RTLD_LOCAL: our optional libraries must not satisfy anybody else's symbols. */
    lib->handle = dlopen(*sonames, RTLD_NOW | RTLD_LOCAL);
    if (lib->handle) {
      lib->soname = *sonames;
      lib->reason[0] = '\0';
      return 0;
    }
    const char *error = dlerror();
    if (used < sizeof lib->reason) {
      int written = snprintf(lib->reason + used, sizeof lib->reason - used, "%s%s",
                             used ? "; " : "", error ? error : *sonames);
      used += written > 0 ? (size_t)written : 0;
    }
  }
  return -ENOENT;
}

static void *find_symbol(void *handle, const struct dynlib_symbol *symbol) {
  return symbol->version ? dlvsym(handle, symbol->name, symbol->version)
                         : dlsym(handle, symbol->name);
}

int dynlib_open(struct dynlib *lib, const char *const *sonames, const struct dynlib_symbol *symbols,
                void *functions) {
  *lib = (struct dynlib){ 0 };
  clear_functions(symbols, functions);
  int result = open_first(lib, sonames);
  if (result < 0) {
    return result;
  }
  for (const struct dynlib_symbol *symbol = symbols; symbol->name; symbol++) {
    void *address = find_symbol(lib->handle, symbol);
    if (!address && symbol->is_required) {
      snprintf(lib->reason, sizeof lib->reason, "%s has no function %s; a newer version is needed",
               lib->soname, symbol->name);
      clear_functions(symbols, functions);
      dynlib_close(lib);
      return -ENOSYS;
    }
    memcpy((char *)functions + symbol->offset, &address, sizeof address);
  }
  return 0;
}

void dynlib_close(struct dynlib *lib) {
  if (lib->handle) {
    dlclose(lib->handle);
    lib->handle = NULL;
    lib->soname = NULL;
  }
}
