/* SPDX-License-Identifier: Apache-2.0 */
/* What stratus-net doctor says of data that NCCL sends without asking the net plugin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/told.h"
#include "tests/lib/unit.h"

static const char *check(int release, bool has_rdma, bool is_encrypted) {
  struct bypass_facts facts = { release, has_rdma, is_encrypted };
  told_clear();
  bypass_check(&facts);
  return told;
}

static void has(const char *text, const char *part) {
  if (!strstr(text, part)) {
    fail_msg("no \"%s\" in: %s", part, text);
  }
}

static void lacks(const char *text, const char *part) {
  if (strstr(text, part)) {
    fail_msg("\"%s\" in: %s", part, text);
  }
}

static int forget_variables(void **context) {
  (void)context;
  unsetenv("NCCL_GIN_ENABLE");
  unsetenv("NCCL_RMA_DISABLE");
  unsetenv("NCCL_CTA_POLICY");
  return 0;
}

UNIT_TEST_WITH(releases_differ, forget_variables, NULL) {
  assert_string_equal(check(0, true, false), "");
  assert_string_equal(check(22803, true, false), "");
  has(check(22807, true, false), "hint: collectives and send/recv go through stratus");
  lacks(check(22807, true, false), "RMA");
  lacks(check(22903, true, false), "symmetric");
  has(check(22907, true, false), "kernels for symmetric windows");
  has(check(22907, true, false), "or RMA (ncclPutSignal) goes over its own RDMA");
  lacks(check(22907, true, false), "NCCL_RMA_DISABLE");
  has(check(23007, true, false), "(to switch it off: NCCL_GIN_ENABLE=0 NCCL_RMA_DISABLE=1)");
}

UNIT_TEST_WITH(without_rdma_sockets_came_with_2_32, forget_variables, NULL) {
  has(check(23102, false, false), "good: this NCCL has GIN and RMA over RDMA only");
  has(check(23203, false, false), "goes over its own sockets");
  has(check(23203, true, false), "goes over its own RDMA");
}

UNIT_TEST_WITH(what_is_off_bypasses_nothing, forget_variables, NULL) {
  setenv("NCCL_GIN_ENABLE", "0", 1);
  has(check(22907, true, false), "good: GIN and RMA are switched off");
  has(check(23004, true, false), "good: GIN and RMA are switched off");
  has(check(23102, true, false), "sends with RMA (ncclPutSignal) goes over its own RDMA");
  setenv("NCCL_RMA_DISABLE", "1", 1);
  has(check(23102, true, false), "good: GIN and RMA are switched off");
  setenv("NCCL_RMA_DISABLE", "yes", 1); /* no number: 0 for NCCL */
  has(check(23102, true, false), "sends with RMA (");
  setenv("NCCL_GIN_ENABLE", "", 1); /* as if it was not set */
  has(check(23102, true, false), "sends with GIN (device API");
}

UNIT_TEST_WITH(zero_cta_collectives_are_rma, forget_variables, NULL) {
  lacks(check(23007, true, false), "NCCL_CTA_POLICY");
  for (const char *const *each = (const char *const[]){ "ZERO", "2", "default|zero", NULL }; *each;
       each++) {
    setenv("NCCL_CTA_POLICY", *each, 1);
    has(check(23007, true, false), "are RMA between hosts, and go over its own RDMA");
    lacks(check(23004, true, false), "NCCL_CTA_POLICY");
    lacks(check(23102, false, false), "NCCL_CTA_POLICY");
  }
  setenv("NCCL_CTA_POLICY", "EFFICIENCY|ZEROS", 1);
  lacks(check(23007, true, false), "NCCL_CTA_POLICY");
}

UNIT_TEST_WITH(tls_does_not_cover_plugins, forget_variables, NULL) {
  lacks(check(23102, true, false), "TLS");
  has(check(23203, true, false), "not plugins: what goes through stratus is in clear");
  has(check(23203, true, true), "STRATUS_ENCRYPT=on covers what goes through stratus");
  lacks(check(23203, true, true), "unless STRATUS_ENCRYPT=on");
  setenv("NCCL_GIN_ENABLE", "0", 1);
  setenv("NCCL_RMA_DISABLE", "1", 1);
  lacks(check(23203, true, true), "in clear");
}

UNIT_MAIN(NULL, NULL)
