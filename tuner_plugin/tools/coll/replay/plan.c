/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the rules of data, sharded and tensor parallelism, and the list of events. */
#include "tuner_plugin/tools/coll/replay/plan.h"

#include <errno.h>
#include <stdio.h>

/* Where items go. */
struct writer {
  const struct workload *workload;
  const struct plan_settings *settings;
  struct plan_item *items;
  size_t capacity, count;
  uint32_t number;                        /* of collectives so far */
  double compute_us;                      /* not written yet: consecutive times are one item */
  uint32_t last[WORKLOAD_GROUPS_MAX + 1]; /* collective of each group that nobody waits for yet */
};

static void put(struct writer *w, const struct plan_item *item) {
  if (w->count < w->capacity)
    w->items[w->count] = *item;
  w->count++;
}

static void flush_compute(struct writer *w) {
  if (w->compute_us > 0)
    put(w, &(struct plan_item){ .kind = PLAN_COMPUTE, .us = w->compute_us });
  w->compute_us = 0;
}

static void add_compute(struct writer *w, double us) {
  w->compute_us += us * w->settings->compute_scale;
}

static void add_wait(struct writer *w, uint32_t number) {
  flush_compute(w);
  put(w, &(struct plan_item){ .kind = PLAN_WAIT, .number = number });
  for (size_t group = 0; group <= w->workload->group_count; group++) {
    if (w->last[group] == number)
      w->last[group] = 0;
  }
}

static uint32_t add_collective(struct writer *w, const struct plan_collective *collective) {
  flush_compute(w);
  put(w, &(struct plan_item){
             .kind = PLAN_COLLECTIVE, .number = ++w->number, .collective = *collective });
  w->last[collective->group] = w->number;
  return w->number;
}

/* Collectives of a group end in order, so its last one stands for all of them. */
static void add_optimizer(struct writer *w) {
  if (w->workload->optimizer_us > 0) {
    for (size_t group = 0; group <= w->workload->group_count; group++) {
      if (w->last[group])
        add_wait(w, w->last[group]);
    }
  }
  add_compute(w, w->workload->optimizer_us);
  flush_compute(w);
}

/* At least one is left of what was there. */
static uint64_t scale(const struct writer *w, uint64_t count) {
  double scaled = (double)count * w->settings->bytes_scale + 0.5;
  return scaled < 1 ? count > 0 : (uint64_t)scaled;
}

static uint32_t add_gradients(struct writer *w, enum operation operation, uint64_t elements) {
  return add_collective(
      w, &(struct plan_collective){
             .operation = operation,
             .type = w->workload->gradient_type,
             .redop = operation_infos[operation].has_redop ? PATTERN_SUM : PATTERN_NONE,
             .root = -1,
             .group = PLAN_WORLD,
             .elements = elements,
         });
}

/* ---- data parallelism ---- */

/* PyTorch's DistributedDataParallel (_compute_bucket_assignment_by_size): a tensor is never split,
 * and joins the open bucket before its size is compared with the limit. */
struct bucket {
  uint64_t elements, limit_bytes, next_limit_bytes;
};

static void fill_bucket(struct writer *w, struct bucket *bucket, uint64_t elements) {
  unsigned size = element_infos[w->workload->gradient_type].size_bytes;
  bucket->elements += elements;
  if (bucket->elements * size < bucket->limit_bytes)
    return;
  add_gradients(w, OPERATION_ALL_REDUCE, bucket->elements);
  *bucket = (struct bucket){ 0, bucket->next_limit_bytes, bucket->next_limit_bytes };
}

static void make_ddp(struct writer *w) {
  const struct workload *workload = w->workload;
  uint64_t wanted = w->settings->bucket_bytes;
  struct bucket bucket = { 0, scale(w, workload->first_bucket_bytes),
                           scale(w, wanted ? wanted : workload->bucket_bytes) };
  for (size_t i = 0; i < workload->layer_count; i++)
    add_compute(w, workload->layers[i].forward_us);
  for (size_t i = workload->layer_count; i-- > 0;) {
    const struct workload_layer *layer = &workload->layers[i];
    add_compute(w, layer->backward_us);
    for (size_t tensor = layer->parameter_count; tensor-- > 0;)
      fill_bucket(w, &bucket, scale(w, layer->parameters[tensor]));
  }
  if (bucket.elements)
    add_gradients(w, OPERATION_ALL_REDUCE, bucket.elements);
}

