/* SPDX-License-Identifier: Apache-2.0 */
/* See observe.h. */
#include "net_plugin/observe/observe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/engine/observer.h"
#include "net_plugin/observe/limits.h"
#include "net_plugin/observe/stall.h"
#include "net_plugin/observe/stats_socket.h"

static uint64_t report_ns; /* STRATUS_STALL_REPORT */
static char host[65];

/* ---- stalled transfers ---- */

static void report(const struct connection_snapshot *seen, uint64_t now_ns, bool is_fault) {
  static struct log_limit limits[2];
  uint64_t others = 0;
  if (!log_limit_pass(&limits[is_fault], now_ns, OBSERVE_REPORT_NS, &others)) {
    return;
  }
  char text[STALL_TEXT_MAX], more[64] = "";
  stall_describe(seen, now_ns, host, text);
  if (others) {
    snprintf(more, sizeof more, " (and %llu more reports of this kind)",
             (unsigned long long)others);
  }
  LOG_AT(is_fault ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "%s%s", text, more);
}

static bool connection_waits(struct connection *connection, uint64_t now_ns) {
  struct connection_snapshot seen;
  struct stall_facts facts;
  connection_snapshot(connection, now_ns, &seen);
  stall_find_facts(&seen, now_ns, &facts);
  enum stall_kind kind = stall_classify(&facts);
  if (kind == STALL_NONE || !stall_is_due(facts.stalled_ns, seen.reports, report_ns)) {
    return false;
  }
  /* Of a peer that does not answer the connection warns by itself. */
  bool is_warned = kind == STALL_NO_FLOW || kind == STALL_PEER_SILENT;
  report(&seen, now_ns, stall_is_fault(kind) && !is_warned);
  return true;
}

/* ---- summaries at the end ---- */

static double gigabytes(uint64_t bytes) {
  return (double)bytes * 1e-9;
}

static void connection_ending(struct connection *connection, uint64_t now_ns) {
  struct connection_snapshot seen;
  connection_snapshot(connection, now_ns, &seen);
  bool is_uneventful = !seen.link.losses && !seen.checksum_errors && !seen.error;
  LOG_AT(
      is_uneventful ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO,
      "connection %llu %s %s on %s closed after %.1f s: %llu messages, %.3f GB, %llu flow failures "
      "(%llu stalled, %llu slow), %llu chunks failed over, %llu checksum errors",
      (unsigned long long)seen.number, seen.is_sender ? "to" : "from", seen.peer, seen.nic,
      (double)(now_ns - seen.created_ns) * 1e-9, (unsigned long long)seen.completed,
      gigabytes(seen.bytes), (unsigned long long)seen.link.losses,
      (unsigned long long)seen.link.stalls_cut, (unsigned long long)seen.link.slow_reconnects,
      (unsigned long long)seen.link.chunks_requeued, (unsigned long long)seen.checksum_errors);
}

static void summarise(const struct nic *nic) {
  const struct nic_totals *totals = nic_totals_of(nic);
  uint64_t counts[NIC_COUNTER_COUNT];
  for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
    counts[i] = atomic_load_explicit(&totals->counts[i], memory_order_relaxed);
  }
  LOG_INFO("%s: sent %.3f GB, received %.3f GB, %llu connections so far; %llu flow failures, "
           "%llu reconnects of slow flows, %llu chunks failed over, %llu checksum errors",
           nic->name, gigabytes(counts[NIC_BYTES_SENT]), gigabytes(counts[NIC_BYTES_RECEIVED]),
           (unsigned long long)counts[NIC_CONNECTIONS], (unsigned long long)counts[NIC_LOSSES],
           (unsigned long long)counts[NIC_SLOW_RECONNECTS],
           (unsigned long long)counts[NIC_REQUEUED],
           (unsigned long long)counts[NIC_CHECKSUM_ERRORS]);
  if (counts[NIC_CODED_BEFORE] > 0) {
    LOG_INFO("%s: chunks of %.3f GB were compressed to %.3f GB", nic->name,
             gigabytes(counts[NIC_CODED_BEFORE]), gigabytes(counts[NIC_CODED_AFTER]));
  }
}

/* ---- engines ---- */

static void engine_started(struct engine *engine) {
  const char *where;
  int error = stats_socket_open(engine, &where);
  if (!error) {
    LOG_TRACE("statistics of this process for stratus stats: %s", where);
  } else if (error != -EALREADY) {
    LOG_INFO("no statistics of this process for stratus stats: %s: %s%s", where, strerror(-error),
             error == -EPERM ? " (the directory must belong to this user and have mode 0700)" : "");
  }
}

static void engine_stopping(struct engine *engine) {
  stats_socket_close(engine);
  if (engine_shard(engine) == 0) { /* the last engine of the NIC */
    summarise(engine_nic(engine));
  }
}

void observe_start(void) {
  static struct engine_observer observer;
  if (observer.engine_started) {
    return; /* in use by running engines */
  }
  gethostname(host, sizeof host - 1);
  report_ns = param_duration_ns(PARAM_STALL_REPORT);
  uint64_t check_ns = report_ns / OBSERVE_CHECKS_PER_REPORT;
  observer = (struct engine_observer){ engine_started, engine_stopping, connection_waits,
                                       connection_ending,
                                       check_ns < OBSERVE_CHECK_NS ? check_ns : OBSERVE_CHECK_NS };
  engine_observe(&observer);
}
