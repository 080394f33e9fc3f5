/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from options and from JSON, and JSON from a plan. */
#include "net_plugin/tools/perf/plan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/quantity.h"

/* The message sizes of NCCL (src/transport/net.cc, src/include/device.h at v2.30.7-1). A buffer
 * has NCCL_STEPS = 8 steps; a request of ring and tree Simple is two steps of 512 KiB, of LL and
 * LL128 one step of 512 threads x 8 lines x 16 bytes and of 640 threads x 120 words x 8 bytes; send
 * and receive use steps of NCCL_P2P_NET_CHUNKSIZE. */
static const struct shape {
  const char *name, *sizes;
  uint64_t slot_bytes; /* also the largest message; 0: any */
  int depth;
} shapes[] = {
  { "simple", "1M", 1 << 20, 4 },
  { "ll", "16,1K,16K,64K", 64 << 10, 8 },
  { "ll128", "128,1920,15K,600K", 600 << 10, 8 },
  { "p2p", "128K", 128 << 10, 8 },
  { "raw", "1M", 0, 8 },
};
static const char *const tests[] = { "bandwidth", "latency", "rate", "both-ways" };

const char *plan_test_name(const struct plan *plan) {
  return tests[plan->test];
}

static const char *const data_words[] = { "count", "bf16", "f32", "random", "zeros", "file" };

const char *plan_data_name(const struct plan *plan) {
  return data_words[plan->data];
}

void plan_choose_data(struct plan *plan, const char *what) {
  int word = quantity_find_word(PLAN_DATA_WORDS, what);
  plan->data = word >= 0 ? (enum plan_data)word : PLAN_FILE;
  plan->data_path = what;
}

const char *plan_shape_name(const struct plan *plan) {
  return shapes[plan->shape].name;
}

/* ---- lists ---- */

/* The next word of "a,b,c"; false at the end. */
static bool next_word(const char **list, char word[32]) {
  if (!*list) {
    return false;
  }
  size_t length = strcspn(*list, ",");
  snprintf(word, 32, "%.*s", (int)(length < 31 ? length : 31), *list);
  *list = (*list)[length] ? *list + length + 1 : NULL;
  return true;
}

static int read_sizes(struct plan *plan, const char *list) {
  char word[32];
  plan->size_count = 0;
  while (next_word(&list, word)) {
    uint64_t bytes;
    if (quantity_parse_size(word, &bytes) != 0 || bytes > PLAN_BYTES_MAX) {
      return cli_fail_usage("--bytes takes sizes up to 1G such as 8,1K,512K, not \"%s\"", word);
    }
    if (plan->size_count == PLAN_SIZES_MAX) {
      return cli_fail_usage("--bytes takes at most %d sizes", PLAN_SIZES_MAX);
    }
    plan->sizes[plan->size_count++] = bytes;
  }
  return CLI_OK;
}