/* ---- sharded data parallelism ---- */

/* Elements of a layer that one rank keeps; 0 of a layer without parameters. */
static uint64_t layer_share(const struct writer *w, size_t i) {
  const struct workload_layer *layer = &w->workload->layers[i];
  uint64_t elements = 0, ranks = (uint64_t)w->settings->ranks;
  for (size_t tensor = 0; tensor < layer->parameter_count; tensor++)
    elements += scale(w, layer->parameters[tensor]);
  return (elements + ranks - 1) / ranks;
}

/* The first layer with parameters from `i` on, in steps of 1 or -1 (which wrap below 0);
 * layer_count if there is none. */
static size_t find_layer(const struct writer *w, size_t i, size_t step) {
  while (i < w->workload->layer_count && !layer_share(w, i))
    i += step;
  return i < w->workload->layer_count ? i : w->workload->layer_count;
}

static uint32_t gather(struct writer *w, size_t i) {
  return i < w->workload->layer_count ? add_gradients(w, OPERATION_ALL_GATHER, layer_share(w, i))
                                      : 0;
}

static void make_fsdp(struct writer *w) {
  const struct workload *workload = w->workload;
  static const size_t steps[] = { 1, (size_t)-1 };
  for (int is_backward = 0; is_backward < 2; is_backward++) {
    size_t step = steps[is_backward];
    size_t first = is_backward ? workload->layer_count - 1 : 0;
    uint32_t ready = gather(w, find_layer(w, first, step));
    for (size_t i = first; i < workload->layer_count; i += step) {
      uint64_t share = layer_share(w, i);
      if (share) {
        uint32_t next = gather(w, find_layer(w, i + step, step));
        add_wait(w, ready);
        ready = next;
      }
      add_compute(w,
                  is_backward ? workload->layers[i].backward_us : workload->layers[i].forward_us);
      if (share && is_backward)
        add_gradients(w, OPERATION_REDUCE_SCATTER, share);
    }
  }
}

/* ---- tensor parallelism ---- */

static void reduce_activations(struct writer *w, const struct workload_layer *layer) {
  if (layer->activations)
    add_wait(w, add_gradients(w, OPERATION_ALL_REDUCE, scale(w, layer->activations)));
}

static void make_tensor(struct writer *w) {
  const struct workload *workload = w->workload;
  for (size_t i = 0; i < workload->layer_count; i++) {
    add_compute(w, workload->layers[i].forward_us);
    reduce_activations(w, &workload->layers[i]);
  }
  for (size_t i = workload->layer_count; i-- > 0;) {
    add_compute(w, workload->layers[i].backward_us);
    reduce_activations(w, &workload->layers[i]);
  }
}

/* ---- as listed ---- */

static void make_events(struct writer *w) {
  for (size_t i = 0; i < w->workload->event_count; i++) {
    const struct plan_item *event = &w->workload->events[i];
    struct plan_collective collective = event->collective;
    switch (event->kind) {
    case PLAN_COMPUTE:
      add_compute(w, event->us);
      break;
    case PLAN_COLLECTIVE:
      collective.elements = scale(w, collective.elements);
      add_collective(w, &collective);
      break;
    default:
      add_wait(w, event->number);
    }
  }
}

