/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from options and from JSON, and JSON from a plan. */
#include "net_plugin/tools/perf/plan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/quantity.h"

static const char *const tests[] = { "bandwidth", "latency", "both-ways" };

const char *plan_test_name(const struct plan *plan) {
  return tests[plan->test];
}

/* Both sides may run on this machine: at most a quarter of its memory for each. */
static int check_memory(const struct plan *plan) {
  long double bytes = (long double)plan->largest * PLAN_DEPTH * plan->connections *
                      (plan->test == PLAN_BANDWIDTH ? 1 : 2);
  long double memory = (long double)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return bytes > memory / 4
             ? cli_fail_usage("%d connections take %.0Lf GiB of memory; this host has %.0Lf",
                              plan->connections, bytes / (1 << 30), memory / (1 << 30))
             : CLI_OK;
}

/* ---- from options ---- */

static int read_sizes(struct plan *plan, const char *list) {
  char word[QUANTITY_WORD_MAX];
  plan->size_count = 0;
  plan->largest = 1;
  while (quantity_next_word(&list, word)) {
    uint64_t bytes;
    if (quantity_parse_size(word, &bytes) != 0 || bytes > PLAN_BYTES_MAX) {
      return cli_fail_usage("--bytes takes sizes up to 1G such as 8,1K,512K, not \"%s\"", word);
    }
    if (plan->size_count == PLAN_SIZES_MAX) {
      return cli_fail_usage("--bytes takes at most %d sizes", PLAN_SIZES_MAX);
    }
    plan->sizes[plan->size_count++] = bytes;
    plan->largest = bytes > plan->largest ? bytes : plan->largest;
  }
  return CLI_OK;
}

static int read_devices(struct plan *plan, const char *list) {
  char word[QUANTITY_WORD_MAX];
  plan->device_count = 0;
  while (quantity_next_word(&list, word)) {
    int64_t device;
    if (quantity_parse_int(word, &device) != 0 || device < 0 || device > INT16_MAX) {
      return cli_fail_usage("--devices takes numbers such as 0,1, not \"%s\"", word);
    }
    if (plan->device_count == PLAN_DEVICES_MAX) {
      return cli_fail_usage("--devices takes at most %d", PLAN_DEVICES_MAX);
    }
    plan->devices[plan->device_count++] = (int)device;
  }
  return CLI_OK;
}

int plan_make(struct plan *plan) {
  plan->is_checked |= plan->count > 0;
  if (!plan->sizes_text) {
    plan->sizes_text = plan->test == PLAN_LATENCY ? "8" : "512K";
  }
  plan->devices_text = plan->devices_text ? plan->devices_text : "0";
  int status = read_sizes(plan, plan->sizes_text);
  status = status ? status : read_devices(plan, plan->devices_text);
  return status ? status : check_memory(plan);
}

/* ---- JSON ---- */

#define DAY (24 * 3600 * NS_PER_S)
/* Members by their own names, with their bounds. */
#define NUMBERS(X)                                                                                 \
  X(connections, 1, PLAN_CONNECTIONS_MAX)                                                          \
  X(time_ns, 0, DAY)                                                                               \
  X(warmup_ns, 0, DAY)                                                                             \
  X(count, 0, UINT64_C(1) << 48)                                                                   \
  X(is_checked, 0, 1)                                                                              \
  X(has_data, 0, 1)                                                                                \
  X(timeout_ns, 0, DAY)                                                                            \
  X(idle_ns, 0, DAY)

json_t *plan_to_json(const struct plan *plan) {
  json_t *json = json_pack("{s:s, s:s, s:s}", "test", plan_test_name(plan), "bytes",
                           plan->sizes_text, "devices", plan->devices_text);
#define SET_NUMBER(name, low, high)                                                                \
  json_object_set_new(json, #name, json_integer((json_int_t)plan->name));
  NUMBERS(SET_NUMBER)
  return json;
}

/* False unless it is a number within bounds; 0 then. */
static bool get_number(const json_t *json, uint64_t low, uint64_t high, uint64_t *number) {
  json_int_t value = json_integer_value(json);
  bool is_good =
      json_is_integer(json) && value >= 0 && (uint64_t)value >= low && (uint64_t)value <= high;
  *number = is_good ? (uint64_t)value : 0;
  return is_good;
}

int plan_from_json(struct plan *plan, const json_t *json) {
  uint64_t number;
  const char *test = "";
  *plan = (struct plan){ 0 };
  bool is_good = json_unpack((json_t *)(uintptr_t)json, "{s:s, s:s, s:s}", "test", &test, "bytes",
                             &plan->sizes_text, "devices", &plan->devices_text) == 0;
  int test_word = quantity_find_word(PLAN_TEST_WORDS, test);
#define GET_NUMBER(name, low, high)                                                                \
  is_good &= get_number(json_object_get(json, #name), low, high, &number);                         \
  plan->name = (__typeof__(plan->name))number;
  NUMBERS(GET_NUMBER)
  if (!is_good || test_word < 0) {
    return cli_fail("the other side sent an invalid plan");
  }
  plan->test = (enum plan_test)test_word;
  int status = plan_make(plan);
  plan->sizes_text = plan->devices_text = NULL;
  return status;
}
