/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.h. One JSON object each way per step:
 *
 *   {"task": "tell"}                      {"host": NAME, "devices": [{name, speed_mbps,
 * numa_node}]}
 *   {"task": "serve", "device": N, "duration_ms": N}
 *                                         {"handle": HEX, "error": ERROR}, later {"served": ERROR}
 *   {"task": "send", "device": N, "handle": HEX, "duration_ms": N}
 *                                         {"sent": ERROR, "why": TEXT, "gbps": X, ...}
 *
 * ERROR is 0 or a negative errno. */
#include "net_plugin/tools/probe/probe.h"

#include <errno.h>
#include <string.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hex.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/control_channel.h"
#include "net_plugin/tools/probe/load.h"

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

/* The device is one of this host's. False: the measurement would take too long, or no time. */
static bool take_load(const json_t *task, struct probe_load *load) {
  *load = (struct probe_load){
    .duration_ns = (uint64_t)number_of(task, "duration_ms") * NS_PER_MS,
    .device = (unsigned)number_of(task, "device"),
  };
  return load->duration_ns > 0 && load->duration_ns <= AGENT_DURATION_MAX_NS;
}

static int serve(struct control_channel *channel, const json_t *task) {
  const struct device *device = device_of(task);
  struct load_service service;
  struct probe_load load;
  char handle[2 * HANDLE_BYTES + 1] = "";
  int error = !device ? -ENODEV : take_load(task, &load) ? load_offer(device, &service) : -EINVAL;
  if (!error) {
    hex_write(service.handle, HANDLE_BYTES, handle);
  }
  int status =
      control_channel_send(channel, json_pack("{s:s, s:i}", "handle", handle, "error", error));
  if (error) {
    return status;
  }
  error = load_serve(&service, &load);
  return status ? status : control_channel_send(channel, json_pack("{s:i}", "served", error));
}

static bool take_handle(const json_t *task, uint8_t handle[HANDLE_BYTES]) {
  const char *text = json_string_value(json_object_get(task, "handle"));
  return text && hex_read(text, handle, HANDLE_BYTES);
}

static int send_load(struct control_channel *channel, const json_t *task) {
  const struct device *device = device_of(task);
  struct probe_load load;
  uint8_t handle[HANDLE_BYTES];
  struct probe_result result = { 0 };
  int error = device && take_load(task, &load) && take_handle(task, handle)
                  ? load_send(device, handle, &load, &result)
                  : -EINVAL;
  return control_channel_send(channel, json_pack("{s:i, s:s, s:f, s:f, s:i}", "sent", error, "why",
                                                 result.error, "gbps", result.gbps, "rtt_us",
                                                 result.rtt_us, "mtu", (int)result.mtu));
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
             : cli_fail("the coordinator sent an unknown task; is it the same version?");
}

int agent_run(int fd) {
  struct control_channel channel;
  bool is_over = false;
  int status = control_channel_open(&channel, fd, "the coordinator");
  if (status == CLI_OK && discovery_run(&found) != 0) {
    status = cli_fail("%s cannot list its interfaces", settings_host_name());
  }
  while (status == CLI_OK && !is_over) {
    json_t *task;
    status = control_channel_receive(&channel, "task", AGENT_TIMEOUT_NS, &task);
    if (status == CLI_OK) {
      status = obey(&channel, task, &is_over);
      json_decref(task);
    }
  }
  if (status != CLI_OK) {
    control_channel_abort(&channel);
  }
  control_channel_close(&channel);
  discovery_free(&found);
  return status;
}
