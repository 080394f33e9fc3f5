/* SPDX-License-Identifier: Apache-2.0 */
/* coll-stress: jobs for tests/netns and tests/vm to break: coll with its options, in which
 * one of these takes the place of the table, on one GPU per process:
 *
 *   --soak TIME   int32 sums, the operations and sizes in random order until this has passed, or
 *                 SIGUSR1 comes to rank 0; every result is checked
 *   --abort N     N times, sums are checked, an operation is aborted half way by ncclCommAbort, and
 *                 communicators are made again; -O and the sizes take turns. Memory, threads,
 *                 descriptors and what was freed are watched
 *   --unmade N    N times, the first AllReduce of new communicators fails, as a connection cannot
 * be made, and all ranks abort: on an error, else when the patience is over
 *   --command C   with --unmade: rank 0 runs `C break` before, and `C heal` after the abort
 *   --patience T  with --unmade (60s)
 *   --seed N      of --soak's order, and of --abort's times (1)
 *   --log FILE    with --soak: a line of JSON for each completion */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantity.h"
#include "common/time_units.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/message.h"
#include "tests/coll/run.h"

struct stress stress = { .seed = 1, .patience_ns = 60 * NS_PER_S };

static bool read_count(const char *text, int least, int *value) {
  int64_t number;
  if (quantity_parse_int(text, &number) || number < least || number > INT32_MAX)
    return false;
  *value = (int)number;
  return true;
}

/* False: it is coll's. */
static bool take_own(const char *option, const char *value) {
  bool is_good = value != NULL;
  if (!strcmp(option, "--soak"))
    is_good =
        is_good && !quantity_parse(QUANTITY_DURATION, NULL, value, (int64_t *)&stress.soak_ns);
  else if (!strcmp(option, "--abort"))
    is_good = is_good && read_count(value, 1, &stress.abort_rounds);
  else if (!strcmp(option, "--unmade"))
    is_good = is_good && read_count(value, 1, &stress.unmade_rounds);
  else if (!strcmp(option, "--command"))
    stress.command = value;
  else if (!strcmp(option, "--patience"))
    is_good =
        is_good && !quantity_parse(QUANTITY_DURATION, NULL, value, (int64_t *)&stress.patience_ns);
  else if (!strcmp(option, "--seed"))
    is_good = is_good && read_count(value, 0, &stress.seed);
  else if (!strcmp(option, "--log"))
    stress.log_path = value;
  else
    return false;
  if (!is_good) {
    message_write("%s %s: see tests/coll/stress/main.c", option, value ? value : "");
    exit(EXIT_WRONG_USE);
  }
  return true;
}

int main(int argc, char **argv) {
  static const struct run_mode soak = { .run = soak_run };
  static const struct run_mode aborts = { .prepare = abort_prepare, .run = abort_run };
  static const struct run_mode unmade = { .run = unmade_run };
  static char *const first[] = { "coll-stress", "-n", "1", "-w", "0" }; /* of --abort's sums */
  int count = sizeof first / sizeof first[0];
  char **given = calloc((size_t)(count + argc), sizeof *given);
  if (given)
    memcpy(given, first, sizeof first);
  for (int i = 1; given && i < argc; i++) {
    if (take_own(argv[i], argv[i + 1]))
      i++;
    else
      given[count++] = argv[i];
  }
  if (!given || !stress.soak_ns + !stress.abort_rounds + !stress.unmade_rounds != 2) {
    message_write("one of --soak, --abort and --unmade is wanted");
    return EXIT_WRONG_USE;
  }
  int status = run_program(count, given, argv,
                           stress.soak_ns        ? &soak
                           : stress.abort_rounds ? &aborts
                                                 : &unmade);
  free(given);
  return status;
}
