/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model: its cells and choices are those of stock NCCL, as tests/tables/collect recorded them,
 * and those that were published. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/model/nccl_graph.h"
#include "tuner_plugin/model/nccl_model.h"
#include "tuner_plugin/model/nccl_table.h"

#define TABLES "tests/data/tables"

struct tally {
  bool is_talking; /* about the first cells that differ */
  int tables, cells, wrong_cells, choices, wrong_choices;
};

static const struct nccl_table_column *
find_column(const struct nccl_table *table, enum profile_collective collective, int a, int p) {
  for (size_t i = 0; i < table->column_count; i++) {
    const struct nccl_table_column *column = &table->columns[i];
    if (column->collective == collective && (int)column->cell.algorithm == a &&
        (int)column->cell.protocol == p) {
      return column;
    }
  }
  return NULL;
}

/* NCCL's table for one size: negative where it recorded none. */
static bool recorded_costs(const struct nccl_table *table, enum profile_collective collective,
                           int shift, nccl_costs costs) {
  bool is_any = false;
  for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
    for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
      const struct nccl_table_column *column = find_column(table, collective, a, p);
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

static void compare_size(const char *path, const struct nccl_table *table,
                         const struct nccl_model *model, enum profile_collective collective,
                         int shift, struct tally *tally) {
  nccl_costs recorded, costs;
  if (!recorded_costs(table, collective, shift, recorded)) {
    return;
  }
  nccl_model_costs(model, collective, nccl_table_bytes(&table->topology, collective, shift), costs);
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
  struct nccl_table table;
  struct profile_error error;
  if (nccl_table_read(path, &table, &error) != 0) {
    fail_msg("%s:%d: %s", path, error.line, error.text);
  }
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
  nccl_table_free(&table);
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
