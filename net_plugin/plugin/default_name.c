/* SPDX-License-Identifier: Apache-2.0 */
/* The library is in this one (the Makefile makes it) and is loaded from memory: so it is there
 * wherever this one is. It has no code, so nothing of it must be executable. */
#include "net_plugin/plugin/default_name.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"

/* Of the Makefile: the name by which the loader knows this plugin, and the file of the empty
 * library. */
#define OWN_NAME "libnccl-net-stratus.so"
__asm__(".pushsection .rodata\n"
        "default_name_library: .incbin \"" DEFAULT_NAME_LIBRARY "\"\n"
        "default_name_library_end:\n"
        ".popsection\n");
extern const char default_name_library[], default_name_library_end[];

static void load(void) {
  size_t bytes = (size_t)(default_name_library_end - default_name_library);
  int file = memfd_create("libnccl-net.so", MFD_CLOEXEC);
  if (file < 0 || write(file, default_name_library, bytes) != (ssize_t)bytes) {
    LOG_INFO("cannot keep NCCL from forgetting this plugin: %s", strerror(errno));
  } else {
    char path[48];
    /* Not self: a debugger opens what the loader names, and would wait at a pipe of its own. */
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
    if (!dlopen(path, RTLD_LAZY | RTLD_NODELETE)) {
      LOG_INFO("cannot keep NCCL from forgetting this plugin: %s", dlerror());
    }
  }
  if (file >= 0) {
    close(file);
  }
}

void default_name_take(int nccl_version) {
  static bool is_done;
  if (is_done || nccl_version < 22803 || nccl_version > 22907) {
    return;
  }
  is_done = true;
  /* A program that has this code in it, and not this library, would load another. */
  void *own = dlopen(OWN_NAME, RTLD_LAZY | RTLD_NOLOAD);
  if (own) {
    dlclose(own);
    load();
  }
}
