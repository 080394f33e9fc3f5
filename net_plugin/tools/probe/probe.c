/* SPDX-License-Identifier: Apache-2.0 */
/* stratus probe: measures the network between hosts. A launcher starts it on all of them, and every
 * rank that takes part goes through the same steps. */
#include <stdlib.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/tools/commands.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/ranks.h"

static struct {
  const char *root;
  uint64_t duration_ns;
} options = { .duration_ns = 400 * NS_PER_MS };

static const struct cli_option option_rows[] = {
  { "root", 0, CLI_STRING, &options.root, "HOST[:PORT]",
    "address of rank 0; needed under mpirun, known under srun and torchrun", 0, 0 },
  { "time", 0, CLI_DURATION, &options.duration_ns, "TIME",
    "duration of each measurement between two hosts, after a warm-up of half of it", NS_PER_MS,
    PROBE_DURATION_MAX_NS },
  { 0 },
};

/* Rank 0 says what was found. */
static int probe(struct ranks *ranks) {
  static struct probe_report report; /* too large for the stack */
  int status = survey_run(ranks, options.duration_ns, &report);
  ranks_close(ranks, status);
  if (status == CLI_OK && ranks->own == 0) {
    report_table(&report);
    status = findings_has_failed(&report) ? CLI_FAILED : CLI_OK;
  }
  free(report.results);
  return status;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  static struct ranks ranks; /* too large for the stack */
  struct launcher_place place;
  char error[256];
  int found = launcher_find(&place, error, sizeof error);
  if (found < 0) {
    return cli_fail_usage("probe: %s", error);
  }
  if (found == 0 || place.size < 2) {
    return cli_fail_usage("probe: start it on all hosts by mpirun, srun or torchrun, or with RANK, "
                          "WORLD_SIZE and MASTER_ADDR");
  }
  int status = ranks_open(&ranks, &place, options.root);
  if (status != CLI_OK) {
    ranks_close(&ranks, status);
    return status;
  }
  return ranks.count == 0 ? CLI_OK : probe(&ranks);
}

const struct cli_command command_probe = {
  .name = "probe",
  .summary = "measure the network between all hosts of a launcher: rates, round trips, outliers",
  .arguments = "",
  .example = "for rank in 0 1; do RANK=$rank WORLD_SIZE=2 stratus probe --root localhost & "
             "done; wait",
  .options = option_rows,
  .run = run,
};
