/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune import: a profile of the CSV file that NCCL's example tuner reads:
 *
 *   collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks[,pipe_ops[,registered]]
 *
 * There the first rule that matches a call applies, -1 means any, and both sizes are inclusive
 * (plugins/tuner/example/plugin.c at v2.28.9). Here a table is for one shape and its rows do not
 * overlap, so the rules are evaluated for each shape that the file or the options name. A rule
 * without a number of channels forces one channel in the example; here NCCL's own number is used.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/profile_scan.h"
#include "common/profile_schema.h"
#include "tuner_plugin/tools/tune.h"

struct tune_import_options tune_import_options;

enum { FIELDS_LEAST = 8, FIELDS_MOST = 10, RULES_MAX = 2000, SHAPES_MAX = 256, ANY = -1 };
/* The largest size that the example's documents name; it reads no larger one. */
#define LARGEST_BYTES UINT64_C(4294967295)

struct rule {
  enum profile_collective collective;
  struct profile_row row; /* bytes_hi is the first size beyond it */
  int64_t nodes, ranks;   /* ANY */
};

struct shape {
  uint32_t nodes, ranks;
};

struct import {
  struct scan scan;
  struct profile_error error;
  struct rule *rules;
  size_t rule_count;
  struct shape shapes[SHAPES_MAX];
  size_t shape_count;
  size_t passed_over; /* rules */
  bool has_wildcard;
};

/* ---- one line ---- */

/* The names with underscores, as the example has them. */
static int take_name(struct import *import, struct scan_span word, const char *what,
                     const char *const *names, int *place) {
  char bare[SCAN_TOKEN_MAX];
  size_t length = 0;
  for (size_t i = 0; i < word.length && length < sizeof bare - 1; i++) {
    if (word.at[i] != '_') {
      bare[length++] = word.at[i];
    }
  }
  bare[length] = '\0';
  for (int i = 0; names[i]; i++) {
    if (strcasecmp(bare, names[i]) == 0) {
      *place = i;
      return 0;
    }
  }
  return scan_word(&import->scan, word, what, names, place);
}

/* -1 is ANY. */
static int take_number(struct import *import, struct scan_span word, const char *what,
                       uint64_t high, int64_t *number) {
  char text[SCAN_TOKEN_MAX];
  if (!scan_copy(word, text, sizeof text) || quantity_parse_int(text, number) != 0 ||
      *number < ANY || (*number > 0 && (uint64_t)*number > high)) {
    return scan_fail(&import->scan, word.at,
                     "%s takes a number up to %" PRIu64 ", or -1 for any, not \"%.*s\"", what, high,
                     SCAN_ARGS(word));
  }
  return 0;
}

static int add_shape(struct import *import, struct scan_span at, int64_t nodes, int64_t ranks) {
  for (size_t i = 0; i < import->shape_count; i++) {
    if (import->shapes[i].nodes == nodes && import->shapes[i].ranks == ranks) {
      return 0;
    }
  }
  if (nodes == 0 || ranks % nodes != 0 || ranks == 0) {
    return scan_fail(&import->scan, at.at,
                     "%" PRId64 " ranks cannot be spread evenly over %" PRId64 " nodes", ranks,
                     nodes);
  }
  if (import->shape_count == SHAPES_MAX) {
    return scan_fail(&import->scan, at.at, "more than %d combinations of nodes and ranks",
                     SHAPES_MAX);
  }
  import->shapes[import->shape_count++] = (struct shape){ (uint32_t)nodes, (uint32_t)ranks };
  return 0;
}

/* Returns how many there are. */
static int split(struct scan_span line, struct scan_span fields[FIELDS_MOST + 1]) {
  int count = 0;
  for (size_t start = 0; count <= FIELDS_MOST; count++) {
    const char *comma = memchr(line.at + start, ',', line.length - start);
    size_t end = comma ? (size_t)(comma - line.at) : line.length;
    fields[count] = scan_trim((struct scan_span){ line.at + start, end - start });
    if (!comma) {
      return count + 1;
    }
    start = end + 1;
  }
  return count;
}

