/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the rules of data, sharded and tensor parallelism, and the list of events. */
#include "tests/coll/replay/plan.h"

#include <errno.h>
#include <stdio.h>

/* Where items go. */
struct writer {
  const struct workload *workload;
  const struct plan_settings *settings;
  struct plan_item *items;
  size_t capacity, count;
  uint32_t number;       /* of communication so far */
  double compute_us;     /* not written yet: consecutive times of the same ranks are one item */
  struct plan_only only; /* whose it is */
  uint32_t last;         /* of layers: the collective that nobody waits for yet; 0: none */
};

static void put(struct writer *w, const struct plan_item *item) {
  if (w->count < w->capacity)
    w->items[w->count] = *item;
  w->count++;
}

static bool is_same(struct plan_only a, struct plan_only b) {
  return a.place == b.place && (a.place == 0 || a.group == b.group);
}

static void flush_compute(struct writer *w) {
  if (w->compute_us > 0)
    put(w, &(struct plan_item){ .kind = PLAN_COMPUTE, .us = w->compute_us, .only = w->only });
  w->compute_us = 0;
}

static void add_compute_of(struct writer *w, double us, struct plan_only only) {
  if (!is_same(w->only, only))
    flush_compute(w);
  w->only = only;
  w->compute_us += us * w->settings->compute_scale;
}

static void add_compute(struct writer *w, double us) {
  add_compute_of(w, us, (struct plan_only){ 0 });
}

static void add_wait_of(struct writer *w, uint32_t number, struct plan_only only) {
  flush_compute(w);
  put(w, &(struct plan_item){ .kind = PLAN_WAIT, .number = number, .only = only });
  w->last = w->last == number ? 0 : w->last;
}

static void add_wait(struct writer *w, uint32_t number) {
  add_wait_of(w, number, (struct plan_only){ 0 });
}

static uint32_t add_collective(struct writer *w, const struct plan_collective *collective) {
  flush_compute(w);
  put(w, &(struct plan_item){
             .kind = PLAN_COLLECTIVE, .number = ++w->number, .collective = *collective });
  w->last = w->number;
  return w->number;
}

static uint64_t scale(const struct writer *w, uint64_t count) {
  return plan_scaled(count, w->settings->bytes_scale);
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
  enum operation operation;
  uint64_t elements, limit_bytes, next_limit_bytes;
};

/* Elements of one rank; shares are padded to equal size. */
static uint64_t share_of(const struct writer *w, uint64_t elements) {
  uint64_t ranks = (uint64_t)w->settings->ranks;
  return (elements + ranks - 1) / ranks;
}

static void close_bucket(struct writer *w, struct bucket *bucket) {
  bool is_shared = bucket->operation != OPERATION_ALL_REDUCE;
  if (bucket->elements)
    add_gradients(w, bucket->operation,
                  is_shared ? share_of(w, bucket->elements) : bucket->elements);
  bucket->elements = 0;
  bucket->limit_bytes = bucket->next_limit_bytes;
}

static void fill_bucket(struct writer *w, struct bucket *bucket, uint64_t elements) {
  unsigned size = element_infos[w->workload->gradient_type].size_bytes;
  bucket->elements += elements;
  if (bucket->elements * size >= bucket->limit_bytes)
    close_bucket(w, bucket);
}

static uint64_t bucket_limit(const struct writer *w) {
  uint64_t wanted = w->settings->bucket_bytes;
  return scale(w, wanted ? wanted : w->workload->bucket_bytes);
}

/* The whole forward pass, then layers backwards, whose gradients fill buckets. */
static void make_buckets(struct writer *w, struct bucket bucket) {
  const struct workload *workload = w->workload;
  for (size_t i = 0; i < workload->layer_count; i++)
    add_compute(w, workload->layers[i].forward_us);
  for (size_t i = workload->layer_count; i-- > 0;) {
    const struct workload_layer *layer = &workload->layers[i];
    add_compute(w, layer->backward_us);
    for (size_t tensor = layer->parameter_count; tensor-- > 0;)
      fill_bucket(w, &bucket, scale(w, layer->parameters[tensor]));
  }
  close_bucket(w, &bucket);
}

static void make_ddp(struct writer *w) {
  uint64_t limit = bucket_limit(w), first = scale(w, w->workload->first_bucket_bytes);
  make_buckets(w, (struct bucket){ OPERATION_ALL_REDUCE, 0, first, limit });
}

/* DeepSpeed's stage 2: each rank gets the sum of its share of each bucket. */
static void make_zero2(struct writer *w) {
  uint64_t limit = bucket_limit(w);
  make_buckets(w, (struct bucket){ OPERATION_REDUCE_SCATTER, 0, limit, limit });
}

/* What the optimizer has changed, in parts as large as buckets. */
static void gather_parameters(struct writer *w) {
  uint64_t left = 0, size = element_infos[w->workload->gradient_type].size_bytes;
  uint64_t limit = bucket_limit(w) / size ? bucket_limit(w) / size : 1;
  for (size_t i = 0; i < w->workload->layer_count; i++) {
    const struct workload_layer *layer = &w->workload->layers[i];
    for (size_t tensor = 0; tensor < layer->parameter_count; tensor++)
      left += scale(w, layer->parameters[tensor]);
  }
  while (left > 0) {
    uint64_t part = left < limit ? left : limit;
    add_gradients(w, OPERATION_ALL_GATHER, share_of(w, part));
    left -= part;
  }
}

