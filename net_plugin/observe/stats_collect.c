/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_collect.h. */
#include "net_plugin/observe/stats_collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/observe/limits.h"

static const char *find_rank(void) {
  static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                       "SLURM_PROCID" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value && *value && strlen(value) < 16 && strspn(value, "0123456789") == strlen(value)) {
      return value;
    }
  }
  return "";
}

int stats_collect_start(struct stats_collect *collect, struct engine *held, const char *id,
                        uint64_t started_ns) {
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  const struct stats_process process = {
    .pid = (int)getpid(),
    .id = id,
    .host = host,
    .rank = find_rank(),
    .uptime_ns = clock_now_ns() - started_ns,
  };
  *collect = (struct stats_collect){ .held = held };
  collect->to = open_memstream(&collect->bytes, &collect->size);
  if (!collect->to) {
    return -ENOMEM;
  }
  stats_json_begin(collect->to, &process);
  return 0;
}

static bool has_room(struct stats_collect *collect) {
  collect->is_truncated |= ftello(collect->to) > STATS_TEXT_MAX_BYTES;
  return !collect->is_truncated;
}

static void take_connection(struct stats_collect *collect, struct engine *engine,
                            struct connection *connection, uint64_t now_ns) {
  struct connection_snapshot seen;
  const struct stats_engine its = { engine_shard(engine), engine_is_polled(engine),
                                    engine_policy_shared(engine)->compression };
  connection_snapshot(connection, now_ns, &seen);
  if (!has_room(collect)) {
    return;
  }
  stats_json_connection(collect->to, &seen, &its, now_ns, !collect->has_some);
  collect->has_some = true;
  bool has_flow = false;
  for (unsigned i = 0; i < seen.lanes; i++) {
    struct lane_snapshot flow;
    connection_snapshot_lane(connection, i, &flow);  /* also updates the totals of the NIC */
    if (flow.link.epoch != 0 && has_room(collect)) { /* else it was never opened */
      stats_json_flow(collect->to, &flow, !has_flow);
      has_flow = true;
    }
  }
  stats_json_connection_end(collect->to);
}

static void take_some(struct engine *engine, void *argument) {
  struct stats_collect *collect = argument;
  uint64_t now_ns = clock_now_ns();
  unsigned flows = 0;
  struct connection *connection = NULL;
  while (flows < STATS_FLOWS_PER_STEP && (connection = connection_next(engine, connection))) {
    if (connection_number(connection) > collect->after) {
      take_connection(collect, engine, connection, now_ns);
      collect->after = connection_number(connection);
      flows += connection_lane_count(connection);
    }
  }
  collect->is_engine_done = !connection;
}

/* False: memory was out. */
static bool end_text(struct stats_collect *collect) {
  bool is_good = !ferror(collect->to);
  is_good = fclose(collect->to) == 0 && is_good;
  collect->to = NULL;
  return is_good;
}

int stats_collect_step(struct stats_collect *collect) {
  int error = engine_try_visit(collect->held, collect->engine, take_some, collect);
  if (error == -ENOENT) {
    stats_json_end(collect->to, collect->is_truncated);
    return end_text(collect) ? 0 : -ENOMEM;
  }
  if (!error && collect->is_engine_done) {
    collect->engine++;
    collect->after = 0;
  }
  return error ? error : -EINPROGRESS;
}

void stats_collect_free(struct stats_collect *collect) {
  if (collect->to) {
    end_text(collect);
  }
  free(collect->bytes);
  *collect = (struct stats_collect){ 0 };
}
