/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h: the table of options, what is in lists and texts, and what goes together. */
#include "tests/coll/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contents.h"
#include "common/host_list.h"
#include "common/quantity.h"
#include "common/version.h"
#include "tests/coll/replay/plan.h"

/* What the command line fills: the options, and texts of which some are made. */
struct given {
  struct options o;
  const char *operations, *types, *redops, *root, *sizes, *step_factor, *compute_scale,
      *bytes_scale;
};
static const struct given defaults = {
  .o = { .min_bytes = 32 << 20,
         .max_bytes = 32 << 20,
         .step_bytes = 1 << 20,
         .iterations = 20,
         .warmup = 1,
         .checks = 1,
         .average = AVERAGE_MEAN,
         .replay_steps = 100,
         .replay_skip = 20,
         .gpus = 1 },
  .operations = "all_reduce",
  .types = "float",
  .redops = "sum",
  .root = "0",
  .compute_scale = "1",
  .bytes_scale = "1",
};
static struct given given;
static bool shall_run;

#define SIZE_MOST (INT64_C(1) << 40)
#define OPERATION_WORDS "all_reduce all_gather reduce_scatter broadcast reduce sendrecv alltoall"
#define TYPE_WORDS "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2"
#define REDOP_WORDS "sum prod max min avg mulsum"

