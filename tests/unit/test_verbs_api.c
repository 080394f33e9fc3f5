/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of libibverbs and librdmacm: filled by the installed libraries, empty with a reason
 * where they are missing, replaced by a test's own. */
#include "net_plugin/lane/rdma/verbs_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

static const char *hidden_library; /* as if it were not installed */

/* Takes the place of libc's for dynlib.c. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags) {
  void *(*real)(const char *, int);
  *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
  if (hidden_library && name && strstr(name, hidden_library)) {
    return real("libstratus-hidden.so", flags); /* for an error as the loader's own */
  }
  return real(name, flags);
}

static int forget(void **state) {
  (void)state;
  hidden_library = NULL;
  verbs_api_restore();
  return 0;
}

/* A library that was opened stays so: where none is comes before. */
UNIT_TEST_WITH(tests_bring_their_own_table, forget, NULL) {
  static const struct rdmacm_api cm;
  static const struct verbs_api table = { .cm = &cm };
  verbs_api_replace(&table, NULL);
  assert_ptr_equal(verbs_api_get(), &table);
  assert_ptr_equal(verbs_api_cm(), &cm);
  verbs_api_replace(NULL, "not today");
  assert_null(verbs_api_get());
  assert_null(verbs_api_cm());
  assert_string_equal(verbs_api_reason(), "not today");
}

UNIT_TEST_WITH(missing_library_has_a_reason, forget, NULL) {
  hidden_library = "libibverbs.so";
  assert_null(verbs_api_get());
  assert_non_null(strstr(verbs_api_reason(), "cannot open shared object file"));
  assert_null(verbs_api_cm());
  hidden_library = NULL;
  assert_null(verbs_api_get()); /* asked once */
}

UNIT_TEST_WITH(installed_library_fills_the_table, forget, NULL) {
  const struct verbs_api *api = verbs_api_get();
  if (!api) {
    fail_msg("libibverbs is not installed (scripts/install-deps): %s", verbs_api_reason());
  }
  assert_string_equal(verbs_api_reason(), "");
  assert_ptr_equal(api, verbs_api_get());
  /* Functions that need no device. */
  assert_string_equal(api->wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
  assert_string_equal(api->port_state_str(IBV_PORT_ACTIVE), "active");
  int count = -1;
  struct ibv_device **devices = api->get_device_list(&count);
  if (devices) { /* NULL on a kernel without RDMA */
    assert_true(count >= 0);
    api->free_device_list(devices);
  }
}

UNIT_TEST_WITH(verbs_do_without_the_connection_manager, forget, NULL) {
  hidden_library = "librdmacm.so";
  assert_non_null(verbs_api_get());
  assert_null(verbs_api_cm());
  assert_non_null(strstr(verbs_api_reason(), "cannot open shared object file"));
}

UNIT_TEST_WITH(connection_manager_is_loaded_when_asked_for, forget, NULL) {
  const struct verbs_api *api = verbs_api_get();
  assert_non_null(api);
  const struct rdmacm_api *cm = verbs_api_cm();
  if (!cm) {
    fail_msg("librdmacm is not installed (scripts/install-deps): %s", verbs_api_reason());
  }
  assert_ptr_equal(cm, api->cm);
  assert_string_equal(cm->event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
}

UNIT_MAIN(NULL, NULL)
