/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune import: a profile of the CSV file that NCCL's example tuner reads (tune_rules.h).
 *
 * There the first rule that matches a call applies, -1 means any, and both sizes are inclusive
 * (plugins/tuner/example/plugin.c at v2.30.7). Here a table is for one shape and its rows do not
 * overlap, so the rules are evaluated for each shape that the file or the options name. A rule
 * without a number of channels forces one channel in the example; here NCCL's own number is used.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tuner_plugin/tools/tune.h"
#include "tuner_plugin/tools/tune_rules.h"

static struct {
  const char *out; /* NULL: stdout */
  int64_t nodes;   /* 0: not given */
  int64_t ppn;
  bool shall_ignore_conditions;
} options;

static const struct cli_option option_rows[] = {
  { "output", 'o', CLI_STRING, &options.out, "FILE", "write the profile to it", 0, 0 },
  { "nodes", 'n', CLI_INT, &options.nodes, "COUNT",
    "with --ppn: apply rules for any number of nodes or ranks to this number as well", 1, 1000000 },
  { "ppn", 'r', CLI_INT, &options.ppn, "COUNT", "ranks on each node", 1, 1024 },
  { "ignore-conditions", 0, CLI_FLAG, &options.shall_ignore_conditions, NULL,
    "take rules that depend on pipe_ops or registered for all calls", 0, 0 },
  { 0 },
};

/* ---- rules -> tables ---- */

/* The first rule for a call of this size, and the next size at which it may be another one. */
static const struct tune_rule *find_rule(const struct tune_rules *rules, struct tune_shape shape,
                                         enum profile_collective collective, uint64_t bytes,
                                         uint64_t *until) {
  const struct tune_rule *open = NULL;
  *until = UINT64_MAX;
  for (size_t i = 0; i < rules->count; i++) {
    const struct tune_rule *rule = &rules->rules[i];
    if (rule->collective != collective || !tune_rule_is_for(rule, shape)) {
      continue;
    }
    if (rule->row.bytes_lo > bytes) {
      *until = rule->row.bytes_lo < *until ? rule->row.bytes_lo : *until;
    } else if (rule->row.bytes_hi > bytes) {
      *until = rule->row.bytes_hi < *until ? rule->row.bytes_hi : *until;
      return rule;
    } else if (rule->is_open && !open) {
      open = rule;
    }
  }
  return open;
}

static bool is_continued(const struct profile_row *row, const struct profile_row *next) {
  return row->bytes_hi == next->bytes_lo && row->algorithm == next->algorithm &&
         row->protocol == next->protocol && row->channels == next->channels;
}

static int make_table(const struct tune_rules *rules, struct tune_shape shape,
                      enum profile_collective collective, struct profile *profile) {
  struct profile_table table = {
    .collective = collective,
    .nodes = shape.nodes,
    .ppn = shape.ranks / shape.nodes,
    .rows = calloc(2 * rules->count + 1, sizeof *table.rows),
  };
  if (!table.rows) {
    return -ENOMEM;
  }
  uint64_t until;
  for (uint64_t bytes = 0; bytes != UINT64_MAX; bytes = until) {
    const struct tune_rule *rule = find_rule(rules, shape, collective, bytes, &until);
    if (!rule) {
      continue;
    }
    struct profile_row row = rule->row;
    row.bytes_lo = bytes;
    row.bytes_hi = until;
    if (table.row_count > 0 && is_continued(&table.rows[table.row_count - 1], &row)) {
      table.rows[table.row_count - 1].bytes_hi = until;
    } else {
      table.rows[table.row_count++] = row;
    }
  }
  if (table.row_count == 0) {
    free(table.rows);
    return 0;
  }
  struct profile_row *rows = realloc(table.rows, table.row_count * sizeof *rows);
  table.rows = rows ? rows : table.rows;
  profile->tables[profile->table_count++] = table;
  return 0;
}

static void fill_meta(const char *path, struct profile_meta *meta) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  time_t now = time(NULL);
  snprintf(meta->id, sizeof meta->id, "imported-%.*s", (int)strcspn(name, "."), name);
  for (char *c = meta->id; *c; c++) {
    if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", *c)) {
      *c = '-';
    }
  }
  strftime(meta->created, sizeof meta->created, "%Y-%m-%d", gmtime(&now));
  snprintf(meta->source, sizeof meta->source, "rules for NCCL's example tuner, not measured here");
}

