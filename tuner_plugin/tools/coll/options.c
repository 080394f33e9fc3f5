/* SPDX-License-Identifier: Apache-2.0 */
/* options: values and their limits, and what goes together. */
#include "tuner_plugin/tools/coll/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/host_list.h"
#include "common/quantity.h"
#include "tuner_plugin/tools/coll/option_table.h"
#include "tuner_plugin/tools/coll/replay/plan.h"

/* ---- values ---- */

struct parser {
  struct options *options;
  char *error;
  size_t error_size;
};

__attribute__((format(printf, 2, 3))) static bool reject(struct parser *p, const char *format,
                                                         ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(p->error, p->error_size, format, arguments);
  va_end(arguments);
  return false;
}

static bool parse_number(struct parser *p, const char *option, const char *text, int least,
                         int most, int *value) {
  int64_t number;
  if (quantity_parse_int(text, &number) || number < least || number > most)
    return reject(p, "%s %s: a number from %d to %d is wanted", option, text, least, most);
  *value = (int)number;
  return true;
}

static bool parse_size(struct parser *p, const char *option, const char *text, uint64_t *bytes) {
  if (quantity_parse_size(text, bytes) || *bytes > UINT64_C(1) << 40)
    return reject(p, "%s %s: a size is wanted, as in 8, 64K, 1G (1T at most)", option, text);
  return true;
}

static bool parse_time(struct parser *p, const char *option, const char *text, uint64_t *ns) {
  if (quantity_parse_duration(text, ns))
    return reject(p, "%s %s: a time is wanted, as in 200ms, 10s, 5m", option, text);
  return true;
}

/* Calls `take` for each word of a comma separated list; the words are at most 63 characters. */
static bool for_each_word(struct parser *p, const char *option, const char *list,
                          bool (*take)(struct parser *, const char *option, const char *word)) {
  for (const char *word = list;;) {
    size_t length = strcspn(word, ",");
    char copy[64];
    if (!length || length >= sizeof copy)
      return reject(p, "%s %s: not a list of words separated by commas", option, list);
    snprintf(copy, sizeof copy, "%.*s", (int)length, word);
    if (!take(p, option, copy))
      return false;
    if (!word[length])
      return true;
    word += length + 1;
  }
}

static bool take_operation(struct parser *p, const char *option, const char *word) {
  int found = operation_find(word);
  if (found < 0 && strcmp(word, "all"))
    return reject(p,
                  "%s %s: no such operation; there are all_reduce, all_gather, reduce_scatter, "
                  "broadcast, reduce, sendrecv, alltoall, all",
                  option, word);
  for (int i = 0; i < OPERATIONS; i++)
    p->options->operations[i] |= found < 0 || i == found;
  return true;
}

static bool take_type(struct parser *p, const char *option, const char *word) {
  int found = element_find(word);
  if (found < 0 && strcmp(word, "all"))
    return reject(p,
                  "%s %s: no such data type; there are int8, uint8, int32, uint32, int64, uint64, "
                  "half, float, double, bfloat16, f8e4m3, f8e5m2, all",
                  option, word);
  p->options->is_type_all |= found < 0;
  for (int i = 0; i < ELEMENT_TYPES; i++)
    p->options->types[i] |= found < 0 || i == found;
  return true;
}

static bool take_redop(struct parser *p, const char *option, const char *word) {
  int found = operation_redop_find(word);
  if (found < 0 && strcmp(word, "all"))
    return reject(p, "%s %s: no such reduction; there are sum, prod, max, min, avg, mulsum, all",
                  option, word);
  p->options->is_redop_all |= found < 0;
  for (int i = 0; i < PATTERN_NONE; i++)
    p->options->redops[i] |= found < 0 || i == found;
  return true;
}

static bool take_size(struct parser *p, const char *option, const char *word) {
  if (p->options->sizes_count == OPTIONS_SIZES_MAX)
    return reject(p, "%s: more than %d sizes", option, OPTIONS_SIZES_MAX);
  return parse_size(p, option, word, &p->options->sizes[p->options->sizes_count++]);
}

