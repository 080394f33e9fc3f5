/* SPDX-License-Identifier: Apache-2.0 */
/* See tune_rules.h. */
#include "tuner_plugin/tools/tune_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cli.h"
#include "common/profile_schema.h"
#include "common/quantity.h"

enum { FIELDS_LEAST = 8, FIELDS_MOST = 10, MESSAGES_MAX = 8, LINE_MAX_BYTES = 1022 };
/* What the example's documents name for all sizes. In its code it is the size that it is, so other
 * rules may begin behind it. */
#define ALL_SIZES UINT64_C(4294967295)

/* As the example's documents and its optimize_config.py call them, without underscores. */
static const char *const headings[FIELDS_MOST][4] = {
  { "collectivetype", "collective", "colltype" },
  { "minbytes" },
  { "maxbytes" },
  { "algorithm", "algo" },
  { "protocol", "proto" },
  { "channels", "nchannels" },
  { "nnodes", "nodes" },
  { "nranks", "ranks" },
  { "numpipeops", "pipeops" },
  { "regbuff", "registered" },
};

/* ---- fields ---- */

/* Without underscores, as the example has them in some names and we do not. */
static void copy_bare(struct scan_span word, char bare[SCAN_TOKEN_MAX]) {
  size_t length = 0;
  for (size_t i = 0; i < word.length && length < SCAN_TOKEN_MAX - 1; i++) {
    if (word.at[i] != '_') {
      bare[length++] = word.at[i];
    }
  }
  bare[length] = '\0';
}

static int take_name(struct tune_rules *rules, struct scan_span word, const char *what,
                     const char *const *names, int *place) {
  char bare[SCAN_TOKEN_MAX];
  copy_bare(word, bare);
  for (int i = 0; names[i]; i++) {
    if (strcasecmp(bare, names[i]) == 0) {
      *place = i;
      return 0;
    }
  }
  *place = scan_word(&rules->scan, word, what, names);
  return scan_status(&rules->scan);
}

/* -1 is TUNE_RULE_ANY. */
static int take_number(struct tune_rules *rules, struct scan_span word, const char *what,
                       uint64_t high, int64_t *number) {
  char text[SCAN_TOKEN_MAX];
  if (!scan_copy(word, text, sizeof text) || quantity_parse_int(text, number) != 0 ||
      *number < TUNE_RULE_ANY || (*number > 0 && (uint64_t)*number > high)) {
    return scan_fail(&rules->scan, word.at,
                     "%s takes a number up to %" PRIu64 ", or -1 for any, not \"%.*s\"", what, high,
                     SCAN_ARGS(word));
  }
  return 0;
}

/* -1, and as C has it the largest number of 64 bits, is `any`. */
static int take_bytes(struct tune_rules *rules, struct scan_span word, const char *what,
                      uint64_t any, uint64_t *bytes) {
  int64_t number;
  if (scan_is(word, "18446744073709551615")) {
    *bytes = any;
    return 0;
  }
  int result = take_number(rules, word, what, INT64_MAX, &number);
  *bytes = result == 0 && number != TUNE_RULE_ANY ? (uint64_t)number : any;
  return result;
}

static int take_sizes(struct tune_rules *rules, const struct scan_span *fields,
                      struct tune_rule *rule) {
  uint64_t low, high;
  if (take_bytes(rules, fields[1], "min_bytes", 0, &low) < 0 ||
      take_bytes(rules, fields[2], "max_bytes", UINT64_MAX, &high) < 0) {
    return -EINVAL;
  }
  rule->is_open = high == ALL_SIZES;
  rule->row.bytes_lo = low;
  rule->row.bytes_hi = high == UINT64_MAX || (rule->is_open && low > high) ? UINT64_MAX : high + 1;
  return rule->row.bytes_hi > low
             ? 0
             : scan_fail(&rules->scan, fields[2].at, "max_bytes is below min_bytes");
}

/* Takes the quotes off that spreadsheets put on. */
static struct scan_span bare_field(const char *at, size_t length) {
  struct scan_span field = scan_trim((struct scan_span){ at, length });
  if (field.length >= 2 && field.at[0] == '"' && field.at[field.length - 1] == '"') {
    field = scan_trim((struct scan_span){ field.at + 1, field.length - 2 });
  }
  return field;
}

/* Returns how many there are, without the empty ones at the end; spreadsheets add those, too. */
static int split(struct scan_span line, struct scan_span fields[FIELDS_MOST]) {
  int count = 0, last = 0;
  for (size_t start = 0;; count++) {
    const char *comma = memchr(line.at + start, ',', line.length - start);
    size_t end = comma ? (size_t)(comma - line.at) : line.length;
    struct scan_span field = bare_field(line.at + start, end - start);
    last = field.length > 0 ? count + 1 : last;
    if (count < FIELDS_MOST) {
      fields[count] = field;
    }
    if (!comma) {
      return last;
    }
    start = end + 1;
  }
}

