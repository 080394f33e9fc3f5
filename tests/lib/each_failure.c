/* SPDX-License-Identifier: Apache-2.0 */
/* See each_failure.h. */
#include "tests/lib/each_failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/traces.h"
#include "tests/lib/unit.h"

enum {
  DENSE = 12, /* so many calls of a kind fail each, then fewer: flows are made one as the other */
  POLLED_MAX = 300, /* polling never ends to make its calls */
  K_MAX = 20000,    /* no entry point makes so many calls of another kind */
};

/* In the address build; 1: something leaked since the last time. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static struct failure pending;
static unsigned long pending_k;
static unsigned wrong; /* runs of this entry point */

void each_failure_arm(void) {
  if (pending_k > 0) {
    fault_fail(pending.call, pending_k, pending.error);
  }
}

struct failure each_failure_pending(unsigned long *k) {
  *k = pending_k;
  return pending;
}

static void check(const struct entry_point *entry, const struct outcome *outcome, bool has_failed,
                  struct traces before, long mappings_before) {
  struct traces now = traces_left(before);
  long mappings = fault_mappings();
  bool is_told = !outcome->error || outcome->is_told || log_capture_count(LOG_LEVEL_WARN) > 0;
  bool may_fail = has_failed && !entry->must_succeed;
  if (outcome->problem || !is_told || (outcome->error && !may_fail) ||
      now.descriptors > before.descriptors || now.threads > before.threads ||
      mappings != mappings_before) {
    wrong++;
    log_capture_print();
    print_error("%s, %s number %lu fails with %s%s: error %d at %s, %s, %s, descriptors %d -> %d, "
                "threads %d -> %d, mappings %ld -> %ld\n",
                entry->name, fault_call_name(pending.call), pending_k,
                strerrorname_np(pending.error), has_failed ? "" : " (did not happen)",
                outcome->error, outcome->stage ? outcome->stage : "the end",
                outcome->problem ? outcome->problem : "no other problem",
                is_told ? "a warning says why" : "no warning", before.descriptors, now.descriptors,
                before.threads, now.threads, mappings_before, mappings);
  }
}

/* True if the fault happened. */
static bool run_once(const struct entry_point *entry, unsigned long k) {
  struct outcome outcome = { 0 };
  struct traces before = traces_now();
  long mappings_before = fault_mappings();
  pending_k = k;
  if (getenv("STRATUS_TEST_VERBOSE")) { /* a crash leaves no other trace of which it was */
    fprintf(stderr, "# %s: %s number %lu fails with %s\n", entry->name,
            fault_call_name(pending.call), k, strerrorname_np(pending.error));
  }
  fault_forget();
  log_capture_start();
  if (!entry->arms_itself) {
    each_failure_arm();
  }
  entry->run(&outcome);
  bool has_failed = fault_clear();
  if (k > 0) {
    check(entry, &outcome, has_failed, before, mappings_before);
  } else if (outcome.error || outcome.problem || log_capture_count(LOG_LEVEL_WARN) > 0) {
    log_capture_print();
    fail_msg("%s fails without a failing call: error %d at %s, %s", entry->name, outcome.error,
             outcome.stage ? outcome.stage : "the end",
             outcome.problem ? outcome.problem : "no other problem");
  }
  log_capture_stop();
  return has_failed;
}

static bool is_polled(enum fault_call call) {
  return call == FAULT_SEND || call == FAULT_RECEIVE || call == FAULT_EPOLL_WAIT ||
         call == FAULT_POLL;
}

/* ThreadSanitizer looks for races, which one failing call shows as well as its neighbour; that each
 * is survived the other builds show. */
#ifdef __SANITIZE_THREAD__
enum { IS_THREAD_BUILD = true };
#else
enum { IS_THREAD_BUILD = false };
#endif

/* From the k-th call to the next one that fails: all fail where there is time for it. */
static unsigned long call_step(const struct entry_point *entry, enum fault_call call,
                               unsigned long k) {
  if (IS_THREAD_BUILD) {
    return 15 * k;
  }
  if (entry->is_slow) {
    return k;
  }
  if (k < DENSE || (unit_has_time() && !is_polled(call))) {
    return 1;
  }
  return 1 + k / (is_polled(call) ? 2 : 4);
}

/* How many calls failed. */
static unsigned long run_for(const struct entry_point *entry, struct failure failure) {
  unsigned long k = 1, failed = 0;
  pending = failure;
  while (run_once(entry, k)) {
    failed++;
    assert_true(k < K_MAX);
    k += call_step(entry, failure.call, k);
    if (is_polled(failure.call) && k > POLLED_MAX) {
      break;
    }
  }
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) {
    wrong++;
    print_error("%s leaks memory where %s fails with %s\n", entry->name,
                fault_call_name(failure.call), strerrorname_np(failure.error));
  }
  return failed;
}

unsigned long each_failure(const struct entry_point *entry, const struct failure *failures,
                           size_t count) {
  unsigned long all = 0;
  char text[1024] = "";
  wrong = 0;
  run_once(entry, 0);
  uint64_t start_ns = clock_now_ns();
  for (size_t i = 0; i < count; i++) {
    unsigned long failed = run_for(entry, failures[i]);
    all += failed;
    size_t used = strlen(text);
    if (failed > 0) {
      snprintf(text + used, sizeof text - used, "%s%s %lu", used ? ", " : "",
               fault_call_name(failures[i].call), failed);
    }
  }
  printf("# %s: %lu calls failed in turn in %.1f s: %s\n", entry->name, all,
         (double)(clock_now_ns() - start_ns) / NS_PER_S, text);
  assert_int_equal(wrong, 0);
  return all;
}

unsigned long each_failure_of_all(const struct entry_point *entry) {
  struct failure failures[FAULT_CALL_COUNT];
  size_t count = 0;
  run_once(entry, 0);
  for (int i = 0; i < FAULT_CALL_COUNT; i++) {
    enum fault_call call = (enum fault_call)i;
    if (fault_is_called(call)) {
      failures[count++] = (struct failure){ call, fault_call_error(call) };
    }
  }
  return each_failure(entry, failures, count);
}
