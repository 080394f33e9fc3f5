/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h. A binary heap. */
#include "tests/scale/events.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_before(const struct event *a, const struct event *b) {
  return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void grow(struct events *events) {
  events->capacity = events->capacity > 0 ? 2 * events->capacity : 256;
  events->heap = realloc(events->heap, events->capacity * sizeof *events->heap);
  if (!events->heap) {
    perror("scale");
    exit(1);
  }
}

void events_add(struct events *events, uint64_t at_ns, event_run *run, void *owner,
                uint64_t argument) {
  if (events->count == events->capacity) {
    grow(events);
  }
  at_ns = at_ns < events->now_ns ? events->now_ns : at_ns;
  struct event added = { at_ns, events->order++, run, owner, argument };
  size_t at = events->count++;
  for (; at > 0 && is_before(&added, &events->heap[(at - 1) / 2]); at = (at - 1) / 2) {
    events->heap[at] = events->heap[(at - 1) / 2];
  }
  events->heap[at] = added;
}

static struct event take_first(struct events *events) {
  struct event first = events->heap[0], last = events->heap[--events->count];
  size_t at = 0;
  for (size_t child = 1; child < events->count; child = 2 * at + 1) {
    if (child + 1 < events->count && is_before(&events->heap[child + 1], &events->heap[child])) {
      child++;
    }
    if (is_before(&last, &events->heap[child])) {
      break;
    }
    events->heap[at] = events->heap[child];
    at = child;
  }
  events->heap[at] = last;
  return first;
}

bool events_next(struct events *events, uint64_t until_ns) {
  if (events->count == 0 || events->heap[0].at_ns > until_ns) {
    events->now_ns = until_ns > events->now_ns ? until_ns : events->now_ns;
    return false;
  }
  struct event event = take_first(events);
  events->now_ns = event.at_ns;
  event.run(event.owner, event.argument);
  return true;
}

void events_await(struct events *events) {
  if (!events_next(events, EVENTS_NEVER - 1)) {
    fprintf(stderr, "scale: messages do not arrive any more\n");
    exit(1);
  }
}

void events_free(struct events *events) {
  free(events->heap);
  *events = (struct events){ 0 };
}