static int make_profile(const struct tune_rules *rules, const char *path, struct profile *profile) {
  *profile = (struct profile){ 0 };
  fill_meta(path, &profile->meta);
  profile->tables =
      calloc(rules->shape_count * PROFILE_COLLECTIVE_COUNT + 1, sizeof *profile->tables);
  int error = profile->tables ? 0 : -ENOMEM;
  for (size_t i = 0; i < rules->shape_count && !error; i++) {
    for (int collective = 0; collective < PROFILE_COLLECTIVE_COUNT && !error; collective++) {
      error = make_table(rules, rules->shapes[i], (enum profile_collective)collective, profile);
    }
  }
  if (error) {
    return cli_fail("%s", strerror(-error));
  }
  return profile->table_count > 0
             ? CLI_OK
             : cli_fail("no rule of %s applies to any of the named numbers of nodes and ranks",
                        path);
}

/* ---- the command ---- */

static const char *plural(size_t count) {
  return count == 1 ? "" : "s";
}

enum { COUNT_TEXT_MAX = 24 };
static const char *count_text(int64_t count, char text[COUNT_TEXT_MAX]) {
  if (count == TUNE_RULE_ANY) {
    return "any number of";
  }
  snprintf(text, COUNT_TEXT_MAX, "%" PRId64, count);
  return text;
}

/* What holds for any number is evaluated for the shapes only that somebody names. */
static void tell_wildcards(const struct tune_rules *rules, const char *path) {
  size_t applied = 0;
  for (size_t i = 0; i < rules->count; i++) {
    const struct tune_rule *rule = &rules->rules[i];
    bool is_for_one = false;
    for (size_t j = 0; j < rules->shape_count; j++) {
      is_for_one = is_for_one || tune_rule_is_for(rule, rules->shapes[j]);
    }
    applied += is_for_one && (rule->nodes == TUNE_RULE_ANY || rule->ranks == TUNE_RULE_ANY);
    if (!is_for_one) {
      char nodes[COUNT_TEXT_MAX], ranks[COUNT_TEXT_MAX];
      cli_fail("%s:%d: the rule is left out: no such combination as its %s nodes and %s ranks is "
               "named by another rule; give one with --nodes and --ppn",
               path, rule->line, count_text(rule->nodes, nodes), count_text(rule->ranks, ranks));
    }
  }
  if (applied > 0) {
    fprintf(stderr,
            "stratus-tune: %zu rule%s for any number of nodes or ranks %s applied to the named "
            "combinations only\n",
            applied, plural(applied), applied == 1 ? "is" : "are");
  }
}

static int check_rules(struct tune_rules *rules, const char *path) {
  if (rules->conditional > 0) {
    cli_fail("%s:%d: %zu rule%s left out, this one first: pipe_ops and registered may differ "
             "between ranks, so no profile can depend on them; --ignore-conditions takes such "
             "rules for all calls",
             path, rules->first_conditional, rules->conditional,
             rules->conditional == 1 ? " is" : "s are");
  }
  if (rules->count == 0) {
    return cli_fail("%s has no rule that could be imported", path);
  }
  if (options.nodes > 0 && options.ppn > 0 &&
      tune_rules_add_shape(rules, NULL, options.nodes, options.nodes * options.ppn) < 0) {
    return cli_fail("%s: %s", path, rules->error.text);
  }
  if (rules->shape_count == 0) {
    return cli_fail("no rule of %s names both nodes and ranks: give the shape that they apply to, "
                    "with --nodes and --ppn",
                    path);
  }
  tell_wildcards(rules, path);
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)is_json;
  static struct tune_rules rules; /* too large for the stack */
  struct profile profile = { 0 };
  memset(&rules, 0, sizeof rules);
  rules.shall_ignore_conditions = options.shall_ignore_conditions;
  int status = tune_rules_read(&rules, arguments[0]);
  status = status == CLI_OK ? check_rules(&rules, arguments[0]) : status;
  status = status == CLI_OK ? make_profile(&rules, arguments[0], &profile) : status;
  status = status == CLI_OK ? tune_write(&profile, options.out) : status;
  profile_free(&profile);
  tune_rules_free(&rules);
  return status;
}

const struct cli_command tune_import = {
  .name = "import",
  .summary = "make a profile from the CSV file of NCCL's example tuner",
  .arguments = "FILE.csv",
  .min_arguments = 1,
  .max_arguments = 1,
  .example = "stratus-tune import tuner_plugin/profiles/example.csv",
  .options = option_rows,
  .run = run,
};
