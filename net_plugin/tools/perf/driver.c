/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes connections, as NCCL's service thread does. */
#include "net_plugin/tools/perf/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hex.h"
#include "common/plugin_file.h"
#include "net_plugin/tools/limits.h"

int driver_fail_call(const struct driver *driver, const char *call, enum nccl_result result) {
  return cli_fail("%s of plugin %s failed: result %d", call, driver->table->name, (int)result);
}

/* ---- the plugin ---- */

/* In place of NCCL's logger: to stderr, filtered by NCCL_DEBUG. */
__attribute__((format(printf, 5, 6))) static void print_log(enum nccl_log_level level,
                                                            unsigned long flags, const char *file,
                                                            int line, const char *format, ...) {
  (void)flags;
  const char *wanted = getenv("NCCL_DEBUG");
  bool is_wanted = level == NCCL_LOG_WARN ||
                   (wanted && ((level == NCCL_LOG_INFO && !strcasecmp(wanted, "INFO")) ||
                               !strcasecmp(wanted, "TRACE")));
  if (is_wanted) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: %s\n", file ? file : "plugin", line, text);
  }
}

static void *open_own(char tried[PLUGIN_FILE_MAX]) {
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  if (!plugin_file_find_ours(directory, why_not)) {
    return plugin_file_open(PLUGIN_KIND_NET, "stratus", 0, tried);
  }
  snprintf(tried, PLUGIN_FILE_MAX, "%s/%s", directory, PLUGIN_NET);
  return dlopen(tried, RTLD_NOW | RTLD_LOCAL);
}

static int load(struct driver *driver) {
  char tried[PLUGIN_FILE_MAX];
  const char *name = driver->plan.plugin;
  void *library = name ? plugin_file_open(PLUGIN_KIND_NET, name, 0, tried) : open_own(tried);
  int version = 0;
  if (!library) {
    return cli_fail("%s cannot be loaded: %s", tried, dlerror());
  }
  driver->path = plugin_file_path(library);
  driver->table = plugin_file_table(PLUGIN_KIND_NET, library, &version);
  return version >= 11
             ? CLI_OK
             : cli_fail("%s exports no ncclNetPlugin_v11 or later, so it is no net plugin, "
                        "or one for older releases of NCCL",
                        driver->path);
}

int driver_open(struct driver *driver) {
  int status = load(driver);
  if (status != CLI_OK) {
    return status;
  }
  const struct net_v11 *table = driver->table;
  driver->config.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
  enum nccl_result result = table->init(&driver->context, 1, &driver->config, print_log, NULL);
  result = result ? result : table->devices(&driver->device_count);
  if (result || driver->device_count < 1) {
    return cli_fail("plugin %s %s here: result %d; NCCL_DEBUG=INFO may show why", table->name,
                    result ? "does not start" : "has no devices", (int)result);
  }
  const struct plan *plan = &driver->plan;
  for (int i = 0; i < plan->device_count; i++) {
    if (plan->devices[i] >= driver->device_count) {
      return cli_fail("there is no device %d: plugin %s has 0 to %d here", plan->devices[i],
                      table->name, driver->device_count - 1);
    }
  }
  return CLI_OK;
}

/* ---- streams ---- */