static int take_sizes(struct import *import, const struct scan_span *fields,
                      struct profile_row *row) {
  int64_t low, high;
  int result = take_number(import, fields[1], "min_bytes", INT64_MAX, &low);
  result = result == 0 ? take_number(import, fields[2], "max_bytes", INT64_MAX, &high) : result;
  if (result < 0) {
    return result;
  }
  row->bytes_lo = low == ANY ? 0 : (uint64_t)low;
  row->bytes_hi = high == ANY || (uint64_t)high >= LARGEST_BYTES ? UINT64_MAX : (uint64_t)high + 1;
  return row->bytes_hi > row->bytes_lo
             ? 0
             : scan_fail(&import->scan, fields[2].at, "max_bytes is below min_bytes");
}

/* Pipelined operations and registered buffers may differ between ranks, so nothing may depend on
 * them. */
static int find_local_condition(struct import *import, const struct scan_span *fields, int count,
                                bool *has_condition) {
  *has_condition = false;
  for (int i = FIELDS_LEAST; i < count; i++) {
    int64_t number;
    int result =
        take_number(import, fields[i], i == 8 ? "pipe_ops" : "registered", INT32_MAX, &number);
    if (result < 0) {
      return result;
    }
    *has_condition |= number != ANY;
  }
  return 0;
}

static int take_rule(struct import *import, const struct scan_span *fields, int count) {
  struct rule rule = { .row = { 0 } };
  int collective = 0, algorithm = 0, protocol = 0;
  int64_t channels = 0;
  bool has_condition = false;
  int result = take_name(import, fields[0], "collective", profile_collective_names, &collective);
  result = result == 0 ? take_sizes(import, fields, &rule.row) : result;
  result = result == 0
               ? take_name(import, fields[3], "algorithm", profile_algorithm_names, &algorithm)
               : result;
  result = result == 0 ? take_name(import, fields[4], "protocol", profile_protocol_names, &protocol)
                       : result;
  result = result == 0 ? take_number(import, fields[5], "channels", PROFILE_CHANNELS_MAX, &channels)
                       : result;
  result = result == 0 ? take_number(import, fields[6], "nodes", PROFILE_NODES_MAX, &rule.nodes)
                       : result;
  result = result == 0 ? take_number(import, fields[7], "ranks", PROFILE_NODES_MAX, &rule.ranks)
                       : result;
  result = result == 0 ? find_local_condition(import, fields, count, &has_condition) : result;
  if (result < 0) {
    return result;
  }
  if (has_condition) {
    import->passed_over++;
    return 0;
  }
  rule.collective = (enum profile_collective)collective;
  rule.row.algorithm = (enum profile_algorithm)algorithm;
  rule.row.protocol = (enum profile_protocol)protocol;
  rule.row.channels = channels == ANY ? 0 : (uint32_t)channels;
  if (rule.nodes == ANY || rule.ranks == ANY) {
    import->has_wildcard = true;
  } else {
    result = add_shape(import, fields[6], rule.nodes, rule.ranks);
  }
  if (import->rule_count == RULES_MAX) {
    return scan_fail(&import->scan, NULL, "more than %d rules", RULES_MAX);
  }
  import->rules[import->rule_count++] = rule;
  return result;
}

static int take_line(struct import *import, char *text) {
  struct scan_span fields[FIELDS_MOST + 1];
  struct scan_span line = { text, strcspn(text, "\r\n") };
  import->scan.line_start = text;
  import->scan.line++;
  line = scan_trim(line);
  if (line.length == 0 || line.at[0] == '#') {
    return 0;
  }
  int count = split(line, fields);
  if (count < FIELDS_LEAST || count > FIELDS_MOST) {
    return scan_fail(&import->scan, line.at,
                     "a rule has %d to %d fields: collective,min_bytes,max_bytes,algorithm,"
                     "protocol,channels,nodes,ranks[,pipe_ops[,registered]]",
                     FIELDS_LEAST, FIELDS_MOST);
  }
  return take_rule(import, fields, count);
}

static int read_rules(struct import *import, const char *path) {
  FILE *file = fopen(path, "r");
  char line[1024];
  int result = 0;
  snprintf(import->error.path, sizeof import->error.path, "%s", path);
  if (!file) {
    return cli_fail("%s: %s", path, strerror(errno));
  }
  while (result == 0 && fgets(line, sizeof line, file)) {
    if (!strchr(line, '\n') && !feof(file)) {
      import->scan.line++;
      result = scan_fail(&import->scan, NULL, "the line is longer than %zu bytes", sizeof line - 2);
    } else {
      result = take_line(import, line);
    }
  }
  fclose(file);
  if (result < 0) {
    char text[sizeof import->error];
    return cli_fail("%s", profile_error_format(&import->error, text, sizeof text));
  }
  return CLI_OK;
}

