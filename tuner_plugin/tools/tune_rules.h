/* SPDX-License-Identifier: Apache-2.0 */
/* tune_rules: the rules in the CSV file that NCCL's example tuner reads (plugins/tuner/example at
 * v2.30.7), or that its optimize_config.py and spreadsheets write:
 *
 *   collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks[,pipe_ops[,registered]]
 *
 * A rule that is wrong is left out, with a message that has its place; a heading in another order
 * refuses the file, as all its rules would be read wrong.
 * Owns: the rules.  Threads: the main thread.
 * Blocks: on the file.  Fails: CLI_FAILED after a message. */
#ifndef TUNER_PLUGIN_TOOLS_TUNE_RULES_H
#define TUNER_PLUGIN_TOOLS_TUNE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile_scan.h"

enum { TUNE_RULES_MAX = 2000, TUNE_SHAPES_MAX = 256, TUNE_RULE_ANY = -1 };

struct tune_rule {
  enum profile_collective collective;
  struct profile_row row; /* bytes_hi is the first size beyond it */
  bool is_open;           /* where no other rule matches, also of all sizes beyond */
  int64_t nodes, ranks;   /* TUNE_RULE_ANY */
  int line;
};

struct tune_shape {
  uint32_t nodes, ranks;
};

struct tune_rules {
  struct scan scan;
  struct profile_error error;
  struct tune_rule *rules;
  size_t count;
  struct tune_shape shapes[TUNE_SHAPES_MAX]; /* those that rules name */
  size_t shape_count;
  size_t wrong;                 /* rules that were left out after a message */
  size_t conditional;           /* and those that depend on what ranks may differ in */
  int first_conditional;        /* its line */
  bool is_refused;              /* no rule can be read right */
  bool has_line;                /* that is no comment */
  bool shall_ignore_conditions; /* by the caller */
};

/* Reads the file into an empty struct; free it in any case. */
int tune_rules_read(struct tune_rules *rules, const char *path);
void tune_rules_free(struct tune_rules *rules);

/* Adds the shape, unless it is there. Negative: it cannot be, and the struct's error says why. */
int tune_rules_add_shape(struct tune_rules *rules, const char *at, int64_t nodes, int64_t ranks);

/* Whether the rule is for that shape. */
bool tune_rule_is_for(const struct tune_rule *rule, struct tune_shape shape);

#endif
