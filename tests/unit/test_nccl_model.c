/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model: its cells and choices are those of stock NCCL, as tests/tables/collect recorded them,
 * and those that were published. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantity.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/decide/costs.h"
#include "tuner_plugin/model/nccl_graph.h"
#include "tuner_plugin/model/nccl_model.h"

#define TABLES "tests/data/tables"

enum { SIZES_MAX = 40, COLUMNS_MAX = PROFILE_COLLECTIVE_COUNT * COSTS_CELLS };

/* The times of one cell, as NCCL handed them to its tuner. */
struct column {
  enum profile_collective collective;
  struct nccl_cell cell;
  int first_shift; /* first size: 1 << first_shift */
  int count;
  float us[SIZES_MAX];
};

/* A file of tests/tables/collect. */
struct table {
  struct nccl_machine machine;
  struct nccl_topology topology;
  struct column columns[COLUMNS_MAX];
  size_t column_count;
};

static enum nccl_path path_of(const char *name) {
  int path = 0;
  while (strcmp(nccl_path_name((enum nccl_path)path), name) != 0) {
    path++;
    assert_true(path < NCCL_PATH_COUNT);
  }
  return (enum nccl_path)path;
}

static struct nccl_graph read_graph(const char *words, float latency_us) {
  struct nccl_graph graph = { .latency_us = latency_us };
  int pattern, same;
  char inside[4], outside[4];
  assert_int_equal(sscanf(words,
                          " pattern=%d channels=%d intra=%f inter=%f inside=%3s outside=%3s "
                          "same=%d",
                          &pattern, &graph.channels, &graph.intra_gbs, &graph.inter_gbs, inside,
                          outside, &same),
                   7);
  graph.inside = path_of(inside);
  graph.outside = path_of(outside);
  graph.is_tree = pattern == 3;
  graph.has_same_channels = same != 0;
  return graph;
}

/* "1.2 3 131.6 131.7 ...": algorithm and protocol, the first size as a power of two, then
 * microseconds for it, its double and so on. */
static void read_column(const char *words, int collective, struct column *column) {
  int used = 0;
  unsigned algorithm, protocol;
  assert_int_equal(sscanf(words, " %u.%u %d%n", &algorithm, &protocol, &column->first_shift, &used),
                   3);
  column->collective = (enum profile_collective)collective;
  column->cell =
      (struct nccl_cell){ (enum profile_algorithm)algorithm, (enum profile_protocol)protocol };
  for (const char *at = words + used; sscanf(at, "%f%n", &column->us[column->count], &used) == 1;
       at += used) {
    column->count++;
    assert_true(column->count < SIZES_MAX);
  }
}

static void read_line(char *line, struct table *table) {
  struct nccl_topology *t = &table->topology;
  char word[16] = "";
  int used = 0;
  sscanf(line, "%15s%n", word, &used);
  char *rest = line + used;
  int collective = quantity_find_word(PROFILE_COLLECTIVE_WORDS, word);
  if (collective >= 0) {
    assert_true(table->column_count < COLUMNS_MAX);
    read_column(rest, collective, &table->columns[table->column_count++]);
  } else if (strcmp(word, "nccl") == 0) {
    t->release = atoi(rest);
  } else if (strcmp(word, "shape") == 0) {
    assert_int_equal(sscanf(rest, " nodes=%d ppn=%d channels=%d", &t->nodes, &t->ppn, &t->channels),
                     3);
  } else if (strcmp(word, "machine") == 0) {
    assert_null(nccl_graph_parse_machine(rest, &table->machine));
    t->cpu = table->machine.cpu;
    t->cc_min = t->cc_max = table->machine.cc;
  } else if (strcmp(word, "ring") == 0) {
    t->ring = read_graph(rest, table->machine.latency_us);
  } else if (strcmp(word, "tree") == 0) {
    t->tree = read_graph(rest, table->machine.latency_us);
  } else {
    assert_int_equal(word[0], '#');
  }
}

static void read_table(const char *path, struct table *table) {
  char line[4096];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  *table = (struct table){ .topology.net_overhead_us = -1 };
  while (fgets(line, sizeof line, file)) {
    read_line(line, table);
  }
  fclose(file);
}

/* The bytes that NCCL counts where 2^shift were asked for: a multiple of the ranks for allgather
 * and reducescatter. */
static uint64_t bytes_of(const struct nccl_topology *topology, enum profile_collective collective,
                         int shift) {
  uint64_t bytes = UINT64_C(1) << shift;
  uint64_t ranks = (uint64_t)topology->nodes * (uint64_t)topology->ppn;
  bool is_shared = collective == PROFILE_ALLGATHER || collective == PROFILE_REDUCESCATTER;
  return is_shared ? bytes / ranks * ranks : bytes;
}

struct tally {
  bool is_talking; /* about the first cells that differ */
  int tables, cells, wrong_cells, choices, wrong_choices;
};