static bool parse_root(struct parser *p, const char *option, const char *text) {
  if (!strcmp(text, "all") || !strcmp(text, "-1")) {
    p->options->root = OPTIONS_ROOT_ALL;
    return true;
  }
  return parse_number(p, option, text, 0, INT32_MAX, &p->options->root);
}

static bool parse_average(struct parser *p, const char *option, const char *text) {
  int number = AVERAGE_MEAN;
  bool is_good = parse_number(p, option, text, 0, AVERAGES - 1, &number);
  p->options->average = (enum options_average)number;
  return is_good;
}

static bool parse_registered(struct parser *p, const char *option, const char *text) {
  int number = 0;
  bool is_good = parse_number(p, option, text, 0, 1, &number);
  p->options->is_registered = number == 1;
  return is_good;
}

static bool parse_factor(struct parser *p, const char *option, const char *text) {
  char *end;
  double factor = strtod(text, &end);
  if (end == text || *end || !(factor > 1 && factor <= 1e6))
    return reject(p, "%s %s: not a factor above 1", option, text);
  p->options->step_factor = factor;
  return true;
}

static bool parse_scale(struct parser *p, const char *option, const char *text, double *scale) {
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end || !(number > 0 && number <= PLAN_SCALE_MAX))
    return reject(p, "%s %s: a number above 0, at most %g, is wanted", option, text,
                  PLAN_SCALE_MAX);
  *scale = number;
  return true;
}

static bool parse_bucket(struct parser *p, const char *option, const char *text) {
  bool is_good = parse_size(p, option, text, &p->options->bucket_bytes);
  return is_good && !p->options->bucket_bytes ? reject(p, "%s 0: a size above 0 is wanted", option)
                                              : is_good;
}

static bool take_env(struct parser *p, const char *option, const char *text) {
  size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  if (!length || (text[length] && text[length] != '='))
    return reject(p, "%s %s: not NAME=VALUE or NAME", option, text);
  if (p->options->env_count == OPTIONS_ENV_MAX)
    return reject(p, "%s: more than %d variables", option, OPTIONS_ENV_MAX);
  p->options->env[p->options->env_count++] = text;
  return true;
}

/* Those that keep their argument as it is, and those without one. */
static bool take_plainly(struct options *o, int id, const char *text) {
  switch (id) {
  case OPTION_DATA:
    o->data = text;
    return true;
  case OPTION_JSON:
    o->json_path = text;
    return true;
  case OPTION_LABEL:
    o->label = text;
    return true;
  case OPTION_HOSTS:
    o->hosts = text;
    return true;
  case OPTION_ADDRESS:
    o->address = text;
    return true;
  case OPTION_REPLAY:
    o->replay = text;
    return true;
  case OPTION_PER_ITERATION:
    o->is_per_iteration = true;
    return true;
  case OPTION_SPLIT_CPUS:
    o->is_split_cpus = true;
    return true;
  default:
    return false;
  }
}

static bool take_replay(struct parser *p, int id, const char *option, const char *text) {
  struct options *o = p->options;
  switch (id) {
  case OPTION_REPLAY_STEPS:
    return parse_number(p, option, text, 1, OPTIONS_ITERATIONS_MAX, &o->replay_steps);
  case OPTION_REPLAY_SKIP:
    return parse_number(p, option, text, 0, OPTIONS_ITERATIONS_MAX, &o->replay_skip);
  case OPTION_COMPUTE_SCALE:
    return parse_scale(p, option, text, &o->compute_scale);
  case OPTION_BYTES_SCALE:
    return parse_scale(p, option, text, &o->bytes_scale);
  case OPTION_BUCKET_BYTES:
    return parse_bucket(p, option, text);
  default:
    return parse_number(p, option, text, 1, OPTIONS_RANKS_MAX, &o->replay_list_ranks);
  }
}

