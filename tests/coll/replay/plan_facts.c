/* SPDX-License-Identifier: Apache-2.0 */
/* plan: facts of a plan's items: whose they are, how large, and as text. */
#include <stdarg.h>
#include <stdio.h>

#include "tests/coll/replay/plan.h"

struct plan_group plan_group_of(const struct workload *workload, int group, int ranks, int rank) {
  if (group == PLAN_WORLD)
    return (struct plan_group){ ranks, rank, 0 };
  const struct workload_group *g = &workload->groups[group - 1];
  int size = g->size ? g->size : ranks / g->stride;
  return (struct plan_group){ .ranks = size,
                              .rank = rank / g->stride % size,
                              .color = rank / (size * g->stride) * g->stride + rank % g->stride };
}

bool plan_applies(const struct workload *workload, const struct plan_item *item, int ranks,
                  int rank) {
  return item->only.place == 0 ||
         plan_group_of(workload, item->only.group, ranks, rank).rank == item->only.place - 1;
}

uint64_t plan_scaled(uint64_t count, double scale) {
  double scaled = (double)count * scale + 0.5;
  return scaled < 1 ? count > 0 : (uint64_t)scaled;
}

uint64_t plan_part(const struct plan_collective *c, int part, int parts) {
  unsigned run = c->split->count / (unsigned)parts;
  uint64_t sum = 0;
  for (unsigned i = 0; i < run; i++)
    sum += plan_scaled(c->split->counts[(unsigned)part * run + i], c->split_scale);
  return sum;
}

/* Of an uneven alltoall: one side is the same for all ranks, of the other each has a multiple. */
static struct operation_counts split_counts(const struct plan_collective *c, int ranks) {
  struct operation_counts counts = { 0 };
  size_t sum = 0, largest = 0;
  for (int part = 0; part < ranks; part++) {
    size_t count = plan_part(c, part, ranks);
    sum += count;
    largest = count > largest ? count : largest;
  }
  size_t other = largest * (size_t)ranks;
  counts.call = sum;
  counts.send = c->split->is_received ? other : sum;
  counts.recv = c->split->is_received ? sum : other;
  counts.bytes = sum * element_infos[c->type].size_bytes;
  return counts;
}

struct operation_counts plan_counts(const struct workload *workload,
                                    const struct plan_collective *c, int ranks) {
  if (c->split)
    return split_counts(c, plan_group_of(workload, c->group, ranks, 0).ranks);
  return operation_count_call(c->operation, c->elements, element_infos[c->type].size_bytes,
                              plan_group_of(workload, c->group, ranks, 0).ranks);
}

/* Bytes of an exchange that are sent, or received, as far as it has been seen. */
struct side {
  uint32_t number;
  uint64_t bytes;
};

static uint64_t add_to_side(struct side *side, const struct plan_item *item, uint64_t bytes) {
  side->bytes = (side->number == item->number ? side->bytes : 0) + bytes;
  side->number = item->number;
  return side->bytes;
}

struct plan_sum plan_sum(const struct workload *workload, const struct plan_item *items,
                         size_t count, int ranks, int rank) {
  struct plan_sum sum = { 0 };
  struct side sides[2] = { { 0 } };
  for (size_t i = 0; i < count; i++) {
    const struct plan_item *item = &items[i];
    bool is_mine = plan_applies(workload, item, ranks, rank);
    if (item->kind == PLAN_COMPUTE)
      sum.compute_us += is_mine ? item->us : 0;
    if (!plan_is_communication(item))
      continue;
    struct operation_counts counts = plan_counts(workload, &item->collective, ranks);
    uint64_t room = (counts.send > counts.recv ? counts.send : counts.recv) *
                    element_infos[item->collective.type].size_bytes;
    if (item->kind != PLAN_COLLECTIVE)
      room = add_to_side(&sides[item->kind == PLAN_SEND], item, room);
    sum.buffer_bytes = room > sum.buffer_bytes ? room : sum.buffer_bytes;
    sum.bytes += is_mine ? counts.bytes : 0;
    sum.collectives += is_mine && item->number != sum.numbers;
    sum.numbers = item->number;
  }
  return sum;
}

/* ---- text ---- */

__attribute__((format(printf, 3, 4))) static void add_text(char text[PLAN_TEXT_MAX], size_t *used,
                                                           const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(text + *used, PLAN_TEXT_MAX - *used, format, arguments);
  va_end(arguments);
  *used += more > 0 ? (size_t)more : 0;
  *used = *used < PLAN_TEXT_MAX ? *used : PLAN_TEXT_MAX - 1;
}

static const char *group_name(const struct workload *workload, int group) {
  return group == PLAN_WORLD ? "world" : workload->groups[group - 1].name;
}

static void add_communication(const struct workload *workload, const struct plan_item *item,
                              int ranks, char text[PLAN_TEXT_MAX], size_t *used) {
  static const char *const words[] = {
    [PLAN_COLLECTIVE] = "collective", [PLAN_SEND] = "send", [PLAN_RECV] = "recv"
  };
  const struct plan_collective *c = &item->collective;
  char root[16] = "-";
  if (c->root >= 0)
    snprintf(root, sizeof root, "%d", c->root);
  add_text(text, used, "%s %u", words[item->kind], item->number);
  if (item->kind == PLAN_COLLECTIVE)
    add_text(text, used, " %s %s %s", operation_infos[c->operation].name,
             element_infos[c->type].name,
             c->redop == PATTERN_NONE ? "-" : operation_redop_names[c->redop]);
  else
    add_text(text, used, " %s", element_infos[c->type].name);
  add_text(text, used, " %s %s %llu %zu", root, group_name(workload, c->group),
           (unsigned long long)c->elements, plan_counts(workload, c, ranks).bytes);
  int parts = c->split ? plan_group_of(workload, c->group, ranks, 0).ranks : 0;
  for (int part = 0; part < parts; part++)
    add_text(text, used, "%s%llu",
             part                    ? ","
             : c->split->is_received ? " receives:"
                                     : " sends:",
             (unsigned long long)plan_part(c, part, parts));
}

const char *plan_text(const struct workload *workload, const struct plan_item *item, int ranks,
                      char text[PLAN_TEXT_MAX]) {
  size_t used = 0;
  if (item->kind == PLAN_COMPUTE)
    add_text(text, &used, "compute %.3f", item->us);
  else if (item->kind == PLAN_WAIT)
    add_text(text, &used, "wait %u", item->number);
  else
    add_communication(workload, item, ranks, text, &used);
  if (item->only.place)
    add_text(text, &used, " @%s:%d", group_name(workload, item->only.group), item->only.place - 1);
  return text;
}
