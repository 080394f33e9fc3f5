/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune explain: what NCCL chooses by itself for one call, what a profile changes, and why.
 * Runs the plugin's own decision code, so that the answer is the plugin's; what NCCL chooses is the
 * model's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nccl_chunk.h"
#include "common/profile_match.h"
#include "tuner_plugin/decide/compile.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/extrapolate.h"
#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/model/nccl_graph.h"
#include "tuner_plugin/tools/tune.h"

enum { COSTS_SHOWN = 6 };

static struct {
  const char *profile; /* NULL: the one that fits here */
  const char *nccl;    /* NULL: nothing is asked about it */
  const char *machine;
  int collective;
  uint64_t bytes;
  int64_t nodes, ppn;
} options = { .collective = PROFILE_ALLREDUCE, .bytes = 4 << 20, .nodes = 2, .ppn = 8 };

static const struct cli_option option_rows[] = {
  { "profile", 'p', CLI_STRING, &options.profile, "FILE",
    "profile to use instead of the one that fits this machine", 0, 0 },
  { "coll", 'c', CLI_WORD, &options.collective, PROFILE_COLLECTIVE_WORDS, "collective", 0, 0 },
  { "bytes", 'b', CLI_SIZE, &options.bytes, "SIZE",
    "size as nccl-tests shows it; the sum over the ranks for allgather and reducescatter", 0, 0 },
  { "nodes", 'n', CLI_INT, &options.nodes, "COUNT", "nodes of the communicator", 1, 1000000 },
  { "ppn", 'r', CLI_INT, &options.ppn, "COUNT", "ranks on each node", 1, 1024 },
  { "nccl", 0, CLI_STRING, &options.nccl, "RELEASE",
    "show what this release chooses by itself, as in 2.28.9", 0, 0 },
  { "machine", 0, CLI_STRING, &options.machine, "WORDS",
    "of each host, for --nccl: gpus=8,nics=4,mbps=100000,links=12,near=0,cc=80,cpu=intel", 0, 0 },
  { 0 },
};

/* NCCL's own choice, by its model. */
struct usual {
  bool is_known; /* --nccl was given */
  struct nccl_topology topology;
  nccl_costs costs;
  struct nccl_cell cell;
  int channels;
};

struct answer {
  struct usual usual;
  const struct profile *profile; /* NULL: there is none */
  char path[PROFILE_PATH_MAX];   /* of it */
  bool is_chosen;                /* the profile's row matches */
  struct decide_row row;
  const struct profile_row *source; /* of the row; NULL: from other numbers of nodes */
  bool is_blind;                    /* NCCL 2.21 would take it too */
  char reason[256];
};

static enum profile_collective collective(void) {
  return (enum profile_collective)options.collective;
}

static const struct profile_table *find_table(const struct answer *answer) {
  return profile_find_table(answer->profile, collective(), (uint32_t)options.nodes,
                            (uint32_t)options.ppn);
}

/* ---- what NCCL would choose ---- */

/* "2.28.9" as ncclGetVersion counts; 0 for what is none. Without the third number: 0. */
static int parse_release(const char *text) {
  unsigned major, minor, patch = 0;
  char rest;
  int count = sscanf(text, "%u.%u.%u%c", &major, &minor, &patch, &rest);
  bool is_good = (count == 2 || count == 3) && major == 2 && minor < 100 && patch < 100;
  return is_good && strspn(text, "0123456789.") == strlen(text)
             ? (int)(major * 10000 + minor * 100 + patch)
             : 0;
}

/* A machine that is not described otherwise: eight GPUs with NVLink, one NIC of 100 Gb/s. */
static int read_machine(struct nccl_machine *machine) {
  *machine = (struct nccl_machine){ .gpus = 8, .nics = 1, .mbps = 100000, .links = 12, .cc = 80 };
  if (!options.machine) {
    return CLI_OK;
  }
  char words[256];
  snprintf(words, sizeof words, "%s", options.machine);
  const char *wrong = nccl_graph_parse_machine(words, machine);
  if (!wrong && machine->gpus > 0 && machine->nics > 0 && machine->mbps > 0) {
    return CLI_OK;
  }
  return cli_fail_usage(
      "--machine: \"%s\": it takes gpus=, nics=, mbps=, links=, near=, cc=, latency_us= and "
      "cpu=intel|amd|mixed|arm|power",
      wrong ? wrong : options.machine);
}

static int find_usual(struct usual *usual) {
  if (!options.nccl) {
    return CLI_OK;
  }
  struct nccl_topology *topology = &usual->topology;
  *topology = (struct nccl_topology){ .release = parse_release(options.nccl),
                                      .nodes = (int)options.nodes,
                                      .ppn = (int)options.ppn };
  if (topology->release < 21900) {
    return cli_fail_usage("--nccl takes a release from 2.19 on, such as 2.28.9");
  }
  struct nccl_machine machine;
  int status = read_machine(&machine);
  if (status != CLI_OK) {
    return status;
  }
  if (options.nodes * options.ppn < 2) {
    return cli_fail("one rank alone: NCCL copies, there is nothing to choose");
  }
  struct nccl_model model;
  nccl_graph_estimate(&machine, topology);
  nccl_model_build(topology, &model);
  nccl_model_costs(&model, collective(), options.bytes, usual->costs);
  usual->is_known = nccl_model_choose(usual->costs, &usual->cell);
  usual->channels = nccl_model_channels(&model, usual->cell, options.bytes);
  return CLI_OK;
}

