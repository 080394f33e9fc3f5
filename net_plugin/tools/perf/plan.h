/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what a session measures. The client of `stratus perf` makes it from its options and
 * sends it to the server, as each host of a probe does with its pair. Owns: nothing; strings
 * inside.  Threads: the main thread. Blocks: never.  Fails: with a message and an exit status. */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAN_H
#define NET_PLUGIN_TOOLS_PERF_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/contents.h"
#include "common/plugin_file.h"

enum plan_test { PLAN_BANDWIDTH, PLAN_LATENCY, PLAN_RATE, PLAN_BOTH_WAYS };
#define PLAN_TEST_WORDS "bandwidth|latency|rate|both-ways"

enum plan_shape { PLAN_SIMPLE, PLAN_LL, PLAN_LL128, PLAN_P2P, PLAN_RAW };
#define PLAN_SHAPE_WORDS "simple|ll|ll128|p2p|raw"

enum {
  PLAN_SIZES_MAX = 32,
  PLAN_CONNECTIONS_MAX = 4096, /* a rank in AlltoAll between hundreds of hosts */
  PLAN_DEPTH_MAX = 32,         /* NCCL_NET_MAX_REQUESTS: what every plugin supports */
  PLAN_DEVICES_MAX = 8,
};
/* What messages contain: bytes that count up, which no plugin makes shorter; what common/contents.h
 * invents; a file. */
enum plan_data { PLAN_COUNT, PLAN_BF16, PLAN_F32, PLAN_RANDOM, PLAN_ZEROS, PLAN_FILE };
#define PLAN_DATA_WORDS "count|" CONTENTS_WORDS "|file"

#define PLAN_BYTES_MAX (UINT64_C(1) << 30) /* NCCL's largest request to a plugin before v9 */

struct plan {
  enum plan_test test;
  enum plan_shape shape;
  uint64_t sizes[PLAN_SIZES_MAX];
  int size_count;
  int depth;           /* requests in flight per connection */
  uint64_t slot_bytes; /* memory per request; receives are posted with all of it, as NCCL does */
  int connections;     /* per direction */
  bool is_timed;       /* else `count` messages per connection */
  uint64_t time_ns, warmup_ns;  /* if timed */
  uint64_t count, warmup_count; /* if not */
  int devices[PLAN_DEVICES_MAX];
  int device_count;
  bool is_checked, has_flows;
  enum plan_data data;
  const char *data_path;        /* of this side; not sent to the other, nor received from it */
  char plugin[PLUGIN_FILE_MAX]; /* empty: stratus */
  uint64_t timeout_ns;          /* fail after this time without progress */
  uint64_t idle_ns;             /* idle time at the end, with all connections open; 0: none */
};

/* The options of which a plan is made, where the plan has no such member; NULL or 0: the default.
 */
struct plan_texts {
  int check; /* index into the words */
  const char *sizes, *devices, *warmup, *plugin, *data;
};
#define PLAN_CHECK_WORDS "auto|yes|no"

/* Test, shape, depth, connections, time, count, timeout, idle time and has_flows are as given; what
 * is 0 of them becomes the default of shape or test. */
int plan_make(struct plan *plan, const struct plan_texts *texts);

/* NULL without memory. */
json_t *plan_to_json(const struct plan *plan);
/* Untrusted input: every value is checked. */
int plan_from_json(struct plan *plan, const json_t *json);

const char *plan_test_name(const struct plan *plan);
const char *plan_shape_name(const struct plan *plan);
const char *plan_data_name(const struct plan *plan);

/* A word of PLAN_DATA_WORDS, else a file. */
void plan_choose_data(struct plan *plan, const char *what);

#endif