/* ---- one rule ---- */

int tune_rules_add_shape(struct tune_rules *rules, const char *at, int64_t nodes, int64_t ranks) {
  for (size_t i = 0; i < rules->shape_count; i++) {
    if (rules->shapes[i].nodes == nodes && rules->shapes[i].ranks == ranks) {
      return 0;
    }
  }
  if (nodes <= 0 || ranks <= 0 || ranks % nodes != 0) {
    return scan_fail(&rules->scan, at,
                     "%" PRId64 " ranks cannot be spread evenly over %" PRId64
                     " nodes: profiles are for jobs with as many ranks on each node",
                     ranks, nodes);
  }
  if (rules->shape_count == TUNE_SHAPES_MAX) {
    return scan_fail(&rules->scan, at, "more than %d combinations of nodes and ranks",
                     TUNE_SHAPES_MAX);
  }
  rules->shapes[rules->shape_count++] = (struct tune_shape){ (uint32_t)nodes, (uint32_t)ranks };
  return 0;
}

/* Pipelined operations and registered buffers may differ between ranks, so nothing may depend on
 * them. Both may be missing or empty. */
static int find_condition(struct tune_rules *rules, const struct scan_span *fields, int count,
                          bool *has_condition) {
  static const char *const names[] = { "pipe_ops", "registered" };
  *has_condition = false;
  for (int i = FIELDS_LEAST; i < count; i++) {
    int64_t number = TUNE_RULE_ANY;
    if (fields[i].length > 0 &&
        take_number(rules, fields[i], names[i - FIELDS_LEAST], INT32_MAX, &number) < 0) {
      return -EINVAL;
    }
    *has_condition |= number != TUNE_RULE_ANY;
  }
  return 0;
}

/* All fields but the conditions. */
static int take_fields(struct tune_rules *rules, const struct scan_span *fields,
                       struct tune_rule *rule) {
  int collective, algorithm, protocol;
  int64_t channels;
  if (take_name(rules, fields[0], "collective", profile_collective_names, &collective) < 0 ||
      take_sizes(rules, fields, rule) < 0 ||
      take_name(rules, fields[3], "algorithm", profile_algorithm_names, &algorithm) < 0 ||
      take_name(rules, fields[4], "protocol", profile_protocol_names, &protocol) < 0 ||
      take_number(rules, fields[5], "channels", PROFILE_CHANNELS_MAX, &channels) < 0 ||
      take_number(rules, fields[6], "nodes", PROFILE_NODES_MAX, &rule->nodes) < 0 ||
      take_number(rules, fields[7], "ranks", PROFILE_NODES_MAX, &rule->ranks) < 0) {
    return -EINVAL;
  }
  rule->collective = (enum profile_collective)collective;
  rule->row.algorithm = (enum profile_algorithm)algorithm;
  rule->row.protocol = (enum profile_protocol)protocol;
  rule->row.channels = channels == TUNE_RULE_ANY ? 0 : (uint32_t)channels;
  return 0;
}

static int take_rule(struct tune_rules *rules, const struct scan_span *fields, int count) {
  struct tune_rule rule = { .line = rules->scan.line };
  bool has_condition;
  if (take_fields(rules, fields, &rule) < 0 ||
      find_condition(rules, fields, count, &has_condition) < 0) {
    return -EINVAL;
  }
  if (has_condition && !rules->shall_ignore_conditions) {
    rules->first_conditional = rules->conditional++ ? rules->first_conditional : rule.line;
    return 0;
  }
  if (rule.nodes != TUNE_RULE_ANY && rule.ranks != TUNE_RULE_ANY &&
      tune_rules_add_shape(rules, fields[6].at, rule.nodes, rule.ranks) < 0) {
    return -EINVAL;
  }
  if (rules->count == TUNE_RULES_MAX) {
    return scan_fail(&rules->scan, NULL, "more than %d rules", TUNE_RULES_MAX);
  }
  rules->rules[rules->count++] = rule;
  return 0;
}

/* ---- lines ---- */

static bool is_heading_of(struct scan_span word, int field) {
  char bare[SCAN_TOKEN_MAX];
  copy_bare(word, bare);
  for (int i = 0; i < 4 && headings[field][i]; i++) {
    if (strcasecmp(bare, headings[field][i]) == 0) {
      return true;
    }
  }
  return false;
}

/* The example goes by position, so the names have to be in its order. */
static int take_heading(struct tune_rules *rules, const struct scan_span *fields, int count) {
  rules->is_refused = true;
  if (count > 1 && scan_is(fields[1], "size_bytes")) {
    return scan_fail(&rules->scan, fields[1].at,
                     "these are measurements for NVIDIA's optimize_config.py: import the file that "
                     "it writes");
  }
  for (int i = 0; i < count; i++) {
    if (i >= FIELDS_MOST || !is_heading_of(fields[i], i)) {
      return scan_fail(&rules->scan, i < FIELDS_MOST ? fields[i].at : NULL,
                       "column %d has to be %s, as NCCL's example tuner goes by position", i + 1,
                       i < FIELDS_MOST ? headings[i][0] : "the last");
    }
  }
  rules->is_refused = false;
  return 0;
}