/* ---- sharded data parallelism ---- */

/* Elements of a layer that one rank keeps; 0 of a layer without parameters. */
static uint64_t layer_share(const struct writer *w, size_t i) {
  const struct workload_layer *layer = &w->workload->layers[i];
  uint64_t elements = 0;
  for (size_t tensor = 0; tensor < layer->parameter_count; tensor++)
    elements += scale(w, layer->parameters[tensor]);
  return share_of(w, elements);
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
    struct plan_item item = w->workload->events[i];
    if (item.kind == PLAN_COMPUTE) {
      add_compute_of(w, item.us, item.only);
      continue;
    }
    flush_compute(w);
    item.collective.elements = scale(w, item.collective.elements);
    item.collective.split_scale = w->settings->bytes_scale;
    put(w, &item);
  }
}

/* Pairs of a group and the ranks that start something in it; of more, some are waited for twice. */
enum { PAIRS_MAX = 1024 };

/* Communication of a pair ends in order, so its last one stands for all of it. */
static void wait_for_events(struct writer *w) {
  const struct plan_item *events = w->workload->events, *pairs[PAIRS_MAX];
  size_t count = 0;
  for (size_t i = w->workload->event_count; i-- > 0 && count < PAIRS_MAX;) {
    const struct plan_item *item = &events[i];
    size_t pair = 0;
    while (pair < count && (pairs[pair]->collective.group != item->collective.group ||
                            !is_same(pairs[pair]->only, item->only)))
      pair++;
    if (plan_is_communication(item) && pair == count)
      pairs[count++] = item;
  }
  while (count-- > 0) {
    if (!pairs[count]->is_waited)
      add_wait_of(w, pairs[count]->number, pairs[count]->only);
  }
}

static void add_optimizer(struct writer *w) {
  bool is_zero2 = w->workload->parallel == WORKLOAD_ZERO2;
  if (w->workload->optimizer_us > 0 || is_zero2) {
    wait_for_events(w);
    if (w->last)
      add_wait(w, w->last);
  }
  add_compute(w, w->workload->optimizer_us);
  flush_compute(w);
  if (is_zero2)
    gather_parameters(w);
}

/* ---- what ranks cannot do ---- */

static int refuse(const struct workload *w, const struct plan_item *item, const char *key,
                  int found, int count, int ranks, char *error) {
  snprintf(error, WORKLOAD_ERROR_MAX, "%s: events[%u].%s: %d, expected 0 to %d with %d ranks",
           w->name, item->event, key, found, count - 1, ranks);
  return -EINVAL;
}

static int check_item(const struct workload *w, const struct plan_item *item, int ranks,
                      char *error) {
  static const char *const peers[] = {
    [PLAN_COLLECTIVE] = "root", [PLAN_SEND] = "exchange: send", [PLAN_RECV] = "exchange: recv"
  };
  const struct plan_only *only = &item->only;
  const struct plan_collective *c = &item->collective;
  int count = only->place ? plan_group_of(w, only->group, ranks, 0).ranks : 0;
  if (only->place > count)
    return refuse(w, item, "only.rank", only->place - 1, count, ranks, error);
  if (!plan_is_communication(item))
    return 0;
  count = plan_group_of(w, c->group, ranks, 0).ranks;
  if (c->root >= count)
    return refuse(w, item, peers[item->kind], c->root, count, ranks, error);
  if (c->split && c->split->count % (unsigned)count) {
    snprintf(error, WORKLOAD_ERROR_MAX,
             "%s: events[%u].%s: %u entries, expected a multiple of the group's %d ranks", w->name,
             item->event, c->split->is_received ? "receives" : "sends", c->split->count, count);
    return -EINVAL;
  }
  return 0;
}

static int check_events(const struct workload *w, int ranks, char *error) {
  for (size_t i = 0; i < w->group_count; i++) {
    const struct workload_group *group = &w->groups[i];
    int multiple = (group->size ? group->size : 1) * group->stride;
    char size[16] = "all";
    if (ranks % multiple == 0)
      continue;
    if (group->size)
      snprintf(size, sizeof size, "%d", group->size);
    snprintf(error, WORKLOAD_ERROR_MAX,
             "%s: groups[%zu]: groups of %s ranks%s %d apart%s need a multiple of %d ranks, and "
             "there %s %d",
             w->name, i, size, group->size ? "," : "", group->stride, group->size ? "," : "",
             multiple, ranks == 1 ? "is" : "are", ranks);
    return -EINVAL;
  }
  int result = 0;
  for (size_t i = 0; i < w->event_count && result == 0; i++)
    result = check_item(w, &w->events[i], ranks, error);
  return result;
}

int64_t plan_make(const struct workload *workload, const struct plan_settings *settings,
                  struct plan_item *items, size_t capacity, char *error) {
  static void (*const makers[WORKLOAD_PARALLELS])(struct writer *) = {
    [WORKLOAD_DDP] = make_ddp,       [WORKLOAD_FSDP] = make_fsdp,     [WORKLOAD_ZERO2] = make_zero2,
    [WORKLOAD_TENSOR] = make_tensor, [WORKLOAD_EVENTS] = make_events,
  };
  struct writer writer = {
    .workload = workload, .settings = settings, .items = items, .capacity = capacity
  };
  int result = check_events(workload, settings->ranks, error);
  if (result < 0)
    return result;
  makers[workload->parallel](&writer);
  add_optimizer(&writer);
  return (int64_t)writer.count;
}
