/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the winning cell at each measured size, and joins equal answers to rows. */
#include "tuner_plugin/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/model/estimates.h"
#include "tuner_plugin/model/limits.h"

/* A way against the one that NCCL takes at a measured size. */
struct match {
  double over_us, us, noise;
};

/* What to do at a measured size. */
struct answer {
  bool is_ours;        /* else it is left to NCCL */
  size_t winner, over; /* what is taken in place of what NCCL takes */
  struct match match;
};

static bool is_certain(double gain, double noise) {
  return gain >= fmax(GUARD_GAIN_PERMILLE / 1000.0, 2 * noise);
}

static double gain_of(const struct match *match) {
  return match->over_us / match->us - 1;
}

/* False: one of them was not measured there. */
static bool compare(const struct estimates *shape, size_t size, size_t one, size_t over,
                    struct match *match) {
  const struct estimate *ours = estimates_at(shape, size, one);
  const struct estimate *theirs = estimates_at(shape, size, over);
  *match = (struct match){ theirs->us, ours->us, hypot(ours->noise, theirs->noise) };
  return ours->us > 0 && theirs->us > 0;
}

/* Fewer channels are preferred if they cost little; 0 is NCCL's number, the most. */
static bool is_better(const struct way *one, double us, const struct way *other, double other_us) {
  bool is_same_cell = one->algorithm == other->algorithm && one->protocol == other->protocol;
  if (is_same_cell && one->channels != other->channels) {
    bool has_fewer = one->channels - 1 < other->channels - 1;
    return us < (has_fewer ? other_us * FIT_CHANNEL_GAIN : other_us / FIT_CHANNEL_GAIN);
  }
  return us < other_us;
}

static struct answer ask(const struct estimates *shape, size_t size) {
  struct answer answer = { .over = shape->usual[size] };
  for (size_t way = 0; way < shape->way_count; way++) {
    struct match match;
    if (way != answer.over && compare(shape, size, way, answer.over, &match) &&
        (!answer.is_ours ||
         is_better(&shape->ways[way], match.us, &shape->ways[answer.winner], answer.match.us))) {
      answer = (struct answer){ true, way, answer.over, match };
    }
  }
  answer.is_ours = answer.is_ours && is_certain(gain_of(&answer.match), answer.match.noise);
  return answer;
}

/* How the winner does at another size, against what it is to replace; -1 if nobody knows. */
static double gain_at(const struct estimates *shape, const struct answer *answer, size_t size,
                      double *noise) {
  struct match match;
  if (size >= shape->size_count || !compare(shape, size, answer->winner, answer->over, &match)) {
    return -1;
  }
  *noise = match.noise;
  return gain_of(&match);
}

/* Among many cells the fastest is also the one that noise favoured: at one size alone it needs
 * twice the margin. */
static bool is_confirmed(const struct estimates *shape, const struct answer *answer, size_t size) {
  double noise = 0, before = gain_at(shape, answer, size - 1, &noise);
  bool is_certain_before = before >= 0 && is_certain(before, noise);
  double after = gain_at(shape, answer, size + 1, &noise);
  return is_certain_before || (after >= 0 && is_certain(after, noise)) ||
         is_certain(gain_of(&answer->match) / 2, answer->match.noise);
}

/* Where a row ends between the size of its last answer and the next one: as far as the gain is
 * likely to last, and halfway to another row. */
static uint64_t find_end(const struct estimates *shape, const struct answer *answers, size_t last,
                         size_t next) {
  double noise, there = gain_at(shape, &answers[last], next, &noise);
  double here = log1p(gain_of(&answers[last].match)), least = log1p(FIT_REACH_GAIN);
  if (there <= -1 || here <= least) {
    return shape->sizes[last];
  }
  double share = log1p(there) >= least ? 1 : (here - least) / (here - log1p(there));
  share = fmin(share, answers[next].is_ours ? 0.5 : FIT_REACH_MOST);
  double bytes = (double)shape->sizes[last];
  return (uint64_t)ceil(bytes * pow((double)shape->sizes[next] / bytes, share));
}

