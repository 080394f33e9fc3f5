/* SPDX-License-Identifier: Apache-2.0 */
/* deadlock: ranks go on as far as they can, until all are at the end or none can. */
#include "tests/coll/replay/deadlock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a rank is: at communication, or at the end. */
struct walker {
  size_t at, end; /* the items of it; `at` is the number of items: the end */
  size_t open;    /* sends and receives that have not met their counterparts */
  bool *is_met;   /* by item - at */
  bool is_queued; /* to be looked at */
};

struct check {
  const struct workload *workload;
  const struct plan_item *items;
  size_t count;
  int ranks;
  char *error;
  struct walker *walkers;
  bool *met;  /* all their is_met */
  int *queue; /* ranks that may go on, a ring of so many as there are */
  int first, queued;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct check *check, const char *format,
                                                      ...) {
  va_list arguments;
  va_start(arguments, format);
  int used = snprintf(check->error, WORKLOAD_ERROR_MAX, "%s: ", check->workload->name);
  vsnprintf(check->error + used, WORKLOAD_ERROR_MAX - (size_t)used, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

/* ---- who ---- */

/* The rank of the whole run that has a place in the group of another one. */
static int member(const struct check *check, int group, int rank, int place) {
  if (group == PLAN_WORLD)
    return place;
  const struct workload_group *g = &check->workload->groups[group - 1];
  struct plan_group own = plan_group_of(check->workload, group, check->ranks, rank);
  return rank + (place - own.rank) * g->stride;
}

static int place_of(const struct check *check, int group, int rank) {
  return plan_group_of(check->workload, group, check->ranks, rank).rank;
}

static int group_ranks(const struct check *check, int group) {
  return plan_group_of(check->workload, group, check->ranks, 0).ranks;
}

static bool is_at_end(const struct check *check, int rank) {
  return check->walkers[rank].at == check->count;
}

static void enqueue(struct check *check, int rank) {
  if (check->walkers[rank].is_queued)
    return;
  check->walkers[rank].is_queued = true;
  check->queue[(check->first + check->queued++) % check->ranks] = rank;
}

/* ---- from one communication to the next ---- */

static void arrive(struct check *check, int rank, size_t at) {
  struct walker *walker = &check->walkers[rank];
  while (at < check->count &&
         (!plan_is_communication(&check->items[at]) ||
          !plan_applies(check->workload, &check->items[at], check->ranks, rank)))
    at++;
  walker->at = walker->end = at;
  while (walker->end < check->count &&
         check->items[walker->end].number == check->items[at].number &&
         plan_is_communication(&check->items[walker->end]))
    walker->end++;
  walker->open = walker->end - at;
  memset(walker->is_met, 0, walker->open * sizeof *walker->is_met);
  enqueue(check, rank);
}

static void leave(struct check *check, int rank) {
  arrive(check, rank, check->walkers[rank].end);
}

/* The item of a peer that answers one of `rank`; NULL: it is not there, or has none left. */
static const struct plan_item *find_answer(const struct check *check, int rank,
                                           const struct plan_item *item, size_t *index) {
  int group = item->collective.group, peer = member(check, group, rank, item->collective.root);
  const struct walker *walker = &check->walkers[peer];
  for (size_t i = walker->at; i < walker->end; i++) {
    const struct plan_item *other = &check->items[i];
    if (other->kind != PLAN_COLLECTIVE && other->kind != item->kind &&
        other->collective.group == group && !walker->is_met[i - walker->at] &&
        other->collective.root == place_of(check, group, rank)) {
      *index = i;
      return other;
    }
  }
  return NULL;
}

static int compare(const struct check *check, int rank, const struct plan_item *item, int peer,
                   const struct plan_item *other) {
  if (item->collective.elements == other->collective.elements &&
      item->collective.type == other->collective.type)
    return 0;
  bool is_send = item->kind == PLAN_SEND;
  const struct plan_item *send = is_send ? item : other, *recv = is_send ? other : item;
  return fail(check,
              "events[%u]: rank %d sends %llu elements of %s, and rank %d receives %llu of %s, in "
              "events[%u]",
              send->event, is_send ? rank : peer, (unsigned long long)send->collective.elements,
              element_infos[send->collective.type].name, is_send ? peer : rank,
              (unsigned long long)recv->collective.elements,
              element_infos[recv->collective.type].name, recv->event);
}

static int try_exchange(struct check *check, int rank) {
  struct walker *walker = &check->walkers[rank];
  for (size_t i = walker->at; i < walker->end; i++) {
    const struct plan_item *item = &check->items[i];
    size_t index = 0;
    const struct plan_item *other =
        walker->is_met[i - walker->at] ? NULL : find_answer(check, rank, item, &index);
    if (!other)
      continue;
    int peer = member(check, item->collective.group, rank, item->collective.root);
    int result = compare(check, rank, item, peer, other);
    if (result < 0)
      return result;
    struct walker *answering = &check->walkers[peer];
    walker->is_met[i - walker->at] = answering->is_met[index - answering->at] = true;
    walker->open--;
    if (--answering->open == 0 && peer != rank)
      leave(check, peer);
  }
  if (walker->open == 0)
    leave(check, rank);
  return 0;
}

static bool is_equal_split(const struct plan_split *a, const struct plan_split *b) {
  return a->is_received == b->is_received && a->count == b->count &&
         !memcmp(a->counts, b->counts, a->count * sizeof a->counts[0]);
}

static bool is_equal(const struct plan_collective *a, const struct plan_collective *b) {
  if (a->split && b->split ? !is_equal_split(a->split, b->split) : a->split != b->split)
    return false;
  return a->operation == b->operation && a->type == b->type && a->redop == b->redop &&
         a->root == b->root && a->elements == b->elements;
}

static bool is_in_collective(const struct check *check, int rank, int group) {
  const struct plan_item *item = &check->items[check->walkers[rank].at];
  return !is_at_end(check, rank) && item->kind == PLAN_COLLECTIVE &&
         item->collective.group == group;
}

/* All ranks of a group are let go by the one that comes last. They may take part by different
 * events, as NCCL goes by the order in the communicator, but what they do must be the same. */
static int try_collective(struct check *check, int rank) {
  const struct plan_item *item = &check->items[check->walkers[rank].at];
  int group = item->collective.group, ranks = group_ranks(check, group);
  for (int place = 0; place < ranks; place++) {
    int peer = member(check, group, rank, place);
    const struct plan_item *other = &check->items[check->walkers[peer].at];
    if (!is_in_collective(check, peer, group))
      return 0;
    if (!is_equal(&item->collective, &other->collective))
      return fail(check,
                  "events[%u]: rank %d starts %s of %llu elements, and rank %d %s of %llu, in "
                  "events[%u], where both must do the same",
                  item->event, rank, operation_infos[item->collective.operation].name,
                  (unsigned long long)item->collective.elements, peer,
                  operation_infos[other->collective.operation].name,
                  (unsigned long long)other->collective.elements, other->event);
  }
  for (int place = 0; place < ranks; place++)
    leave(check, member(check, group, rank, place));
  return 0;
}

/* ---- what is wrong ---- */

/* Whom a rank waits for, and the item in which it does. */
static int awaited(const struct check *check, int rank, const struct plan_item **item) {
  const struct walker *walker = &check->walkers[rank];
  *item = &check->items[walker->at];
  for (size_t i = walker->at; (*item)->kind != PLAN_COLLECTIVE && i < walker->end; i++) {
    if (!walker->is_met[i - walker->at]) {
      *item = &check->items[i];
      return member(check, (*item)->collective.group, rank, (*item)->collective.root);
    }
  }
  for (int place = 0;; place++) {
    int peer = member(check, (*item)->collective.group, rank, place);
    if (!is_in_collective(check, peer, (*item)->collective.group))
      return peer;
  }
}

static const char *deed(const struct plan_item *item) {
  return item->kind == PLAN_SEND   ? "sends to"
         : item->kind == PLAN_RECV ? "receives from"
                                   : "waits in a collective for";
}

enum { SHOWN_MAX = 4 }; /* ranks in a message */

/* From the first rank that cannot go on to the one it waits for, and so on. */
static int tell(struct check *check) {
  char text[WORKLOAD_ERROR_MAX / 2];
  int rank = 0, first = -1;
  size_t used = 0;
  while (is_at_end(check, rank))
    rank++;
  for (int shown = 0; shown < SHOWN_MAX && rank != first; shown++) {
    first = first < 0 ? rank : first;
    if (is_at_end(check, rank)) {
      used += (size_t)snprintf(text + used, sizeof text - used, ", which is at its end");
      break;
    }
    const struct plan_item *item;
    int peer = awaited(check, rank, &item);
    used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d %s rank %d in events[%u]",
                             used ? "; " : "", rank, deed(item), peer, item->event);
    rank = peer;
  }
  return fail(check, "ranks would wait for each other forever: %s", text);
}

/* What a rank waits for must be something that it has started. */
static int check_waits(const struct check *check) {
  const struct plan_item **of_number = calloc(check->count + 1, sizeof *of_number);
  int result = of_number ? 0 : -ENOMEM;
  for (size_t i = 0; i < check->count && result == 0; i++) {
    const struct plan_item *item = &check->items[i];
    if (plan_is_communication(item))
      of_number[item->number] = item;
    for (int rank = 0; item->kind == PLAN_WAIT && rank < check->ranks && result == 0; rank++) {
      const struct plan_item *started = of_number[item->number];
      if (plan_applies(check->workload, item, check->ranks, rank) &&
          !plan_applies(check->workload, started, check->ranks, rank))
        result = fail(check, "events[%u]: rank %d waits for events[%u], which it does not start",
                      item->event, rank, started->event);
    }
  }
  free(of_number);
  return result;
}

/* ---- all of it ---- */

/* Where all ranks do the same, and none names a peer, they are in the same order. */
static bool is_needed(const struct plan_item *items, size_t count, size_t *parts_max) {
  bool is_found = false;
  size_t parts = 0;
  for (size_t i = 0; i < count; i++) {
    is_found |= items[i].only.place > 0 || items[i].kind == PLAN_SEND || items[i].kind == PLAN_RECV;
    parts = i > 0 && items[i].number == items[i - 1].number ? parts + 1 : 1;
    *parts_max = parts > *parts_max ? parts : *parts_max;
  }
  return is_found;
}

static int walk(struct check *check) {
  int result = 0;
  for (int rank = 0; rank < check->ranks; rank++)
    arrive(check, rank, 0);
  while (check->queued && result == 0) {
    int rank = check->queue[check->first];
    check->first = (check->first + 1) % check->ranks;
    check->queued--;
    check->walkers[rank].is_queued = false;
    if (!is_at_end(check, rank))
      result = check->items[check->walkers[rank].at].kind == PLAN_COLLECTIVE
                   ? try_collective(check, rank)
                   : try_exchange(check, rank);
  }
  for (int rank = 0; rank < check->ranks && result == 0; rank++)
    result = is_at_end(check, rank) ? 0 : tell(check);
  return result;
}

int deadlock_check(const struct workload *workload, const struct plan_item *items, size_t count,
                   int ranks, char *error) {
  struct check check = {
    .workload = workload, .items = items, .count = count, .ranks = ranks, .error = error
  };
  size_t parts_max = 1;
  if (!is_needed(items, count, &parts_max))
    return 0;
  check.walkers = calloc((size_t)ranks, sizeof *check.walkers);
  check.met = calloc((size_t)ranks * parts_max, sizeof *check.met);
  check.queue = calloc((size_t)ranks, sizeof *check.queue);
  int result = check.walkers && check.met && check.queue ? check_waits(&check) : -ENOMEM;
  for (int rank = 0; rank < ranks && result == 0; rank++)
    check.walkers[rank].is_met = check.met + (size_t)rank * parts_max;
  if (result == 0)
    result = walk(&check);
  if (result == -ENOMEM)
    fail(&check, "out of memory");
  free(check.walkers);
  free(check.met);
  free(check.queue);
  return result;
}
