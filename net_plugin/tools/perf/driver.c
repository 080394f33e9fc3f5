/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes connections, as NCCL's service thread does. */
#include "net_plugin/tools/perf/driver.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hex.h"
#include "net_plugin/tools/limits.h"

int driver_fail_call(const struct driver *driver, const char *call, enum nccl_result result) {
  return cli_fail("%s of plugin %s failed: result %d", call, driver->transport.name, (int)result);
}

/* ---- devices ---- */

static int check_devices(const struct driver *driver) {
  const struct plan *plan = &driver->plan;
  for (int i = 0; i < plan->device_count; i++) {
    if (plan->devices[i] >= driver->transport.device_count) {
      return cli_fail("there is no device %d: plugin %s has 0 to %d here", plan->devices[i],
                      driver->transport.name, driver->transport.device_count - 1);
    }
  }
  return CLI_OK;
}

int driver_open(struct driver *driver) {
  const char *plugin = driver->plan.plugin;
  int status = transport_open(&driver->transport, plugin[0] ? plugin : NULL);
  return status ? status : check_devices(driver);
}

/* ---- streams ---- */

/* First those from client to server, then those in the opposite direction, if any. */
static int make_streams(struct driver *driver) {
  const struct plan *plan = &driver->plan;
  bool is_two_way = plan->test == PLAN_LATENCY || plan->test == PLAN_BOTH_WAYS;
  driver->stream_count = plan->connections * (is_two_way ? 2 : 1);
  driver->streams = calloc((size_t)driver->stream_count, sizeof *driver->streams);
  if (!driver->streams) {
    return cli_fail("out of memory");
  }
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    stream->number = (unsigned)i;
    stream->is_sender = (i < plan->connections) == driver->is_client;
    if (plan->test == PLAN_LATENCY) {
      stream->partner = &driver->streams[(i + plan->connections) % driver->stream_count];
      stream->is_first = i < plan->connections;
    }
  }
  return CLI_OK;
}

/* Only the side that sends needs them: a file is not asked for by the other. */
static int load_contents(struct driver *driver) {
  const struct plan *plan = &driver->plan;
  bool sends = false;
  for (int i = 0; i < driver->stream_count; i++) {
    sends |= driver->streams[i].is_sender;
  }
  if (plan->data == PLAN_COUNT || !sends) {
    return CLI_OK;
  }
  if (plan->data == PLAN_FILE && !driver->is_client && strcmp(plan->data_path, "file") == 0) {
    return cli_fail("in this test the server sends, too: start it with --listen --data FILE");
  }
  char error[CONTENTS_ERROR_MAX];
  return contents_load(&driver->contents, plan->data_path, error) == 0
             ? CLI_OK
             : cli_fail("--data: %s", error);
}

static int device_of(const struct driver *driver, const struct stream *stream) {
  int number = (int)stream->number % driver->plan.connections;
  return driver->plan.devices[number % driver->plan.device_count];
}

static int listen_all(struct driver *driver) {
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    enum nccl_result result = stream->is_sender
                                  ? NCCL_SUCCESS
                                  : transport_listen(&driver->transport, device_of(driver, stream),
                                                     stream->handle, &stream->listen_comm);
    if (result) {
      return driver_fail_call(driver, "listen", result);
    }
  }
  return CLI_OK;
}

/* ---- handles, exchanged by NCCL's bootstrap in a job ---- */

static json_t *handles_to_json(const struct driver *driver) {
  json_t *list = json_array();
  for (int i = 0; i < driver->stream_count; i++) {
    const struct stream *stream = &driver->streams[i];
    char text[2 * TRANSPORT_HANDLE_BYTES + 1] = "";
    if (!stream->is_sender) {
      hex_write(stream->handle, TRANSPORT_HANDLE_BYTES, text);
    }
    json_array_append_new(list, json_string(text));
  }
  return list;
}

static bool read_handle(const json_t *json, uint8_t handle[TRANSPORT_HANDLE_BYTES]) {
  const char *text = json_string_value(json);
  return text && hex_read(text, handle, TRANSPORT_HANDLE_BYTES);
}

