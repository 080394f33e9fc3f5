/* SPDX-License-Identifier: Apache-2.0 */
/* See pick_winner.h. */
#include "tuner_plugin/model/pick_winner.h"

bool pick_winner_is_worth(const struct answer *answer) {
  return guard_is_worth(pick_winner_ns(answer->default_us),
                        pick_winner_ns(answer->winner_us * answer->margin),
                        pick_winner_permille(answer->noise));
}

bool pick_winner_is_sure(double gain, double noise) {
  return gain >= fmax(PICK_WINNER_LEAST_GAIN, 2 * noise);
}

const struct curve_point *pick_winner_default_point(const struct curve *by_default, double bytes,
                                                    bool is_next) {
  size_t i = 0;
  while (i + 1 < by_default->count && (double)by_default->points[i + 1].bytes <= bytes) {
    i++;
  }
  bool is_between = (double)by_default->points[i].bytes < bytes && i + 1 < by_default->count;
  return &by_default->points[is_next && is_between ? i + 1 : i];
}

/* `from` and `to` are the measured sizes around a place, or both the place itself. */
static double margin_between(const struct curve_point *from, const struct curve_point *to) {
  return 1 + fmin(PICK_WINNER_JUMP_MOST, PICK_WINNER_JUMP_SHARE * fabs(log(to->us / from->us)));
}

/* The same cell as NCCL's choice would change nothing. */
static bool is_other_than(const struct curve *curve, const struct curve_point *by_default) {
  return curve->algorithm != by_default->algorithm || curve->protocol != by_default->protocol ||
         curve->channels > 0;
}

/* The curve of the cell that NCCL chose there, also at sizes where NCCL chooses another one; NULL:
 * it ends before. */
static const struct curve *chosen_curve(const struct candidates *candidates,
                                        const struct curve_point *by_default, double bytes) {
  for (size_t i = 0; i < candidates->other_count; i++) {
    const struct curve *curve = &candidates->others[i];
    if (!is_other_than(curve, by_default) && curve_covers(curve, bytes)) {
      return curve;
    }
  }
  return NULL;
}

/* The relative noise of comparing the two. */
static double compared_noise(const struct curve *one, const struct curve *other, double bytes) {
  double a = curve_noise(one, bytes), b = curve_noise(other, bytes);
  return sqrt(a * a + b * b);
}

bool pick_winner_is_near(const struct curve *by_default, size_t i, double bytes) {
  return (i + 1 >= by_default->count || (double)by_default->points[i + 1].bytes >= bytes) &&
         (i == 0 || (double)by_default->points[i - 1].bytes <= bytes);
}

/* The cell that the winner replaces, at a size where NCCL chooses that cell. */
static struct curve_point over_of(const struct answer *answer) {
  return (struct curve_point){ .algorithm = answer->over_algorithm,
                               .protocol = answer->over_protocol };
}

enum pick_winner_side pick_winner_side_at(const struct candidates *candidates,
                                          const struct answer *answer, uint64_t bytes) {
  const struct curve_point over = over_of(answer);
  const struct curve *chosen = chosen_curve(candidates, &over, (double)bytes);
  if (!chosen || !curve_find(chosen, bytes) || !curve_find(answer->winner, bytes)) {
    return PICK_WINNER_AGAINST;
  }
  double gain = curve_us(chosen, (double)bytes) / curve_us(answer->winner, (double)bytes) - 1;
  if (pick_winner_is_sure(gain, compared_noise(answer->winner, chosen, (double)bytes))) {
    return PICK_WINNER_SURE;
  }
  return gain >= 0 ? PICK_WINNER_OPEN : PICK_WINNER_AGAINST;
}

/* A cell that is also faster at neighbouring sizes, by more than the error of their mean, is
 * faster: their errors are partly independent, and their mean has a smaller one. */
static void pool_noise(struct answer *answer, const struct candidates *candidates,
                       const struct curve_point *over) {
  const struct curve *by_default = candidates->by_default;
  double gain = 0, squares = 0;
  int count = 0;
  for (size_t i = 0; i < by_default->count; i++) {
    double bytes = (double)by_default->points[i].bytes;
    const struct curve *chosen = pick_winner_is_near(by_default, i, answer->bytes)
                                     ? chosen_curve(candidates, over, bytes)
                                     : NULL;
    if (!chosen || !curve_covers(answer->winner, bytes)) {
      continue;
    }
    double noise = compared_noise(answer->winner, chosen, bytes);
    double gain_here = log(curve_us(chosen, bytes) / curve_us(answer->winner, bytes));
    if (gain_here <= 0) {
      return;
    }
    gain += gain_here;
    squares += noise * noise;
    count++;
  }
  if (count > 1) {
    double pooled = PICK_WINNER_LAUNCH_PART * sqrt(squares) / count;
    bool is_sure = pick_winner_is_sure(exp(gain / count) - 1, pooled);
    answer->noise = is_sure ? fmin(answer->noise, pooled) : answer->noise;
  }
}

/* The log of what the winner gains at the measured size i; false: it, or what it is to replace, was
 * not measured there. */
