/* SPDX-License-Identifier: Apache-2.0 */
/* option_table: the table, and its help text. */
#include "tuner_plugin/tools/coll/option_table.h"

#include <stdio.h>
#include <string.h>

#include "common/contents.h"
#include "tuner_plugin/tools/coll/options.h"

const struct option_row option_rows[OPTION_ROWS] = {
  { 'O', "op", "LIST",
    "operations (all_reduce): all_reduce all_gather reduce_scatter\n"
    "broadcast reduce sendrecv alltoall, or all",
    USE_TABLE },
  { 'b', "minbytes", "SIZE", "smallest size (32M)", USE_TABLE },
  { 'e', "maxbytes", "SIZE", "largest size (32M, or -b where that is more)", USE_TABLE },
  { 'i', "stepbytes", "SIZE", "from one size to the next (1M)", USE_TABLE },
  { 'f', "stepfactor", "N", "the same, as a factor; 0 bytes are followed by 1", USE_TABLE },
  { OPTION_SIZES, "sizes", "LIST", "exactly these sizes, in this order", USE_TABLE },
  { 'd', "datatype", "LIST",
    "data types (float): int8 uint8 int32 uint32 int64 uint64 half\n"
    "float double bfloat16 f8e4m3 f8e5m2, or all",
    USE_TABLE },
  { 'o', "redop", "LIST", "reductions (sum): sum prod max min avg mulsum, or all", USE_TABLE },
  { 'r', "root", "RANK", "root of broadcast and reduce (0); all for each in turn", USE_TABLE },
  { 'n', "iters", "N", "timed iterations (20), launched together", USE_TABLE },
  { 'w', "warmup_iters", "N", "iterations before them, for each size (1)", USE_TABLE },
  { OPTION_MIN_TIME, "min-time", "TIME", "more iterations until they take this long, as in 200ms",
    USE_TABLE },
  { OPTION_PER_ITERATION, "per-iteration", NULL,
    "wait after each iteration and report each one's time", USE_TABLE },
  { 'c', "check", "N", "runs whose every element is checked (1); 0 for none", USE_ANY },
  { OPTION_DATA, "data", "WORD|FILE",
    "what is sent: a file of gradients, or invented ones:\n" CONTENTS_WORDS
    ". Sums stay exact: all ranks\n"
    "send the same, without its lowest bits. Reductions in place are\n"
    "left out; --replay sends averages, which do not grow. Not given:\n"
    "numbers made for checks (--replay: zeros). These compress as no\n"
    "gradients do: STRATUS_COMPRESS=off is set, unless it is set",
    USE_ANY },
  { 'a', "average", "0..3", "time shown: rank 0's, mean, min or max of ranks (1)", USE_TABLE },
  { 'G', "cudagraph", "N", "capture the iterations in a CUDA graph, launch it N times", USE_TABLE },
  { 'R', "local_register", "0|1", "register the buffers with NCCL (0)", USE_TABLE },
  { 'g', "ngpus", "N", "GPUs per process (1)", USE_ANY },
  { 'T', "timeout", "TIME", "end the run with an error after this long (no limit)", USE_ANY },
  { OPTION_GRACE, "grace", "TIME",
    "how long NCCL may take to notice that a rank has ended, before\n"
    "the other ranks end for that reason alone (0)",
    USE_ANY },
  { OPTION_REPLAY, "replay", "LIST",
    "instead of the table: training steps of these workloads, names\n"
    "of built-in ones or files (stratus-tune workload makes them),\n"
    "each in turn",
    USE_REPLAY },
  { OPTION_REPLAY_STEPS, "replay-steps", "N", "steps that are measured (100)", USE_REPLAY },
  { OPTION_REPLAY_SKIP, "replay-skip", "N", "steps before them (20)", USE_REPLAY },
  { OPTION_COMPUTE_SCALE, "compute-scale", "X", "compute times times X (1)", USE_REPLAY },
  { OPTION_BYTES_SCALE, "bytes-scale", "X", "numbers of elements and limits of buckets times X (1)",
    USE_REPLAY },
  { OPTION_BUCKET_BYTES, "bucket-bytes", "SIZE",
    "limit of the buckets after the first (what the workload says)", USE_REPLAY },
  { OPTION_REPLAY_LIST, "replay-list", "RANKS",
    "only print what each of so many ranks does in a step; needs\n"
    "neither NCCL nor a GPU",
    USE_REPLAY },
  { OPTION_JSON, "json", "FILE", "also write the results to FILE", USE_ANY },
  { OPTION_LABEL, "label", "TEXT", "a name for this run, in the JSON file", USE_ANY },
  { OPTION_HOSTS, "hosts", "LIST|FILE",
    "start the ranks on these hosts: HOST or ssh:HOST (by ssh),\n"
    "ns:NAME (network namespace), local:N (N hosts' worth of\n"
    "processes here), cmd:COMMAND, or a path, that runs its\n"
    "arguments on a host. Processes on each: HOST:8, HOST slots=8,\n"
    "or the host again. Also node[01-16], user@HOST, [ADDRESS]:8",
    USE_ANY },
  { OPTION_PPN, "ppn", "N", "with --hosts: processes per host (as LIST says, else 1)", USE_ANY },
  { OPTION_SPLIT_CPUS, "split-cpus", NULL,
    "with --hosts: divide this machine's CPUs between its hosts, as\n"
    "real hosts have their own; no effect if there are too few",
    USE_ANY },
  { OPTION_ENV, "env", "NAME[=VALUE]",
    "with --hosts: set this for the ranks (may be repeated);\n"
    "NAME alone: to its value here, which no command line shows",
    USE_ANY },
  { OPTION_ADDRESS, "address", "HOST:PORT",
    "where rank 0 listens for the others; needed only if\n"
    "the launcher does not set it",
    USE_ANY },
  { OPTION_VERSION, "version", NULL, "print the release", USE_ANY },
  { 'h', "help", NULL, "print this", USE_ANY },
};

void options_print_help(void) {
  puts("usage: stratus-coll [OPTIONS]\n\n"
       "Measures and checks NCCL's collective operations on real GPUs, or on emulated ones where\n"
       "there are none. Options and table are those of nccl-tests where it has them. LIST is\n"
       "separated by commas; SIZE as in 8, 64K, 1G.\n");
  for (int i = 0; i < OPTION_ROWS; i++) {
    char left[64];
    int used = option_rows[i].id < 256 ? snprintf(left, sizeof left, "-%c, ", option_rows[i].id)
                                       : snprintf(left, sizeof left, "    ");
    snprintf(left + used, sizeof left - (size_t)used, "--%s %s", option_rows[i].name,
             option_rows[i].argument ? option_rows[i].argument : "");
    const char *text = option_rows[i].help;
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
