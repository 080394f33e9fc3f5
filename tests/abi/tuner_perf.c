/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks on two nodes with 8 channels, of which two ranks are played. For every call both ask
 * their tuner for the cell and for each channel's chunk, as NCCL does; if they differ, the job
 * would hang. */
#include "tests/abi/tuner_perf.h"

#include <inttypes.h>
#include <string.h>

#include "tests/abi/tuner_driver.h"

enum { RANKS = 4, NODES = 2, CHANNELS = 8, PLAYED = 2, PLACES = 2, BEST_CHUNK = 512 << 10 };

/* What a rank makes of a call. */
struct run {
  int algo, proto, channels;
  size_t chunk; /* of the channel that carries most, or what there is for one */
};

static size_t div_up(size_t a, size_t b) {
  return (a + b - 1) / b;
}

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

/* 2155-2175 and 2361-2363: the buffers' limit, which is NCCL's own here, and whole grains. */
static size_t own_chunk(int algo, int proto) {
  static const size_t steps[HOST_PROTOS] = { 32 << 10, 576000, 512 << 10 };
  return steps[proto] * (algo == HOST_RING && proto == HOST_SIMPLE ? 4 : 1);
}

static size_t chunk_of(struct driver_comm *comm, size_t share, const struct run *run) {
  static const size_t grains[HOST_PROTOS] = { 16, 1920, 512 };
  size_t most = own_chunk(run->algo, run->proto), chunk = most;
  host_tuner_v6 *tuner = comm->plugin->symbol;
  if (comm->plugin->abi >= 6 && tuner->chunk) {
    CHECK(tuner->chunk(comm->context, HOST_ALLREDUCE, share, run->algo, run->proto, 1, &chunk) ==
              HOST_SUCCESS,
          "getChunkSize");
  }
  chunk = (chunk < most ? chunk : most) / grains[run->proto] * grains[run->proto];
  CHECK(chunk > 0, "less than a grain: NCCL would divide by zero");
  return chunk;
}

/* 640-740, one call on a free plan: equal shares of whole cells, the last channel what is left. */
static size_t deal_out(struct driver_comm *comm, size_t bytes, const struct run *run) {
  size_t traffic = run->proto == HOST_LL ? 8 : 2, cell = div_up(div_up(32 << 10, traffic), 16) * 16;
  size_t cells = div_up(bytes, cell);
  size_t each_traffic = div_up(bytes * 2 / (size_t)run->channels, 16) * 16;
  size_t each = div_up(each_traffic, cell * traffic);
  each = each < cells ? each : cells;
  size_t middle = (cells - each) / each, last = (cells - each) % each;
  if (last == 0 && middle > 0) {
    last = each;
    middle--;
  }
  size_t first_bytes = last > 0 ? each * cell : bytes;
  size_t chunk = chunk_of(comm, first_bytes, run);
  if (last > 0) {
    chunk_of(comm, bytes - (middle + 1) * each * cell, run);
  }
  if (middle > 0) {
    CHECK(chunk_of(comm, each * cell, run) == chunk, "equal channels, other chunks");
  }
  size_t part = div_up(first_bytes, RANKS); /* a ring's chunk is never more */
  return chunk < part ? chunk : part;
}

static struct run run_call(struct driver_comm *comm, size_t bytes) {
  struct driver_memory memory;
  struct driver_call call = { .func = HOST_ALLREDUCE, .bytes = bytes, .pipe_ops = 1 };
  fill_costs(&memory, bytes);
  CHECK(driver_get(comm, call, &memory) == HOST_SUCCESS, "getCollInfo");
  struct run run;
  CHECK(driver_select(memory.costs, comm->plugin->release->algos, &run.algo, &run.proto),
        "no cell");
  run.channels = memory.channels > 0 && memory.channels < CHANNELS ? memory.channels : CHANNELS;
  run.chunk = deal_out(comm, bytes, &run);
  return run;
}

/* ---- the invented network ---- */

/* Ring Simple is best, and best with chunks of 512K: twice or half as much costs 12 %. */
static double true_us(const struct run *run, size_t bytes, struct driver_random *random) {
  double us = 100 + (double)bytes / 4000, chunk = (double)run->chunk;
  if (run->algo == HOST_RING && run->proto == HOST_SIMPLE) {
    us *= 1 + 0.12 * ((chunk > BEST_CHUNK ? chunk / BEST_CHUNK : BEST_CHUNK / chunk) - 1);
  } else {
    us *= 1.6;
  }
  us *= 1 + 0.1 * (CHANNELS - run->channels);
  return us * (1 + 0.02 * ((double)(driver_random_next(random) % 1000) / 1000 - 0.5));
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
static double call_all(struct driver_comm comms[PLAYED], size_t bytes,
                       struct driver_random *random) {
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
  struct driver_random random = { bytes };
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
    CHECK(driver_init_comm(&comms[rank], &plugin, RANKS, NODES) == HOST_SUCCESS, "init");
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
