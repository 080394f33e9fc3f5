/* SPDX-License-Identifier: Apache-2.0 */
/* Explores all interleavings of tests/lib/wakeup_model.h: posters, a poller, a thread that sets
 * timers, one that leaves work to the engine's thread, one that ends it, events and time may each
 * take their next step at any moment. It proves that
 *
 *   no task is left while everybody sleeps        no deadline is slept through
 *   no event is left that the thread may take     nobody waits for ever, nor works in vain for ever
 *
 * and that each rule is needed: with one broken, it must find a case that goes wrong.
 * WAKEUP_MODEL_SHOWS=1 prints the sizes, and the way to each fault. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/lib/wakeup_model.h"

/* ---- the checker: breadth first, so that what it finds is short ---- */

struct visit {
  struct wakeup_state state;
  uint32_t parent;
  uint8_t move, is_good; /* is_good: a final state can be reached from here */
};
struct edge {
  uint32_t from, to;
};
enum { VISITS_MAX = 1 << 20, EDGES_MAX = 4 << 20, SLOTS = 1 << 21 };
static struct visit *visits;
static struct edge *edges;
static uint32_t *slots; /* 1 + index of a visit, by hash; 0: free */
static uint32_t visit_count, edge_count;

static uint32_t *find_slot(const struct wakeup_state *s) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof *s; i++) {
    hash = (hash ^ ((const uint8_t *)s)[i]) * 1099511628211u;
  }
  uint32_t at = (uint32_t)(hash >> 20) % SLOTS;
  while (slots[at] && memcmp(&visits[slots[at] - 1].state, s, sizeof *s) != 0) {
    at = (at + 1) % SLOTS;
  }
  return &slots[at];
}

static uint32_t visit(const struct wakeup_state *s, uint32_t parent, unsigned how) {
  uint32_t *slot = find_slot(s);
  if (*slot == 0) {
    assert_true(visit_count < VISITS_MAX);
    visits[visit_count] = (struct visit){ *s, parent, (uint8_t)how, false };
    *slot = ++visit_count;
  }
  return *slot - 1;
}

static const char *explore_all(uint32_t *where) {
  for (*where = 0; *where < visit_count; ++*where) {
    bool is_final = true;
    for (unsigned how = 0; how < MOVES; how++) {
      struct wakeup_state next = visits[*where].state;
      if (wakeup_move(&next, how)) {
        is_final = false;
        assert_true(edge_count < EDGES_MAX);
        edges[edge_count++] = (struct edge){ *where, visit(&next, *where, how) };
      }
    }
    visits[*where].is_good = is_final;
    const char *fault = wakeup_fault(&visits[*where].state, is_final);
    if (fault) {
      return fault;
    }
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (uint32_t i = edge_count; i-- > 0;) {
      if (visits[edges[i].to].is_good && !visits[edges[i].from].is_good) {
        visits[edges[i].from].is_good = has_changed = true;
      }
    }
  }
  for (*where = 0; *where < visit_count; ++*where) {
    if (!visits[*where].is_good) {
      return "somebody works in vain for ever";
    }
  }
  return NULL;
}

static void print_way_to(uint32_t where) {
  if (where > 0) {
    const struct visit *visit = &visits[where];
    print_way_to(visit->parent);
    print_message("  %-8s %s\n", wakeup_actor_name(visit->move),
                  wakeup_step_text(&visits[visit->parent].state, visit->move));
  }
}

/* What goes wrong in this scene, or NULL. */
static const char *explore(const struct wakeup_scene *scene, enum broken rule, bool is_shown) {
  struct wakeup_state start = wakeup_begin(scene, rule);
  visits = malloc(VISITS_MAX * sizeof *visits);
  edges = malloc(EDGES_MAX * sizeof *edges);
  slots = calloc(SLOTS, sizeof *slots);
  assert_true(visits && edges && slots);
  visit_count = edge_count = 0;
  uint32_t where;
  visit(&start, 0, 0);
  const char *fault = explore_all(&where);
  if (is_shown || (fault && !rule)) {
    print_message("%s: %u states, %u steps: %s\n", scene->name, visit_count, edge_count,
                  fault ? fault : "nothing goes wrong");
  }
  if (fault && (is_shown || !rule)) {
    print_way_to(where);
  }
  free(visits);
  free(edges);
  free(slots);
  return fault;
}

enum { TASKS, INLINE, HOLDS, THREADED, END, SCENES };
/* THREADED: who polls there leaves no stamp, as engine_stop_all. */
static const struct wakeup_scene scenes[SCENES] = {
  [TASKS] = { "tasks", true, { [POSTER] = 2, [POSTER_2] = 1, [POLLER] = 1 }, 0 },
  [INLINE] = { "inline", true, { [POSTER] = 1, [POLLER] = 1, [TIMER] = 1 }, 1 },
  [HOLDS] = { "holds", true, { [POLLER] = 2, [TIMER] = 1, [LEAVER] = 1 }, 1 },
  [THREADED] = { "thread", false, { [POSTER] = 1, [POLLER] = 1, [TIMER] = 2 }, 1 },
  [END] = { "end", true, { [POLLER] = 1, [TIMER] = 1, [ENDER] = 1 }, 1 },
};

UNIT_TEST(nothing_is_left) {
  for (unsigned i = 0; i < SCENES; i++) {
    assert_null(explore(&scenes[i], NOTHING, getenv("WAKEUP_MODEL_SHOWS") != NULL));
  }
}

UNIT_TEST(each_rule_is_needed) {
  static const struct {
    enum broken rule;
    unsigned scene;
    const char *fault;
  } cases[] = {
    { NO_LOOK_AFTER_UNLOCK, TASKS, "a task is left" },
    { NO_RETRY_AFTER_PUSH, TASKS, "a task is left" },
    { UNQUEUED_AFTER_RUN, TASKS, "a task is left" },
    { NO_DEADLINE_BEFORE_SLEEP, THREADED, "a deadline is slept through" },
    { DEADLINE_READ_UNLOCKED, THREADED, "a deadline is slept through" },
    { NO_WAKE_BY_TIMER, INLINE, "a deadline is slept through" },
    { NO_WAKE_BY_LEAVING, HOLDS, "the thread keeps off what was left to it" },
    { NO_WAKE_BY_END, END, "somebody waits for ever" },
    { POLLER_READS_WAKE_FD, THREADED, "a deadline is slept through" },
    { HOLD_HAS_NO_END, INLINE, "an event is left" },
    { EVENTS_NOT_WATCHED, INLINE, "an event is left" },
    { WAKE_FD_IS_NOT_READ, HOLDS, "somebody works in vain for ever" },
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *fault =
        explore(&scenes[cases[i].scene], cases[i].rule, getenv("WAKEUP_MODEL_SHOWS") != NULL);
    assert_non_null(fault);
    assert_string_equal(fault, cases[i].fault);
  }
}

UNIT_MAIN(NULL, NULL)
