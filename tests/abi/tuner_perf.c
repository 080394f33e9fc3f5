/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks on two nodes with 8 channels, of which two ranks are played. For every call both ask
 * their tuner for the cell, as NCCL does; if they differ, the job would hang. */
#include "tests/abi/tuner_perf.h"

#include <inttypes.h>
#include <string.h>

#include "common/random.h"
#include "tests/abi/tuner_driver.h"

enum { RANKS = 4, NODES = 2, CHANNELS = 8, PLAYED = 2, PLACES = 2 };

/* What a rank makes of a call. */
struct run {
  int algo, proto, channels;
};

/* ---- what NCCL does (v2.30.7-1 src/enqueue.cc) ---- */

static void fill_costs(struct driver_memory *memory, size_t bytes) {
  *memory = (struct driver_memory){ 0 };
  for (int i = 0; i < DRIVER_CELLS_MAX; i++) {
    memory->costs[i] = HOST_IGNORE;
  }
  memory->costs[HOST_RING * HOST_PROTOS + HOST_SIMPLE] = 100.0f + (float)bytes / 4000.0f;
  memory->costs[HOST_TREE * HOST_PROTOS + HOST_SIMPLE] = 90.0f + (float)bytes / 3000.0f;
  memory->costs[HOST_RING * HOST_PROTOS + HOST_LL128] = 60.0f + (float)bytes / 2500.0f;
}

static struct run run_call(struct driver_comm *comm, size_t bytes) {
  struct driver_memory memory;
  struct driver_call call = { .func = HOST_ALLREDUCE, .bytes = bytes, .pipe_ops = 1 };
  fill_costs(&memory, bytes);
  CHECK(driver_get(comm, call, &memory) == NCCL_SUCCESS, "getCollInfo");
  struct run run;
  CHECK(driver_select(memory.costs, comm->plugin->release->algos, &run.algo, &run.proto),
        "no cell");
  run.channels = memory.channels > 0 && memory.channels < CHANNELS ? memory.channels : CHANNELS;
  return run;
}

/* ---- the invented network ---- */

/* Tree Simple is best, and everything with all channels. */
static double true_us(const struct run *run, size_t bytes, uint64_t *random) {
  double us = 100 + (double)bytes / 4000;
  us *= run->algo == HOST_TREE && run->proto == HOST_SIMPLE ? 1 : 1.6;
  us *= 1 + 0.1 * (CHANNELS - run->channels);
  return us * (1 + 0.02 * ((double)(random_next(random) % 1000) / 1000 - 0.5));
}

/* ---- nccl-tests ---- */

struct arguments {
  size_t first, last, factor;
  int iterations, warmup, checks;
  const char *json;
};

static struct arguments read_arguments(int count, char **words) {
  struct arguments arguments = { .factor = 2, .iterations = 20 };
  for (int i = 0; i + 1 < count; i += 2) {
    size_t value = strtoull(words[i + 1], NULL, 10);
    switch (words[i][1]) {
    case 'b':
      arguments.first = value;
      break;
    case 'e':
      arguments.last = value;
      break;
    case 'f':
      arguments.factor = value;
      break;
    case 'n':
      arguments.iterations = (int)value;
      break;
    case 'w':
      arguments.warmup = (int)value;
      break;
    case 'c':
      arguments.checks = (int)value;
      break;
    case 'J':
      arguments.json = words[i + 1];
      break;
    default:
      CHECK(words[i][1] == 'I', "no option of nccl-tests: %s", words[i]);
    }
  }
  CHECK(arguments.json && arguments.first > 0 && arguments.factor > 1, "options are missing");
  return arguments;
}

/* The same call at both ranks. */
static double call_all(struct driver_comm comms[PLAYED], size_t bytes, uint64_t *random) {
  struct run first = run_call(&comms[0], bytes);
  for (int rank = 1; rank < PLAYED; rank++) {
    struct run other = run_call(&comms[rank], bytes);
    CHECK(memcmp(&first, &other, sizeof first) == 0, "%zu bytes: the ranks differ", bytes);
  }
  return true_us(&first, bytes, random);
}

static void write_size(FILE *json, struct driver_comm comms[PLAYED], size_t bytes,
                       const struct arguments *arguments) {
  static const char *const names[PLACES] = { "out_of_place", "in_place" };
  uint64_t random = bytes;
  fprintf(json, "{\"size\":%zu", bytes);
  for (int place = 0; place < PLACES; place++) {
    double sum_us = 0;
    for (int i = 0; i < 1 + arguments->warmup; i++) {
      call_all(comms, bytes, &random); /* nccl-tests make one to synchronise */
    }
    fprintf(json, ",\"%s_per_iter\":{\"times_us\":[", names[place]);
    for (int i = 0; i < arguments->iterations; i++) {
      double us = call_all(comms, bytes, &random);
      fprintf(json, "%s%.3f", i ? "," : "", us);
      sum_us += us;
    }
    fprintf(json, "]},\"%s\":{\"time\":%.3f,\"nwrong\":0}", names[place],
            sum_us / arguments->iterations);
    for (int i = 0; i < arguments->checks; i++) {
      call_all(comms, bytes, &random);
    }
  }
  fputc('}', json);
}

int tuner_perf_run(const struct tuner_release *release, const char *path, int argument_count,
                   char **words) {
  struct arguments arguments = read_arguments(argument_count, words);
  struct driver_plugin plugin;
  struct driver_comm comms[PLAYED];
  driver_set_release(release);
  driver_open(&plugin, release, path);
  for (int rank = 0; rank < PLAYED; rank++) {
    CHECK(driver_init_comm(&comms[rank], &plugin, RANKS, NODES) == NCCL_SUCCESS, "init");
  }
  FILE *json = fopen(arguments.json, "w");
  CHECK(json, "%s cannot be written", arguments.json);
  fputs("{\"results\":[", json);
  for (size_t bytes = arguments.first; bytes <= arguments.last; bytes *= arguments.factor) {
    fputs(bytes > arguments.first ? "," : "", json);
    write_size(json, comms, bytes, &arguments);
  }
  fputs("]}\n", json);
  CHECK(fclose(json) == 0, "%s cannot be written", arguments.json);
  for (int rank = 0; rank < PLAYED; rank++) {
    driver_close_comm(&comms[rank]);
  }
  driver_log_print(stdout);
  driver_close(&plugin);
  return 0;
}