/* The row for equal answers at [start, end), with the figures of the size where it gains least. */
static struct profile_row make_row(const struct estimates *shape, const struct answer *answers,
                                   size_t start, size_t end) {
  const struct answer *least = &answers[start];
  for (size_t i = start; i < end; i++) {
    least = gain_of(&answers[i].match) < gain_of(&least->match) ? &answers[i] : least;
  }
  const uint64_t *sizes = shape->sizes;
  const struct way *winner = &shape->ways[least->winner], *over = &shape->ways[least->over];
  uint64_t hi = end < shape->size_count ? find_end(shape, answers, end - 1, end) : 0;
  return (struct profile_row){
    .bytes_lo = start > 0 ? find_end(shape, answers, start, start - 1) : sizes[start],
    .bytes_hi = hi > sizes[end - 1] ? hi : sizes[end - 1] + 1,
    .algorithm = winner->algorithm,
    .protocol = winner->protocol,
    .channels = winner->channels,
    .is_measured = true,
    .over_algorithm = over->algorithm,
    .over_protocol = over->protocol,
    .default_ns = (uint64_t)llround(least->match.over_us * 1000),
    .choice_ns = (uint64_t)llround(least->match.us * 1000),
    .noise_permille = (uint32_t)lround(fmin(least->match.noise, 1) * 1000),
  };
}

static bool is_same_answer(const struct answer *a, const struct answer *b) {
  return a->is_ours == b->is_ours && (!a->is_ours || a->winner == b->winner) && a->over == b->over;
}

static int fill_table(const struct estimates *shape, struct profile_table *table,
                      struct fit_counts *counts) {
  size_t count = shape->size_count;
  struct answer *answers = calloc(count, sizeof *answers);
  table->rows = calloc(count, sizeof *table->rows);
  if (!answers || !table->rows) {
    free(answers);
    return -ENOMEM;
  }
  for (size_t i = 0; i < count; i++) {
    answers[i] = ask(shape, i);
    answers[i].is_ours = answers[i].is_ours && is_confirmed(shape, &answers[i], i);
  }
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && is_same_answer(&answers[start], &answers[end]); end++) {
    }
    if (answers[start].is_ours) {
      table->rows[table->row_count++] = make_row(shape, answers, start, end);
      counts->won += end - start;
      counts->rows++;
    }
  }
  counts->points += count;
  counts->shapes++;
  free(answers);
  return 0;
}

static bool has_choice(const struct sample *samples, size_t count, bool is_default) {
  for (size_t i = 0; i < count; i++) {
    if (samples[i].is_default == is_default) {
      return true;
    }
  }
  return false;
}

/* Of one shape; none if there is nothing to compare. */
static int add_table(struct sample *samples, size_t count, struct profile *profile,
                     struct fit_counts *counts) {
  struct estimates shape;
  if (!has_choice(samples, count, true) || !has_choice(samples, count, false)) {
    return 0;
  }
  struct profile_table *tables =
      reallocarray(profile->tables, profile->table_count + 1, sizeof *tables);
  if (!tables) {
    return -ENOMEM;
  }
  profile->tables = tables;
  struct profile_table *table = &tables[profile->table_count++];
  *table =
      (struct profile_table){ samples[0].collective, samples[0].nodes, samples[0].ppn, NULL, 0 };
  int result = estimates_make(samples, count, &shape);
  if (result == 0) {
    result = fill_table(&shape, table, counts);
    estimates_free(&shape);
  }
  return result;
}

int fit_profile(const struct sample *samples, size_t count, struct profile *profile,
                struct fit_counts *counts, struct profile_error *error) {
  struct sample *sorted = calloc(count + 1, sizeof *sorted);
  int result = sorted ? 0 : -ENOMEM;
  *counts = (struct fit_counts){ 0 };
  if (sorted && count > 0) {
    memcpy(sorted, samples, count * sizeof *sorted);
    estimates_sort(sorted, count);
  }
  for (size_t start = 0, end; start < count && result == 0; start = end) {
    end = start + estimates_count_shape(sorted + start, count - start);
    result = add_table(sorted + start, end - start, profile, counts);
  }
  free(sorted);
  if (result == 0 && counts->shapes == 0) {
    snprintf(error->text, sizeof error->text,
             "no collective was measured both as NCCL chooses (\"default\":true) and otherwise");
    result = -EINVAL;
  }
  return result;
}
