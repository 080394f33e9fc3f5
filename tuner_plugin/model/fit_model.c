/* SPDX-License-Identifier: Apache-2.0 */
/* The four figures of a cell's model: least squares of relative errors, robust against outliers,
 * none negative. How far the model errs between numbers of nodes is measured by leaving each out.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/decide/costs.h"
#include "tuner_plugin/decide/extrapolate.h"
#include "tuner_plugin/model/fit.h"
#include "tuner_plugin/model/limits.h"

enum {
  FIGURES = 4, /* base, intra, inter, time per byte */
  NODE_COUNTS_MAX = 32,
  WAYS = 2, /* to compare sizes, as extrapolate.h does */
};

/* A time, and what each figure is multiplied with to give it. */
struct fact {
  uint32_t nodes;
  uint32_t ppn;
  uint64_t bytes;
  double us;
  double factors[FIGURES];
};

struct facts {
  struct fact *facts;
  size_t count;
  double *errors; /* room for twice as many */
};

struct cell {
  enum profile_collective collective;
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
};

static void fill_factors(const struct cell *cell, struct fact *fact) {
  struct profile_model model = { .collective = cell->collective,
                                 .algorithm = cell->algorithm,
                                 .protocol = cell->protocol,
                                 .bytes_per_ms = 1000 };
  fact->factors[0] = 1;
  fact->factors[3] = extrapolate_model_us(&model, fact->nodes, fact->ppn, fact->bytes);
  model.intra_ns = 1000;
  fact->factors[1] = extrapolate_model_us(&model, fact->nodes, fact->ppn, 0);
  model.intra_ns = 0;
  model.inter_ns = 1000;
  fact->factors[2] = extrapolate_model_us(&model, fact->nodes, fact->ppn, 0);
}

/* Curves that ran the cell as NCCL does: nothing else was asked for. If there are none, those with
 * the most channels. */
static bool is_usual(const struct curves *curves, const struct cell *cell,
                     const struct curve *curve) {
  if (curve->collective != cell->collective || curve->is_default ||
      curve->algorithm != cell->algorithm || curve->protocol != cell->protocol) {
    return false;
  }
  uint32_t most = 0;
  for (size_t i = 0; i < curves->count && curve->channels > 0; i++) {
    const struct curve *other = &curves->curves[i];
    bool is_same = !other->is_default && other->collective == cell->collective &&
                   other->nodes == curve->nodes && other->ppn == curve->ppn &&
                   other->algorithm == cell->algorithm && other->protocol == cell->protocol;
    if (is_same && other->channels == 0) {
      return false;
    }
    most = is_same && other->channels > most ? other->channels : most;
  }
  return curve->channels == most;
}

static int add_fact(struct facts *facts, const struct cell *cell, const struct curve *curve,
                    const struct curve_point *point) {
  struct fact *grown = reallocarray(facts->facts, facts->count + 1, sizeof *grown);
  if (!grown) {
    return -ENOMEM;
  }
  facts->facts = grown;
  struct fact *fact = &facts->facts[facts->count++];
  *fact = (struct fact){ curve->nodes, curve->ppn, point->bytes, point->us, { 0 } };
  fill_factors(cell, fact);
  return 0;
}

static size_t list_nodes(const struct facts *facts, uint32_t nodes[NODE_COUNTS_MAX]) {
  size_t count = 0;
  for (size_t i = 0; i < facts->count; i++) {
    size_t j = 0;
    while (j < count && nodes[j] != facts->facts[i].nodes) {
      j++;
    }
    if (j == count && count < NODE_COUNTS_MAX) {
      nodes[count++] = facts->facts[i].nodes;
    }
  }
  return count;
}

/* Two nodes are a special case (extrapolate.h); they are used only if there is too little else. */
static void drop_two_nodes(struct facts *facts) {
  uint32_t nodes[NODE_COUNTS_MAX];
  size_t others = 0, count = list_nodes(facts, nodes);
  for (size_t i = 0; i < count; i++) {
    others += nodes[i] > 2;
  }
  size_t kept = 0;
  for (size_t i = 0; i < facts->count; i++) {
    if (others < 2 || facts->facts[i].nodes > 2) {
      facts->facts[kept++] = facts->facts[i];
    }
  }
  facts->count = kept;
}