static const struct cli_option rows[] = {
  { "op", 'O', CLI_STRING, &given.operations, "LIST", "operations: " OPERATION_WORDS ", or all", 0,
    0 },
  { "minbytes", 'b', CLI_SIZE, &given.o.min_bytes, "SIZE", "smallest size", 0, SIZE_MOST },
  { "maxbytes", 'e', CLI_SIZE, &given.o.max_bytes, "SIZE", "largest size; not given: -b at least",
    0, SIZE_MOST },
  { "stepbytes", 'i', CLI_SIZE, &given.o.step_bytes, "SIZE", "from one size to the next", 0,
    SIZE_MOST },
  { "stepfactor", 'f', CLI_STRING, &given.step_factor, "N",
    "the same, as a factor; 0 bytes are followed by 1", 0, 0 },
  { "sizes", 0, CLI_STRING, &given.sizes, "LIST", "exactly these sizes, in this order", 0, 0 },
  { "datatype", 'd', CLI_STRING, &given.types, "LIST", "data types: " TYPE_WORDS ", or all", 0, 0 },
  { "redop", 'o', CLI_STRING, &given.redops, "LIST", "reductions: " REDOP_WORDS ", or all", 0, 0 },
  { "root", 'r', CLI_STRING, &given.root, "RANK",
    "root of broadcast and reduce; all for each in turn", 0, 0 },
  { "iters", 'n', CLI_NUMBER, &given.o.iterations, "N", "timed iterations, launched together", 1,
    OPTIONS_ITERATIONS_MAX },
  { "warmup_iters", 'w', CLI_NUMBER, &given.o.warmup, "N", "iterations before them, for each size",
    0, OPTIONS_ITERATIONS_MAX },
  { "min-time", 0, CLI_DURATION, &given.o.min_time_ns, "TIME",
    "more iterations until they take this long, as in 200ms", 0, 0 },
  { "per-iteration", 'I', CLI_NUMBER, &given.o.is_per_iteration, "0|1",
    "wait after each iteration and report each one's time", 0, 1 },
  { "check", 'c', CLI_NUMBER, &given.o.checks, "N", "runs whose every element is checked", 0,
    OPTIONS_ITERATIONS_MAX },
  { "data", 0, CLI_STRING, &given.o.data, "WORD|FILE",
    "what is sent: a file of gradients, or invented ones:\n" CONTENTS_WORDS
    ". Sums stay exact: all ranks\n"
    "send the same, without its lowest bits. Reductions in place are\n"
    "left out; --replay sends averages, which do not grow. Not given:\n"
    "numbers made for checks (--replay: zeros). These compress as no\n"
    "gradients do: STRATUS_COMPRESS=off is set, unless it is set",
    0, 0 },
  { "average", 'a', CLI_NUMBER, &given.o.average, "0..3",
    "time shown: rank 0's, mean, min or max of ranks", 0, AVERAGES - 1 },
  { "cudagraph", 'G', CLI_NUMBER, &given.o.graph_launches, "N",
    "capture the iterations in a CUDA graph, launch it N times", 0, OPTIONS_ITERATIONS_MAX },
  { "local_register", 'R', CLI_NUMBER, &given.o.is_registered, "0|1",
    "register the buffers with NCCL", 0, 1 },
  { "ngpus", 'g', CLI_NUMBER, &given.o.gpus, "N", "GPUs per process", 1, 64 },
  { "timeout", 'T', CLI_DURATION, &given.o.timeout_ns, "TIME",
    "end the run with an error after this long; 0: no limit", 0, 0 },
  { "grace", 0, CLI_DURATION, &given.o.grace_ns, "TIME",
    "how long NCCL may take to notice that a rank has ended, before\n"
    "the other ranks end for that reason alone",
    0, 0 },
  { "replay", 0, CLI_STRING, &given.o.replay, "LIST",
    "instead of the table: training steps of these workloads, names\n"
    "of built-in ones or files, each in turn",
    0, 0 },
  { "replay-steps", 0, CLI_NUMBER, &given.o.replay_steps, "N", "steps that are measured", 1,
    OPTIONS_ITERATIONS_MAX },
  { "replay-skip", 0, CLI_NUMBER, &given.o.replay_skip, "N", "steps before them", 0,
    OPTIONS_ITERATIONS_MAX },
  { "compute-scale", 0, CLI_STRING, &given.compute_scale, "X", "compute times times X", 0, 0 },
  { "bytes-scale", 0, CLI_STRING, &given.bytes_scale, "X",
    "numbers of elements and limits of buckets times X", 0, 0 },
  { "bucket-bytes", 0, CLI_SIZE, &given.o.bucket_bytes, "SIZE",
    "limit of the buckets after the first; 0: what the workload says", 0, SIZE_MOST },
  { "replay-list", 0, CLI_NUMBER, &given.o.replay_list_ranks, "RANKS",
    "only print what each of so many ranks does in a step; needs\n"
    "neither NCCL nor a GPU",
    1, OPTIONS_RANKS_MAX },
  { "json", 'J', CLI_STRING, &given.o.json_path, "FILE", "also write the results to FILE", 0, 0 },
  { "label", 0, CLI_STRING, &given.o.label, "TEXT", "a name for this run, in the JSON file", 0, 0 },
  { "hosts", 0, CLI_STRING, &given.o.hosts, "LIST|FILE",
    "start the ranks on these hosts: HOST or ssh:HOST (by ssh),\n"
    "ns:NAME (network namespace), local:N (N hosts' worth of\n"
    "processes here), cmd:COMMAND, or a path, that runs its\n"
    "arguments on a host. Processes on each: HOST:8, HOST slots=8,\n"
    "or the host again. Also node[01-16], user@HOST, [ADDRESS]:8",
    0, 0 },
  { "ppn", 0, CLI_NUMBER, &given.o.ppn, "N",
    "with --hosts: processes per host; else as LIST says, or 1", 1, HOST_SLOTS_MAX },
  { "split-cpus", 0, CLI_FLAG, &given.o.is_split_cpus, NULL,
    "with --hosts: divide this machine's CPUs between its hosts, as\n"
    "real hosts have their own; no effect if there are too few",
    0, 0 },
  { "env", 0, CLI_LIST, &given.o.env, "NAME[=VALUE]",
    "with --hosts: set this for the ranks (may be repeated);\n"
    "NAME alone: to its value here, which no command line shows",
    0, 0 },
  { "address", 0, CLI_STRING, &given.o.address, "HOST:PORT",
    "where rank 0 listens for the others; needed only if\n"
    "the launcher does not set it",
    0, 0 },
  { 0 },
};

/* Options only for the table, and only for --replay. */
static const char of_table[] =
    "op|minbytes|maxbytes|stepbytes|stepfactor|sizes|datatype|redop|root|iters|warmup_iters|"
    "min-time|per-iteration|average|cudagraph|local_register";
static const char of_replay[] =
    "replay-steps|replay-skip|compute-scale|bytes-scale|bucket-bytes|replay-list";

