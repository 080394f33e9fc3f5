/* SPDX-License-Identifier: Apache-2.0 */
/* stratus show: a profile as text: the named one, or the one that fits this machine. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/profile_match.h"
#include "common/topology.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/tools/tune.h"

static void print_section(const struct profile *profile, enum profile_section section,
                          const char *title) {
  char value[PROFILE_TEXT_MAX];
  bool has_title = false;
  const char *name;
  for (size_t i = 0; (name = profile_key(profile, section, i, value)); i++) {
    if (!value[0] || strcmp(name, "schema") == 0 || strcmp(name, "id") == 0) {
      continue;
    }
    if (!has_title && title) {
      printf("%s\n", title);
    }
    has_title = true;
    printf("  %-14s %s\n", name, value);
  }
}

static void print_fit(const struct profile *profile) {
  static const struct profile_fit empty;
  char here[TOPOLOGY_ID_MAX];
  if (memcmp(&profile->fit, &empty, sizeof empty) == 0) {
    printf("fits no machine by itself: used where STRATUS_PROFILE names it\n");
  }
  print_section(profile, PROFILE_MATCH, "fits machines with");
  topology_identify(here);
  if (profile_match_has_topology(&profile->fit, here)) {
    printf("  %-14s which is this machine's topology\n", "");
  } else if (profile->fit.topology[0]) {
    printf("  %-14s which is another topology than this machine's, %s\n", "",
           here[0] ? here : "which is not known");
  }
}

/* "64K to under 4M", "4M and more"; then the cell, and how many channels. */
static void print_choice(const struct profile_row *row) {
  char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX], range[64];
  quantity_format_size(row->bytes_lo, low);
  if (row->bytes_hi == UINT64_MAX) {
    snprintf(range, sizeof range, "%s and more", low);
  } else {
    snprintf(range, sizeof range, "%s to under %s", low, quantity_format_size(row->bytes_hi, high));
  }
  printf("  %-20s %-13s %-7s ", range, profile_algorithm_name(row->cell.algorithm),
         profile_protocol_name(row->cell.protocol));
  if (row->cell.channels == 0) {
    printf("NCCL's number of channels");
  } else {
    printf("at most %" PRIu32 " channel%s", row->cell.channels, row->cell.channels == 1 ? "" : "s");
  }
}

/* The tuner leaves out those whose gain may be noise. */
static void print_measured(const struct profile_row *row) {
  bool holds = guard_is_worth(row->default_ns, row->choice_ns, row->noise_permille);
  printf("; %.1f us where %s %s took %.1f%s", (double)row->choice_ns * 1e-3,
         profile_algorithm_name(row->over.algorithm), profile_protocol_name(row->over.protocol),
         (double)row->default_ns * 1e-3, holds ? "" : ": too little, left to NCCL");
}

static int print_profile(const struct profile *profile, const char *path) {
  printf("profile %s, hash %016" PRIx64 ", from %s\n", profile->meta.id, profile_hash(profile),
         path);
  print_section(profile, PROFILE_ROOT, NULL);
  print_fit(profile);
  print_section(profile, PROFILE_NET, "links");
  for (size_t i = 0; i < profile->table_count; i++) {
    const struct profile_table *table = &profile->tables[i];
    printf("%s, %" PRIu32 " nodes x %" PRIu32 " ranks\n",
           profile_collective_name(table->collective), table->nodes, table->ppn);
    for (size_t r = 0; r < table->row_count; r++) {
      print_choice(&table->rows[r]);
      if (table->rows[r].is_measured) {
        print_measured(&table->rows[r]);
      }
      printf("\n");
    }
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(argument_count > 0 ? arguments[0] : NULL, &profile, path);
  if (status == CLI_OK) {
    status = print_profile(&profile, path);
    profile_free(&profile);
  }
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
