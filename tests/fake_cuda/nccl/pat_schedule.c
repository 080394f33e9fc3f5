/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of PAT, as src/include/collectives.h of NCCL has it. */
#include <string.h>

#include "tests/fake_cuda/nccl/pat.h"

static int log2_up(int n) {
  int l = 0;
  while (1 << l < n)
    l++;
  return l;
}

static int first_bit(int i, int if_zero) {
  return i ? __builtin_ctz((unsigned)i) : if_zero;
}

/* Reverses the bits of i (mirrorInvert: of its complement) below max. */
static int mirror(int i, int max, bool invert) {
  int result = 0;
  for (int m = 1, mirrored = max / 2; m < max; m <<= 1, mirrored >>= 1) {
    bool set = (i & m) != 0;
    if (set != invert)
      result += mirrored;
  }
  return result;
}

/* Whether aggregated step i is the first one that goes to another peer. */
static bool is_new_peer(int i, int pow2) {
  return __builtin_popcount((unsigned)((i ^ (pow2 - 1)) + 1)) == 1;
}

/* Position of the data of the rank `distance` away. */
static ssize_t data_of(const struct pat_state *s, int distance) {
  return (ssize_t)((s->rank + s->n_ranks + distance) % s->n_ranks) * s->total + s->offset;
}

static ssize_t slot_part(const struct pat_state *s, int i) {
  return (i % s->post_frequency) * s->count;
}

static bool ends_slot(const struct pat_state *s, int i) {
  return (i + 1) % s->post_frequency == 0;
}

static void pat_init(struct pat_state *s, struct part part, const struct block *b, int size) {
  memset(s, 0, sizeof *s);
  s->offset = part.offset;
  s->end = part.offset + part.length;
  s->total = part.count;
  s->chunk = part.chunk;
  s->rank = b->rank;
  s->n_ranks = b->n_ranks;
  s->n_ranks_pow2 = 1 << log2_up(s->n_ranks);
  s->aggregate_delta = s->n_ranks_pow2;
  s->aggregate = 1;
  size_t slot_bytes = (size_t)(part.chunk * size);
  size_t channel_bytes = (size_t)(part.length * size);
  while (slot_bytes / (channel_bytes * (size_t)s->aggregate) >= 2 &&
         s->aggregate < s->n_ranks / 2) {
    s->aggregate *= 2;
    s->aggregate_delta /= 2;
  }
  s->post_frequency = s->aggregate;
  for (int d = NCCL_STEPS; d > 1 && s->aggregate < s->n_ranks / 2; d /= 2) {
    s->aggregate *= 2;
    s->aggregate_delta /= 2;
  }
  s->dimensions = log2_up(s->aggregate_delta);
}

/* ---- reduce-scatter ---- */

static void rs_begin_phase(struct pat_state *s) {
  s->index = 0;
  s->send_skip = 0;
  s->step_offset = 0;
  if (s->phase == 4)
    s->last_index = 1;
  else if (s->phase >= 2)
    s->last_index = s->aggregate / (2 * s->scale);
  else
    s->last_index = s->aggregate;
}

static void rs_begin_chunk(struct pat_state *s) {
  s->count = MIN(s->chunk, s->end - s->offset);
  s->phase = 0;
  s->scale = 1;
  s->position = s->aggregate_delta - 1;
  rs_begin_phase(s);
}

/* Nothing to receive in this step although there is something to send. */
static void rs_send_only(struct pat_step *p) {
  p->recv_dim = -1;
  p->recv_offset = -1;
  p->skip = false;
}

static void rs_phase0(struct pat_state *s, struct pat_step *p, bool full) {
  int i = s->index;
  int distance = mirror(i, s->last_index, true) * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->in = data_of(s, distance);
  p->recv_dim = -1;
  p->send_dim = 0;
  p->out = 0;
  p->recv_offset = -1;
  p->send_offset = slot_part(s, i);
  p->post_send = full;
}

static void rs_phase1(struct pat_state *s, struct pat_step *p, bool full) {
  int i = s->index;
  int distance = mirror(i, s->last_index, true) * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->recv_dim = first_bit(distance, s->n_ranks_pow2);
  p->send_offset = slot_part(s, i);
  p->recv_offset = p->send_offset;
  p->post_send = p->recv_dim == 0 && full;
  p->post_recv = full;
  distance -= 1 << p->recv_dim;
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (p->send_dim == -1) {
    p->send_offset = -1;
  } else if (s->position - (1 << p->recv_dim) == 0) {
    if (is_new_peer(i, s->aggregate)) {
      s->send_skip = i;
      s->step_offset = 0;
      p->step_offset = 0;
    }
    p->send_offset = slot_part(s, i - s->send_skip);
  }
  int recv_dim = p->recv_dim;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
    p->post_recv = false;
  }
  if (recv_dim > 0 && ends_slot(s, i - s->send_skip) && !p->skip)
    s->step_offset++;
}

