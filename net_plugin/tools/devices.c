/* SPDX-License-Identifier: Apache-2.0 */
/* stratus devices: prints the result of the plugin's discovery. */
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/tools/commands.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/plugin/placement.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/document.h"

/* Bound to the device, or to the address only: then routes choose the NIC for outgoing packets. */
static const char *binding(const struct nic *nic) {
  return tcp_socket_can_bind_device(nic) ? "device" : "address";
}

static json_t *numa_node_to_json(const struct nic *nic) {
  return nic->numa_node >= 0 ? json_integer(nic->numa_node) : json_null();
}

static json_t *nic_to_json(const struct nic *nic) {
  char address[INTERFACE_ADDRESS_TEXT_MAX], cpus[PLACEMENT_TEXT_MAX];
  return json_pack("{s:s, s:s, s:i, s:s, s:o, s:s?}", "name", nic->name, "address",
                   interface_address_text(&nic->address, address), "speed_mbps",
                   (int)nic->speed_mbps, "bound_by", binding(nic), "numa_node",
                   numa_node_to_json(nic), "thread_cpus",
                   CPU_COUNT(&nic->thread_cpus) ? placement_format(&nic->thread_cpus, cpus) : NULL);
}

static json_t *device_to_json(int index, const struct device *device) {
  const struct nic *nic = &device->nics[0];
  char address[INTERFACE_ADDRESS_TEXT_MAX];
  struct settings settings;
  settings_get(device->nic_count, &settings);
  json_t *nics = json_array();
  for (unsigned i = 0; i < device->nic_count; i++) {
    json_array_append_new(nics, nic_to_json(&device->nics[i]));
  }
  return json_pack(
      "{s:i, s:s, s:s, s:i, s:s, s:i, s:s?, s:o, s:o}", "index", index, "name", device->name,
      "address", interface_address_text(&nic->address, address), "speed_mbps",
      (int)device->speed_mbps, "speed_from", device_origin_name(device->speed_origin), "flows",
      (int)settings.policy.first_lanes, "pci_path", device->pci_path[0] ? device->pci_path : NULL,
      "numa_node", numa_node_to_json(nic), "nics", nics);
}

/* Each NIC's RDMA device, or why it has none. */
static json_t *rdma_to_json(const struct discovery *found) {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  unsigned count = device_table_nics(&found->devices, nics);
  json_t *list = json_array();
  for (unsigned i = 0; i < count; i++) {
    char text[ENDPOINT_TEXT_MAX];
    bool is_found = endpoint_find(&nics[i], text);
    json_array_append_new(list,
                          json_pack("{s:s, s:s?, s:s?}", "interface", nics[i].name, "device",
                                    is_found ? text : NULL, "reason", is_found ? NULL : text));
  }
  return list;
}

static void print_rdma(const struct discovery *found) {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  unsigned count = device_table_nics(&found->devices, nics);
  for (unsigned i = 0; i < count; i++) {
    char text[ENDPOINT_TEXT_MAX];
    bool is_found = endpoint_find(&nics[i], text);
    printf("%sRDMA of %s: %s%s\n", i == 0 ? "\n" : "", nics[i].name, is_found ? "" : "none, ",
           text);
  }
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
      json_array_append_new(unused, json_pack("{s:s, s:s, s:s}", "name", it->nic.name, "address",
                                              interface_address_text(&it->nic.address, address),
                                              "reason", interface_verdict_text(it->verdict)));
    }
  }
  json_t *all =
      json_pack("{s:o, s:o, s:o, s:s?}", "devices", devices, "unused", unused, "rdma",
                rdma_to_json(found), "profile", found->has_profile ? found->profile.meta.id : NULL);
  return document_print(all, JSON_INDENT(2));
}

static void print_nic(const struct nic *nic) {
  char address[INTERFACE_ADDRESS_TEXT_MAX], cpus[PLACEMENT_TEXT_MAX], numa[16] = "-";
  if (nic->numa_node >= 0) {
    snprintf(numa, sizeof(numa), "%d", nic->numa_node);
  }
  printf("%-28s  %-8s  %4s  %s\n", interface_address_text(&nic->address, address), binding(nic),
         numa,
         CPU_COUNT(&nic->thread_cpus) ? placement_format(&nic->thread_cpus, cpus) : "as created");
}

static void print_device(int index, const struct device *device) {
  struct settings settings;
  settings_get(device->nic_count, &settings);
  printf("%3d  %-15s  %9u  %-9s  %5u  %-12s  ", index, device->name, device->speed_mbps,
         device_origin_name(device->speed_origin), settings.policy.first_lanes,
         device->pci_path[0] ? strrchr(device->pci_path, '/') + 1 : "-");
  print_nic(&device->nics[0]);
  for (unsigned i = 1; i < device->nic_count; i++) {
    printf("%64s", "");
    print_nic(&device->nics[i]);
  }
}

static void print_table(const struct discovery *found) {
  printf("%3s  %-15s  %9s  %-9s  %5s  %-12s  %-28s  %-8s  %4s  %s\n", "dev", "name", "Mb/s", "from",
         "flows", "PCI", "address", "bound by", "NUMA", "thread's CPUs");
  for (int i = 0; i < found->devices.count; i++) {
    print_device(i, &found->devices.devices[i]);
  }
  printf("\nprofile %s\n", found->has_profile ? found->profile_path : "none");
  bool has_title = false;
  char title[INTERFACE_WISH_TEXT_MAX];
  for (int i = 0; i < found->interface_count; i++) {
    const struct interface *it = &found->interfaces[i];
    if (it->verdict != INTERFACE_CHOSEN) {
      char address[INTERFACE_ADDRESS_TEXT_MAX];
      if (!has_title) {
        const struct interface_wishes *wishes = &found->wishes;
        printf("\nnot used%s%s:\n", wishes->ifname ? ", with " : "",
               wishes->ifname ? interface_wish_text(wishes, title) : "");
      }
      printf("     %-15s  %-28s  %s\n", it->nic.name,
             interface_address_text(&it->nic.address, address),
             interface_verdict_text(it->verdict));
      has_title = true;
    }
  }
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count;
  (void)arguments;
  static struct discovery found; /* too large for the stack */
  if (discovery_run(&found)) {
    return CLI_FAILED;
  }
  settings_use_profile(found.has_profile ? &found.profile : NULL);
  int status = CLI_OK;
  if (is_json) {
    status = print_json(&found);
  } else {
    print_table(&found);
    print_rdma(&found);
  }
  if (status == CLI_OK && found.devices.count == 0) {
    status = cli_fail("no usable interface: NCCL would not use stratus");
  }
  discovery_free(&found);
  return status;
}

const struct cli_command command_devices = {
  .name = "devices",
  .summary = "list the NICs presented to NCCL, and why other interfaces are not used",
  .arguments = "",
  .example = "NCCL_SOCKET_IFNAME=^docker,lo stratus devices",
  .has_json = true,
  .run = run,
};