static int check_groups(const struct workload *w, int ranks, char *error) {
  for (size_t i = 0; i < w->group_count; i++) {
    const struct workload_group *group = &w->groups[i];
    if (ranks % (group->size * group->stride)) {
      snprintf(error, WORKLOAD_ERROR_MAX,
               "%s: groups[%zu]: groups of %d ranks, %d apart, need a multiple of %d ranks, and "
               "there %s %d",
               w->name, i, group->size, group->stride, group->size * group->stride,
               ranks == 1 ? "is" : "are", ranks);
      return -EINVAL;
    }
  }
  for (size_t i = 0; i < w->event_count; i++) {
    const struct plan_collective *c = &w->events[i].collective;
    if (w->events[i].kind != PLAN_COLLECTIVE)
      continue;
    int count = plan_group_of(w, c->group, ranks, 0).ranks;
    if (c->root >= count) {
      snprintf(error, WORKLOAD_ERROR_MAX,
               "%s: events[%zu].root: %d, expected 0 to %d with %d ranks", w->name, i, c->root,
               count - 1, ranks);
      return -EINVAL;
    }
  }
  return 0;
}

int64_t plan_make(const struct workload *workload, const struct plan_settings *settings,
                  struct plan_item *items, size_t capacity, char *error) {
  static void (*const makers[WORKLOAD_PARALLELS])(struct writer *) = {
    [WORKLOAD_DDP] = make_ddp,
    [WORKLOAD_FSDP] = make_fsdp,
    [WORKLOAD_TENSOR] = make_tensor,
    [WORKLOAD_EVENTS] = make_events,
  };
  struct writer writer = {
    .workload = workload, .settings = settings, .items = items, .capacity = capacity
  };
  int result = check_groups(workload, settings->ranks, error);
  if (result < 0)
    return result;
  makers[workload->parallel](&writer);
  add_optimizer(&writer);
  return (int64_t)writer.count;
}

/* ---- facts ---- */

struct plan_group plan_group_of(const struct workload *workload, int group, int ranks, int rank) {
  if (group == PLAN_WORLD)
    return (struct plan_group){ ranks, rank, 0 };
  const struct workload_group *g = &workload->groups[group - 1];
  return (struct plan_group){ .ranks = g->size,
                              .rank = rank / g->stride % g->size,
                              .color =
                                  rank / (g->size * g->stride) * g->stride + rank % g->stride };
}

struct operation_counts plan_counts(const struct workload *workload,
                                    const struct plan_collective *c, int ranks) {
  return operation_count_call(c->operation, c->elements, element_infos[c->type].size_bytes,
                              plan_group_of(workload, c->group, ranks, 0).ranks);
}

struct plan_sum plan_sum(const struct workload *workload, const struct plan_item *items,
                         size_t count, int ranks) {
  struct plan_sum sum = { 0 };
  for (size_t i = 0; i < count; i++) {
    if (items[i].kind == PLAN_COMPUTE)
      sum.compute_us += items[i].us;
    if (items[i].kind != PLAN_COLLECTIVE)
      continue;
    uint64_t bytes = plan_counts(workload, &items[i].collective, ranks).bytes;
    sum.collectives++;
    sum.bytes += bytes;
    sum.buffer_bytes = bytes > sum.buffer_bytes ? bytes : sum.buffer_bytes;
  }
  return sum;
}

const char *plan_text(const struct workload *workload, const struct plan_item *item, int ranks,
                      char text[PLAN_TEXT_MAX]) {
  const struct plan_collective *c = &item->collective;
  char root[16] = "-";
  switch (item->kind) {
  case PLAN_COMPUTE:
    snprintf(text, PLAN_TEXT_MAX, "compute %.3f", item->us);
    break;
  case PLAN_COLLECTIVE:
    if (c->root >= 0)
      snprintf(root, sizeof root, "%d", c->root);
    snprintf(text, PLAN_TEXT_MAX, "collective %u %s %s %s %s %s %llu %zu", item->number,
             operation_infos[c->operation].name, element_infos[c->type].name,
             c->redop == PATTERN_NONE ? "-" : operation_redop_names[c->redop], root,
             c->group == PLAN_WORLD ? "world" : workload->groups[c->group - 1].name,
             (unsigned long long)c->elements, plan_counts(workload, c, ranks).bytes);
    break;
  default:
    snprintf(text, PLAN_TEXT_MAX, "wait %u", item->number);
  }
  return text;
}
