/* SPDX-License-Identifier: Apache-2.0 */
/* Workload files from any text. A refused one has a printable message; of an accepted one each
 * number of ranks has a plan or a message, and a plan is in order: communication is counted from 1,
 * waits are for earlier ones, and no time, count or buffer is absurd. The walk that looks for
 * deadlocks ends, with a message or without. */
#include "tests/fuzz/fuzz.h"
#include "tests/coll/replay/deadlock.h"
#include "tests/coll/replay/plan.h"

enum { ITEMS_MAX = 1 << 16 };

static void check_message(const char *error) {
  FUZZ_CHECK(error[0] != '\0' && strlen(error) < WORKLOAD_ERROR_MAX);
  for (const char *c = error; *c; c++) {
    FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
  }
}

static void check_collective(const struct workload *workload, const struct plan_collective *c,
                             int ranks) {
  const struct operation_info *info = &operation_infos[c->operation];
  struct operation_counts counts = plan_counts(workload, c, ranks);
  FUZZ_CHECK(c->elements > 0 && c->type < ELEMENT_TYPES);
  FUZZ_CHECK(info->has_redop == (c->redop != PATTERN_NONE));
  FUZZ_CHECK(c->group >= 0 && (size_t)c->group <= workload->group_count);
  FUZZ_CHECK(counts.bytes / element_infos[c->type].size_bytes >= c->elements);
}

static void check_item(const struct workload *workload, const struct plan_item *item, int ranks,
                       uint32_t *numbers) {
  char text[PLAN_TEXT_MAX];
  FUZZ_CHECK(plan_text(workload, item, ranks, text)[0] != '\0');
  check_message(text);
  switch (item->kind) {
  case PLAN_COMPUTE:
    FUZZ_CHECK(item->us > 0);
    break;
  case PLAN_COLLECTIVE:
    FUZZ_CHECK(item->number == ++*numbers);
    FUZZ_CHECK(operation_infos[item->collective.operation].has_root ==
               (item->collective.root >= 0));
    check_collective(workload, &item->collective, ranks);
    break;
  case PLAN_SEND:
  case PLAN_RECV: /* one exchange has one number */
    FUZZ_CHECK(item->number == *numbers || item->number == *numbers + 1);
    FUZZ_CHECK(item->collective.root >= 0);
    *numbers = item->number;
    check_collective(workload, &item->collective, ranks);
    break;
  default:
    FUZZ_CHECK(item->number >= 1 && item->number <= *numbers);
  }
}

static void check_plan(const struct workload *workload, int ranks, double scale) {
  static struct plan_item items[ITEMS_MAX];
  static char error[WORKLOAD_ERROR_MAX];
  const struct plan_settings settings = { ranks, scale, scale, 0 };
  int64_t count = plan_make(workload, &settings, NULL, 0, error);
  if (count < 0) {
    check_message(error);
    return;
  }
  FUZZ_CHECK(plan_make(workload, &settings, items, ITEMS_MAX, error) == count);
  uint32_t numbers = 0;
  for (int64_t i = 0; i < count && i < ITEMS_MAX; i++) {
    check_item(workload, &items[i], ranks, &numbers);
  }
  if (count <= ITEMS_MAX) {
    struct plan_sum sum = plan_sum(workload, items, (size_t)count, ranks, 0);
    FUZZ_CHECK(sum.numbers == numbers && sum.collectives <= numbers);
    error[0] = '\0';
    FUZZ_CHECK((deadlock_check(workload, items, (size_t)count, ranks, error) == 0) == !error[0]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int ranks[] = { 1, 2, 8, 1000 };
  static struct workload workload;
  static char error[WORKLOAD_ERROR_MAX];
  if (workload_parse(&workload, (const char *)data, size, "fuzzed", error) < 0) {
    check_message(error);
    FUZZ_CHECK(!workload.name && !workload.layers && !workload.events);
    return 0;
  }
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
    check_plan(&workload, ranks[i], 1);
    check_plan(&workload, ranks[i], 1e-3);
    check_plan(&workload, ranks[i], PLAN_SCALE_MAX);
  }
  workload_free(&workload);
  return 0;
}
