/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_budget.h. */
#include "net_plugin/setup/flow_budget.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "common/log.h"
#include "common/open_files.h"
#include "net_plugin/setup/limits.h"

static _Atomic uint64_t taken;
static atomic_flag is_told = ATOMIC_FLAG_INIT;

bool flow_budget_take(unsigned flows, unsigned least) {
  uint64_t limit = open_files_limit(), used = atomic_load(&taken);
  uint64_t left =
      limit / FLOW_BUDGET_PART + flows > used ? limit / FLOW_BUDGET_PART + flows - used : 0;
  if (flows >= least && flows >= left / FLOW_BUDGET_CONNECTION_PART) {
    if (!atomic_flag_test_and_set(&is_told)) {
      LOG_WARN("a connection has %u flows and could use more, and later ones may have fewer: this "
               "process may open %" PRIu64
               " descriptors. For full speed raise the limit: ulimit -n (systemd: LimitNOFILE=, "
               "docker: --ulimit nofile=)",
               flows, limit);
    }
    return false;
  }
  atomic_fetch_add(&taken, 1);
  return true;
}

void flow_budget_give(unsigned flows) {
  atomic_fetch_sub(&taken, flows);
}