static bool take_option(struct parser *p, int id, const char *option, const char *text) {
  struct options *o = p->options;
  if (take_plainly(o, id, text))
    return true;
  switch (id) {
  case 'O':
    return for_each_word(p, option, text, take_operation);
  case 'd':
    return for_each_word(p, option, text, take_type);
  case 'o':
    return for_each_word(p, option, text, take_redop);
  case OPTION_SIZES:
    return for_each_word(p, option, text, take_size);
  case 'b':
    return parse_size(p, option, text, &o->min_bytes);
  case 'e':
    return parse_size(p, option, text, &o->max_bytes);
  case 'i':
    return parse_size(p, option, text, &o->step_bytes);
  case 'f':
    return parse_factor(p, option, text);
  case 'r':
    return parse_root(p, option, text);
  case 'n':
    return parse_number(p, option, text, 1, OPTIONS_ITERATIONS_MAX, &o->iterations);
  case 'w':
    return parse_number(p, option, text, 0, OPTIONS_ITERATIONS_MAX, &o->warmup);
  case 'c':
    return parse_number(p, option, text, 0, OPTIONS_ITERATIONS_MAX, &o->checks);
  case 'G':
    return parse_number(p, option, text, 0, OPTIONS_ITERATIONS_MAX, &o->graph_launches);
  case 'g':
    return parse_number(p, option, text, 1, 64, &o->gpus);
  case OPTION_PPN:
    return parse_number(p, option, text, 1, HOST_SLOTS_MAX, &o->ppn);
  case 'a':
    return parse_average(p, option, text);
  case 'R':
    return parse_registered(p, option, text);
  case OPTION_MIN_TIME:
    return parse_time(p, option, text, &o->min_time_ns);
  case 'T':
    return parse_time(p, option, text, &o->timeout_ns);
  case OPTION_GRACE:
    return parse_time(p, option, text, &o->grace_ns);
  case OPTION_ENV:
    return take_env(p, option, text);
  default:
    return take_replay(p, id, option, text);
  }
}

/* ---- all of it ---- */

static bool list_sizes(struct parser *p, bool has_range) {
  struct options *o = p->options;
  if (o->sizes_count)
    return has_range ? reject(p, "--sizes takes the place of -b -e -i -f") : true;
  if (o->max_bytes < o->min_bytes)
    return reject(p, "-e is less than -b");
  if (o->step_factor == 1 && !o->step_bytes && o->max_bytes > o->min_bytes)
    return reject(p, "-i 0: a step above 0 is wanted, or -f");
  for (uint64_t bytes = o->min_bytes; bytes <= o->max_bytes;) {
    if (o->sizes_count == OPTIONS_SIZES_MAX)
      return reject(p, "more than %d sizes from -b to -e: use -f or a larger -i",
                    OPTIONS_SIZES_MAX);
    o->sizes[o->sizes_count++] = bytes;
    uint64_t next = bytes + o->step_bytes;
    if (o->step_factor > 1)
      next = (uint64_t)((double)bytes * o->step_factor);
    bytes = next > bytes ? next : bytes + 1;
  }
  return true;
}

static bool check_together(struct parser *p) {
  const struct options *o = p->options;
  if (o->graph_launches && o->is_per_iteration)
    return reject(p, "--per-iteration and -G exclude each other: a graph runs as a whole");
  if (o->graph_launches && o->min_time_ns)
    return reject(p, "--min-time and -G exclude each other");
  if (o->replay && o->gpus > 1)
    return reject(p, "--replay takes one GPU per process, as CUDA may run the compute of several "
                     "one after the other: use --ppn");
  if (!o->hosts && o->env_count)
    return reject(p, "--env is for ranks started by --hosts; here, set variables as usual");
  if (!o->hosts && o->ppn)
    return reject(p, "--ppn goes with --hosts");
  if (!o->hosts && o->is_split_cpus)
    return reject(p, "--split-cpus goes with --hosts");
  return true;
}

