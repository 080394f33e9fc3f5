/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h: the table of options, what is in lists and texts, and what goes together. */
#include "tests/coll/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/quantity.h"
#include "common/time_units.h"
#include "common/version.h"
#include "tests/coll/replay/workload.h"

/* What the command line fills: the options, and texts of which some are made. */
struct given {
  struct options o;
  const char *operations, *types, *redops, *sizes, *step_factor, *compute_scale, *bytes_scale;
};
static const struct given defaults = {
  .o = { .min_bytes = 32 << 20,
         .max_bytes = 32 << 20,
         .iterations = 20,
         .warmup = 1,
         .checks = 1,
         .replay_steps = 100,
         .replay_skip = 20,
         .patience_ns = 60 * NS_PER_S,
         .seed = 1,
         .gpus = 1,
         .root = -1,
         .ppn = 1 },
  .operations = "all_reduce",
  .types = "float",
  .redops = "sum",
  .step_factor = "2",
  .compute_scale = "1",
  .bytes_scale = "1",
};
static struct given given;
static bool shall_run;

#define SIZE_MOST (INT64_C(1) << 40)
#define OPERATION_WORDS "all_reduce all_gather reduce_scatter broadcast reduce sendrecv alltoall"
#define TYPE_WORDS "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16"
#define REDOP_WORDS "sum prod max min avg"
#define ROW(name, letter, type, field, argument, low, high, help)                                  \
  { name, letter, type, &given.field, argument, help, low, high }
#define COUNT_ROW(name, letter, field, low, high, help)                                            \
  ROW(name, letter, CLI_NUMBER, o.field, "N", low, high, help)

