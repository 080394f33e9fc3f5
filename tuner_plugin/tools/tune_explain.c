/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune explain: what NCCL chooses by itself for one call, what a profile changes, and why.
 * Runs the plugin's own decision code, so that the answer is the plugin's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile_match.h"
#include "tuner_plugin/decide/compile.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/tools/tune_explain.h"

struct tune_explain_options tune_explain_options = {
  .collective = PROFILE_ALLREDUCE,
  .bytes = 4 << 20,
  .nodes = 2,
  .ppn = 8,
};

/* Why no row matches. */
static void explain_absence(const struct explain_question *question,
                            struct explain_answer *answer) {
  if (question->nodes < 2) {
    snprintf(answer->reason, sizeof answer->reason,
             "one node: profiles apply to collectives over the network only");
  } else if (profile_find_table(question->profile, question->collective, question->nodes,
                                question->ppn)) {
    snprintf(answer->reason, sizeof answer->reason,
             "the table for this shape has no row for this size, or none that gains enough");
  } else {
    snprintf(answer->reason, sizeof answer->reason,
             "the profile has no table for %s on %" PRIu32 " nodes x %" PRIu32
             " ranks, and nothing to extrapolate from",
             profile_collective_name(question->collective), question->nodes, question->ppn);
  }
}

/* What the plugin would do with NCCL's costs, as far as they are known. */
static void judge_choice(const struct decide_choice *choice, struct explain_answer *answer) {
  const struct explain_default *usual = &answer->usual;
  if (!usual->is_known) {
    snprintf(answer->reason, sizeof answer->reason, "a row of the profile matches");
    return;
  }
  nccl_costs costs;
  memcpy(costs, usual->costs, sizeof costs);
  struct decide_costs view = { &costs[0][0], PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
  enum guard_verdict verdict = guard_check_choice(view, choice);
  bool is_against_other = choice->over != DECIDE_ANY_CELL &&
                          choice->over != costs_cell(usual->cell.algorithm, usual->cell.protocol);
  if (verdict != GUARD_REFUSED) {
    snprintf(answer->reason, sizeof answer->reason, "a row of the profile matches");
    return;
  }
  answer->is_chosen = false;
  if (is_against_other) {
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

/* The profile's row behind a decision, for its figures; NULL if it was extrapolated. */
static const struct profile_row *find_source(const struct explain_question *question) {
  const struct profile_table *table =
      profile_find_table(question->profile, question->collective, question->nodes, question->ppn);
  return profile_find_row(table, question->bytes);
}

static int find_answer(const struct explain_question *question, struct explain_answer *answer) {
  size_t ranks = (size_t)question->nodes * question->ppn;
  int coll = (int)question->collective;
  void *memory = malloc(compile_bytes(question->profile, ranks, question->nodes) + 1);
  int status = memory ? CLI_OK : cli_fail("out of memory");
  if (status == CLI_OK) {
    struct decide_table table;
    compile_table(question->profile, ranks, question->nodes, memory, &table);
    const struct decide_row *row = decide_find(&table, coll, question->bytes);
    if (row) {
      answer->is_chosen = true;
      answer->row = *row;
      answer->is_blind = guard_allows_blind(coll, row->choice.algo, row->choice.proto);
      answer->source = find_source(question);
      judge_choice(&row->choice, answer);
    } else {
      explain_absence(question, answer);
    }
  }
  free(memory);
  return status;
}

/* The named profile, or the one that fits here; that there is none is an error only where nothing
 * else was asked. */
static int load_profile(const struct explain_answer *answer, struct profile *profile,
                        char path[PROFILE_PATH_MAX], bool *is_loaded) {
  struct profile_error error;
  const char *name = tune_explain_options.profile;
  if (name || !answer->usual.is_known) {
    int status = tune_load(name, profile, path);
    *is_loaded = status == CLI_OK;
    return status;
  }
  *is_loaded = profile_match_load(profile, path, &error) == 0;
  return CLI_OK;
}

int tune_explain(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments;
  const struct tune_explain_options *options = &tune_explain_options;
  struct explain_question question = {
    .collective = (enum profile_collective)options->collective,
    .bytes = options->bytes,
    .nodes = (uint32_t)options->nodes,
    .ppn = (uint32_t)options->ppn,
  };
  struct explain_answer answer = { 0 };
  struct profile profile;
  char path[PROFILE_PATH_MAX] = "";
  int status = explain_find_default(&question, &answer.usual);
  bool is_loaded = false;
  if (status == CLI_OK) {
    status = load_profile(&answer, &profile, path, &is_loaded);
  }
  if (status != CLI_OK) {
    return status;
  }
  if (is_loaded) {
    question.profile = &profile;
    status = find_answer(&question, &answer);
  } else {
    snprintf(answer.reason, sizeof answer.reason,
             "no profile fits this machine, and none was named");
  }
  if (status == CLI_OK) {
    status = is_json ? tune_print_json(explain_json(&question, &answer, path))
                     : explain_print(&question, &answer, path);
  }
  if (is_loaded) {
    profile_free(&profile);
  }
  return status;
}
