/* SPDX-License-Identifier: Apache-2.0 */
/* stratus show: a profile, the named one or the one that fits this machine: where it is from,
 * whether it fits here, which rows do not hold, and its text without notes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/profile_match.h"
#include "common/tools/commands.h"
#include "common/topology.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/tools/tune.h"

static void print_fit(const struct profile_fit *fit) {
  static const struct profile_fit empty;
  char here[TOPOLOGY_ID_MAX];
  if (memcmp(fit, &empty, sizeof empty) == 0) {
    printf("it fits no machine by itself: used where STRATUS_PROFILE names it\n");
  }
  topology_identify(here);
  if (profile_match_has_topology(fit, here)) {
    printf("it is for this machine's topology\n");
  } else if (fit->topology[0]) {
    printf("it is for another topology than this machine's, %s\n",
           here[0] ? here : "which is not known");
  }
}

/* The tuner leaves out those whose gain may be noise. */
static void print_weak_rows(const struct profile_table *table) {
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    if (row->is_measured && !guard_is_worth(row->default_ns, row->choice_ns, row->noise_permille)) {
      printf("left to NCCL, as it gains too little: %s, %" PRIu32 " nodes x %" PRIu32
             " ranks, from %" PRIu64 " bytes on, %.1f us where %s %s took %.1f\n",
             profile_collective_name(table->collective), table->nodes, table->ppn, row->bytes_lo,
             (double)row->choice_ns * 1e-3, profile_algorithm_name(row->over.algorithm),
             profile_protocol_name(row->over.protocol), (double)row->default_ns * 1e-3);
    }
  }
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(argument_count > 0 ? arguments[0] : NULL, &profile, path);
  if (status != CLI_OK) {
    return status;
  }
  printf("profile %s, hash %016" PRIx64 ", from %s\n", profile.meta.id, profile_hash(&profile),
         path);
  print_fit(&profile.fit);
  for (size_t i = 0; i < profile.table_count; i++) {
    print_weak_rows(&profile.tables[i]);
  }
  status = tune_write(&profile, NULL);
  profile_free(&profile);
  return status;
}

const struct cli_command command_show = {
  .name = "show",
  .summary = "print a profile: the one that fits this machine, or FILE",
  .arguments = "[FILE]",
  .max_arguments = 1,
  .example = "stratus show tuner_plugin/profiles/example.profile",
  .run = run,
};
