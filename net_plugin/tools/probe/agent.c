/* SPDX-License-Identifier: Apache-2.0 */
/* See agent.h. One JSON object each way per step:
 *
 *   {"task": "tell"}                      {"host": NAME, "devices": [{name, speed_mbps,
 * numa_node}]}
 *   {"task": "serve", "device": N, "duration_ms": N}
 *                                         {"handle": HEX, "ping_port": N}, later {"served": ERROR}
 *   {"task": "send", "device": N, "handle": HEX, "ping_port": N, "flows": N, "chunk_bytes": N,
 *    "duration_ms": N}                    {"sent": ERROR, "flows": N, "gbps": X, ...}
 *
 * duration_ms 0: the path alone is looked at. ERROR is 0 or a negative errno. */
#include "net_plugin/tools/probe/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hex.h"
#include "common/param.h"
#include "net_plugin/observe/observe.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/setup/setup.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/control_channel.h"
#include "net_plugin/tools/probe/load.h"

/* The coordinator may be busy with other agents. */
#define TIMEOUT_NS (3600 * NS_PER_S)

static struct discovery found; /* too large for the stack */

static const struct device *device_of(const json_t *task) {
  json_int_t index = json_integer_value(json_object_get(task, "device"));
  return index >= 0 && index < found.devices.count ? &found.devices.devices[index] : NULL;
}

static int64_t number_of(const json_t *task, const char *name) {
  return json_integer_value(json_object_get(task, name));
}

static json_t *agent_describe_host(void) {
  json_t *devices = json_array();
  for (int i = 0; i < found.devices.count && i < PROBE_DEVICES_MAX; i++) {
    const struct device *device = &found.devices.devices[i];
    json_array_append_new(devices, json_pack("{s:s, s:i, s:i}", "name", device->name, "speed_mbps",
                                             (int)device->speed_mbps, "numa_node",
                                             device->nics[0].numa_node));
  }
  return json_pack("{s:s, s:o}", "host", settings_host_name(), "devices", devices);
}

static int serve(struct control_channel *channel, const json_t *task) {
  const struct device *device = device_of(task);
  struct load_service service;
  char handle[2 * HANDLE_BYTES + 1];
  setup_start();
  int error = device ? load_offer(device, &service) : -ENODEV;
  if (error) {
    return control_channel_send(channel, json_pack("{s:s, s:i}", "handle", "", "ping_port", error));
  }
  hex_write(service.handle, HANDLE_BYTES, handle);
  int status = control_channel_send(
      channel, json_pack("{s:s, s:i}", "handle", handle, "ping_port", service.ping_port));
  error = load_serve(&service, number_of(task, "duration_ms") == 0);
  setup_stop();
  return status == CLI_OK ? control_channel_send(channel, json_pack("{s:i}", "served", error))
                          : status;
}

/* Sets the parameters of this measurement. No engine is running that could read them. */
static void set_parameters(const struct probe_load *load) {
  char text[24];
  if (load->flows) {
    snprintf(text, sizeof text, "%u", load->flows);
    setenv("STRATUS_FLOWS", text, 1);
  }
  if (load->chunk_bytes) {
    snprintf(text, sizeof text, "%u", load->chunk_bytes);
    setenv("STRATUS_CHUNK_BYTES", text, 1);
  }
  setenv("STRATUS_COMPRESS", "off", 1); /* what is sent is zeros */
  param_load(environ);
}

static bool take_handle(const json_t *task, uint8_t handle[HANDLE_BYTES]) {
  const char *text = json_string_value(json_object_get(task, "handle"));
  return text && hex_read(text, handle, HANDLE_BYTES);
}

static int send_load(struct control_channel *channel, const json_t *task) {
  const struct device *device = device_of(task);
  const struct probe_load load = {
    .flows = (unsigned)number_of(task, "flows"),
    .chunk_bytes = (uint32_t)number_of(task, "chunk_bytes"),
    .duration_ns = (uint64_t)number_of(task, "duration_ms") * NS_PER_MS,
  };
  uint8_t handle[HANDLE_BYTES];
  struct probe_result result = { 0 };
  int64_t ping_port = number_of(task, "ping_port");
  bool is_in_bounds =
      load.duration_ns <= AGENT_DURATION_MAX_NS && ping_port > 0 && ping_port <= UINT16_MAX;
  int error = device && is_in_bounds && take_handle(task, handle) ? 0 : -EINVAL;
  if (!error) {
    set_parameters(&load);
    setup_start();
    error = load_send(device, handle, (int)ping_port, &load, &result);
    setup_stop();
  }
  return control_channel_send(
      channel,
      json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:i}", "sent", error, "flows",
                (int)result.flows, "gbps", result.gbps, "rtt_us", result.rtt_us, "flow_min_gbps",
                result.flow_min_gbps, "flow_median_gbps", result.flow_median_gbps, "flow_max_gbps",
                result.flow_max_gbps, "mtu", (int)result.mtu));
}

static int obey(struct control_channel *channel, const json_t *task, bool *is_over) {
  const char *name = json_string_value(json_object_get(task, "task"));
  if (name && strcmp(name, "tell") == 0) {
    return control_channel_send(channel, agent_describe_host());
  }
  if (name && strcmp(name, "serve") == 0) {
    return serve(channel, task);
  }
  if (name && strcmp(name, "send") == 0) {
    return send_load(channel, task);
  }
  *is_over = true;
  return name && strcmp(name, "end") == 0
             ? CLI_OK
             : failure("the coordinator sent an unknown task; is it the same version?");
}

int agent_run(int fd) {
  struct control_channel channel;
  bool is_over = false;
  int status = control_channel_open(&channel, fd, "the coordinator");
  if (status == CLI_OK && discovery_run(&found) != 0) {
    status = failure("%s cannot list its interfaces", settings_host_name());
  }
  settings_use_profile(found.has_profile ? &found.profile : NULL);
  while (status == CLI_OK && !is_over) {
    json_t *task;
    status = control_channel_receive(&channel, "task", TIMEOUT_NS, &task);
    if (status == CLI_OK) {
      status = obey(&channel, task, &is_over);
      json_decref(task);
    }
  }
  if (status != CLI_OK) {
    control_channel_abort(&channel, failure_text());
  }
  control_channel_close(&channel);
  discovery_free(&found);
  return status;
}