static bool gain_at(const struct candidates *candidates, const struct curve_point *over,
                    const struct curve *winner, size_t i, double *gain) {
  if (i >= candidates->by_default->count) {
    return false;
  }
  uint64_t bytes = candidates->by_default->points[i].bytes;
  const struct curve *chosen = chosen_curve(candidates, over, (double)bytes);
  const struct curve_point *usual = chosen ? curve_find(chosen, bytes) : NULL;
  const struct curve_point *ours = curve_find(winner, bytes);
  *gain = usual && ours ? log(usual->us / ours->us) : 0;
  return usual && ours;
}

/* The difference between the gain at the measured size i and the gain predicted from the sizes on
 * either side: the possible error between sizes. Negative: unknown. */
static double surprise_at(const struct candidates *candidates, const struct curve_point *over,
                          const struct curve *winner, size_t i) {
  double before, here, after;
  if (i == 0 || !gain_at(candidates, over, winner, i - 1, &before) ||
      !gain_at(candidates, over, winner, i, &here) ||
      !gain_at(candidates, over, winner, i + 1, &after)) {
    return -1;
  }
  const struct curve_point *points = candidates->by_default->points;
  double from = log((double)points[i - 1].bytes), to = log((double)points[i + 1].bytes);
  double share = (log((double)points[i].bytes) - from) / (to - from);
  double missing = before + share * (after - before) - here;
  return missing >= 0 ? missing : -missing * PICK_WINNER_SURPRISE_SHARE;
}

double pick_winner_margin(const struct candidates *candidates, const struct answer *answer) {
  const struct curve *by_default = candidates->by_default;
  const struct curve_point *from = pick_winner_default_point(by_default, answer->bytes, false);
  const struct curve_point *to = pick_winner_default_point(by_default, answer->bytes, true);
  const struct curve_point over = over_of(answer);
  double margin = margin_between(from, to);
  size_t i = (size_t)(from - by_default->points);
  double surprise = from == to ? -1
                               : fmax(surprise_at(candidates, &over, answer->winner, i),
                                      surprise_at(candidates, &over, answer->winner, i + 1));
  return surprise < 0 ? margin : fmin(margin, 1 + fmax(PICK_WINNER_JUMP_LEAST, surprise));
}

static void pick_winner_take(struct answer *answer, const struct candidates *candidates,
                             const struct curve_point *over, const struct curve *winner) {
  answer->winner = winner;
  answer->winner_us = curve_us(winner, answer->bytes);
  answer->noise = compared_noise(winner, candidates->by_default, answer->bytes);
  answer->margin = pick_winner_margin(candidates, answer);
  pool_noise(answer, candidates, over);
}

/* Fewer channels of the same cell, if they are nearly as good, and also certain. */
static void prefer_few_channels(struct answer *answer, const struct candidates *candidates,
                                const struct curve_point *over) {
  struct answer best = *answer;
  for (size_t i = 0; i < candidates->other_count; i++) {
    const struct curve *curve = &candidates->others[i];
    bool is_fewer = curve->channels > 0 &&
                    (answer->winner->channels == 0 || curve->channels < answer->winner->channels);
    if (!is_fewer || curve->algorithm != best.winner->algorithm ||
        curve->protocol != best.winner->protocol || !curve_covers(curve, answer->bytes)) {
      continue;
    }
    struct answer fewer = *answer;
    pick_winner_take(&fewer, candidates, over, curve);
    if (fewer.winner_us <= PICK_WINNER_CHANNEL_GAIN * best.winner_us &&
        pick_winner_is_worth(&fewer)) {
      *answer = fewer;
    }
  }
}

struct answer pick_winner_over(const struct candidates *candidates, double bytes, bool is_measured,
                               const struct curve_point *by_default) {
  const struct curve *chosen =
      is_measured ? candidates->by_default : chosen_curve(candidates, by_default, bytes);
  struct answer answer = {
    .bytes = bytes,
    .over_algorithm = by_default->algorithm,
    .over_protocol = by_default->protocol,
    .default_us = chosen ? curve_us(chosen, bytes) : 0,
    .is_measured = is_measured,
  };
  for (size_t i = 0; chosen && i < candidates->other_count; i++) {
    const struct curve *curve = &candidates->others[i];
    if (!curve_covers(curve, bytes) || !is_other_than(curve, by_default)) {
      continue;
    }
    if (!answer.winner || curve_us(curve, bytes) < answer.winner_us) {
      pick_winner_take(&answer, candidates, by_default, curve);
    }
  }
  if (answer.winner) {
    prefer_few_channels(&answer, candidates,
                        by_default); /* may be certain where the fastest is not */
    answer.winner = pick_winner_is_worth(&answer) ? answer.winner : NULL;
  }
  return answer;
}

struct answer pick_winner_at(const struct candidates *candidates, double bytes, bool is_measured) {
  const struct curve_point *last = pick_winner_default_point(candidates->by_default, bytes, false);
  const struct curve_point *next = pick_winner_default_point(candidates->by_default, bytes, true);
  struct answer answer = pick_winner_over(candidates, bytes, is_measured, last);
  if (!is_measured && (next->algorithm != last->algorithm || next->protocol != last->protocol)) {
    struct answer other = pick_winner_over(candidates, bytes, is_measured, next);
    bool is_better = other.winner && (!answer.winner || other.default_us * answer.winner_us >
                                                            answer.default_us * other.winner_us);
    answer = is_better ? other : answer;
  }
  return answer;
}