static int exchange_handles(struct driver *driver) {
  json_t *theirs;
  int status = control_channel_exchange(&driver->channel, "handles", driver->plan.timeout_ns,
                                        handles_to_json(driver), &theirs);
  for (int i = 0; i < driver->stream_count && status == CLI_OK; i++) {
    struct stream *stream = &driver->streams[i];
    if (stream->is_sender && !read_handle(json_array_get(theirs, (size_t)i), stream->handle)) {
      status = cli_fail("%s sent an invalid handle", driver->channel.peer);
    }
  }
  json_decref(theirs);
  return status;
}

/* ---- connections ---- */

static int connect_one(struct driver *driver, struct stream *stream) {
  enum nccl_result result =
      stream->is_sender ? transport_connect(&driver->transport, device_of(driver, stream),
                                            stream->handle, &stream->comm)
                        : transport_accept(&driver->transport, stream->listen_comm, &stream->comm);
  if (result) {
    return driver_fail_call(driver, stream->is_sender ? "connect" : "accept", result);
  }
  if (stream->comm && stream->listen_comm) {
    driver->transport.close_listen(stream->listen_comm);
    stream->listen_comm = NULL;
  }
  return CLI_OK;
}

/* In their order, at most PERF_CONNECTING_MAX at a time, each called again until it is connected:
 * the cost of polling does not grow with the number of connections. */
static int connect_all(struct driver *driver) {
  uint64_t began_ns = clock_now_ns(), until_ns = began_ns + driver->plan.timeout_ns;
  int first = 0; /* all before it are connected */
  while (first < driver->stream_count) {
    for (int i = first; i < driver->stream_count && i < first + PERF_CONNECTING_MAX; i++) {
      struct stream *stream = &driver->streams[i];
      int status = stream->comm ? CLI_OK : connect_one(driver, stream);
      if (status != CLI_OK) {
        return status;
      }
      until_ns = stream->comm && i == first ? clock_now_ns() + driver->plan.timeout_ns : until_ns;
      first += stream->comm && i == first;
    }
    if (clock_now_ns() > until_ns) {
      return cli_fail("connection %d of %d of plugin %s could not be made", first + 1,
                      driver->stream_count, driver->transport.name);
    }
    sched_yield();
  }
  driver->connect_ns = clock_now_ns() - began_ns;
  return CLI_OK;
}

/* Not one repeated byte: a plugin may take that for a message of NCCL's LL or LL128 protocol, which
 * GPU kernels read while it arrives. */
static void fill_memory(uint8_t *memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) {
    memory[at] = (uint8_t)(at * 31 + at / 251);
  }
}

/* Touches the pages now, not during the measurement. */
static int give_memory(struct driver *driver, struct stream *stream) {
  size_t bytes = (size_t)driver->plan.depth * driver->slot_stride;
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return cli_fail("out of memory: %d connections take %zu bytes each", driver->stream_count,
                    bytes);
  }
  if (driver->contents.bytes && stream->is_sender) {
    contents_copy(&driver->contents, (uint64_t)stream->number * bytes, memory, bytes);
  } else {
    fill_memory(memory, bytes);
  }
  stream->memory = memory;
  enum nccl_result result =
      transport_register(&driver->transport, stream->comm, memory, bytes, &stream->mhandle);
  return result ? driver_fail_call(driver, "regMr", result) : CLI_OK;
}

int driver_connect(struct driver *driver) {
  driver->slot_stride = (driver->plan.slot_bytes + 4095) & ~UINT64_C(4095);
  int status = make_streams(driver);
  status = status ? status : load_contents(driver);
  status = status ? status : listen_all(driver);
  status = status ? status : exchange_handles(driver);
  status = status ? status : connect_all(driver);
  for (int i = 0; i < driver->stream_count && status == CLI_OK; i++) {
    status = give_memory(driver, &driver->streams[i]);
  }
  return status;
}

void driver_close(struct driver *driver) {
  struct transport *transport = &driver->transport;
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    transport_deregister(transport, stream->comm, stream->mhandle);
    (stream->is_sender ? transport->close_send : transport->close_receive)(stream->comm);
    munmap(stream->memory, (size_t)driver->plan.depth * driver->slot_stride);
  }
  free(driver->streams);
  contents_free(&driver->contents);
  transport_close(transport);
}
