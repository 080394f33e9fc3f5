/* SPDX-License-Identifier: Apache-2.0 */
/* tune_explain: the question and the answer of stratus-tune explain, and how they are shown.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: on files.  Fails: with a message on stderr and CLI_FAILED or CLI_USAGE. */
#ifndef TUNER_PLUGIN_TOOLS_TUNE_EXPLAIN_H
#define TUNER_PLUGIN_TOOLS_TUNE_EXPLAIN_H

#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/model/nccl_model.h"
#include "tuner_plugin/tools/tune.h"

struct explain_question {
  const struct profile *profile; /* NULL: none is asked */
  enum profile_collective collective;
  uint64_t bytes;
  uint32_t nodes;
  uint32_t ppn;
};

/* NCCL's own choice, by its model. */
struct explain_default {
  bool is_known;    /* --nccl or --topology was given */
  bool is_estimate; /* of channels and bandwidths: they are not from NCCL's log */
  struct nccl_topology topology;
  nccl_costs costs;
  struct nccl_cell cell;
  int channels;
};

struct explain_answer {
  struct explain_default usual;
  bool is_chosen; /* the profile's row matches */
  struct decide_row row;
  const struct profile_row *source; /* of the row; NULL: from other numbers of nodes */
  bool is_blind;                    /* NCCL 2.21 would take it too */
  char reason[256];
};

/* Reads the options about NCCL and the machine. */
int explain_find_default(const struct explain_question *question, struct explain_default *usual);

int explain_print(const struct explain_question *question, const struct explain_answer *answer,
                  const char *path);
json_t *explain_json(const struct explain_question *question, const struct explain_answer *answer,
                     const char *path);

#endif