static const struct column *find_column(const struct table *table,
                                        enum profile_collective collective, int a, int p) {
  for (size_t i = 0; i < table->column_count; i++) {
    const struct column *column = &table->columns[i];
    if (column->collective == collective && (int)column->cell.algorithm == a &&
        (int)column->cell.protocol == p) {
      return column;
    }
  }
  return NULL;
}

/* NCCL's table for one size: negative where it recorded none. */
static bool recorded_costs(const struct table *table, enum profile_collective collective, int shift,
                           nccl_costs costs) {
  bool is_any = false;
  for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
    for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
      const struct column *column = find_column(table, collective, a, p);
      bool is_there =
          column && shift >= column->first_shift && shift < column->first_shift + column->count;
      costs[a][p] = is_there ? column->us[shift - column->first_shift] : -1.0f;
      is_any |= is_there;
    }
  }
  return is_any;
}

static bool is_same_cost(float model, float recorded) {
  if (recorded < 0 || model < 0) {
    return (recorded < 0) == (model < 0);
  }
  return fabsf(model - recorded) <= 2e-5f * recorded; /* six digits are kept */
}

static void compare_size(const char *path, const struct table *table,
                         const struct nccl_model *model, enum profile_collective collective,
                         int shift, struct tally *tally) {
  nccl_costs recorded, costs;
  if (!recorded_costs(table, collective, shift, recorded)) {
    return;
  }
  nccl_model_costs(model, collective, bytes_of(&table->topology, collective, shift), costs);
  for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
    for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
      tally->cells += recorded[a][p] >= 0;
      if (!is_same_cost(costs[a][p], recorded[a][p])) {
        if (tally->wrong_cells++ < 10 && tally->is_talking) {
          print_message("%s: %s %d.%d of 2^%d: %g, not %g\n", path,
                        profile_collective_name(collective), a, p, shift, (double)costs[a][p],
                        (double)recorded[a][p]);
        }
      }
    }
  }
  struct nccl_cell mine = { 0 }, theirs = { 0 };
  assert_true(nccl_model_choose(recorded, &theirs));
  bool is_found = nccl_model_choose(costs, &mine);
  tally->choices++;
  tally->wrong_choices +=
      !is_found || mine.algorithm != theirs.algorithm || mine.protocol != theirs.protocol;
}

static void compare_table(const char *path, bool is_estimate, struct tally *tally) {
  static struct table table; /* large */
  read_table(path, &table);
  struct nccl_model model;
  struct nccl_topology topology = table.topology;
  if (is_estimate) {
    nccl_graph_estimate(&table.machine, &topology);
  }
  nccl_model_build(&topology, &model);
  for (int collective = 0; collective < PROFILE_COLLECTIVE_COUNT; collective++) {
    for (int shift = 0; shift < 63; shift++) {
      compare_size(path, &table, &model, (enum profile_collective)collective, shift, tally);
    }
  }
  tally->tables++;
}

static void compare_tables(bool is_estimate, struct tally *tally) {
  DIR *directory = opendir(TABLES);
  assert_non_null(directory);
  for (struct dirent *entry; (entry = readdir(directory));) {
    bool is_one_node = strstr(entry->d_name, "-1x") != NULL;
    if (strstr(entry->d_name, ".table") && !(is_estimate && is_one_node)) {
      char path[512];
      snprintf(path, sizeof path, TABLES "/%s", entry->d_name);
      compare_table(path, is_estimate, tally);
    }
  }
  closedir(directory);
  print_message("%d tables: %d of %d cells differ, %d of %d choices\n", tally->tables,
                tally->wrong_cells, tally->cells, tally->wrong_choices, tally->choices);
  assert_true(tally->tables >= 50);
}

/* Every cell, not only the choices: what agrees by accident fails here. */
UNIT_TEST(agrees_with_stock_nccl) {
  struct tally tally = { .is_talking = true };
  compare_tables(false, &tally);
  assert_int_equal(tally.wrong_cells, 0);
  assert_int_equal(tally.wrong_choices, 0);
}

/* Without NCCL's log: from NICs, GPUs and links alone. */
UNIT_TEST(estimates_choose_as_stock_nccl_nearly_always) {
  struct tally tally = { 0 };
  compare_tables(true, &tally);
  assert_true(tally.wrong_choices * 100 <= tally.choices * 5);
}

/* ---- published ---- */

