/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune suggest: where jobs spend their time in collectives, whether a profile covers it,
 * and the command that calibrates the rest. Reads the samples that jobs write with STRATUS_RECORD.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/limits.h"
#include "tuner_plugin/tools/tune.h"

static const char *wanted_profile; /* NULL: the samples say it */

static const struct cli_option option_rows[] = {
  { "profile", 'p', CLI_STRING, &wanted_profile, "FILE",
    "profile that the jobs use, if the samples do not name it", 0, 0 },
  { 0 },
};

/* The calls of one collective and size on one shape, of all files. */
struct use {
  const struct sample *first;
  double time_us; /* all together */
  uint64_t calls;
  bool is_chosen; /* by a profile */
};

struct uses {
  struct use *uses;
  size_t count;
  double time_us;
};

static int compare_shapes(const void *a, const void *b) {
  const struct sample *x = a, *y = b;
  if (x->nodes != y->nodes || x->ppn != y->ppn) {
    return x->nodes != y->nodes ? (x->nodes > y->nodes) - (x->nodes < y->nodes)
                                : (x->ppn > y->ppn) - (x->ppn < y->ppn);
  }
  if (x->collective != y->collective) {
    return (x->collective > y->collective) - (x->collective < y->collective);
  }
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_uses(const void *a, const void *b) {
  const struct use *x = a, *y = b;
  return (x->time_us < y->time_us) - (x->time_us > y->time_us);
}

static bool has_row(const struct profile *profile, const struct sample *sample) {
  const struct profile_table *table =
      profile_find_table(profile, sample->collective, sample->nodes, sample->ppn);
  return profile_find_row(table, sample->bytes) != NULL;
}

/* `profile` NULL: use the samples' field. */
static int gather(struct sample_file *file, const struct profile *profile, struct uses *out) {
  qsort(file->samples, file->count, sizeof *file->samples, compare_shapes);
  out->uses = calloc(file->count + 1, sizeof *out->uses);
  if (!out->uses) {
    return cli_fail("out of memory");
  }
  for (size_t i = 0; i < file->count; i++) {
    const struct sample *sample = &file->samples[i];
    struct use *use = out->count > 0 ? &out->uses[out->count - 1] : NULL;
    if (!use || compare_shapes(use->first, sample) != 0) {
      use = &out->uses[out->count++];
      *use = (struct use){ .first = sample };
    }
    use->calls += sample->n;
    use->time_us += sample->median_us * sample->n;
    use->is_chosen |= profile ? has_row(profile, sample) : !sample->is_default;
    out->time_us += sample->median_us * sample->n;
  }
  qsort(out->uses, out->count, sizeof *out->uses, compare_uses);
  return CLI_OK;
}

/* A calibration is valid for machines of one topology. */
static void warn_of_topologies(const struct sample_file *file) {
  const char *one = "";
  for (size_t i = 0; i < file->count; i++) {
    const char *topology = file->samples[i].topology;
    if (one[0] && topology[0] && strcmp(one, topology) != 0) {
      fprintf(stderr,
              "stratus-tune: samples of machines of different topologies, such as %s and %s: "
              "calibrate on each of them\n",
              one, topology);
      return;
    }
    one = topology[0] ? topology : one;
  }
}

/* ---- what to calibrate ---- */

/* The command for a shape: its collectives and sizes that no profile chooses for, and that take
 * more than a hundredth of the time. False if there is nothing. */
static bool print_command(const struct uses *uses, uint32_t nodes, uint32_t ppn, bool is_first) {
  uint64_t low = UINT64_MAX, high = 0;
  bool wanted[PROFILE_COLLECTIVE_COUNT] = { false };
  for (size_t i = 0; i < uses->count; i++) {
    const struct use *use = &uses->uses[i];
    const struct sample *first = use->first;
    if (first->nodes == nodes && first->ppn == ppn && !use->is_chosen && nodes > 1 &&
        use->time_us >= uses->time_us / 100) {
      wanted[first->collective] = true;
      low = first->bytes < low ? first->bytes : low;
      high = first->bytes > high ? first->bytes : high;
    }
  }
  if (high == 0) {
    return false;
  }
  uint64_t from = 8, to = 8;
  for (; from * 2 <= low; from *= 2) {
  }
  for (; to < high && to < UINT64_C(1) << 40; to *= 2) {
  }
  char list[128] = "", first[QUANTITY_TEXT_MAX], last[QUANTITY_TEXT_MAX];
  for (int c = 0; c < PROFILE_COLLECTIVE_COUNT; c++) {
    if (wanted[c]) {
      strcat(strcat(list, list[0] ? "," : ""), profile_collective_name((enum profile_collective)c));
    }
  }
  printf("%s  stratus-tune calibrate -c %s -b %s -e %s -- mpirun -np %" PRIu32 " -N %" PRIu32
         " all_reduce_perf\n",
         is_first ? "\nworth calibrating:\n" : "", list, quantity_format_size(from, first),
         quantity_format_size(to, last), nodes * ppn, ppn);
  return true;
}

/* Whether an earlier use has the same shape. */
static bool is_repeated(const struct uses *uses, size_t place) {
  for (size_t i = 0; i < place; i++) {
    if (uses->uses[i].first->nodes == uses->uses[place].first->nodes &&
        uses->uses[i].first->ppn == uses->uses[place].first->ppn) {
      return true;
    }
  }
  return false;
}

static void print_commands(const struct uses *uses) {
  size_t commands = 0;
  for (size_t i = 0; i < uses->count; i++) {
    const struct sample *first = uses->uses[i].first;
    commands += !is_repeated(uses, i) && print_command(uses, first->nodes, first->ppn, !commands);
  }
  if (commands == 0) {
    printf("\nnothing is worth calibrating: a profile chooses wherever it matters\n");
  }
}

/* ---- what compression would take ---- */

/* What a ring over these ranks lets each host send, which is the bus bandwidth, in Gb/s. */
static double network_gbps(const struct use *use) {
  const struct sample *first = use->first;
  double ranks = (double)first->nodes * (double)first->ppn;
  double share =
      first->collective == PROFILE_ALLREDUCE ? 2 * (ranks - 1) / ranks
      : first->collective == PROFILE_ALLGATHER || first->collective == PROFILE_REDUCESCATTER
          ? (ranks - 1) / ranks
          : 1;
  return share * (double)first->bytes * 8e-3 * (double)use->calls / use->time_us;
}

/* Of the calls between hosts that are bulk; 0: there are none. */
static double most_gbps(const struct uses *uses) {
  double most = 0;
  for (size_t i = 0; i < uses->count; i++) {
    const struct use *use = &uses->uses[i];
    bool is_bulk =
        use->first->nodes > 1 && use->first->bytes >= SUGGEST_BULK_BYTES && use->time_us > 0;
    double gbps = is_bulk ? network_gbps(use) : 0;
    most = gbps > most ? gbps : most;
  }
  return most;
}

enum { USES_SHOWN = 20 };

static int print_uses(const struct uses *uses) {
  printf("%6s %10s  %-14s %8s %6s %4s %12s  %s\n", "share", "calls", "collective", "size", "nodes",
         "ppn", "us per call", "chosen by");
  for (size_t i = 0; i < uses->count && i < USES_SHOWN; i++) {
    const struct use *use = &uses->uses[i];
    char size[QUANTITY_TEXT_MAX];
    printf("%5.1f%% %10" PRIu64 "  %-14s %8s %6" PRIu32 " %4" PRIu32 " %12.1f  %s\n",
           100 * use->time_us / uses->time_us, use->calls,
           profile_collective_name(use->first->collective),
           quantity_format_size(use->first->bytes, size), use->first->nodes, use->first->ppn,
           use->time_us / (double)use->calls, use->is_chosen ? "the profile" : "NCCL");
  }
  if (uses->count > USES_SHOWN) {
    printf("and %zu more\n", uses->count - USES_SHOWN);
  }
  print_commands(uses);
  double gbps = most_gbps(uses);
  if (gbps > 0) {
    printf(
        "\ncompression: these calls send up to %.1f Gb/s from a host. If that is what its network "
        "carries,\nSTRATUS_COMPRESS relieves it for about %.1f processor cores of each host\n",
        gbps, gbps * SUGGEST_CORES_PER_GBPS);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct sample_file file = { 0 };
  struct profile profile;
  struct uses uses = { 0 };
  int status = CLI_OK;
  for (int i = 0; status == CLI_OK && i < argument_count; i++) {
    struct profile_error error;
    char text[sizeof error];
    if (sample_file_read(arguments[i], &file, &error) < 0) {
      status = cli_fail("%s", profile_error_format(&error, text, sizeof text));
    }
  }
  if (status == CLI_OK && file.count == 0) {
    status = cli_fail("there are no samples: jobs write them with STRATUS_RECORD=DIRECTORY");
  }
  bool has_profile = false;
  if (status == CLI_OK && wanted_profile) {
    char path[PROFILE_PATH_MAX];
    status = tune_load(wanted_profile, &profile, path);
    has_profile = status == CLI_OK;
  }
  if (status == CLI_OK) {
    status = gather(&file, has_profile ? &profile : NULL, &uses);
  }
  if (status == CLI_OK) {
    warn_of_topologies(&file);
    status = print_uses(&uses);
  }
  if (has_profile) {
    profile_free(&profile);
  }
  free(uses.uses);
  sample_file_free(&file);
  return status;
}

const struct cli_command tune_suggest = {
  .name = "suggest",
  .summary = "show which collectives and sizes of recorded jobs (STRATUS_RECORD) to calibrate",
  .arguments = "FILE...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus-tune suggest tests/data/samples/recorded.jsonl",
  .options = option_rows,
  .run = run,
};