static int collect(const struct curves *curves, const struct cell *cell, struct facts *facts) {
  for (size_t i = 0; i < curves->count; i++) {
    const struct curve *curve = &curves->curves[i];
    if (!is_usual(curves, cell, curve)) {
      continue;
    }
    for (size_t j = 0; j < curve->count; j++) {
      int result = add_fact(facts, cell, curve, &curve->points[j]);
      if (result < 0) {
        return result;
      }
    }
  }
  drop_two_nodes(facts);
  facts->errors = malloc((WAYS * facts->count + 1) * sizeof *facts->errors);
  return facts->errors ? 0 : -ENOMEM;
}

static double predict(const double figures[FIGURES], const struct fact *fact) {
  double us = 0;
  for (int i = 0; i < FIGURES; i++) {
    us += figures[i] * fact->factors[i];
  }
  return us > 1e-3 ? us : 1e-3;
}

/* Sums for the normal equations; `tolerance` is the error beyond which a fact counts less. */
static void sum_up(const struct facts *facts, uint32_t without, const double figures[FIGURES],
                   double tolerance, double matrix[FIGURES][FIGURES], double right[FIGURES]) {
  memset(matrix, 0, sizeof(double[FIGURES][FIGURES]));
  memset(right, 0, sizeof(double[FIGURES]));
  for (size_t k = 0; k < facts->count; k++) {
    const struct fact *fact = &facts->facts[k];
    if (fact->nodes == without) {
      continue;
    }
    double us = predict(figures, fact);
    double error = fabs(log(us / fact->us));
    /* (a-b)^2 / ab is, for a near b, the square of the logarithm's difference. */
    double weight = (error > tolerance ? tolerance / error : 1) / (us * fact->us);
    for (int i = 0; i < FIGURES; i++) {
      right[i] += weight * fact->factors[i] * fact->us;
      for (int j = 0; j < FIGURES; j++) {
        matrix[i][j] += weight * fact->factors[i] * fact->factors[j];
      }
    }
  }
}

/* One figure after the other, the rest held; none below 0. */
static void solve(double matrix[FIGURES][FIGURES], const double right[FIGURES],
                  double figures[FIGURES]) {
  for (int sweep = 0; sweep < FIT_SWEEPS; sweep++) {
    for (int i = 0; i < FIGURES; i++) {
      if (matrix[i][i] <= 0) {
        figures[i] = 0;
        continue;
      }
      double rest = right[i];
      for (int j = 0; j < FIGURES; j++) {
        rest -= j == i ? 0 : matrix[i][j] * figures[j];
      }
      figures[i] = rest > 0 ? rest / matrix[i][i] : 0;
    }
  }
}

static void find_figures(const struct facts *facts, uint32_t without, double figures[FIGURES]) {
  figures[0] = 20;
  figures[1] = figures[2] = 5;
  figures[3] = 1e-3;
  for (int round = 0; round < FIT_ROUNDS; round++) {
    double matrix[FIGURES][FIGURES], right[FIGURES];
    double tolerance = round < FIT_FIRST_ROUNDS ? FIT_FIRST_TOLERANCE : FIT_TOLERANCE;
    sum_up(facts, without, figures, tolerance, matrix, right);
    solve(matrix, right, figures);
  }
}

/* ---- error between numbers of nodes ---- */

static const struct fact *find_fact(const struct facts *facts, uint32_t nodes, uint32_t ppn,
                                    uint64_t bytes) {
  for (size_t i = 0; i < facts->count; i++) {
    const struct fact *fact = &facts->facts[i];
    if (fact->nodes == nodes && fact->ppn == ppn && fact->bytes == bytes) {
      return fact;
    }
  }
  return NULL;
}

