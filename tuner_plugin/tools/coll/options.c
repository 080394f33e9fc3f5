/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h: values and their limits, the table of options, and what goes together. */
#include "tuner_plugin/tools/coll/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contents.h"
#include "common/host_list.h"
#include "common/quantity.h"
#include "tuner_plugin/tools/coll/replay/plan.h"

/* ---- values ---- */

struct parser {
  struct options *options;
  char *error;
  size_t error_size;
};

/* Reads an argument, or one word of it. */
typedef bool take_fn(struct parser *, const char *option, const char *text);

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

static bool parse_size(struct parser *p, const char *option, const char *text, int least,
                       uint64_t *bytes) {
  if (quantity_parse_size(text, bytes) || *bytes > UINT64_C(1) << 40)
    return reject(p, "%s %s: a size is wanted, as in 8, 64K, 1G (1T at most)", option, text);
  return *bytes >= (uint64_t)least || reject(p, "%s %s: a size above 0 is wanted", option, text);
}

static bool parse_time(struct parser *p, const char *option, const char *text, uint64_t *ns) {
  if (quantity_parse_duration(text, ns))
    return reject(p, "%s %s: a time is wanted, as in 200ms, 10s, 5m", option, text);
  return true;
}

/* Calls `take` for each word of a comma separated list; the words are at most 63 characters. */
static bool for_each_word(struct parser *p, const char *option, const char *list, take_fn *take) {
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
  return parse_size(p, option, word, 0, &p->options->sizes[p->options->sizes_count++]);
}

static bool take_root(struct parser *p, const char *option, const char *text) {
  if (!strcmp(text, "all") || !strcmp(text, "-1")) {
    p->options->root = OPTIONS_ROOT_ALL;
    return true;
  }
  return parse_number(p, option, text, 0, INT32_MAX, &p->options->root);
}