/* ---- what the plugin would choose ---- */

/* Why no row matches. */
static void explain_absence(struct answer *answer) {
  if (options.nodes < 2) {
    snprintf(answer->reason, sizeof answer->reason,
             "one node: profiles apply to collectives over the network only");
  } else if (find_table(answer)) {
    snprintf(answer->reason, sizeof answer->reason,
             "the table for this shape has no row for this size, or none that gains enough");
  } else {
    snprintf(answer->reason, sizeof answer->reason,
             "the profile has no table for %s on %" PRId64 " nodes x %" PRId64
             " ranks, and nothing to extrapolate from",
             profile_collective_name(collective()), options.nodes, options.ppn);
  }
}

/* What the plugin would do with NCCL's costs, as far as they are known. */
static void judge_choice(struct answer *answer) {
  struct usual *usual = &answer->usual;
  const struct decide_choice *choice = &answer->row.choice;
  struct decide_costs costs = { &usual->costs[0][0], PROFILE_ALGORITHM_COUNT,
                                PROFILE_PROTOCOL_COUNT };
  bool is_against_other = choice->over != DECIDE_ANY_CELL &&
                          choice->over != costs_cell(usual->cell.algorithm, usual->cell.protocol);
  answer->is_chosen = !usual->is_known || guard_check(costs, choice->algo, choice->proto,
                                                      choice->over) != GUARD_REFUSED;
  if (answer->is_chosen) {
    snprintf(answer->reason, sizeof answer->reason, "a row of the profile matches");
  } else if (is_against_other) {
    snprintf(answer->reason, sizeof answer->reason,
             "the row was measured against another choice of NCCL's than %s %s",
             profile_algorithm_name(usual->cell.algorithm),
             profile_protocol_name(usual->cell.protocol));
  } else if (usual->costs[choice->algo][choice->proto] < 0) {
    snprintf(answer->reason, sizeof answer->reason, "NCCL rules the row's cell %s %s out",
             profile_algorithm_name(choice->algo), profile_protocol_name(choice->proto));
  } else {
    snprintf(answer->reason, sizeof answer->reason,
             "the row's cell %s %s costs over 256 times NCCL's best",
             profile_algorithm_name(choice->algo), profile_protocol_name(choice->proto));
  }
}

static int find_answer(struct answer *answer) {
  size_t nodes = (size_t)options.nodes, ranks = nodes * (size_t)options.ppn;
  void *memory = malloc(compile_bytes(answer->profile, ranks, nodes) + 1);
  if (!memory) {
    return cli_fail("out of memory");
  }
  struct decide_table table;
  compile_table(answer->profile, ranks, nodes, memory, &table);
  const struct decide_row *row = decide_find(&table, options.collective, options.bytes);
  if (row) {
    answer->row = *row;
    answer->is_blind = guard_allows_blind(options.collective, row->choice.algo, row->choice.proto);
    answer->source = profile_find_row(find_table(answer), options.bytes);
    judge_choice(answer);
  } else {
    explain_absence(answer);
  }
  free(memory);
  return CLI_OK;
}

/* ---- printing ---- */

static void print_usual(const struct usual *usual) {
  const struct nccl_topology *t = &usual->topology;
  printf("nccl      %d.%d.%d: %s %s, at most %d channels\n", t->release / 10000,
         t->release / 100 % 100, t->release % 100, profile_algorithm_name(usual->cell.algorithm),
         profile_protocol_name(usual->cell.protocol), usual->channels);
  printf("topology  estimated: ring %d x %g GB/s, tree %d x %g GB/s, to the NIC %s\n",
         t->ring.channels, (double)t->ring.inter_gbs, t->tree.channels, (double)t->tree.inter_gbs,
         nccl_path_name(t->ring.outside));
}

/* The cells in the order of what NCCL computes for them. */
static void print_costs(const struct usual *usual) {
  bool is_shown[PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT] = { 0 };
  for (int line = 0; line < COSTS_SHOWN; line++) {
    struct nccl_cell next;
    nccl_costs left;
    for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
      for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
        left[a][p] = is_shown[a][p] ? -1.0f : usual->costs[a][p];
      }
    }
    if (!nccl_model_choose(left, &next)) {
      break;
    }
    is_shown[next.algorithm][next.protocol] = true;
    printf("%-9s %-8s %-7s %12.1f us\n", line == 0 ? "nccl says" : "",
           profile_algorithm_name(next.algorithm), profile_protocol_name(next.protocol),
           (double)usual->costs[next.algorithm][next.protocol]);
  }
}