/* The graphs that NCCL must have found there: they follow from the bandwidths of Simple. */
static struct nccl_topology published_topology(int nodes, int ppn) {
  int channels = ppn == 8 ? 8 : 2 * ppn;
  float gbs = ppn == 8 ? 48 : 24;
  enum nccl_path inside = ppn == 1 ? NCCL_PATH_LOC : NCCL_PATH_NVL;
  struct nccl_graph ring = { channels, gbs, gbs, inside, NCCL_PATH_PIX, 0, false, ppn == 1 };
  struct nccl_graph tree = ring, nvls = ring;
  tree.is_tree = true;
  tree.intra_gbs = 48;
  nvls.channels = ppn;
  nvls.intra_gbs = ppn == 8 ? 40 : 48;
  nvls.inter_gbs = 48;
  return (struct nccl_topology){ .release = 22705,
                                 .nodes = nodes,
                                 .ppn = ppn,
                                 .cc_min = 90,
                                 .cc_max = 90,
                                 .cpu = NCCL_CPU_INTEL,
                                 .channels = 2 * channels,
                                 .has_nvls = true,
                                 .net_overhead_us = -1,
                                 .ring = ring,
                                 .tree = tree,
                                 .nvls = nvls };
}

UNIT_TEST(agrees_with_published_figures) {
  FILE *file = fopen("tests/data/published/h100-2.27.5.txt", "r");
  assert_non_null(file);
  char line[256];
  int figures = 0;
  while (fgets(line, sizeof line, file)) {
    char collective[16], algorithm[16];
    int nodes, ppn, used;
    if (line[0] == '#') {
      continue;
    }
    assert_int_equal(sscanf(line, "%15s %15s %d %d%n", collective, algorithm, &nodes, &ppn, &used),
                     4);
    struct nccl_topology topology = published_topology(nodes, ppn);
    struct nccl_model model;
    nccl_model_build(&topology, &model);
    int c = strcmp(collective, "allreduce") == 0 ? PROFILE_ALLREDUCE : PROFILE_ALLGATHER;
    int a = strcmp(algorithm, "tree") == 0   ? PROFILE_TREE
            : strcmp(algorithm, "ring") == 0 ? PROFILE_RING
                                             : PROFILE_NVLS_TREE;
    float us, gbs;
    char *at = line + used;
    for (int p = a == PROFILE_NVLS_TREE ? PROFILE_SIMPLE : PROFILE_LL;
         sscanf(at, "%f %f%n", &us, &gbs, &used) == 2; p++, at += used) {
      if (fabsf(model.latency_us[c][a][p] - us) > 0.051f ||
          fabsf(model.gbs[c][a][p] - gbs) > 0.051f) {
        fail_msg("%s protocol %d: %g us, %g GB/s", line, p, (double)model.latency_us[c][a][p],
                 (double)model.gbs[c][a][p]);
      }
      figures += 2;
    }
  }
  fclose(file);
  assert_int_equal(figures, 380);
}

/* ---- choices that were reported: eunomia-bpf/nccl-eBPF, docs/tmp, sockets, one rank per host ----
 */

UNIT_TEST(agrees_with_reported_switch_points) {
  static const struct {
    int nodes;
    uint64_t bytes;
    struct nccl_cell cell;
  } cases[] = {
    { 2, 8, { PROFILE_RING, PROFILE_LL } },
    { 2, 64 << 10, { PROFILE_RING, PROFILE_LL } },
    { 2, 128 << 10, { PROFILE_RING, PROFILE_SIMPLE } },
    { 2, 64 << 20, { PROFILE_RING, PROFILE_SIMPLE } },
    { 3, 8, { PROFILE_TREE, PROFILE_LL } },
    { 3, 2 << 10, { PROFILE_TREE, PROFILE_LL } },
    { 3, 4 << 10, { PROFILE_RING, PROFILE_LL } },
    { 3, 64 << 10, { PROFILE_RING, PROFILE_LL } },
    { 3, 128 << 10, { PROFILE_RING, PROFILE_SIMPLE } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct nccl_graph ring = { 1, 2.4f, 2.4f, NCCL_PATH_LOC, NCCL_PATH_PHB, 0, false, true };
    struct nccl_graph tree = ring;
    tree.is_tree = true;
    tree.intra_gbs = 4.8f;
    struct nccl_topology topology = { .release = 22907,
                                      .nodes = cases[i].nodes,
                                      .ppn = 1,
                                      .cc_min = 120,
                                      .cc_max = 120,
                                      .cpu = NCCL_CPU_INTEL,
                                      .channels = 2,
                                      .net_overhead_us = -1,
                                      .ring = ring,
                                      .tree = tree };
    struct nccl_model model;
    nccl_costs costs;
    struct nccl_cell cell = { 0 };
    nccl_model_build(&topology, &model);
    nccl_model_costs(&model, PROFILE_ALLREDUCE, cases[i].bytes, costs);
    assert_true(nccl_model_choose(costs, &cell));
    if (cell.algorithm != cases[i].cell.algorithm || cell.protocol != cases[i].cell.protocol) {
      fail_msg("%d nodes, %llu bytes: %s %s", cases[i].nodes, (unsigned long long)cases[i].bytes,
               profile_algorithm_name(cell.algorithm), profile_protocol_name(cell.protocol));
    }
  }
}

UNIT_MAIN(NULL, NULL)