static const struct cli_option rows[] = {
  ROW("op", 'O', CLI_STRING, operations, "LIST", 0, 0, "operations: " OPERATION_WORDS ", or all"),
  COUNT_ROW("root", 'r', root, -1, 1023, "of broadcast and reduce; -1: another rank at each size"),
  ROW("minbytes", 'b', CLI_SIZE, o.min_bytes, "SIZE", 0, SIZE_MOST, "smallest size"),
  ROW("maxbytes", 'e', CLI_SIZE, o.max_bytes, "SIZE", 0, SIZE_MOST, "largest size"),
  ROW("stepfactor", 'f', CLI_STRING, step_factor, "N", 0, 0, "from one size to the next"),
  ROW("sizes", 0, CLI_STRING, sizes, "LIST", 0, 0, "exactly these sizes, in this order"),
  ROW("datatype", 'd', CLI_STRING, types, "LIST", 0, 0, "data types: " TYPE_WORDS ", or all"),
  ROW("redop", 'o', CLI_STRING, redops, "LIST", 0, 0, "reductions: " REDOP_WORDS ", or all"),
  COUNT_ROW("iters", 'n', iterations, 1, OPTIONS_ITERATIONS_MAX,
            "timed iterations, launched together"),
  COUNT_ROW("warmup_iters", 'w', warmup, 0, OPTIONS_ITERATIONS_MAX,
            "iterations before them, for each size"),
  ROW("min-time", 0, CLI_DURATION, o.min_time_ns, "TIME", 0, 0,
      "more iterations until they take this long, as in 200ms"),
  COUNT_ROW("per-iteration", 'I', is_per_iteration, 0, 1,
            "1: wait after each iteration and report each one's time"),
  COUNT_ROW("check", 'c', checks, 0, OPTIONS_ITERATIONS_MAX, "runs whose every element is checked"),
  ROW("data", 0, CLI_STRING, o.data, "FILE", 0, 0,
      "what is sent, such as gradients. Sums stay exact: all ranks send\n"
      "the same, without its lowest bits. Reductions in place are left\n"
      "out; --replay sends averages, which do not grow. Not given:\n"
      "numbers made for checks (--replay: zeros). These compress as no\n"
      "gradients do: STRATUS_COMPRESS=off is set, unless it is set"),
  COUNT_ROW("local_register", 'R', is_registered, 0, 1, "1: register the buffers with NCCL"),
  COUNT_ROW("ngpus", 'g', gpus, 1, 64, "GPUs per process"),
  ROW("timeout", 'T', CLI_DURATION, o.timeout_ns, "TIME", 0, 0,
      "end the run with an error after this long; 0: no limit"),
  ROW("grace", 0, CLI_DURATION, o.grace_ns, "TIME", 0, 0,
      "how long NCCL may take to notice that a rank has ended, before\n"
      "the other ranks end for that reason alone"),
  ROW("replay", 0, CLI_STRING, o.replay, "LIST", 0, 0,
      "instead of the table: training steps of these workloads, names\n"
      "of those in tests/workloads or files, each in turn"),
  COUNT_ROW("replay-steps", 0, replay_steps, 1, OPTIONS_ITERATIONS_MAX, "steps that are measured"),
  COUNT_ROW("replay-skip", 0, replay_skip, 0, OPTIONS_ITERATIONS_MAX, "steps before them"),
  ROW("compute-scale", 0, CLI_STRING, compute_scale, "X", 0, 0, "compute times times X"),
  ROW("bytes-scale", 0, CLI_STRING, bytes_scale, "X", 0, 0, "numbers of elements times X"),
  ROW("soak", 0, CLI_DURATION, o.soak_ns, "TIME", 0, 0,
      "instead of the table: int32 sums, the operations and sizes in\n"
      "random order until this has passed, or SIGUSR1 comes to rank 0;\n"
      "every result is checked"),
  ROW("log", 0, CLI_STRING, o.log_path, "FILE", 0, 0,
      "with --soak: a line of JSON for each completion"),
  COUNT_ROW("abort", 0, abort_rounds, 0, OPTIONS_ITERATIONS_MAX,
            "instead of the table: N times, sums are checked, one is aborted\n"
            "half way by ncclCommAbort, and communicators are made again;\n"
            "memory, threads, descriptors and what was freed are watched"),
  COUNT_ROW("seed", 0, seed, 0, INT32_MAX, "of --soak's order, and of --abort's times"),
  COUNT_ROW("unmade", 0, unmade_rounds, 0, OPTIONS_ITERATIONS_MAX,
            "instead of the table: N times, the first AllReduce of new\n"
            "communicators fails, as a connection cannot be made, and all\n"
            "ranks abort: on an error, else when the patience is over"),
  ROW("patience", 0, CLI_DURATION, o.patience_ns, "TIME", 0, 0, "with --unmade"),
  ROW("command", 0, CLI_STRING, o.command, "COMMAND", 0, 0,
      "with --unmade: rank 0 runs `COMMAND break` before, and\n"
      "`COMMAND heal` after the abort"),
  ROW("json", 'J', CLI_STRING, o.json_path, "FILE", 0, 0, "also write the results to FILE"),
  ROW("hosts", 0, CLI_STRING, o.hosts, "LIST", 0, 0,
      "start the ranks: local:N (N hosts' worth of processes here),\n"
      "ns:NAME (network namespace), or the path of a command that runs\n"
      "its arguments on a host"),
  COUNT_ROW("ppn", 0, ppn, 1, 64, "with --hosts: processes on each"),
  ROW("split-cpus", 0, CLI_FLAG, o.is_split_cpus, NULL, 0, 0,
      "with --hosts: divide this machine's CPUs between its hosts, as\n"
      "real hosts have their own; no effect if there are too few"),
  { 0 },
};

/* Options only for the table, and only for --replay. */
static const char of_table[] = "op|root|minbytes|maxbytes|stepfactor|sizes|datatype|redop|iters|"
                               "warmup_iters|min-time|per-iteration|local_register";
static const char of_replay[] = "replay-steps|replay-skip|compute-scale|bytes-scale";

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