/* Microseconds by the profile's own model; 0 if it has none. */
static double predict_us(const struct answer *answer, unsigned cell) {
  const struct profile_model *model =
      cell == DECIDE_ANY_CELL
          ? NULL
          : profile_find_model(answer->profile, collective(), costs_cell_algorithm(cell),
                               costs_cell_protocol(cell));
  return model ? extrapolate_model_us(model, (uint64_t)options.nodes, (uint64_t)options.ppn,
                                      options.bytes)
               : 0;
}

static double predict_choice_us(const struct answer *answer) {
  return predict_us(answer, costs_cell(answer->row.choice.algo, answer->row.choice.proto));
}

static void print_row(const struct answer *answer) {
  char channels[TUNE_CHANNELS_TEXT_MAX], range[TUNE_RANGE_TEXT_MAX], chunk[QUANTITY_TEXT_MAX];
  printf("choice    %s %s, %s\n", profile_algorithm_name(answer->row.choice.algo),
         profile_protocol_name(answer->row.choice.proto),
         tune_format_channels(answer->row.choice.channels, channels));
  if (answer->row.choice.chunk > 0) {
    int release = answer->usual.is_known ? answer->usual.topology.release : NCCL_CHUNK_VERSION;
    printf("chunk     %s%s\n", quantity_format_size(answer->row.choice.chunk, chunk),
           release < NCCL_CHUNK_VERSION
               ? ", but this NCCL uses its own: 2.30.3 is the first that asks"
               : " in NCCL 2.30.3 and later");
  }
  printf("reason    the row for %s%s\n",
         tune_format_range(answer->row.bytes_lo, answer->row.bytes_hi, range),
         answer->source ? "" : ", extrapolated from other numbers of nodes");
  const struct profile_row *row = answer->source;
  if (row && row->is_measured) {
    printf("measured  %.1f us, %s %s %.1f us: %.1f %% faster at least, noise %.1f %%\n",
           (double)row->choice_ns / 1000, profile_algorithm_name(row->over_algorithm),
           profile_protocol_name(row->over_protocol), (double)row->default_ns / 1000,
           100.0 * ((double)row->default_ns / (double)row->choice_ns - 1),
           row->noise_permille / 10.0);
  }
  double choice_us = predict_choice_us(answer);
  double default_us = predict_us(answer, answer->row.choice.over);
  if (choice_us > 0 && default_us > 0) {
    printf("predicted %.1f us, NCCL's own choice %.1f us, by the profile's models\n", choice_us,
           default_us);
  }
  printf("but       NCCL's own if its cost table excludes the cell or it costs over 256 times "
         "NCCL's best\n");
  if (row && row->is_measured) {
    printf("          and if NCCL would choose another cell than the one measured against\n");
  }
  if (!answer->is_blind) {
    printf("          and in NCCL 2.21, which shows no costs, as not every communicator has it\n");
  }
}

static int print_answer(const struct answer *answer) {
  char size[QUANTITY_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX], topology[TUNE_TOPOLOGY_TEXT_MAX];
  printf("call      %s of %s on %" PRId64 " nodes x %" PRId64 " ranks\n",
         profile_collective_name(collective()), quantity_format_size(options.bytes, size),
         options.nodes, options.ppn);
  if (answer->usual.is_known) {
    print_usual(&answer->usual);
    print_costs(&answer->usual);
  }
  if (answer->profile) {
    printf("profile   %s, hash %s, from %s\n", answer->profile->meta.id,
           tune_format_hash(answer->profile, hash), answer->path);
    if (tune_format_topology(answer->profile, topology)[0]) {
      printf("          made for %s\n", topology);
    }
  }
  if (answer->is_chosen) {
    print_row(answer);
  } else {
    printf("choice    NCCL's own\nreason    %s\n", answer->reason);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

/* ---- the command ---- */

/* The named profile, or the one that fits here; that there is none is an error only where nothing
 * else was asked. */
static int load_profile(struct answer *answer, struct profile *profile) {
  struct profile_error error;
  if (options.profile || !answer->usual.is_known) {
    int status = tune_load(options.profile, profile, answer->path);
    answer->profile = status == CLI_OK ? profile : NULL;
    return status;
  }
  answer->profile = profile_match_load(profile, answer->path, &error) == 0 ? profile : NULL;
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  struct answer answer = { .reason = "no profile fits this machine, and none was named" };
  struct profile profile;
  int status = find_usual(&answer.usual);
  if (status == CLI_OK) {
    status = load_profile(&answer, &profile);
  }
  if (status == CLI_OK && answer.profile) {
    status = find_answer(&answer);
  }
  if (status == CLI_OK) {
    status = print_answer(&answer);
  }
  if (answer.profile) {
    profile_free(&profile);
  }
  return status;
}

const struct cli_command tune_explain = {
  .name = "explain",
  .summary = "show what NCCL and a profile choose for a collective, and why",
  .example = "stratus-tune explain --profile tuner_plugin/profiles/example.profile "
             "--coll allreduce --bytes 4M --nodes 8 --ppn 8 --nccl 2.28.9",
  .options = option_rows,
  .run = run,
};
