/* SPDX-License-Identifier: Apache-2.0 */
/* The table of librdmacm and libibverbs: filled by the installed libraries, empty with a reason
 * where they or the device file are missing. */
#include "net_plugin/lane/rdma/verbs_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/unit.h"

static const char *hidden_library; /* as if it were not installed */
static bool is_file_hidden;
static unsigned opened;

/* These two take the place of libc's for dynlib.c and verbs_api.c. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags) {
  void *(*real)(const char *, int);
  *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
  opened++;
  if (hidden_library && name && strstr(name, hidden_library)) {
    return real("libstratus-hidden.so", flags); /* for an error as the loader's own */
  }
  return real(name, flags);
}

__attribute__((visibility("default"))) int access(const char *path, int mode) {
  (void)mode;
  assert_string_equal(path, "/dev/infiniband");
  errno = ENOENT;
  return is_file_hidden ? -1 : 0;
}

static int forget(void **state) {
  hidden_library = NULL;
  is_file_hidden = false;
  verbs_api_replace(NULL, NULL);
  return 0;
}

/* A library that was opened stays so: where none is comes before. As on most machines: nothing is
 * loaded. */
UNIT_TEST_WITH(without_the_device_file_nothing_is_loaded, forget, NULL) {
  is_file_hidden = true;
  opened = 0;
  assert_null(verbs_api_get());
  assert_string_equal(verbs_api_reason(), "/dev/infiniband: No such file or directory");
  assert_int_equal(opened, 0);
}

UNIT_TEST_WITH(a_missing_library_has_a_reason, forget, NULL) {
  hidden_library = "librdmacm.so";
  assert_null(verbs_api_get());
  assert_non_null(strstr(verbs_api_reason(), "cannot open shared object file"));
  hidden_library = NULL;
  assert_null(verbs_api_get()); /* asked once */
}

UNIT_TEST_WITH(installed_libraries_fill_the_table, forget, NULL) {
  is_file_hidden = true;
  assert_null(verbs_api_get());
  is_file_hidden = false; /* a module that is loaded later */
  const struct verbs_api *api = verbs_api_get();
  if (!api) {
    fail_msg("librdmacm is not installed (scripts/install-deps): %s", verbs_api_reason());
  }
  assert_ptr_equal(api, verbs_api_get());
  /* Functions that need no device. */
  assert_string_equal(api->wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
  assert_string_equal(api->port_state_str(IBV_PORT_ACTIVE), "active");
  assert_string_equal(api->event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
}
