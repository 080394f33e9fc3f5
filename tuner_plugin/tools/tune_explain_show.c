/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of stratus-tune explain, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "common/nccl_chunk.h"
#include "tuner_plugin/decide/extrapolate.h"
#include "tuner_plugin/tools/tune_explain.h"

enum { COSTS_SHOWN = 6 };

/* ---- for people ---- */

static void print_default(const struct explain_default *usual) {
  const struct nccl_topology *t = &usual->topology;
  printf("nccl      %d.%d.%d: %s %s, at most %d channels\n", t->release / 10000,
         t->release / 100 % 100, t->release % 100, profile_algorithm_name(usual->cell.algorithm),
         profile_protocol_name(usual->cell.protocol), usual->channels);
  printf("topology  %s: ring %d x %g GB/s, tree %d x %g GB/s, to the NIC %s\n",
         usual->is_estimate ? "estimated" : "given", t->ring.channels, (double)t->ring.inter_gbs,
         t->tree.channels, (double)t->tree.inter_gbs, nccl_path_name(t->ring.outside));
}

/* The cells in the order of what NCCL computes for them. */
static void print_costs(const struct explain_default *usual) {
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
static double predict_us(const struct explain_question *question, unsigned cell) {
  const struct profile_model *model =
      cell == DECIDE_ANY_CELL
          ? NULL
          : profile_find_model(question->profile, question->collective, costs_cell_algorithm(cell),
                               costs_cell_protocol(cell));
  return model ? extrapolate_model_us(model, question->nodes, question->ppn, question->bytes) : 0;
}

static void print_predicted(const struct explain_question *question,
                            const struct explain_answer *answer) {
  double choice_us =
      predict_us(question, costs_cell(answer->row.choice.algo, answer->row.choice.proto));
  double default_us = predict_us(question, answer->row.choice.over);
  if (choice_us > 0 && default_us > 0) {
    printf("predicted %.1f us, NCCL's own choice %.1f us, by the profile's models\n", choice_us,
           default_us);
  }
}

static void print_row(const struct explain_question *question,
                      const struct explain_answer *answer) {
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
  print_predicted(question, answer);
  printf("but       NCCL's own if its cost table excludes the cell or it costs over 256 times "
         "NCCL's best\n");
  if (row && row->is_measured) {
    printf("          and if NCCL would choose another cell than the one measured against\n");
  }
  if (!answer->is_blind) {
    printf("          and in NCCL 2.21, which shows no costs, as not every communicator has it\n");
  }
}

int explain_print(const struct explain_question *question, const struct explain_answer *answer,
                  const char *path) {
  char size[QUANTITY_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX], topology[TUNE_TOPOLOGY_TEXT_MAX];
  printf("call      %s of %s on %" PRIu32 " nodes x %" PRIu32 " ranks\n",
         profile_collective_name(question->collective), quantity_format_size(question->bytes, size),
         question->nodes, question->ppn);
  if (answer->usual.is_known) {
    print_default(&answer->usual);
    print_costs(&answer->usual);
  }
  if (question->profile) {
    printf("profile   %s, hash %s, from %s\n", question->profile->meta.id,
           tune_format_hash(question->profile, hash), path);
    if (tune_format_topology(question->profile, topology)[0]) {
      printf("          made for %s\n", topology);
    }
  }
  if (answer->is_chosen) {
    print_row(question, answer);
  } else {
    printf("choice    NCCL's own\nreason    %s\n", answer->reason);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

/* ---- JSON ---- */

static json_t *json_default(const struct explain_default *usual) {
  if (!usual->is_known) {
    return json_null();
  }
  json_t *costs = json_object();
  for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
    for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
      char name[32];
      snprintf(name, sizeof name, "%s/%s", profile_algorithm_name((enum profile_algorithm)a),
               profile_protocol_name((enum profile_protocol)p));
      if (usual->costs[a][p] >= 0) {
        json_object_set_new(costs, name, json_real((double)usual->costs[a][p]));
      }
    }
  }
  return json_pack("{s:i, s:s, s:s, s:i, s:b, s:o}", "nccl", usual->topology.release, "algo",
                   profile_algorithm_name(usual->cell.algorithm), "proto",
                   profile_protocol_name(usual->cell.protocol), "channels", usual->channels,
                   "estimated", usual->is_estimate, "costs_us", costs);
}

static json_t *json_measured(const struct profile_row *row) {
  if (!row || !row->is_measured) {
    return json_null();
  }
  return json_pack("{s:s, s:s, s:f, s:f, s:f}", "over_algo",
                   profile_algorithm_name(row->over_algorithm), "over_proto",
                   profile_protocol_name(row->over_protocol), "default_us",
                   (double)row->default_ns / 1000, "choice_us", (double)row->choice_ns / 1000,
                   "noise_pct", row->noise_permille / 10.0);
}

static json_t *json_choice(const struct explain_question *question,
                           const struct explain_answer *answer) {
  if (!answer->is_chosen) {
    return json_null();
  }
  return json_pack(
      "{s:s, s:s, s:I, s:I, s:o, s:o, s:b, s:o}", "algo",
      profile_algorithm_name(answer->row.choice.algo), "proto",
      profile_protocol_name(answer->row.choice.proto), "channels",
      (json_int_t)answer->row.choice.channels, "chunk", (json_int_t)answer->row.choice.chunk,
      "bytes_lo", tune_json_bytes(answer->row.bytes_lo), "bytes_hi",
      tune_json_bytes(answer->row.bytes_hi), "carried_over", answer->source == NULL, "measured",
      json_measured(answer->source), "predicted_us",
      predict_us(question, costs_cell(answer->row.choice.algo, answer->row.choice.proto)),
      "predicted_default_us", predict_us(question, answer->row.choice.over));
}

static json_t *json_profile(const struct explain_question *question, const char *path) {
  char hash[TUNE_HASH_TEXT_MAX];
  if (!question->profile) {
    return json_null();
  }
  return json_pack("{s:s, s:s, s:s, s:s}", "id", question->profile->meta.id, "hash",
                   tune_format_hash(question->profile, hash), "file", path, "topology",
                   question->profile->fit.topology);
}

json_t *explain_json(const struct explain_question *question, const struct explain_answer *answer,
                     const char *path) {
  return json_pack("{s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:s}", "collective",
                   profile_collective_name(question->collective), "bytes",
                   tune_json_bytes(question->bytes), "nodes", (json_int_t)question->nodes, "ppn",
                   (json_int_t)question->ppn, "default", json_default(&answer->usual), "profile",
                   json_profile(question, path), "choice", json_choice(question, answer), "reason",
                   answer->reason);
}
