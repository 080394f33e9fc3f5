/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net devices: the plugin's own discovery, shown. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/tools/net_tool.h"

static json_t *device_to_json(int index, const struct device *device) {
  const struct nic *nic = &device->nics[0];
  char address[INTERFACE_ADDRESS_TEXT_MAX];
  json_t *object =
      json_pack("{s:i, s:s, s:s, s:i, s:s}", "index", index, "name", device->name, "address",
                interface_address_text(&nic->address, address), "speed_mbps",
                (int)device->speed_mbps, "speed_from", device_origin_name(device->speed_origin));
  json_object_set_new(object, "pci_path",
                      device->pci_path[0] ? json_string(device->pci_path) : json_null());
  json_object_set_new(object, "numa_node",
                      nic->numa_node >= 0 ? json_integer(nic->numa_node) : json_null());
  return object;
}

static int print_json(const struct discovery *found) {
  json_t *devices = json_array();
  for (int i = 0; i < found->devices.count; i++) {
    json_array_append_new(devices, device_to_json(i, &found->devices.devices[i]));
  }
  json_t *unused = json_array();
  for (int i = 0; i < found->interface_count; i++) {
    const struct interface *it = &found->interfaces[i];
    if (it->verdict != INTERFACE_CHOSEN) {
      char address[INTERFACE_ADDRESS_TEXT_MAX];
      json_array_append_new(unused, json_pack("{s:s, s:s, s:s}", "name", it->name, "address",
                                              interface_address_text(&it->address, address),
                                              "reason", interface_verdict_text(it->verdict)));
    }
  }
  json_t *all = json_pack("{s:o, s:o, s:f, s:s}", "devices", devices, "unused", unused,
                          "latency_us", (double)found->devices.latency_us, "latency_from",
                          device_origin_name(found->devices.latency_origin));
  json_object_set_new(all, "profile",
                      found->has_profile ? json_string(found->profile.meta.id) : json_null());
  bool is_written = all && json_dumpf(all, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
  json_decref(all);
  return is_written ? CLI_OK : cli_fail("cannot write the result");
}

static void print_device(int index, const struct device *device) {
  const struct nic *nic = &device->nics[0];
  char address[INTERFACE_ADDRESS_TEXT_MAX], numa[16] = "-";
  if (nic->numa_node >= 0) {
    snprintf(numa, sizeof(numa), "%d", nic->numa_node);
  }
  printf("%3d  %-15s  %-28s  %9u  %-9s  %4s  %s\n", index, device->name,
         interface_address_text(&nic->address, address), device->speed_mbps,
         device_origin_name(device->speed_origin), numa,
         device->pci_path[0] ? strrchr(device->pci_path, '/') + 1 : "-");
}

static void print_table(const struct discovery *found) {
  printf("%3s  %-15s  %-28s  %9s  %-9s  %4s  %s\n", "dev", "name", "address", "Mb/s", "from",
         "NUMA", "PCI");
  for (int i = 0; i < found->devices.count; i++) {
    print_device(i, &found->devices.devices[i]);
  }
  printf("\nlatency %g us (from %s); profile %s\n", (double)found->devices.latency_us,
         device_origin_name(found->devices.latency_origin),
         found->has_profile ? found->profile_path : "none");
  bool has_title = false;
  for (int i = 0; i < found->interface_count; i++) {
    const struct interface *it = &found->interfaces[i];
    if (it->verdict != INTERFACE_CHOSEN) {
      char address[INTERFACE_ADDRESS_TEXT_MAX];
      printf("%s     %-15s  %-28s  %s\n", has_title ? "" : "\nnot used:\n", it->name,
             interface_address_text(&it->address, address), interface_verdict_text(it->verdict));
      has_title = true;
    }
  }
}

int net_tool_devices(int argument_count, char **arguments, bool is_json) {
  (void)argument_count;
  (void)arguments;
  static struct discovery found; /* too large for the stack */
  if (discovery_run(&found)) {
    return CLI_FAILED;
  }
  int status = CLI_OK;
  if (is_json) {
    status = print_json(&found);
  } else {
    print_table(&found);
  }
  if (status == CLI_OK && found.devices.count == 0) {
    status = cli_fail("there is no usable interface: NCCL would go on without stratus");
  }
  discovery_free(&found);
  return status;
}
