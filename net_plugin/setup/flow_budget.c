/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_budget.h. */
#include "net_plugin/setup/flow_budget.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "common/log.h"
#include "common/open_files.h"

/* Half of the limit is for flows. The rest is the application's, and for what connections need in
 * any case: NCCL has sockets of its own for bootstrap and proxy, about two per peer. */
#define FLOWS_PART 2
/* A connection takes at most this part of what is left, so that later ones do not find nothing:
 * under a limit of 256 the first has 8 flows, the fifth 4, and from the 13th on each has one, so
 * that both ends of 60 connections leave 51 descriptors (tests/unit/test_descriptors.c). */
#define CONNECTION_PART 16

static _Atomic uint64_t taken;
static atomic_flag is_told = ATOMIC_FLAG_INIT;

bool flow_budget_take(unsigned flows, unsigned least) {
  uint64_t limit = open_files_limit(), used = atomic_load(&taken);
  uint64_t left = limit / FLOWS_PART + flows > used ? limit / FLOWS_PART + flows - used : 0;
  if (flows >= least && flows >= left / CONNECTION_PART) {
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