static void rs_phase2(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = (2 * mirror(i, s->last_index, true) + 1) * s->scale * s->aggregate_delta + 1;
  p->skip = distance >= s->n_ranks;
  p->recv_dim = 0;
  p->post_send = i == s->last_index - 1 || ends_slot(s, i);
  distance--;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
  } else if (!p->skip) {
    int recv_index = i + s->aggregate - s->aggregate / s->scale;
    p->post_recv = ends_slot(s, recv_index);
    p->recv_offset = slot_part(s, recv_index);
  }
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  p->send_offset = slot_part(s, i);
}

static void rs_phase3(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = (2 * mirror(i, s->last_index, true) + 1) * s->scale * s->aggregate_delta;
  p->post_recv = i == s->last_index - 1 || ends_slot(s, i);
  p->skip = distance >= s->n_ranks;
  p->recv_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->recv_dim;
  p->recv_offset = slot_part(s, i);
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
    p->post_recv = false;
  }
  if (is_new_peer(i, s->aggregate / (2 * s->scale))) {
    s->send_skip = i;
    s->step_offset = 0;
    p->step_offset = 0;
  }
  int send_index = i - s->send_skip;
  if (ends_slot(s, send_index) && !p->skip)
    s->step_offset++;
  p->send_offset = p->send_dim >= 0 ? slot_part(s, send_index) : -1;
}

static void rs_phase4(struct pat_state *s, struct pat_step *p) {
  p->recv_dim = 0;
  p->send_dim = -1;
  p->in = (ssize_t)s->rank * s->total + s->offset;
  p->recv_offset = slot_part(s, s->aggregate - 1);
  p->send_offset = -1;
  p->post_recv = true;
  s->offset += s->chunk;
}

/* The phase that follows the one that has just ended. */
static int rs_next_phase(struct pat_state *s) {
  switch (s->phase) {
  case 0:
    if (s->position == 1)
      return s->aggregate > 1 ? 2 : 4;
    return 1;
  case 1:
    s->position--;
    return s->position % 2 == 1 ? 0 : 1;
  case 2:
    return 3;
  case 3:
    s->scale *= 2;
    return s->scale < s->aggregate ? 2 : 4;
  default:
    return 5;
  }
}

static void rs_next(struct pat_state *s, struct pat_step *p) {
  bool full = ends_slot(s, s->index) || s->index == s->last_index - 1;
  *p = (struct pat_step){ .count = s->count, .out = s->offset, .step_offset = s->step_offset };
  if (s->index >= s->last_index)
    p->skip = true;
  else if (s->phase == 0)
    rs_phase0(s, p, full);
  else if (s->phase == 1)
    rs_phase1(s, p, full);
  else if (s->phase == 2)
    rs_phase2(s, p);
  else if (s->phase == 3)
    rs_phase3(s, p);
  else
    rs_phase4(s, p);
  if (++s->index < s->last_index)
    return;
  bool chunk_done = s->phase == 4;
  s->phase = rs_next_phase(s);
  if (!chunk_done)
    rs_begin_phase(s);
  else if (s->offset >= s->end)
    p->last = true;
  else
    rs_begin_chunk(s);
}

/* ---- all-gather ---- */

/* Enumerates the positions in NCCL's order (nextAs). */
static int ag_next_position(struct pat_state *s) {
  for (int d = 0; d < s->dimensions; d++) {
    int bit = 1 << d;
    if (--s->bit_count[d] != 0)
      continue;
    s->value ^= bit;
    s->bit_count[d] = bit;
    if (s->value & bit)
      continue;
    s->bit_count[d] += first_bit(s->bit_zeros[d], s->dimensions) - 1;
    if (s->bit_count[d] == 0) {
      s->value ^= bit;
      s->bit_count[d] = bit;
    }
    s->bit_zeros[d]++;
  }
  return s->value;
}

static void ag_begin_phase(struct pat_state *s) {
  s->index = 0;
  s->last_index = s->phase >= 2 ? s->aggregate / (2 * s->scale) : s->aggregate;
}