/* The error of times at `nodes` if extrapolated from each other number within a factor of 2. */
static size_t carry_errors(const struct facts *facts, uint32_t nodes, const double figures[FIGURES],
                           const uint32_t *from, size_t from_count, double *errors) {
  size_t count = 0;
  for (size_t i = 0; i < facts->count; i++) {
    const struct fact *there = &facts->facts[i];
    for (size_t j = 0; j < from_count && there->nodes == nodes; j++) {
      bool is_near = from[j] != nodes && from[j] <= 2 * nodes && nodes <= 2 * from[j];
      const struct fact *here =
          is_near ? find_fact(facts, from[j], there->ppn, there->bytes) : NULL;
      if (here) {
        double carried = here->us * predict(figures, there) / predict(figures, here);
        errors[count++] = fabs(log(carried / there->us));
        break;
      }
    }
  }
  return count;
}

/* The bound that 9 of 10 extrapolated times stay within. With two numbers of nodes there is nothing
 * to leave out for validation, and the model was fitted to both: then half as much again. */
static double find_spread(const struct facts *facts, const double figures[FIGURES],
                          const uint32_t *nodes, size_t node_count) {
  size_t count = 0;
  for (size_t i = 0; i < node_count; i++) {
    double without[FIGURES];
    memcpy(without, figures, sizeof without);
    if (node_count > 2) {
      find_figures(facts, nodes[i], without);
    }
    count += carry_errors(facts, nodes[i], without, nodes, node_count, facts->errors + count);
  }
  double error = interpolate_quantile(facts->errors, count, FIT_ERROR_QUANTILE);
  return count > 0 ? (exp(error) - 1) * (node_count > 2 ? 1 : FIT_TWO_COUNTS_FACTOR) : 1;
}

/* ---- the whole ---- */

static uint64_t to_milli(double value, double least) {
  double milli = value * 1000;
  return (uint64_t)llround(milli > least ? fmin(milli, 1e12) : least);
}

static int add_model(struct profile *profile, const struct cell *cell,
                     const double figures[FIGURES], double spread) {
  struct profile_model *models =
      reallocarray(profile->models, profile->model_count + 1, sizeof *models);
  if (!models) {
    return -ENOMEM;
  }
  profile->models = models;
  double bytes_per_us = figures[3] > 1e-9 ? 1 / figures[3] : 4e6;
  profile->models[profile->model_count++] = (struct profile_model){
    .collective = cell->collective,
    .algorithm = cell->algorithm,
    .protocol = cell->protocol,
    .base_ns = to_milli(figures[0], 0),
    .intra_ns = to_milli(figures[1], 0),
    .inter_ns = to_milli(figures[2], 0),
    .bytes_per_ms = to_milli(fmin(bytes_per_us, 4e6), 1),
    .spread_permille = (uint32_t)ceil(fmin(spread, 10) * 1000),
  };
  return 0;
}

static int fit_cell(const struct curves *curves, const struct cell *cell, struct profile *profile) {
  struct facts facts = { 0 };
  uint32_t nodes[NODE_COUNTS_MAX];
  int result = collect(curves, cell, &facts);
  size_t node_count = list_nodes(&facts, nodes);
  if (result == 0 && node_count >= 2 && facts.count >= FIT_POINTS_LEAST) {
    double figures[FIGURES];
    find_figures(&facts, 0, figures);
    result = add_model(profile, cell, figures, find_spread(&facts, figures, nodes, node_count));
  }
  free(facts.facts);
  free(facts.errors);
  return result;
}

int fit_models(const struct curves *curves, struct profile *profile) {
  for (unsigned i = 0; i < PROFILE_COLLECTIVE_COUNT * COSTS_CELLS; i++) {
    struct cell cell = {
      .collective = (enum profile_collective)(i / COSTS_CELLS),
      .algorithm = costs_cell_algorithm(i % COSTS_CELLS),
      .protocol = costs_cell_protocol(i % COSTS_CELLS),
    };
    int result = fit_cell(curves, &cell, profile);
    if (result < 0) {
      return result;
    }
  }
  return 0;
}