/* First those from client to server, then those in the opposite direction, if any. */
static int make_streams(struct driver *driver) {
  const struct plan *plan = &driver->plan;
  driver->stream_count = plan->connections * (plan->test == PLAN_BANDWIDTH ? 1 : 2);
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

/* Only the side that sends needs a file. */
static int map_data(struct driver *driver) {
  const struct plan *plan = &driver->plan;
  bool sends = false;
  struct stat status;
  for (int i = 0; i < driver->stream_count; i++) {
    sends |= driver->streams[i].is_sender;
  }
  if (!plan->has_data || !sends) {
    return CLI_OK;
  }
  if (!plan->data_path) {
    return cli_fail("in this test the server sends, too: start it with --listen --data FILE");
  }
  int fd = open(plan->data_path, O_RDONLY | O_CLOEXEC);
  bool is_open = fd >= 0 && fstat(fd, &status) == 0;
  bool has_bytes = is_open && S_ISREG(status.st_mode) && status.st_size > 0;
  void *data =
      has_bytes ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  int error = errno;
  close(fd);
  if (is_open && !has_bytes) {
    return cli_fail("--data %s: no file with contents", plan->data_path);
  }
  if (data == MAP_FAILED) {
    return cli_fail("--data %s: %s", plan->data_path, strerror(error));
  }
  driver->data = data;
  driver->data_bytes = (size_t)status.st_size;
  return CLI_OK;
}

static int device_of(const struct driver *driver, const struct stream *stream) {
  int number = (int)stream->number % driver->plan.connections;
  return driver->plan.devices[number % driver->plan.device_count];
}

static int listen_all(struct driver *driver) {
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    enum nccl_result result =
        stream->is_sender ? NCCL_SUCCESS
                          : driver->table->listen(driver->context, device_of(driver, stream),
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
    char text[2 * DRIVER_HANDLE_BYTES + 1] = "";
    if (!stream->is_sender) {
      hex_write(stream->handle, DRIVER_HANDLE_BYTES, text);
    }
    json_array_append_new(list, json_string(text));
  }
  return list;
}

static bool read_handle(const json_t *json, uint8_t handle[DRIVER_HANDLE_BYTES]) {
  const char *text = json_string_value(json);
  return text && hex_read(text, handle, DRIVER_HANDLE_BYTES);
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
  const struct net_v11 *table = driver->table;
  struct net_device_handle *unused = NULL;
  enum nccl_result result = stream->is_sender
                                ? table->connect(driver->context, device_of(driver, stream),
                                                 stream->handle, &stream->comm, &unused)
                                : table->accept(stream->listen_comm, &stream->comm, &unused);
  if (result) {
    return driver_fail_call(driver, stream->is_sender ? "connect" : "accept", result);
  }
  if (stream->comm && stream->listen_comm) {
    table->closeListen(stream->listen_comm);
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
                      driver->stream_count, driver->table->name);
    }
    sched_yield();
  }
  driver->connect_ns = clock_now_ns() - began_ns;
  return CLI_OK;
}

/* Of the file each stream has another part. Else not one repeated byte: a plugin may take that for
 * a message of NCCL's LL or LL128 protocol, which GPU kernels read while it arrives. */
static void fill_memory(const struct driver *driver, const struct stream *stream, uint8_t *memory,
                        size_t bytes) {
  bool has_data = driver->data && stream->is_sender;
  size_t from = stream->number * bytes;
  for (size_t at = 0; at < bytes; at++) {
    memory[at] =
        has_data ? driver->data[(from + at) % driver->data_bytes] : (uint8_t)(at * 31 + at / 251);
  }
}

/* Touches the pages now, not during the measurement. */
static int give_memory(struct driver *driver, struct stream *stream) {
  size_t bytes = PLAN_DEPTH * (size_t)driver->slot_stride;
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return cli_fail("out of memory: %d connections take %zu bytes each", driver->stream_count,
                    bytes);
  }
  fill_memory(driver, stream, memory, bytes);
  stream->memory = memory;
  enum nccl_result result =
      driver->table->regMr(stream->comm, memory, bytes, NCCL_PTR_HOST, &stream->mhandle);
  return result ? driver_fail_call(driver, "regMr", result) : CLI_OK;
}

int driver_connect(struct driver *driver) {
  driver->slot_stride = (driver->plan.largest + 4095) & ~UINT64_C(4095);
  int status = make_streams(driver);
  status = status ? status : map_data(driver);
  status = status ? status : listen_all(driver);
  status = status ? status : exchange_handles(driver);
  status = status ? status : connect_all(driver);
  for (int i = 0; i < driver->stream_count && status == CLI_OK; i++) {
    status = give_memory(driver, &driver->streams[i]);
  }
  return status;
}

/* Library and file stay where they are: the process ends soon. */
void driver_close(struct driver *driver) {
  const struct net_v11 *table = driver->table;
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    table->deregMr(stream->comm, stream->mhandle);
    (stream->is_sender ? table->closeSend : table->closeRecv)(stream->comm);
    munmap(stream->memory, PLAN_DEPTH * (size_t)driver->slot_stride);
  }
  free(driver->streams);
  table->finalize(driver->context);
}
