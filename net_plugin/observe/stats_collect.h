/* SPDX-License-Identifier: Apache-2.0 */
/* stats_collect: writes the statistics of all engines in bounded steps, so that no engine is paused
 * for long, however many connections there are.
 * Owns: the text, until stats_collect_free.  Threads: holder of the lock of `held`.  Blocks: never.
 * Fails: as stated. */
#ifndef NET_PLUGIN_OBSERVE_STATS_COLLECT_H
#define NET_PLUGIN_OBSERVE_STATS_COLLECT_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/observe/stats_json.h"

struct stats_collect {
  FILE *to;    /* NULL: it is complete */
  char *bytes; /* once it is */
  size_t size;
  struct engine *held;
  unsigned engine; /* index of the one being read */
  uint64_t after;  /* its connections up to this number are done */
  bool is_engine_done, has_some;
  bool
      is_truncated; /* STATS_TEXT_MAX_BYTES are there: the rest is left out, and the text says so */
};

/* Writes the facts of the process. `id` tells apart two processes of one number; started_ns: when
 * the first engine was made. -ENOMEM. */
int stats_collect_start(struct stats_collect *collect, struct engine *held, const char *id,
                        uint64_t started_ns);
/* 0: the text is complete; -EINPROGRESS: call again; -EAGAIN: call again a little later; -ENOMEM.
 */
int stats_collect_step(struct stats_collect *collect);
void stats_collect_free(struct stats_collect *collect);

#endif
