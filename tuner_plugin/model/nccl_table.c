/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines one by one; the first word of each is its kind. */
#include "tuner_plugin/model/nccl_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantity.h"

struct reader {
  struct nccl_table *table;
  struct profile_error *error;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *reader, const char *format,
                                                      ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error->text, sizeof reader->error->text, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

/* The value of "key=value" for this key, or NULL. */
static const char *value_of(const char *word, const char *key) {
  size_t length = strlen(key);
  return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool take_int(const char *word, const char *key, int *number) {
  const char *value = value_of(word, key);
  int64_t wide;
  if (!value || quantity_parse_int(value, &wide) < 0 || wide < 0 || wide > 1000000) {
    return false;
  }
  *number = (int)wide;
  return true;
}

static bool take_float(const char *word, const char *key, float *number) {
  const char *value = value_of(word, key);
  char *end;
  if (!value) {
    return false;
  }
  *number = strtof(value, &end);
  return end != value && *end == '\0' && *number >= 0;
}

static bool take_path(const char *word, const char *key, enum nccl_path *path) {
  const char *value = value_of(word, key);
  if (!value) {
    return false;
  }
  *path = nccl_path_find(value);
  return *path < NCCL_PATH_COUNT;
}

static int read_graph(struct reader *reader, char *words, struct nccl_graph *graph) {
  int pattern = 0, same = 0;
  char *rest;
  for (char *word = strtok_r(words, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
    if (!take_int(word, "pattern", &pattern) && !take_int(word, "channels", &graph->channels) &&
        !take_float(word, "intra", &graph->intra_gbs) &&
        !take_float(word, "inter", &graph->inter_gbs) &&
        !take_path(word, "inside", &graph->inside) &&
        !take_path(word, "outside", &graph->outside) && !take_int(word, "same", &same)) {
      return fail(reader,
                  "\"%s\": a graph takes pattern, channels, intra, inter, inside, outside "
                  "and same",
                  word);
    }
  }
  graph->is_tree = pattern == 3;
  graph->has_same_channels = same != 0;
  return 0;
}

static int read_shape(struct reader *reader, char *words) {
  struct nccl_topology *t = &reader->table->topology;
  char *rest;
  for (char *word = strtok_r(words, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
    if (!take_int(word, "nodes", &t->nodes) && !take_int(word, "ppn", &t->ppn) &&
        !take_int(word, "channels", &t->channels)) {
      return fail(reader, "\"%s\": a shape takes nodes, ppn and channels", word);
    }
  }
  return 0;
}

const char *nccl_table_parse_machine(char *words, struct nccl_machine *machine) {
  char *rest;
  for (char *word = strtok_r(words, " ,\n", &rest); word; word = strtok_r(NULL, " ,\n", &rest)) {
    const char *cpu = value_of(word, "cpu");
    int place = cpu ? quantity_find_word("intel|amd|mixed|arm|power", cpu) : -1;
    if (place >= 0) {
      machine->cpu = (enum nccl_cpu)place;
    } else if (!take_int(word, "gpus", &machine->gpus) && !take_int(word, "nics", &machine->nics) &&
               !take_int(word, "mbps", &machine->mbps) &&
               !take_int(word, "links", &machine->links) &&
               !take_int(word, "near", &machine->near) && !take_int(word, "cc", &machine->cc) &&
               !take_float(word, "latency_us", &machine->latency_us)) {
      return word;
    }
  }
  return NULL;
}

static int read_machine(struct reader *reader, char *words) {
  struct nccl_table *table = reader->table;
  const char *wrong = nccl_table_parse_machine(words, &table->machine);
  if (wrong) {
    return fail(reader,
                "\"%s\": a machine takes gpus, nics, mbps, links, near, cc, latency_us and "
                "cpu=intel|amd|mixed|arm|power",
                wrong);
  }
  struct nccl_topology *t = &table->topology;
  t->cpu = table->machine.cpu;
  t->cc_min = t->cc_max = table->machine.cc;
  t->ring.latency_us = t->tree.latency_us = t->nvls.latency_us = table->machine.latency_us;
  return 0;
}

static int read_column(struct reader *reader, enum profile_collective collective, char *words) {
  struct nccl_table *table = reader->table;
  struct nccl_table_column column = { .collective = collective };
  unsigned algorithm, protocol;
  int used = 0;
  if (sscanf(words, " %u.%u %d%n", &algorithm, &protocol, &column.first_shift, &used) != 3 ||
      algorithm >= PROFILE_ALGORITHM_COUNT || protocol >= PROFILE_PROTOCOL_COUNT ||
      column.first_shift < 0 || column.first_shift > 62) {
    return fail(reader, "expected algorithm.protocol, a power of two and times");
  }
  column.cell =
      (struct nccl_cell){ (enum profile_algorithm)algorithm, (enum profile_protocol)protocol };
  char *at = words + used, *end;
  for (float us = strtof(at, &end); end != at; at = end, us = strtof(at, &end)) {
    if (column.count == NCCL_TABLE_SIZES_MAX) {
      return fail(reader, "more than %d sizes", NCCL_TABLE_SIZES_MAX);
    }
    column.us[column.count++] = us;
  }
  void *columns = reallocarray(table->columns, table->column_count + 1, sizeof column);
  if (!columns) {
    return -ENOMEM;
  }
  table->columns = columns;
  table->columns[table->column_count++] = column;
  return 0;
}

static int read_line(struct reader *reader, char *line) {
  struct nccl_topology *t = &reader->table->topology;
  char word[16] = "";
  int used = 0;
  sscanf(line, "%15s%n", word, &used);
  char *rest = line + used;
  if (word[0] == '\0' || word[0] == '#') {
    return 0;
  }
  int collective = quantity_find_word(PROFILE_COLLECTIVE_WORDS, word);
  if (collective >= 0) {
    return read_column(reader, (enum profile_collective)collective, rest);
  }
  if (strcmp(word, "nccl") == 0) {
    t->release = atoi(rest);
    return t->release > 0 ? 0 : fail(reader, "nccl takes a release such as 22809");
  }
  if (strcmp(word, "shape") == 0) {
    return read_shape(reader, rest);
  }
  if (strcmp(word, "machine") == 0) {
    return read_machine(reader, rest);
  }
  if (strcmp(word, "ring") == 0) {
    return read_graph(reader, rest, &t->ring);
  }
  if (strcmp(word, "tree") == 0) {
    return read_graph(reader, rest, &t->tree);
  }
  if (strcmp(word, "nvls") == 0) {
    t->has_nvls = true;
    return read_graph(reader, rest, &t->nvls);
  }
  return fail(reader, "\"%s\" is none of nccl, shape, machine, ring, tree, nvls and collectives",
              word);
}

static int check_whole(struct reader *reader) {
  const struct nccl_topology *t = &reader->table->topology;
  reader->error->line = 0;
  if (t->nodes < 1 || t->ppn < 1 || t->nodes * t->ppn < 2) {
    return fail(reader, "the shape is missing, or is less than two ranks");
  }
  if (t->ring.channels < 1 && t->tree.channels < 1 && reader->table->machine.gpus > 0) {
    nccl_graph_estimate(&reader->table->machine, &reader->table->topology);
  }
  if (t->ring.channels < 1 || t->tree.channels < 1 || t->channels < 1) {
    return fail(reader, "the lines of ring and tree, the channels in the shape, or the machine's "
                        "gpus, are missing");
  }
  return 0;
}

int nccl_table_read(const char *path, struct nccl_table *table, struct profile_error *error) {
  *table = (struct nccl_table){
    .machine = { .nics = 1, .mbps = 10000, .cc = 80 },
    .topology = { .net_overhead_us = -1, .cc_min = 80, .cc_max = 80 },
  };
  *error = (struct profile_error){ 0 };
  snprintf(error->path, sizeof error->path, "%s", path);
  struct reader reader = { table, error };
  FILE *file = fopen(path, "re");
  int result = file ? 0 : -errno;
  char *line = NULL;
  size_t room = 0;
  while (result == 0 && getline(&line, &room, file) > 0) {
    error->line++;
    result = read_line(&reader, line);
  }
  if (result == 0) {
    result = check_whole(&reader);
  }
  free(line);
  if (file) {
    fclose(file);
  }
  if (result < 0) {
    if (error->text[0] == '\0') {
      snprintf(error->text, sizeof error->text, "cannot be read: %s", strerror(-result));
    }
    nccl_table_free(table);
  }
  return result;
}

void nccl_table_free(struct nccl_table *table) {
  free(table->columns);
  *table = (struct nccl_table){ 0 };
}

uint64_t nccl_table_bytes(const struct nccl_topology *topology, enum profile_collective collective,
                          int shift) {
  uint64_t bytes = UINT64_C(1) << shift;
  uint64_t ranks = (uint64_t)topology->nodes * (uint64_t)topology->ppn;
  bool is_shared = collective == PROFILE_ALLGATHER || collective == PROFILE_REDUCESCATTER;
  return is_shared ? bytes / ranks * ranks : bytes;
}
