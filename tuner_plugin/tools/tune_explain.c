/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune explain: what a profile chooses for one call, and why. Asks the plugin's own
 * decision code, so that the answer is the plugin's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tuner_plugin/decide/compile.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/tools/tune.h"

struct tune_explain_options tune_explain_options = {
  .collective = PROFILE_ALLREDUCE,
  .bytes = 4 << 20,
  .nodes = 2,
  .ppn = 8,
};

struct question {
  const struct profile *profile;
  enum profile_collective collective;
  uint64_t bytes;
  uint32_t nodes;
  uint32_t ppn;
};

struct answer {
  bool is_chosen;
  struct decide_row row; /* if chosen */
  uint64_t bytes_lo;     /* of the row */
  bool is_blind;         /* NCCL 2.21 would take it too */
  char reason[256];
};

/* Why no row holds. */
static void explain_absence(const struct question *question, struct answer *answer) {
  if (question->nodes < 2) {
    snprintf(answer->reason, sizeof answer->reason,
             "one node: profiles are about collectives over the network");
  } else if (!profile_find_table(question->profile, question->collective, question->nodes,
                                 question->ppn)) {
    snprintf(answer->reason, sizeof answer->reason,
             "the profile has no table for %s on %" PRIu32 " nodes x %" PRIu32 " ranks",
             profile_collective_name(question->collective), question->nodes, question->ppn);
  } else {
    snprintf(answer->reason, sizeof answer->reason,
             "the table for this shape has no row for this size");
  }
}

static int find_answer(const struct question *question, struct answer *answer) {
  size_t ranks = (size_t)question->nodes * question->ppn;
  size_t count = compile_count_rows(question->profile, ranks, question->nodes);
  uint64_t *starts = calloc(count + 1, sizeof *starts);
  struct decide_row *rows = calloc(count + 1, sizeof *rows);
  int status = starts && rows ? CLI_OK : cli_fail("out of memory");
  if (status == CLI_OK) {
    struct decide_table table;
    compile_table(question->profile, ranks, question->nodes, starts, rows, &table);
    const struct decide_row *row = decide_find_row(&table, question->collective, question->bytes);
    if (row) {
      answer->is_chosen = true;
      answer->row = *row;
      answer->bytes_lo = starts[row - rows];
      answer->is_blind = guard_allows_blind(question->collective, row->algo, row->proto);
      snprintf(answer->reason, sizeof answer->reason, "a row of the profile holds");
    } else {
      explain_absence(question, answer);
    }
  }
  free(starts);
  free(rows);
  return status;
}

static int print_answer(const struct question *question, const struct answer *answer,
                        const char *path) {
  char size[QUANTITY_TEXT_MAX], range[TUNE_RANGE_TEXT_MAX];
  char channels[TUNE_CHANNELS_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX];
  printf("call      %s of %s on %" PRIu32 " nodes x %" PRIu32 " ranks\n",
         profile_collective_name(question->collective), quantity_format_size(question->bytes, size),
         question->nodes, question->ppn);
  printf("profile   %s, hash %s, from %s\n", question->profile->meta.id,
         tune_format_hash(question->profile, hash), path);
  if (!answer->is_chosen) {
    printf("choice    NCCL's own\nreason    %s\n", answer->reason);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
  }
  printf("choice    %s %s, %s\n", profile_algorithm_name(answer->row.algo),
         profile_protocol_name(answer->row.proto),
         tune_format_channels(answer->row.channels, channels));
  printf("reason    the row for %s\n",
         tune_format_range(answer->bytes_lo, answer->row.bytes_hi, range));
  printf("but       NCCL's own where its cost table rules the cell out or puts it 256 times over "
         "its best\n");
  if (!answer->is_blind) {
    printf("          and in NCCL 2.21, which shows no costs, as not every communicator has it\n");
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static json_t *json_answer(const struct question *question, const struct answer *answer,
                           const char *path) {
  char hash[TUNE_HASH_TEXT_MAX];
  json_t *choice = json_null();
  if (answer->is_chosen) {
    choice =
        json_pack("{s:s, s:s, s:I, s:o, s:o}", "algo", profile_algorithm_name(answer->row.algo),
                  "proto", profile_protocol_name(answer->row.proto), "channels",
                  (json_int_t)answer->row.channels, "bytes_lo", tune_json_bytes(answer->bytes_lo),
                  "bytes_hi", tune_json_bytes(answer->row.bytes_hi));
  }
  return json_pack("{s:s, s:o, s:I, s:I, s:{s:s, s:s, s:s}, s:o, s:s}", "collective",
                   profile_collective_name(question->collective), "bytes",
                   tune_json_bytes(question->bytes), "nodes", (json_int_t)question->nodes, "ppn",
                   (json_int_t)question->ppn, "profile", "id", question->profile->meta.id, "hash",
                   tune_format_hash(question->profile, hash), "file", path, "choice", choice,
                   "reason", answer->reason);
}

int tune_explain(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments;
  const struct tune_explain_options *options = &tune_explain_options;
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(options->profile, &profile, path);
  if (status != CLI_OK) {
    return status;
  }
  struct question question = {
    .profile = &profile,
    .collective = (enum profile_collective)options->collective,
    .bytes = options->bytes,
    .nodes = (uint32_t)options->nodes,
    .ppn = (uint32_t)options->ppn,
  };
  struct answer answer = { 0 };
  status = find_answer(&question, &answer);
  if (status == CLI_OK) {
    status = is_json ? tune_print_json(json_answer(&question, &answer, path))
                     : print_answer(&question, &answer, path);
  }
  profile_free(&profile);
  return status;
}
