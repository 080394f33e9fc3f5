/* SPDX-License-Identifier: Apache-2.0 */
/* stats_collect: fills a document from the engines in bounded steps, so that no engine is paused
 * for long, however many connections there are.
 * Owns: nothing.  Threads: holder of the lock of `held`.  Blocks: never.  Fails: as stated. */
#ifndef NET_PLUGIN_OBSERVE_STATS_COLLECT_H
#define NET_PLUGIN_OBSERVE_STATS_COLLECT_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/observe/stats_document.h"

struct stats_collect {
  struct stats_document *document;
  struct engine *held;
  unsigned engine; /* index of the one being read */
  uint64_t after;  /* its connections up to this number are done */
  bool is_engine_done;
};

/* Fills in the facts of the process. started_ns: when its first engine was made. */
void stats_collect_start(struct stats_collect *collect, struct stats_document *document,
                         struct engine *held, uint64_t started_ns);
/* 0: the document is complete; -EINPROGRESS: call again; -EAGAIN: call again a little later. */
int stats_collect_step(struct stats_collect *collect);

#endif