static bool take_factor(struct parser *p, const char *option, const char *text) {
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

static bool take_env(struct parser *p, const char *option, const char *text) {
  size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  if (!length || (text[length] && text[length] != '='))
    return reject(p, "%s %s: not NAME=VALUE or NAME", option, text);
  if (p->options->env_count == OPTIONS_ENV_MAX)
    return reject(p, "%s: more than %d variables", option, OPTIONS_ENV_MAX);
  p->options->env[p->options->env_count++] = text;
  return true;
}

/* ---- the table ---- */

/* What an option may be combined with. */
enum use { USE_TABLE /* not with --replay */, USE_ANY, USE_REPLAY /* only with --replay */, USES };

/* What becomes of the argument; the comment says of which type the field is. */
enum kind {
  FLAG,   /* bool; none */
  TEXT,   /* const char * */
  NUMBER, /* int, from `low` to `high` */
  SIZE,   /* uint64_t, `low` at least */
  TIME,   /* uint64_t ns */
  SCALE,  /* double */
  CALL,   /* `take` reads it */
  LIST,   /* `take` reads each word */
  SHOW_HELP,
  SHOW_VERSION
};

struct row {
  char letter; /* 0: none */
  const char *name;
  const char *argument; /* NULL: none */
  const char *help;
  enum use use;
  enum kind kind;
  size_t field; /* of struct options */
  int low, high;
  take_fn *take;
};
#define AT(name) .field = offsetof(struct options, name)
#define FROM_TO(least, most) .low = least, .high = most

static const struct row rows[] = {
  { 'O', "op", "LIST",
    "operations (all_reduce): all_reduce all_gather reduce_scatter\n"
    "broadcast reduce sendrecv alltoall, or all",
    USE_TABLE, LIST, .take = take_operation },
  { 'b', "minbytes", "SIZE", "smallest size (32M)", USE_TABLE, SIZE, AT(min_bytes) },
  { 'e', "maxbytes", "SIZE", "largest size (32M, or -b where that is more)", USE_TABLE, SIZE,
    AT(max_bytes) },
  { 'i', "stepbytes", "SIZE", "from one size to the next (1M)", USE_TABLE, SIZE, AT(step_bytes) },
  { 'f', "stepfactor", "N", "the same, as a factor; 0 bytes are followed by 1", USE_TABLE, CALL,
    .take = take_factor },
  { 0, "sizes", "LIST", "exactly these sizes, in this order", USE_TABLE, LIST, .take = take_size },
  { 'd', "datatype", "LIST",
    "data types (float): int8 uint8 int32 uint32 int64 uint64 half\n"
    "float double bfloat16 f8e4m3 f8e5m2, or all",
    USE_TABLE, LIST, .take = take_type },
  { 'o', "redop", "LIST", "reductions (sum): sum prod max min avg mulsum, or all", USE_TABLE, LIST,
    .take = take_redop },
  { 'r', "root", "RANK", "root of broadcast and reduce (0); all for each in turn", USE_TABLE, CALL,
    .take = take_root },
  { 'n', "iters", "N", "timed iterations (20), launched together", USE_TABLE, NUMBER,
    AT(iterations), FROM_TO(1, OPTIONS_ITERATIONS_MAX) },
  { 'w', "warmup_iters", "N", "iterations before them, for each size (1)", USE_TABLE, NUMBER,
    AT(warmup), FROM_TO(0, OPTIONS_ITERATIONS_MAX) },
  { 0, "min-time", "TIME", "more iterations until they take this long, as in 200ms", USE_TABLE,
    TIME, AT(min_time_ns) },
  { 0, "per-iteration", NULL, "wait after each iteration and report each one's time", USE_TABLE,
    FLAG, AT(is_per_iteration) },
  { 'c', "check", "N", "runs whose every element is checked (1); 0 for none", USE_ANY, NUMBER,
    AT(checks), FROM_TO(0, OPTIONS_ITERATIONS_MAX) },
  { 0, "data", "WORD|FILE",
    "what is sent: a file of gradients, or invented ones:\n" CONTENTS_WORDS
    ". Sums stay exact: all ranks\n"
    "send the same, without its lowest bits. Reductions in place are\n"
    "left out; --replay sends averages, which do not grow. Not given:\n"
    "numbers made for checks (--replay: zeros). These compress as no\n"
    "gradients do: STRATUS_COMPRESS=off is set, unless it is set",
    USE_ANY, TEXT, AT(data) },
  { 'a', "average", "0..3", "time shown: rank 0's, mean, min or max of ranks (1)", USE_TABLE,
    NUMBER, AT(average), FROM_TO(0, AVERAGES - 1) },
  { 'G', "cudagraph", "N", "capture the iterations in a CUDA graph, launch it N times", USE_TABLE,
    NUMBER, AT(graph_launches), FROM_TO(0, OPTIONS_ITERATIONS_MAX) },
  { 'R', "local_register", "0|1", "register the buffers with NCCL (0)", USE_TABLE, NUMBER,
    AT(is_registered), FROM_TO(0, 1) },
  { 'g', "ngpus", "N", "GPUs per process (1)", USE_ANY, NUMBER, AT(gpus), FROM_TO(1, 64) },
  { 'T', "timeout", "TIME", "end the run with an error after this long (no limit)", USE_ANY, TIME,
    AT(timeout_ns) },
  { 0, "grace", "TIME",
    "how long NCCL may take to notice that a rank has ended, before\n"
    "the other ranks end for that reason alone (0)",
    USE_ANY, TIME, AT(grace_ns) },
  { 0, "replay", "LIST",
    "instead of the table: training steps of these workloads, names\n"
    "of built-in ones or files (stratus-tune workload makes them),\n"
    "each in turn",
    USE_REPLAY, TEXT, AT(replay) },
  { 0, "replay-steps", "N", "steps that are measured (100)", USE_REPLAY, NUMBER, AT(replay_steps),
    FROM_TO(1, OPTIONS_ITERATIONS_MAX) },
  { 0, "replay-skip", "N", "steps before them (20)", USE_REPLAY, NUMBER, AT(replay_skip),
    FROM_TO(0, OPTIONS_ITERATIONS_MAX) },
  { 0, "compute-scale", "X", "compute times times X (1)", USE_REPLAY, SCALE, AT(compute_scale) },
  { 0, "bytes-scale", "X", "numbers of elements and limits of buckets times X (1)", USE_REPLAY,
    SCALE, AT(bytes_scale) },
  { 0, "bucket-bytes", "SIZE", "limit of the buckets after the first (what the workload says)",
    USE_REPLAY, SIZE, AT(bucket_bytes), .low = 1 },
  { 0, "replay-list", "RANKS",
    "only print what each of so many ranks does in a step; needs\n"
    "neither NCCL nor a GPU",
    USE_REPLAY, NUMBER, AT(replay_list_ranks), FROM_TO(1, OPTIONS_RANKS_MAX) },
  { 0, "json", "FILE", "also write the results to FILE", USE_ANY, TEXT, AT(json_path) },
  { 0, "label", "TEXT", "a name for this run, in the JSON file", USE_ANY, TEXT, AT(label) },
  { 0, "hosts", "LIST|FILE",
    "start the ranks on these hosts: HOST or ssh:HOST (by ssh),\n"
    "ns:NAME (network namespace), local:N (N hosts' worth of\n"
    "processes here), cmd:COMMAND, or a path, that runs its\n"
    "arguments on a host. Processes on each: HOST:8, HOST slots=8,\n"
    "or the host again. Also node[01-16], user@HOST, [ADDRESS]:8",
    USE_ANY, TEXT, AT(hosts) },
  { 0, "ppn", "N", "with --hosts: processes per host (as LIST says, else 1)", USE_ANY, NUMBER,
    AT(ppn), FROM_TO(1, HOST_SLOTS_MAX) },
  { 0, "split-cpus", NULL,
    "with --hosts: divide this machine's CPUs between its hosts, as\n"
    "real hosts have their own; no effect if there are too few",
    USE_ANY, FLAG, AT(is_split_cpus) },
  { 0, "env", "NAME[=VALUE]",
    "with --hosts: set this for the ranks (may be repeated);\n"
    "NAME alone: to its value here, which no command line shows",
    USE_ANY, CALL, .take = take_env },
  { 0, "address", "HOST:PORT",
    "where rank 0 listens for the others; needed only if\n"
    "the launcher does not set it",
    USE_ANY, TEXT, AT(address) },
  { 0, "version", NULL, "print the release", USE_ANY, .kind = SHOW_VERSION },
  { 'h', "help", NULL, "print this", USE_ANY, .kind = SHOW_HELP },
};
enum { ROWS = sizeof rows / sizeof rows[0], NO_LETTER = 256 }; /* + its row: what getopt returns */

static int id_of(int row) {
  return rows[row].letter ? rows[row].letter : NO_LETTER + row;
}

static const struct row *find_row(int id) {
  int row = 0;
  while (id_of(row) != id)
    row++;
  return &rows[row];
}

static bool take_option(struct parser *p, const struct row *row, const char *option,
                        const char *text) {
  void *field = (char *)p->options + row->field;
  switch (row->kind) {
  case FLAG:
    *(bool *)field = true;
    return true;
  case TEXT:
    *(const char **)field = text;
    return true;
  case NUMBER:
    return parse_number(p, option, text, row->low, row->high, field);
  case SIZE:
    return parse_size(p, option, text, row->low, field);
  case TIME:
    return parse_time(p, option, text, field);
  case SCALE:
    return parse_scale(p, option, text, field);
  case LIST:
    return for_each_word(p, option, text, row->take);
  default:
    return row->take(p, option, text);
  }
}

void options_print_help(void) {
  puts("usage: stratus-coll [OPTIONS]\n\n"
       "Measures and checks NCCL's collective operations on real GPUs, or on emulated ones where\n"
       "there are none. Options and table are those of nccl-tests where it has them. LIST is\n"
       "separated by commas; SIZE as in 8, 64K, 1G.\n");
  for (int i = 0; i < ROWS; i++) {
    char left[64];
    int used = rows[i].letter ? snprintf(left, sizeof left, "-%c, ", rows[i].letter)
                              : snprintf(left, sizeof left, "    ");
    snprintf(left + used, sizeof left - (size_t)used, "--%s %s", rows[i].name,
             rows[i].argument ? rows[i].argument : "");
    const char *text = rows[i].help;
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
      printf("  %-28s %.*s\n", line == text ? left : "", (int)strcspn(line, "\n"), line);
  }
  puts("\nexamples:\n"
       "  stratus-coll -g 2 -b 8 -e 64M -f 2                  two GPUs of this machine\n"
       "  stratus-coll --hosts local:4 -O all -d all -o all --sizes 0,1,1000,64K\n"
       "  stratus-coll --hosts ns:a,ns:b --env NCCL_NET_PLUGIN=stratus -b 8 -e 64M -f 8\n"
       "  mpirun -np 16 -N 8 -x STRATUS_COLL_ADDR=node1:29500 stratus-coll -b 8 -e 1G -f 2\n"
       "  stratus-coll --hosts local:2 --replay resnet50 --json r.json\n"
       "  srun -N 2 --ntasks-per-node 8 stratus-coll -b 8 -e 1G -f 2\n\n"
       "exit status: 0 all right; 1 wrong values, a failed rank or no time left; 2 wrong use");
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
  struct option longs[ROWS + 1] = { 0 };
  char shorts[2 * ROWS + 2] = ":";
  for (int i = 0; i < ROWS; i++) {
    int has_argument = rows[i].argument ? required_argument : no_argument;
    longs[i] = (struct option){ rows[i].name, has_argument, NULL, id_of(i) };
    size_t used = strlen(shorts);
    if (rows[i].letter)
      snprintf(shorts + used, sizeof shorts - used, "%c%s", rows[i].letter,
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
  const char *given[USES] = { NULL }; /* the last option of each use */
  optind = 0;                         /* tests parse many command lines */
  opterr = 0;
  for (int id; (id = getopt_long(argc, argv, shorts, longs, NULL)) >= 0;) {
    const char *option = argv[optind - 1 - (optarg && optarg == argv[optind - 1])];
    if (id == ':' || id == '?') {
      reject(&parser, "%s%s; see --help", option,
             id == ':' ? " needs an argument" : ": no such option");
      return OPTIONS_WRONG;
    }
    const struct row *row = find_row(id);
    if (row->kind == SHOW_HELP)
      return OPTIONS_HELP;
    if (row->kind == SHOW_VERSION)
      return OPTIONS_VERSION;
    has_range |= id == 'b' || id == 'e' || id == 'i' || id == 'f';
    has_max |= id == 'e';
    given[row->use] = option;
    if (!take_option(&parser, row, option, optarg))
      return OPTIONS_WRONG;
  }
  set_defaults(options, has_max);
  bool is_good = optind == argc || reject(&parser, "%s: not an option; see --help", argv[optind]);
  is_good = is_good && check_replay(&parser, given[USE_TABLE], given[USE_REPLAY]) &&
            list_sizes(&parser, has_range) && check_together(&parser);
  return is_good ? OPTIONS_RUN : OPTIONS_WRONG;
}