/* ---- rules -> tables ---- */

/* The first rule for a call of this size, and the next size at which it may be another one. */
static const struct rule *find_rule(const struct import *import, struct shape shape,
                                    enum profile_collective collective, uint64_t bytes,
                                    uint64_t *until) {
  const struct rule *found = NULL;
  *until = UINT64_MAX;
  for (size_t i = 0; i < import->rule_count; i++) {
    const struct rule *rule = &import->rules[i];
    if (rule->collective != collective || (rule->nodes != ANY && rule->nodes != shape.nodes) ||
        (rule->ranks != ANY && rule->ranks != shape.ranks)) {
      continue;
    }
    if (rule->row.bytes_lo > bytes) {
      *until = rule->row.bytes_lo < *until ? rule->row.bytes_lo : *until;
    } else if (rule->row.bytes_hi > bytes) {
      *until = rule->row.bytes_hi < *until ? rule->row.bytes_hi : *until;
      return rule;
    }
  }
  return found;
}

static bool is_continued(const struct profile_row *row, const struct profile_row *next) {
  return row->bytes_hi == next->bytes_lo && row->algorithm == next->algorithm &&
         row->protocol == next->protocol && row->channels == next->channels;
}

static int make_table(const struct import *import, struct shape shape,
                      enum profile_collective collective, struct profile *profile) {
  struct profile_table table = {
    .collective = collective,
    .nodes = shape.nodes,
    .ppn = shape.ranks / shape.nodes,
    .rows = calloc(2 * import->rule_count + 1, sizeof *table.rows),
  };
  if (!table.rows) {
    return -ENOMEM;
  }
  uint64_t until;
  for (uint64_t bytes = 0; bytes != UINT64_MAX; bytes = until) {
    const struct rule *rule = find_rule(import, shape, collective, bytes, &until);
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

static int make_profile(const struct import *import, const char *path, struct profile *profile) {
  *profile = (struct profile){ 0 };
  fill_meta(path, &profile->meta);
  profile->tables =
      calloc(import->shape_count * PROFILE_COLLECTIVE_COUNT + 1, sizeof *profile->tables);
  int error = profile->tables ? 0 : -ENOMEM;
  for (size_t i = 0; i < import->shape_count && !error; i++) {
    for (int collective = 0; collective < PROFILE_COLLECTIVE_COUNT && !error; collective++) {
      error = make_table(import, import->shapes[i], (enum profile_collective)collective, profile);
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

static int check_shapes(struct import *import, const char *path) {
  const struct tune_import_options *o = &tune_import_options;
  if (o->nodes > 0 && o->ppn > 0) {
    add_shape(import, (struct scan_span){ import->scan.line_start, 0 }, o->nodes,
              o->nodes * o->ppn);
  }
  if (import->rule_count == 0) {
    return cli_fail("%s has no rule that could be imported", path);
  }
  if (import->shape_count == 0) {
    return cli_fail("no rule of %s names both nodes and ranks: give the shape that they apply to, "
                    "with --nodes and --ppn",
                    path);
  }
  if (import->has_wildcard) {
    fprintf(stderr,
            "stratus-tune: %zu rules for any number of nodes or ranks are applied to the named "
            "combinations only\n",
            import->shape_count);
  }
  if (import->passed_over) {
    fprintf(stderr,
            "stratus-tune: %zu rules are ignored: they depend on pipe_ops or registered, which may "
            "differ between ranks\n",
            import->passed_over);
  }
  return CLI_OK;
}

int tune_import(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)is_json;
  static struct import import; /* too large for the stack */
  struct profile profile = { 0 };
  memset(&import, 0, sizeof import);
  import.scan.error = &import.error;
  import.rules = calloc(RULES_MAX, sizeof *import.rules);
  int status = import.rules ? read_rules(&import, arguments[0]) : cli_fail("out of memory");
  status = status == CLI_OK ? check_shapes(&import, arguments[0]) : status;
  status = status == CLI_OK ? make_profile(&import, arguments[0], &profile) : status;
  status = status == CLI_OK ? tune_write(&profile, tune_import_options.out) : status;
  profile_free(&profile);
  free(import.rules);
  return status;
}