/* `table_option` and `replay_option` are the last ones given that go without, and with, --replay.
 */
static bool check_replay(struct parser *p, const char *table_option, const char *replay_option) {
  if (p->options->replay && table_option)
    return reject(p, "--replay excludes %s", table_option);
  if (!p->options->replay && replay_option)
    return reject(p, "%s goes with --replay", replay_option);
  return true;
}

static void set_defaults(struct options *o, bool has_max) {
  bool any_operation = false, any_type = false, any_redop = false;
  for (int i = 0; i < OPERATIONS; i++)
    any_operation |= o->operations[i];
  for (int i = 0; i < ELEMENT_TYPES; i++)
    any_type |= o->types[i];
  for (int i = 0; i < PATTERN_NONE; i++)
    any_redop |= o->redops[i];
  o->operations[OPERATION_ALL_REDUCE] |= !any_operation;
  o->types[ELEMENT_FLOAT] |= !any_type;
  o->redops[PATTERN_SUM] |= !any_redop;
  if (!has_max && o->max_bytes < o->min_bytes)
    o->max_bytes = o->min_bytes;
}

enum options_result options_parse(struct options *options, int argc, char **argv, char *error,
                                  size_t error_size) {
  struct option longs[OPTION_ROWS + 1] = { 0 };
  char shorts[2 * OPTION_ROWS + 2] = ":";
  for (int i = 0; i < OPTION_ROWS; i++) {
    int has_argument = option_rows[i].argument ? required_argument : no_argument;
    longs[i] = (struct option){ option_rows[i].name, has_argument, NULL, option_rows[i].id };
    size_t used = strlen(shorts);
    if (option_rows[i].id < 256)
      snprintf(shorts + used, sizeof shorts - used, "%c%s", option_rows[i].id,
               has_argument ? ":" : "");
  }
  *options = (struct options){ .min_bytes = 32 << 20,
                               .max_bytes = 32 << 20,
                               .step_bytes = 1 << 20,
                               .step_factor = 1,
                               .iterations = 20,
                               .warmup = 1,
                               .checks = 1,
                               .average = AVERAGE_MEAN,
                               .root = OPTIONS_ROOT_ANY,
                               .replay_steps = 100,
                               .replay_skip = 20,
                               .compute_scale = 1,
                               .bytes_scale = 1,
                               .gpus = 1 };
  struct parser parser = { options, error, error_size };
  bool has_range = false, has_max = false;
  const char *given[OPTION_USES] = { NULL }; /* the last option of each use */
  optind = 0;                                /* tests parse many command lines */
  opterr = 0;
  for (int id; (id = getopt_long(argc, argv, shorts, longs, NULL)) >= 0;) {
    const char *option = argv[optind - 1 - (optarg && optarg == argv[optind - 1])];
    if (id == 'h')
      return OPTIONS_HELP;
    if (id == OPTION_VERSION)
      return OPTIONS_VERSION;
    has_range |= id == 'b' || id == 'e' || id == 'i' || id == 'f';
    has_max |= id == 'e';
    for (int i = 0; i < OPTION_ROWS; i++) {
      if (option_rows[i].id == id)
        given[option_rows[i].use] = option;
    }
    bool is_good = id == ':'   ? reject(&parser, "%s needs an argument; see --help", option)
                   : id == '?' ? reject(&parser, "%s: no such option; see --help", option)
                               : take_option(&parser, id, option, optarg);
    if (!is_good)
      return OPTIONS_WRONG;
  }
  set_defaults(options, has_max);
  bool is_good = optind == argc || reject(&parser, "%s: not an option; see --help", argv[optind]);
  is_good = is_good && check_replay(&parser, given[USE_TABLE], given[USE_REPLAY]) &&
            list_sizes(&parser, has_range) && check_together(&parser);
  return is_good ? OPTIONS_RUN : OPTIONS_WRONG;
}