static void ag_begin_chunk(struct pat_state *s) {
  s->count = MIN(s->chunk, s->end - s->offset);
  s->scale = s->aggregate / 2;
  s->phase = s->scale ? 2 : 1;
  s->value = 0;
  for (int d = 0; d < s->dimensions; d++) {
    s->bit_count[d] = s->dimensions - d;
    s->bit_zeros[d] = 1;
  }
  s->position = ag_next_position(s);
  ag_begin_phase(s);
}

static void ag_phase0(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = i * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->out = data_of(s, distance);
  p->send_dim = -1;
  p->recv_dim = 0;
  p->in = 0;
  p->send_offset = -1;
  p->recv_offset = slot_part(s, i);
  p->post_recv = ends_slot(s, i) || (i + 1) * s->aggregate_delta + s->position >= s->n_ranks;
}

static void ag_phase1(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int delta = s->aggregate_delta;
  int distance = i * delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->send_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->send_dim;
  p->out = data_of(s, distance);
  p->recv_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  p->send_offset = slot_part(s, i);
  p->recv_offset = p->send_offset;
  p->post_send = ends_slot(s, i) || (i + 1) * delta + s->position >= s->n_ranks;
  p->post_recv =
      p->send_dim == 0 && (ends_slot(s, i) || (i + 1) * delta + s->position - 1 >= s->n_ranks);
  p->step_offset = p->send_dim == 0 ? 0 : i / s->post_frequency;
  if (p->recv_dim == -1) {
    p->recv_offset = -1;
    p->post_recv = false;
  } else if (s->position - (1 << p->send_dim) == 0) {
    int recv_index = (i * delta) >> (p->recv_dim + 1);
    bool last_of_peer = (((recv_index + 1) * 2 + 1) << p->recv_dim) >= s->n_ranks;
    p->recv_offset = slot_part(s, recv_index);
    p->post_recv = p->send_dim == 0 && (ends_slot(s, recv_index) || last_of_peer);
    p->step_offset = p->send_dim == 0 ? 0 : recv_index / s->post_frequency;
  }
  if (distance < s->n_ranks && p->send_dim == 0 && p->skip) {
    p->send_dim = -1;
    p->send_offset = -1;
    p->post_send = false;
    p->skip = false;
  }
}

static void ag_phase2(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int stride = s->scale * s->aggregate_delta;
  int distance = (2 * i + 1) * stride;
  p->post_send = ends_slot(s, i) || (2 * (i + 1) + 1) * stride >= s->n_ranks;
  p->skip = distance >= s->n_ranks;
  p->send_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->send_dim;
  p->send_offset = slot_part(s, i);
  p->step_offset = i / s->post_frequency;
  p->out = data_of(s, distance);
  p->recv_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (p->recv_dim == -1) {
    p->recv_offset = -1;
  } else {
    int recv_index = (i * 2 * stride) >> (p->recv_dim + 1);
    p->recv_offset = slot_part(s, recv_index);
    p->step_offset = recv_index / s->post_frequency;
  }
}

/* Moves on to the next phase or chunk; true after the last one. */
static bool ag_advance(struct pat_state *s) {
  int ended = s->phase;
  bool stay = false;
  if (ended == 2) {
    s->scale /= 2;
    s->phase = s->scale ? 2 : 1;
  } else if (ended == 1) {
    s->phase = s->position % 2 == 1 ? 0 : 1;
    stay = s->phase == 0;
  } else {
    s->phase = 1;
  }
  if (ended != 2 && !stay)
    s->position = ag_next_position(s);
  if (ended == 0 && s->position == s->aggregate_delta / 2) {
    s->offset += s->chunk;
    if (s->offset >= s->end)
      return true;
    ag_begin_chunk(s);
  } else {
    ag_begin_phase(s);
  }
  return false;
}

static void ag_next(struct pat_state *s, struct pat_step *p) {
  *p = (struct pat_step){ .count = s->count, .in = s->offset };
  if (s->index >= s->last_index)
    p->skip = true;
  else if (s->phase == 0)
    ag_phase0(s, p);
  else if (s->phase == 1)
    ag_phase1(s, p);
  else
    ag_phase2(s, p);
  if (++s->index >= s->last_index)
    p->last = ag_advance(s);
}

/* ---- both ---- */

void pat_schedule_begin(struct pat_state *s, struct part part, const struct block *b, int size,
                        bool is_reduce_scatter) {
  pat_init(s, part, b, size);
  s->is_reduce_scatter = is_reduce_scatter;
  if (is_reduce_scatter)
    rs_begin_chunk(s);
  else
    ag_begin_chunk(s);
}

void pat_schedule_next(struct pat_state *s, struct pat_step *p) {
  if (s->is_reduce_scatter)
    rs_next(s, p);
  else
    ag_next(s, p);
}
