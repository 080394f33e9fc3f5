/* SPDX-License-Identifier: Apache-2.0 */
/* events: what happens when, on a clock of its own. Events of the same moment happen in the order
 * in which they were added, so that a run is repeated exactly. Owns: the queue, from a zeroed
 * struct to events_free.  Threads: one.  Blocks: never. Fails: without memory the program ends. */
#ifndef TESTS_SCALE_EVENTS_H
#define TESTS_SCALE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_NEVER UINT64_MAX

typedef void event_run(void *owner, uint64_t argument);

struct event {
  uint64_t at_ns, order;
  event_run *run;
  void *owner;
  uint64_t argument;
};

struct events {
  uint64_t now_ns, order;
  struct event *heap;
  size_t count, capacity;
};

/* at_ns: not before now. */
void events_add(struct events *events, uint64_t at_ns, event_run *run, void *owner,
                uint64_t argument);
/* The next one happens; false: there is none up to `until_ns`, which is now. */
bool events_next(struct events *events, uint64_t until_ns);
/* The next one happens, as messages have not arrived yet: without one the program ends. */
void events_await(struct events *events);
void events_free(struct events *events);

#endif
