/* SPDX-License-Identifier: Apache-2.0 */
/* life_tables: all tables that a release of NCCL takes of both plugins, called in its order.
 * Owns: what it loads, until life_unload.  Threads: the main one.  Blocks: as the plugins do.
 * Fails: ends the process. */
#ifndef TESTS_ABI_LIFE_TABLES_H
#define TESTS_ABI_LIFE_TABLES_H

#include "net_plugin/abi/collnet_abi.h"
#include "tests/abi/net_calls.h"

/* Versions of the interfaces; 0: the release has none, or looks for it elsewhere. */
struct life_release {
  const char *name;
  int net, tuner;
};

struct life {
  const struct life_release *release;
  struct host host;
  void *nccl, *tuner_library; /* the former a stand-in that owns the logger */
  const void *collnet, *tuner;
  nccl_logger_fn *logger;
  int *warnings; /* what it counted */
};

#define LIFE_COLLNET(life, v) ((const struct collnet_v##v *)(life)->collnet)

/* A communicator's contexts. */
struct life_communicator {
  void *net, *tuner;
};

void life_load(struct life *life, const struct life_release *release, const char *net_plugin,
               const char *tuner_plugin, const char *nccl);
/* In NCCL's order, until one fails; the devices of the network. */
enum nccl_result life_begin(const struct life *life, struct life_communicator *communicator,
                            int *devices);
/* Also what did not begin. */
void life_end(const struct life *life, const struct life_communicator *communicator);
/* Each step of set-up fails in turn, and NCCL tears down; how many. */
int life_tear_down(const struct life *life);
/* Both plugins, and then NCCL itself. */
void life_unload(struct life *life);

#endif
