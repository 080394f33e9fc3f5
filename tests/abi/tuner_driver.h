/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_driver: plays one release of NCCL against a tuner plugin: opens it, looks its symbols up,
 * makes communicators, asks for collectives.
 * Owns: what it opened, until closed.  Threads: one per communicator.
 * Blocks: no.  Fails: a broken expectation of the driver's own ends the process with a message. */
#ifndef TESTS_ABI_TUNER_DRIVER_H
#define TESTS_ABI_TUNER_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/abi/cases.h"
#include "tuner_plugin/abi/tuner_abi.h"

/* How NCCL counts collectives, algorithms and protocols towards a tuner
 * (src/include/nccl_common.h at v2.30.7-1, 0 to 4 unchanged since v2.19.3-1). */
enum {
  HOST_BROADCAST = 0,
  HOST_REDUCE = 1,
  HOST_ALLGATHER = 2,
  HOST_REDUCESCATTER = 3,
  HOST_ALLREDUCE = 4,
};
enum {
  HOST_TREE = 0,
  HOST_RING = 1,
  HOST_COLLNET_CHAIN = 3,
  HOST_NVLS = 4,
  HOST_PAT = 6,
  HOST_ALGOS_MAX = 7,
};
enum { HOST_LL = 0, HOST_LL128 = 1, HOST_SIMPLE = 2, HOST_PROTOS = 3 };
#define HOST_IGNORE (-1.0f)

struct driver_plugin {
  void *handle;
  void *symbol;
  int abi; /* version of the symbol that was found first */
  /* What v5 to v7 get of NCCL's cost model: nobody can read or write there. NCCL 2.31 hands in what
   * was never set. */
  void *constants;
  nccl_logger_fn *logger; /* handed to communicators: at first cases_log */
};

struct driver_comm {
  const struct driver_plugin *plugin;
  size_t ranks;
  size_t nodes;
  void *context;
  struct tuner_abi_nvl_domain_info nvl;
};

enum { DRIVER_CELLS_MAX = HOST_ALGOS_MAX * HOST_PROTOS, DRIVER_GUARD_WORDS = 16 };
enum { DRIVER_CONSTANTS_BYTES = 4096 }; /* more than ncclTunerConstants of any version */

/* Everything that a tuner may write to, with guards around the cost table. */
struct driver_memory {
  int algo;
  int proto;
  int channels;
  uint32_t before[DRIVER_GUARD_WORDS];
  float costs[DRIVER_CELLS_MAX]; /* a 6x3 table ends earlier and is followed by guard words */
  uint32_t after[DRIVER_GUARD_WORDS];
};

struct driver_call {
  int func; /* HOST_ALLREDUCE and so on, or another number of ncclFunc_t */
  size_t bytes;
  int pipe_ops;
  int is_registered;
};

/* From now on ncclGetVersion answers cases_release; before it fails. */
void driver_tell_release(void);

/* As `release` does. */
void driver_open(struct driver_plugin *plugin, const struct release *release);
void driver_close(struct driver_plugin *plugin);
const char *driver_name(const struct driver_plugin *plugin);

enum nccl_result driver_init_comm(struct driver_comm *comm, const struct driver_plugin *plugin,
                                  size_t ranks, size_t nodes);
/* getCollInfo, and from v6 on for a chunk that no row changes. */
enum nccl_result driver_ask(struct driver_comm *comm, struct driver_call call,
                            struct driver_memory *memory);
/* Also checks that the NVLink facts that v5 to v7 hand in were left alone. */
void driver_close_comm(struct driver_comm *comm);

/* What NCCL would run after the call: the first cheapest cell of its table; false if none. */
bool driver_select(const float *costs, int algos, int *algo, int *proto);

/* Takes away what this machine and the caller's environment could decide, and makes a scratch
 * directory; before the plugin is opened, since it reads its parameters once. */
void driver_isolate(void);
void driver_remove_scratch(void);
/* Writes test.profile there, with ' for ", and points STRATUS_PROFILE to it. */
void driver_write_profile(const char *text);

#endif
