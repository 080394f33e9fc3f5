/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune: tuning profiles and measurements. The table of its subcommands. */
#include <stddef.h>

#include "common/cli.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/version.h"
#include "tuner_plugin/calibrate/plan.h"
#include "tuner_plugin/tools/calibrate/campaign.h"
#include "tuner_plugin/tools/tune.h"

static const struct cli_option show_options[] = {
  { "nodes", 'n', CLI_INT, &tune_show_options.nodes, "COUNT",
    "with --ppn: rows that match this number of nodes, extrapolated ones included", 1, 1000000 },
  { "ppn", 'r', CLI_INT, &tune_show_options.ppn, "COUNT", "ranks on each node", 1, 1024 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option import_options[] = {
  { "output", 'o', CLI_STRING, &tune_import_options.out, "FILE", "write the profile to it", 0, 0 },
  { "nodes", 'n', CLI_INT, &tune_import_options.nodes, "COUNT",
    "with --ppn: apply rules for any number of nodes or ranks to this number as well", 1, 1000000 },
  { "ppn", 'r', CLI_INT, &tune_import_options.ppn, "COUNT", "ranks on each node", 1, 1024 },
  { "ignore-conditions", 0, CLI_FLAG, &tune_import_options.shall_ignore_conditions, NULL,
    "take rules that depend on pipe_ops or registered for all calls", 0, 0 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option verify_options[] = {
  { "here", 0, CLI_FLAG, &tune_verify_options.is_here, NULL,
    "print this host's profile, on one line, for srun, mpirun, pdsh", 0, 0 },
  { "tool", 0, CLI_STRING, &tune_verify_options.tool, "PATH", "path of stratus-tune on the hosts",
    0, 0 },
  { "ssh", 0, CLI_STRING, &tune_verify_options.ssh, "COMMAND",
    "how to reach a host, as in COMMAND HOST WORDS...", 0, 0 },
  { "timeout", 0, CLI_DURATION, &tune_verify_options.timeout_ns, "TIME",
    "how long to wait for answers", 0, 0 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option calibrate_options[] = {
  { "samples", 's', CLI_STRING, &tune_calibrate_options.samples, "FILE",
    "append samples to it; sizes already in it are not measured again", 0, 0 },
  CAMPAIGN_OPTION_ROWS,
  { "plan", 0, CLI_STRING, &tune_calibrate_options.plan, "FILE",
    "in every launch try the cells in FILE, as in allreduce:64K=ring.ll,tree.simple@1", 0, 0 },
  { "channels", 0, CLI_STRING, &tune_calibrate_options.channels, "LIST",
    "numbers of channels to try, as in 0,1,4; 0 is NCCL's own", 0, 0 },
  { "ll", 0, CLI_SIZE, &tune_calibrate_options.ll_bytes, "SIZE", "largest size for LL", 0, 0 },
  { "cost", 0, CLI_INT, &tune_calibrate_options.cost_factor, "N",
    "skip cells whose cost in NCCL's table is this many times that of its choice", 1,
    SCHEDULE_COST_FACTOR_MAX },
  { "seed", 0, CLI_INT, &tune_calibrate_options.seed, "N", "shuffle seed", 0, INT32_MAX },
  { "run", 0, CLI_INT, &tune_calibrate_options.run, "N",
    "consecutive calls with the same cell, fewer above 1M; the first third is not counted", 1,
    PLAN_RUN_MAX },
  { "rounds", 0, CLI_INT, &tune_calibrate_options.rounds, "N",
    "launches; each after the first measures only undecided cells", 1, 99 },
  { "env-name", 0, CLI_STRING, &tune_calibrate_options.env_name, "NAME",
    "name in the samples for the variables that are set", 0, 0 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option topology_options[] = {
  { "output", 'o', CLI_STRING, &tune_topology_options.output, "FILE", "write to it", 0, 0 },
  { "type", 0, CLI_STRING, &tune_topology_options.type, "TYPE",
    "instance type, where it is not this machine's", 0, 0 },
  { "nodes", 0, CLI_INT, &tune_topology_options.nodes, "N",
    "the GPUs are on N NUMA nodes, in the order of their addresses", 1, 64 },
  { "switches", 0, CLI_INT, &tune_topology_options.switches, "N",
    "and behind N PCI switches, each with as many NICs", 1, 64 },
  { 0 },
};

static const struct cli_option verify_ab_options[] = {
  { "profile", 'p', CLI_STRING, &tune_verify_ab_options.profile, "FILE", "profile to verify", 0,
    0 },
  { "output", 'o', CLI_STRING, &tune_verify_ab_options.out, "FILE",
    "write the profile to it, without the rows that failed", 0, 0 },
  { "rounds", 0, CLI_INT, &tune_verify_ab_options.rounds, "N", "runs of each side, alternating", 1,
    99 },
  { "for", 0, CLI_DURATION, &tune_verify_ab_options.for_ns, "TIME",
    "after the second round, start none that would end later than this", 0, 0 },
  CAMPAIGN_OPTION_ROWS,
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option suggest_options[] = {
  { "profile", 'p', CLI_STRING, &tune_suggest_profile, "FILE",
    "profile that the jobs use, if the samples do not name it", 0, 0 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_option fit_options[] = {
  { "output", 'o', CLI_STRING, &tune_fit_options.output, "FILE", "write the profile to it", 0, 0 },
  { "base", 0, CLI_STRING, &tune_fit_options.base, "FILE",
    "copy [match], [net] and [env] from this profile", 0, 0 },
  { "id", 0, CLI_STRING, &tune_fit_options.id, "NAME", "id of the new profile", 0, 0 },
  { "env", 0, CLI_STRING, &tune_fit_options.env, "NAME",
    "use only samples with this set of variables", 0, 0 },
  { "topology", 0, CLI_STRING, &tune_fit_options.topology, "ID",
    "use only samples of this topology, and write it to [match] of the profile", 0, 0 },
  { NULL, 0, CLI_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct cli_command commands[] = {
  { .name = "check",
    .summary = "check profiles; errors name line and column",
    .arguments = "FILE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .example = "stratus-tune check tuner_plugin/profiles/example.profile",
    .has_json = true,
    .run = tune_check },
  { .name = "show",
    .summary = "print a profile: the one that fits this machine, or FILE",
    .arguments = "[FILE]",
    .max_arguments = 1,
    .example = "stratus-tune show tuner_plugin/profiles/example.profile",
    .has_json = true,
    .options = show_options,
    .run = tune_show },
  { .name = "diff",
    .summary = "show how two profiles differ, and whether ranks with both would choose alike",
    .arguments = "A B",
    .min_arguments = 2,
    .max_arguments = 2,
    .example = "stratus-tune diff tuner_plugin/profiles/example.profile "
               "tuner_plugin/profiles/example.profile",
    .has_json = true,
    .run = tune_diff },
  { .name = "import",
    .summary = "make a profile from the CSV file of NCCL's example tuner",
    .arguments = "FILE.csv",
    .min_arguments = 1,
    .max_arguments = 1,
    .example = "stratus-tune import tuner_plugin/profiles/example.csv",
    .options = import_options,
    .run = tune_import },
  { .name = "topology",
    .summary = "write a file for NCCL_TOPO_FILE where a virtual machine hides where its GPUs are",
    .arguments = "",
    .example = "STRATUS_SYSFS_ROOT=tests/data/sysfs/aws stratus-tune topology",
    .options = topology_options,
    .run = tune_topology },
  { .name = "verify",
    .summary = "check through ssh whether hosts have the same profile and variables of NCCL, and "
               "so choose alike",
    .arguments = "[HOST...]",
    .max_arguments = -1,
    .example = "stratus-tune verify local local",
    .has_json = true,
    .options = verify_options,
    .run = tune_verify },
  { .name = "fit",
    .summary =
        "make a profile from samples: rows where another choice is reliably faster than NCCL's",
    .arguments = "SAMPLES...",
    .min_arguments = 1,
    .max_arguments = -1,
    .example = "stratus-tune fit tests/data/samples/example.jsonl",
    .options = fit_options,
    .run = tune_fit },
  { .name = "explain",
    .summary = "show what NCCL and a profile choose for a collective, and why",
    .example = "stratus-tune explain --profile tuner_plugin/profiles/example.profile "
               "--coll allreduce --bytes 4M --nodes 8 --ppn 8 --nccl 2.28.9",
    .has_json = true,
    .options = tune_explain_options,
    .run = tune_explain },
  { .name = "calibrate",
    .summary = "measure every algorithm and protocol on all ranks: samples for `stratus-tune fit`",
    .arguments = "[-- COMMAND...]",
    .max_arguments = -1,
    .example = "stratus-tune calibrate -s s.jsonl -- mpirun -np 16 -N 8 all_reduce_perf",
    .options = calibrate_options,
    .run = tune_calibrate },
  { .name = "verify-ab",
    .summary = "run a profile against NCCL's own choice in alternation, and drop rows that fail",
    .arguments = "[-- COMMAND...]",
    .max_arguments = -1,
    .example = "stratus-tune verify-ab -p a.profile -o b.profile -- mpirun -np 16 all_reduce_perf",
    .has_json = true,
    .options = verify_ab_options,
    .run = tune_verify_ab },
  { .name = "suggest",
    .summary = "show which collectives and sizes of recorded jobs (STRATUS_RECORD) to calibrate",
    .arguments = "FILE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .example = "stratus-tune suggest tests/data/samples/recorded.jsonl",
    .has_json = true,
    .options = suggest_options,
    .run = tune_suggest },
  { .name = "report",
    .summary = "plots and tables from the output of any of our tools: HTML, Markdown or text",
    .arguments = "[LABEL=]FILE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .example = "stratus-tune report tests/data/report/samples.jsonl "
               "tests/data/report/chosen.profile --output build/report.html",
    .has_json = true,
    .options = tune_report_options,
    .run = tune_report },
  { .name = "compare",
    .summary = "show where B is faster or slower than A; exit status 1 if it is slower anywhere",
    .arguments = "A B [A B]...",
    .min_arguments = 2,
    .max_arguments = -1,
    .example = "stratus-tune compare tests/data/report/coll-none.1.json "
               "tests/data/report/coll-stratus.1.json",
    .has_json = true,
    .options = tune_compare_options,
    .run = tune_compare },
  { .name = "workload",
    .summary = "make a workload file for stratus-coll --replay from a trace of a job",
    .arguments = "TRACE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .example = "stratus-tune workload tests/data/trace/ddp.json --output build/mine.json",
    .options = tune_workload_options,
    .run = tune_workload },
  { .name = NULL },
};

int main(int argc, char **argv) {
  static const struct cli_tool tool = {
    .name = "stratus-tune",
    .summary = "Makes, checks and shows tuning profiles, and measures for them.",
    .version = STRATUS_VERSION,
    .commands = commands,
  };
  if (nccl_conf_apply(nccl_version_installed) != 0) {
    return cli_fail("out of memory");
  }
  return cli_main(&tool, argc, argv);
}