static int take_line(struct tune_rules *rules, struct scan_span line) {
  struct scan_span fields[FIELDS_MOST] = { { NULL, 0 } };
  line = scan_trim(scan_strip_comment(line));
  if (line.length == 0) {
    return 0;
  }
  int count = split(line, fields);
  if (count == 0) {
    return 0;
  }
  bool is_first = !rules->has_line;
  rules->has_line = true;
  if (is_first && is_heading_of(fields[0], 0)) {
    return take_heading(rules, fields, count);
  }
  for (int i = 0; i < FIELDS_LEAST && count >= FIELDS_LEAST; i++) {
    if (fields[i].length == 0) {
      return scan_fail(&rules->scan, fields[i].at, "field %d, %s, is empty; -1 is any", i + 1,
                       headings[i][0]);
    }
  }
  if (count < FIELDS_LEAST || count > FIELDS_MOST) {
    return scan_fail(&rules->scan, line.at,
                     "a rule has %d to %d fields: collective,min_bytes,max_bytes,algorithm,"
                     "protocol,channels,nodes,ranks[,pipe_ops[,registered]]%s",
                     FIELDS_LEAST, FIELDS_MOST,
                     count == 1 && memchr(line.at, ';', line.length)
                         ? ", with commas between them, not semicolons"
                         : "");
  }
  return take_rule(rules, fields, count);
}

/* A line that is wrong is told and left out. */
static void try_line(struct tune_rules *rules, const char *text, size_t length) {
  rules->error.text[0] = '\0';
  rules->scan.line_start = text;
  rules->scan.line++;
  struct scan_span line = { text, length };
  int result =
      memchr(text, '\0', length)
          ? scan_fail(&rules->scan, NULL,
                      "a zero byte: this is no text; save the file as CSV in UTF-8")
      : length > LINE_MAX_BYTES
          ? scan_fail(&rules->scan, NULL, "the line is longer than %d bytes", LINE_MAX_BYTES)
          : take_line(rules, line);
  if (result < 0 && ++rules->wrong <= MESSAGES_MAX) {
    char message[sizeof rules->error];
    cli_fail("%s%s", profile_error_format(&rules->error, message, sizeof message),
             rules->is_refused ? "" : "; the rule is left out");
  }
}

/* Ends of lines are LF, CR LF or CR. */
static void try_lines(struct tune_rules *rules, const char *text, size_t length) {
  size_t start = 0;
  for (size_t i = 0; i < length && !rules->is_refused; i++) {
    if (text[i] == '\n' || text[i] == '\r') {
      try_line(rules, text + start, i - start);
      i += text[i] == '\r' && i + 1 < length && text[i + 1] == '\n';
      start = i + 1;
    }
  }
  if (start < length && !rules->is_refused) {
    try_line(rules, text + start, length - start);
  }
}

int tune_rules_read(struct tune_rules *rules, const char *path) {
  static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, which spreadsheets write */
  rules->scan.error = &rules->error;
  rules->rules = calloc(TUNE_RULES_MAX, sizeof *rules->rules);
  snprintf(rules->error.path, sizeof rules->error.path, "%s", path);
  FILE *file = fopen(path, "re");
  char *text = NULL;
  size_t room = 0;
  if (!file || !rules->rules) {
    int error = file ? ENOMEM : errno;
    if (file) {
      fclose(file);
    }
    return cli_fail("%s: %s", path, strerror(error));
  }
  errno = 0;
  for (ssize_t length; (length = getline(&text, &room, file)) >= 0 && !rules->is_refused;) {
    size_t skipped =
        rules->scan.line == 0 && strncmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    try_lines(rules, text + skipped, (size_t)length - skipped);
  }
  int error = feof(file) || rules->is_refused ? 0 : errno; /* memory, too */
  free(text);
  fclose(file);
  if (rules->wrong > MESSAGES_MAX) {
    cli_fail("%s: %zu rules are wrong and left out", path, rules->wrong);
  }
  return error               ? cli_fail("%s: %s", path, strerror(error))
         : rules->is_refused ? CLI_FAILED
                             : CLI_OK;
}

void tune_rules_free(struct tune_rules *rules) {
  free(rules->rules);
  rules->rules = NULL;
}

bool tune_rule_is_for(const struct tune_rule *rule, struct tune_shape shape) {
  return (rule->nodes == TUNE_RULE_ANY || rule->nodes == shape.nodes) &&
         (rule->ranks == TUNE_RULE_ANY || rule->ranks == shape.ranks);
}