/* ---- lists and texts ---- */

enum { WORD_MAX = 64 };

/* The next word of a list; false: it is at its end. */
static bool next_word(const char **list, char word[WORD_MAX]) {
  if (!*list)
    return false;
  size_t length = strcspn(*list, ",");
  snprintf(word, WORD_MAX, "%.*s", (int)length, *list);
  *list = (*list)[length] ? *list + length + 1 : NULL;
  return true;
}

/* Sets the marks of what the list names. */
static int take_list(const char *option, const char *list, int (*find)(const char *name),
                     const char *words, bool *marks, int count) {
  char word[WORD_MAX];
  while (next_word(&list, word)) {
    bool is_every = !strcmp(word, "all");
    int found = find(word);
    if (found < 0 && !is_every)
      return cli_fail_usage("--%s takes a list of %s, or all, not \"%s\"", option, words, word);
    for (int i = 0; i < count; i++)
      marks[i] |= is_every || i == found;
  }
  return CLI_OK;
}

static int take_sizes(struct options *o, const char *list) {
  char word[WORD_MAX];
  while (next_word(&list, word)) {
    if (o->sizes_count == OPTIONS_SIZES_MAX)
      return cli_fail_usage("--sizes: more than %d", OPTIONS_SIZES_MAX);
    uint64_t *bytes = &o->sizes[o->sizes_count++];
    if (quantity_parse_size(word, bytes) || *bytes > (uint64_t)SIZE_MOST)
      return cli_fail_usage("--sizes takes a list of sizes up to 1T, as in 8,64K, not \"%s\"",
                            word);
  }
  return CLI_OK;
}

static int take_real(const char *option, const char *text, double above, double most,
                     double *value) {
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end || !(number > above && number <= most))
    return cli_fail_usage("--%s takes a number above %g, at most %g, not %s", option, above, most,
                          text);
  *value = number;
  return CLI_OK;
}

static int take_root(struct options *o, const char *text) {
  int64_t root = OPTIONS_ROOT_ALL;
  if (strcmp(text, "all") && strcmp(text, "-1") &&
      (quantity_parse_int(text, &root) || root < 0 || root > INT32_MAX))
    return cli_fail_usage("--root takes a rank, or all, not %s", text);
  o->root = (int)root;
  return CLI_OK;
}

static int check_env(const struct options *o) {
  for (size_t i = 0; i < o->env.count; i++) {
    const char *text = o->env.items[i];
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    if (!length || (text[length] && text[length] != '='))
      return cli_fail_usage("--env takes NAME=VALUE or NAME, not %s", text);
  }
  return CLI_OK;
}

static int take_texts(struct options *o) {
  int status =
      take_list("op", given.operations, operation_find, OPERATION_WORDS, o->operations, OPERATIONS);
  if (status == CLI_OK)
    status = take_list("datatype", given.types, element_find, TYPE_WORDS, o->types, ELEMENT_TYPES);
  if (status == CLI_OK)
    status = take_list("redop", given.redops, operation_redop_find, REDOP_WORDS, o->redops,
                       PATTERN_NONE);
  if (status == CLI_OK)
    status = take_root(o, given.root);
  o->is_type_all = strstr(given.types, "all") != NULL;
  if (status == CLI_OK)
    status = take_sizes(o, given.sizes);
  if (status == CLI_OK && given.step_factor)
    status = take_real("stepfactor", given.step_factor, 1, 1e6, &o->step_factor);
  if (status == CLI_OK)
    status = take_real("compute-scale", given.compute_scale, 0, PLAN_SCALE_MAX, &o->compute_scale);
  if (status == CLI_OK)
    status = take_real("bytes-scale", given.bytes_scale, 0, PLAN_SCALE_MAX, &o->bytes_scale);
  return status == CLI_OK ? check_env(o) : status;
}

/* ---- all of it ---- */