static int take_texts(struct options *o) {
  int status =
      take_list("op", given.operations, operation_find, OPERATION_WORDS, o->operations, OPERATIONS);
  if (status == CLI_OK)
    status = take_list("datatype", given.types, element_find, TYPE_WORDS, o->types, ELEMENT_TYPES);
  if (status == CLI_OK)
    status = take_list("redop", given.redops, operation_redop_find, REDOP_WORDS, o->redops,
                       PATTERN_NONE);
  if (status == CLI_OK)
    status = take_sizes(o, given.sizes);
  if (status == CLI_OK)
    status = take_real("stepfactor", given.step_factor, 1, 1e6, &o->step_factor);
  if (status == CLI_OK)
    status =
        take_real("compute-scale", given.compute_scale, 0, WORKLOAD_SCALE_MAX, &o->compute_scale);
  if (status == CLI_OK)
    status = take_real("bytes-scale", given.bytes_scale, 0, WORKLOAD_SCALE_MAX, &o->bytes_scale);
  return status;
}

/* ---- all of it ---- */

static int list_sizes(struct options *o) {
  if (given.sizes)
    return cli_given("minbytes|maxbytes|stepfactor")
               ? cli_fail_usage("--sizes takes the place of -b -e -f")
               : CLI_OK;
  if (!cli_given("maxbytes") && o->max_bytes < o->min_bytes)
    o->max_bytes = o->min_bytes;
  if (o->max_bytes < o->min_bytes)
    return cli_fail_usage("-e is less than -b");
  for (uint64_t bytes = o->min_bytes; bytes <= o->max_bytes;) {
    if (o->sizes_count == OPTIONS_SIZES_MAX)
      return cli_fail_usage("more than %d sizes from -b to -e: use a larger -f", OPTIONS_SIZES_MAX);
    o->sizes[o->sizes_count++] = bytes;
    uint64_t next = (uint64_t)((double)bytes * o->step_factor);
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

/* Jobs to be broken take the place of the table; aborted sums need not be timed well. */
static int check_stress(struct options *o) {
  int modes = !!o->soak_ns + !!o->abort_rounds + !!o->unmade_rounds;
  if (modes + !!o->replay > 1)
    return cli_fail_usage("one of --replay, --soak, --abort and --unmade");
  if (modes && o->gpus > 1)
    return cli_fail_usage("--soak, --abort and --unmade take one GPU per process: use --ppn");
  if (o->abort_rounds && !o->checks)
    return cli_fail_usage("--abort excludes -c 0");
  if (o->abort_rounds && !cli_given("iters"))
    o->iterations = 1;
  if (o->abort_rounds && !cli_given("warmup_iters"))
    o->warmup = 0;
  return CLI_OK;
}

static int check_together(const struct options *o) {
  const char *of_hosts = o->hosts ? NULL : cli_given("ppn|split-cpus");
  return of_hosts ? cli_fail_usage("--%s goes with --hosts", of_hosts) : CLI_OK;
}

static int complete(int argument_count, char **arguments, bool is_json) {
  struct options *o = &given.o;
  int status = check_replay(o);
  if (status == CLI_OK)
    status = take_texts(o);
  if (status == CLI_OK)
    status = list_sizes(o);
  if (status == CLI_OK)
    status = check_stress(o);
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
  static const struct cli_command command = {
    .name = "coll",
    .summary = "Measures and checks NCCL's collective operations. Options and table "
               "are those of nccl-tests\nwhere it has them. LIST is separated by "
               "commas; SIZE as in 8, 64K, 1G.",
    .example = "coll --hosts local:4 -O all -d all -o all --sizes 0,1,1000,64K\n"
               "  NCCL_NET_PLUGIN=stratus coll --hosts ns:a,ns:b -b 8 -e 64M -f 8\n"
               "  mpirun -np 16 -N 8 -x COLL_ADDR=node1:29500 coll -b 8 -e 1G\n"
               "  coll --hosts local:2 --replay resnet50 -J r.json",
    .options = rows,
    .run = complete,
    .exit_status = "0 all right; 1 wrong values, a failed rank or no time left; 2 wrong use",
  };
  given = defaults;
  given.operations = operation_of_name(argv[0]);
  shall_run = false;
  *status = cli_program(&command, STRATUS_VERSION, argc, argv);
  *options = given.o;
  return shall_run;
}
