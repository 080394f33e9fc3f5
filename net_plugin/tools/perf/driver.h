/* SPDX-License-Identifier: Apache-2.0 */
/* driver: connections of a plugin, driven by one thread as NCCL's proxy does it: posts requests up
 * to the depth, calls test() on the oldest of each connection, and yields the CPU when nothing
 * completes (src/transport/net.cc, src/proxy.cc at v2.30.7-1).
 *
 *   stream   a connection in one direction       (NCCL: a send or receive connection)
 *   slot     the memory of one request           (NCCL: a step of the connection's buffer)
 *   round    one size of the plan, on all streams
 *
 * Owns: the plugin's connections and the memory, from driver_open to driver_close.
 * Threads: the main thread.
 * Blocks: opening and a round, until both sides are done; without progress at most
 * plan.timeout_ns. Fails: with a message; after that the process must end, the connections cannot
 * be closed. */
#ifndef NET_PLUGIN_TOOLS_PERF_DRIVER_H
#define NET_PLUGIN_TOOLS_PERF_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/abi/net_abi.h"
#include "net_plugin/tools/control_channel.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/window.h"

#define DRIVER_TOTAL_UNKNOWN UINT64_MAX
enum { DRIVER_HANDLE_BYTES = 128 };

struct stream {
  bool is_sender;
  unsigned number; /* equal on both sides */
  void *listen_comm, *comm, *mhandle;
  uint8_t handle[DRIVER_HANDLE_BYTES];
  uint8_t *memory; /* slots */
  void *requests[PLAN_DEPTH];
  uint64_t posted, done, total; /* messages of this round */
  /* In a latency test: the stream of the other direction, to which this one responds. */
  struct stream *partner;
  bool is_first; /* its first message responds to nothing */
  uint64_t posted_ns;
};

struct driver {
  struct plan plan;
  struct control_channel channel; /* its user opens and closes it */
  /* The plugin, of interface v11 or later, whose tables begin alike. */
  const struct net_v11 *table;
  const char *path;
  struct net_config_v10 config; /* init keeps it */
  void *context;
  int device_count;
  bool is_client;
  struct stream *streams;
  int stream_count;
  uint64_t slot_stride;
  const uint8_t *data; /* the file that this side sends; NULL: none */
  size_t data_bytes;
  uint64_t connect_ns; /* duration of connecting all streams */
};

/* Loads and initializes the plugin; plan and is_client are set. */
int driver_open(struct driver *driver);
/* Both sides call it. */
int driver_connect(struct driver *driver);
void driver_close(struct driver *driver);

/* CLI_FAILED after a message: what the plugin answered to this call. */
int driver_fail_call(const struct driver *driver, const char *call, enum nccl_result result);

/* One round, measured in the window; *wrong: messages with wrong contents. */
int driver_run(struct driver *driver, uint64_t bytes, struct window *window, uint64_t *wrong);

#endif
