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

enum plan_test { PLAN_BANDWIDTH, PLAN_LATENCY, PLAN_BOTH_WAYS };
#define PLAN_TEST_WORDS "bandwidth|latency|both-ways"

enum {
  PLAN_SIZES_MAX = 32,
  PLAN_CONNECTIONS_MAX = 4096, /* a rank in AlltoAll between hundreds of hosts */
  PLAN_DEVICES_MAX = 8,
  /* Requests in flight on a connection: NCCL's buffer has NCCL_STEPS = 8 steps of 512 KiB
   * (src/include/device.h at v2.30.7-1). */
  PLAN_DEPTH = 8,
};

#define PLAN_BYTES_MAX (UINT64_C(1) << 30) /* NCCL's largest request to a plugin before v9 */

struct plan {
  enum plan_test test;
  /* Options as they were given, which plan_make reads; NULL: the default. */
  const char *sizes_text, *devices_text;
  uint64_t sizes[PLAN_SIZES_MAX];
  int size_count;
  uint64_t largest; /* of the sizes: receives are posted with so much, and a request has it */
  int connections;  /* per direction */
  uint64_t count;   /* messages per connection; 0: a time */
  uint64_t time_ns, warmup_ns; /* with a count a tenth of it more is the warm-up */
  int devices[PLAN_DEVICES_MAX];
  int device_count;
  bool is_checked;
  bool has_data; /* of a file; else bytes that count up, which no plugin makes shorter */
  /* Of this side, not sent to the other, nor received from it. NULL: none; stratus. */
  const char *data_path, *plugin;
  uint64_t timeout_ns; /* fail after this time without progress */
  uint64_t idle_ns;    /* idle time at the end, with all connections open; 0: none */
};

static inline uint64_t plan_warmup_count(const struct plan *plan) {
  return plan->count / 10;
}

/* Fills in what follows from the texts. With a count contents are checked. */
int plan_make(struct plan *plan);

/* The client's. NULL without memory. */
json_t *plan_to_json(const struct plan *plan);
/* The server's: untrusted input, every value is checked; made, with its texts gone. */
int plan_from_json(struct plan *plan, const json_t *json);

const char *plan_test_name(const struct plan *plan);

#endif
