/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL would choose: its release and the topology from options, the rest from the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/model/nccl_graph.h"
#include "tuner_plugin/model/nccl_table.h"
#include "tuner_plugin/tools/tune_explain.h"

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
  if (!tune_explain_options.machine) {
    return CLI_OK;
  }
  char words[256];
  snprintf(words, sizeof words, "%s", tune_explain_options.machine);
  const char *wrong = nccl_table_parse_machine(words, machine);
  if (!wrong && machine->gpus > 0 && machine->nics > 0 && machine->mbps > 0) {
    return CLI_OK;
  }
  return cli_fail_usage(
      "--machine: \"%s\": it takes gpus=, nics=, mbps=, links=, near=, cc=, latency_us= and "
      "cpu=intel|amd|mixed|arm|power",
      wrong ? wrong : tune_explain_options.machine);
}

static int read_topology(struct explain_default *usual) {
  struct nccl_table table;
  struct profile_error error;
  if (nccl_table_read(tune_explain_options.topology, &table, &error) < 0) {
    char text[sizeof error];
    return cli_fail("%s", profile_error_format(&error, text, sizeof text));
  }
  usual->topology = table.topology;
  nccl_table_free(&table);
  return CLI_OK;
}

int explain_find_default(const struct explain_question *question, struct explain_default *usual) {
  const struct tune_explain_options *options = &tune_explain_options;
  if (!options->nccl && !options->topology) {
    return CLI_OK;
  }
  int status = CLI_OK;
  if (options->topology) {
    status = read_topology(usual);
  }
  if (options->nccl) {
    usual->topology.release = parse_release(options->nccl);
  }
  if (status == CLI_OK && usual->topology.release < 21900) {
    return cli_fail_usage("--nccl takes a release from 2.19 on, such as 2.28.9");
  }
  usual->topology.nodes = (int)question->nodes;
  usual->topology.ppn = (int)question->ppn;
  if (status == CLI_OK && !options->topology) {
    struct nccl_machine machine;
    status = read_machine(&machine);
    if (status == CLI_OK) {
      nccl_graph_estimate(&machine, &usual->topology);
      usual->is_estimate = true;
    }
  }
  if (status != CLI_OK) {
    return status;
  }
  if (question->nodes * question->ppn < 2) {
    return cli_fail("one rank alone: NCCL copies, there is nothing to choose");
  }
  struct nccl_model model;
  nccl_model_build(&usual->topology, &model);
  nccl_model_costs(&model, question->collective, question->bytes, usual->costs);
  usual->is_known = nccl_model_choose(usual->costs, &usual->cell);
  usual->channels = nccl_model_channels(&model, usual->cell, question->bytes);
  return CLI_OK;
}
