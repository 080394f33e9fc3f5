/* SPDX-License-Identifier: Apache-2.0 */
/* tuner: one communicator's tuner, for every version of NCCL's interface.
 * Owns: its counters and a share of the process's profile.  Threads: any, also several in one
 * tuner. Blocks: open and close take a lock, and the first open reads the profile; the choices
 * never block.  Fails: cannot; after an error there are no rows. */
#ifndef TUNER_PLUGIN_PLUGIN_TUNER_H
#define TUNER_PLUGIN_PLUGIN_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/decide.h"

struct tuner;

/* Does NCCL send over stratus in this process? NCCL goes on without a net plugin that it cannot
 * load, that finds no NIC, or whose name it has forgotten (2.28.3 to 2.29.7,
 * net_plugin/plugin/default_name.h), and a tuner hears nothing of that. Profiles are measured over
 * stratus. */
enum net_use {
  NET_USE_OTHER,   /* nobody asked for stratus */
  NET_USE_STRATUS, /* the net plugin is loaded, and communicators use it */
  NET_USE_LOST     /* it was asked for or has been in use, and no communicator uses it now */
};

struct tuner_host {
  int abi_version;  /* of the interface in use, 1 to 7 */
  int nccl_version; /* as ncclGetVersion counts: 22203 is 2.22.3; 0: not known */
  enum net_use net; /* what the communicator's data goes over */
};

struct tuner_shape {
  size_t ranks;
  size_t nodes;
  bool is_uneven; /* NCCL reports (v5 to v7) that the number of ranks differs between nodes */
};

/* Makes the tuner of a new communicator. NULL if memory is out: every function below accepts NULL
 * and does nothing. The log sink must be set before. */
struct tuner *tuner_open(struct tuner_host host, struct tuner_shape shape);
void tuner_close(struct tuner *tuner);

/* One collective call, with NCCL's cost table to change (v3 to v7). */
void tuner_choose_by_costs(struct tuner *tuner, int coll, size_t bytes, struct decide_costs costs,
                           int *channels);

/* One collective call, answered by numbers (v2). */
void tuner_choose_by_number(struct tuner *tuner, int coll, size_t bytes, int *algo, int *proto,
                            int *channels);

/* Called from v6 on after all calls of a group have been chosen for. */
void tuner_group_ends(struct tuner *tuner);

/* Calls seen and calls for which the profile chose. */
struct tuner_counts {
  uint64_t calls;
  uint64_t chosen;
};
struct tuner_counts tuner_get_counts(const struct tuner *tuner);

#endif