static int list_sizes(struct options *o) {
  if (given.sizes)
    return cli_given("minbytes|maxbytes|stepbytes|stepfactor")
               ? cli_fail_usage("--sizes takes the place of -b -e -i -f")
               : CLI_OK;
  if (!cli_given("maxbytes") && o->max_bytes < o->min_bytes)
    o->max_bytes = o->min_bytes;
  if (o->max_bytes < o->min_bytes)
    return cli_fail_usage("-e is less than -b");
  if (!given.step_factor && !o->step_bytes && o->max_bytes > o->min_bytes)
    return cli_fail_usage("-i 0: a step above 0 is wanted, or -f");
  for (uint64_t bytes = o->min_bytes; bytes <= o->max_bytes;) {
    if (o->sizes_count == OPTIONS_SIZES_MAX)
      return cli_fail_usage("more than %d sizes from -b to -e: use -f or a larger -i",
                            OPTIONS_SIZES_MAX);
    o->sizes[o->sizes_count++] = bytes;
    uint64_t next =
        given.step_factor ? (uint64_t)((double)bytes * o->step_factor) : bytes + o->step_bytes;
    bytes = next > bytes ? next : bytes + 1;
  }
  return CLI_OK;
}

static int check_replay(const struct options *o) {
  const char *name = cli_given(o->replay ? of_table : of_replay);
  if (name)
    return o->replay ? cli_fail_usage("--replay excludes --%s", name)
                     : cli_fail_usage("--%s goes with --replay", name);
  return o->replay && o->gpus > 1
             ? cli_fail_usage("--replay takes one GPU per process, as CUDA may run the compute of "
                              "several one after the other: use --ppn")
             : CLI_OK;
}

static int check_together(const struct options *o) {
  if (o->graph_launches && o->is_per_iteration)
    return cli_fail_usage("-I 1 and -G exclude each other: a graph runs as a whole");
  if (o->graph_launches && o->min_time_ns)
    return cli_fail_usage("--min-time and -G exclude each other");
  const char *of_hosts = o->hosts ? NULL : cli_given("env|ppn|split-cpus");
  return of_hosts ? cli_fail_usage("--%s goes with --hosts", of_hosts) : CLI_OK;
}

static int complete(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  struct options *o = &given.o;
  int status = check_replay(o);
  if (status == CLI_OK)
    status = take_texts(o);
  if (status == CLI_OK)
    status = list_sizes(o);
  if (status == CLI_OK)
    status = check_together(o);
  shall_run = status == CLI_OK;
  return status;
}

/* As nccl-tests' programs are called: all_reduce_perf. */
static const char *operation_of_name(const char *program) {
  static char name[32];
  const char *slash = strrchr(program, '/');
  snprintf(name, sizeof name, "%s", slash ? slash + 1 : program);
  char *end = strstr(name, "_perf");
  if (end)
    *end = '\0';
  return end && operation_find(name) >= 0 ? name : defaults.operations;
}

bool options_parse(struct options *options, int argc, char **argv, int *status) {
  static const struct cli_program program = {
    .command = { .name = "coll",
                 .summary = "Measures and checks NCCL's collective operations on real GPUs, or on "
                            "emulated ones where\nthere are none. Options and table are those of "
                            "nccl-tests where it has them. LIST is\nseparated by commas; SIZE as "
                            "in 8, 64K, 1G.",
                 .example = "coll -g 2 -b 8 -e 64M -f 2                  two GPUs of this "
                            "machine\n"
                            "  coll --hosts local:4 -O all -d all -o all --sizes 0,1,1000,64K\n"
                            "  coll --hosts ns:a,ns:b --env NCCL_NET_PLUGIN=stratus -b 8 -e 64M "
                            "-f 8\n"
                            "  mpirun -np 16 -N 8 -x COLL_ADDR=node1:29500 coll -b 8 -e "
                            "1G -f 2\n"
                            "  coll --hosts local:2 --replay resnet50 --json r.json\n"
                            "  srun -N 2 --ntasks-per-node 8 coll -b 8 -e 1G -f 2",
                 .options = rows,
                 .run = complete },
    .version = STRATUS_VERSION,
    .exit_status = "0 all right; 1 wrong values, a failed rank or no time left; 2 wrong use",
  };
  given = defaults;
  given.operations = operation_of_name(argv[0]);
  shall_run = false;
  *status = cli_program(&program, argc, argv);
  *options = given.o;
  return shall_run;
}