static int read_devices(struct plan *plan, const char *list) {
  char word[32];
  plan->device_count = 0;
  while (next_word(&list, word)) {
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

/* ---- from options ---- */

static int choose_sizes(struct plan *plan, const struct plan_texts *texts) {
  const struct shape *shape = &shapes[plan->shape];
  const char *preset = plan->test == PLAN_LATENCY ? "8"
                       : plan->test == PLAN_RATE  ? "1K,4K,16K"
                                                  : shape->sizes;
  int status = read_sizes(plan, texts->sizes ? texts->sizes : preset);
  uint64_t largest = 1;
  for (int i = 0; i < plan->size_count; i++) {
    largest = plan->sizes[i] > largest ? plan->sizes[i] : largest;
  }
  if (status == CLI_OK && shape->slot_bytes && largest > shape->slot_bytes) {
    char text[QUANTITY_TEXT_MAX];
    return cli_fail_usage("--shape %s has messages up to %s; for larger ones use --shape raw",
                          shape->name, quantity_format_size(shape->slot_bytes, text));
  }
  plan->slot_bytes = shape->slot_bytes ? shape->slot_bytes : largest;
  return status;
}

static int choose_length(struct plan *plan, const struct plan_texts *texts) {
  if (plan->time_ns && plan->count) {
    return cli_fail_usage("give either --time or --count");
  }
  plan->is_timed = !plan->count;
  plan->time_ns = plan->time_ns ? plan->time_ns : 2 * NS_PER_S;
  plan->warmup_ns = 500 * NS_PER_MS;
  plan->warmup_count = plan->count / 10;
  int64_t messages = 0;
  if (texts->warmup && plan->is_timed && quantity_parse_duration(texts->warmup, &plan->warmup_ns)) {
    return cli_fail_usage("--warmup takes a time such as 500ms, not \"%s\"", texts->warmup);
  }
  if (texts->warmup && !plan->is_timed) {
    if (quantity_parse_int(texts->warmup, &messages) || messages < 0) {
      return cli_fail_usage("--warmup takes a number of messages with --count, not \"%s\"",
                            texts->warmup);
    }
    plan->warmup_count = (uint64_t)messages;
  }
  return CLI_OK;
}

static int choose_transport(struct plan *plan, const struct plan_texts *texts) {
  if (texts->plugin && strlen(texts->plugin) >= sizeof plan->plugin) {
    return cli_fail_usage("--plugin: the name is too long");
  }
  snprintf(plan->plugin, sizeof plan->plugin, "%s", texts->plugin ? texts->plugin : "");
  return read_devices(plan, texts->devices ? texts->devices : "0");
}

/* Both sides may run on this machine: at most a quarter of its memory for each. */
static int check_memory(const struct plan *plan) {
  long double bytes = (long double)plan->slot_bytes * plan->depth * plan->connections *
                      (plan->test == PLAN_BOTH_WAYS || plan->test == PLAN_LATENCY ? 2 : 1);
  long double memory = (long double)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return bytes > memory / 4
             ? cli_fail_usage(
                   "%d connections, %d deep, take %.0Lf GiB of memory; this host has %.0Lf",
                   plan->connections, plan->depth, bytes / (1 << 30), memory / (1 << 30))
             : CLI_OK;
}

int plan_make(struct plan *plan, const struct plan_texts *texts) {
  plan->depth = plan->depth ? plan->depth : shapes[plan->shape].depth;
  plan->connections = plan->connections ? plan->connections : 1;
  plan->is_checked = texts->check ? texts->check == 1 : plan->count > 0;
  plan_choose_data(plan, texts->data ? texts->data : data_words[PLAN_COUNT]);
  int status = choose_sizes(plan, texts);
  status = status ? status : choose_length(plan, texts);
  status = status ? status : choose_transport(plan, texts);
  return status ? status : check_memory(plan);
}

/* ---- JSON ---- */

#define DAY (24 * 3600 * NS_PER_S)
#define MANY (UINT64_C(1) << 48)
/* Members by their own names, with their bounds; flags by a name and member. */
#define NUMBERS(X)                                                                                 \
  X(depth, 1, PLAN_DEPTH_MAX)                                                                      \
  X(slot_bytes, 0, PLAN_BYTES_MAX)                                                                 \
  X(connections, 1, PLAN_CONNECTIONS_MAX)                                                          \
  X(time_ns, 0, DAY)                                                                               \
  X(warmup_ns, 0, DAY)                                                                             \
  X(count, 0, MANY)                                                                                \
  X(warmup_count, 0, MANY)                                                                         \
  X(timeout_ns, 0, DAY)                                                                            \
  X(idle_ns, 0, DAY)
#define FLAGS(X) X("timed", is_timed) X("checked", is_checked) X("flows", has_flows)

json_t *plan_to_json(const struct plan *plan) {
  json_t *sizes = json_array(), *devices = json_array();
  for (int i = 0; i < plan->size_count; i++) {
    json_array_append_new(sizes, json_integer((json_int_t)plan->sizes[i]));
  }
  for (int i = 0; i < plan->device_count; i++) {
    json_array_append_new(devices, json_integer(plan->devices[i]));
  }
  json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:s}", "test", plan_test_name(plan), "shape",
                           plan_shape_name(plan), "bytes", sizes, "devices", devices, "data",
                           plan_data_name(plan));
#define SET_NUMBER(name, low, high)                                                                \
  json_object_set_new(json, #name, json_integer((json_int_t)plan->name));
#define SET_FLAG(name, member) json_object_set_new(json, name, json_boolean(plan->member));
  NUMBERS(SET_NUMBER)
  FLAGS(SET_FLAG)
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

static bool get_word(const json_t *object, const char *name, const char *words, int *place) {
  const char *text = json_string_value(json_object_get(object, name));
  *place = text ? quantity_find_word(words, text) : -1;
  return *place >= 0;
}

static bool get_lists(const json_t *json, struct plan *plan) {
  const json_t *sizes = json_object_get(json, "bytes"), *devices = json_object_get(json, "devices");
  size_t size_count = json_array_size(sizes), device_count = json_array_size(devices);
  bool is_good = size_count >= 1 && size_count <= PLAN_SIZES_MAX && device_count >= 1 &&
                 device_count <= PLAN_DEVICES_MAX;
  for (size_t i = 0; is_good && i < size_count; i++) {
    is_good = get_number(json_array_get(sizes, i), 0, plan->slot_bytes, &plan->sizes[i]);
  }
  for (size_t i = 0; is_good && i < device_count; i++) {
    uint64_t device;
    is_good = get_number(json_array_get(devices, i), 0, INT16_MAX, &device);
    plan->devices[i] = (int)device;
  }
  plan->size_count = (int)size_count;
  plan->device_count = (int)device_count;
  return is_good;
}

int plan_from_json(struct plan *plan, const json_t *json) {
  uint64_t number;
  int test, shape, data;
  *plan = (struct plan){ 0 };
  bool is_good = get_word(json, "test", PLAN_TEST_WORDS, &test);
  is_good &= get_word(json, "data", PLAN_DATA_WORDS, &data);
  is_good &= get_word(json, "shape", PLAN_SHAPE_WORDS, &shape);
#define GET_NUMBER(name, low, high)                                                                \
  is_good &= get_number(json_object_get(json, #name), low, high, &number);                         \
  plan->name = (__typeof__(plan->name))number;
#define GET_FLAG(name, member)                                                                     \
  is_good &= json_is_boolean(json_object_get(json, name));                                         \
  plan->member = json_is_true(json_object_get(json, name));
  NUMBERS(GET_NUMBER)
  FLAGS(GET_FLAG)
  if (!is_good || !get_lists(json, plan)) {
    return cli_fail("the other side sent an invalid plan; is it the same version?");
  }
  plan->test = (enum plan_test)test;
  plan->shape = (enum plan_shape)shape;
  plan_choose_data(plan, data_words[data]);
  return check_memory(plan);
}
