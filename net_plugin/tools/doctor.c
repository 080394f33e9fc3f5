/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net doctor: checks everything between a built plugin and a job that uses it. At its
 * default log level NCCL does not report a plugin that failed to load. */
#include <dlfcn.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/hash.h"
#include "common/machine.h"
#include "common/param.h"
#include "common/topology.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/host.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/secret.h"
#include "net_plugin/tools/net_tool.h"
#include "net_plugin/tools/plugin_file.h"
#include "net_plugin/tools/rdma.h"

static int failures;
static json_t *findings; /* NULL: printed as text */

enum finding { GOOD, HINT, BAD };

static void doctor_print(enum finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void doctor_print(enum finding finding, const char *format, ...) {
  static const char *const marks[] = { "ok  ", "note", "BAD " };
  static const char *const words[] = { "ok", "note", "bad" };
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (findings) {
    json_array_append_new(findings,
                          json_pack("{s:s, s:s}", "finding", words[finding], "text", text));
  } else {
    printf("%s  %s\n", marks[finding], text);
  }
  failures += finding == BAD;
}

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* ---- the plugin ---- */

static void check_symbols(void *library) {
  for (int version = 6; version <= 12; version++) {
    char symbol[32];
    snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
    const char *const *table = dlsym(library, symbol);
    if (!table) {
      doctor_print(BAD, "%s is missing: this is not the built plugin", symbol);
      return;
    }
    if (strcmp(*table, "stratus") != 0) {
      doctor_print(BAD, "this library is another plugin: its name is %s", *table);
      return;
    }
  }
  doctor_print(GOOD, "it exports ncclNetPlugin_v6 to v12");
}

static void check_plugin(void) {
  char tried[PLUGIN_FILE_MAX];
  void *library = plugin_file_open("stratus", tried);
  if (!library) {
    doctor_print(BAD, "%s cannot be loaded: %s", tried, dlerror());
    doctor_print(HINT, "LD_LIBRARY_PATH is %s; it must name the directory of the plugin",
                 setting("LD_LIBRARY_PATH") ? setting("LD_LIBRARY_PATH") : "not set");
    return;
  }
  doctor_print(GOOD, "%s loads: %s", tried, plugin_file_path(library));
  check_symbols(library);
}

/* Whether NCCL would load this plugin. */
static void check_choice(void) {
  const char *wish = setting("NCCL_NET_PLUGIN");
  char tried[PLUGIN_FILE_MAX];
  void *library = plugin_file_open(wish ? wish : "libnccl-net.so", tried);
  const char *const *table = library ? dlsym(library, "ncclNetPlugin_v6") : NULL;
  if (wish && !strcasecmp(wish, "none")) {
    doctor_print(HINT, "NCCL_NET_PLUGIN=none: stratus is off");
  } else if (wish && strchr(wish, ',')) {
    doctor_print(HINT, "NCCL_NET_PLUGIN=%s: a list; the first that loads and has devices is used",
                 wish);
  } else if (table && !strcmp(*table, "stratus")) {
    doctor_print(GOOD, "NCCL will load it (%s%s)",
                 wish ? "NCCL_NET_PLUGIN=" : "as libnccl-net.so, ",
                 wish ? wish : plugin_file_path(library));
  } else if (wish) {
    doctor_print(BAD, "NCCL_NET_PLUGIN=%s does not lead to stratus%s", wish,
                 strcmp(wish, "stratus") ? "; set NCCL_NET_PLUGIN=stratus"
                                         : ", which cannot be loaded");
  } else {
    doctor_print(BAD, "NCCL will not load it: set NCCL_NET_PLUGIN=stratus");
  }
  if (library) {
    dlclose(library);
  }
  const char *net = setting("NCCL_NET");
  if (net && strcasecmp(net, "stratus") != 0) {
    doctor_print(BAD, "NCCL_NET=%s keeps NCCL from using stratus; unset it", net);
  }
}

/* ---- NCCL ---- */

/* The interface version that a release tries first; 0: a release without any that stratus exports.
 */
static int interface_version(int nccl_version) {
  static const struct {
    int from_nccl, interface;
  } table[] = { { 23000, 12 }, { 22800, 11 }, { 22600, 10 }, { 22400, 9 },
                { 22000, 8 },  { 21900, 7 },  { 21304, 6 } };
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    if (nccl_version >= table[i].from_nccl) {
      return table[i].interface;
    }
  }
  return 0;
}

static void check_nccl(void) {
  void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    doctor_print(HINT, "no NCCL in the library path (%s); frameworks may bring their own",
                 dlerror());
    return;
  }
  int (*get_version)(int *) = NULL;
  *(void **)&get_version = dlsym(library, "ncclGetVersion");
  int version = 0;
  if (!get_version || get_version(&version) != 0) {
    doctor_print(BAD, "%s has no ncclGetVersion", plugin_file_path(library));
    return;
  }
  int interface = interface_version(version);
  doctor_print(interface ? GOOD : BAD, "NCCL %d.%d.%d (%s)", version / 10000, version / 100 % 100,
               version % 100, plugin_file_path(library));
  if (version < 21900 || version >= 23100) {
    doctor_print(HINT, "stratus is tested with NCCL 2.19 to 2.30");
  } else {
    doctor_print(GOOD, "it will use net plugin interface v%d", interface);
  }
  if (version >= 22803 && version <= 22907 && !setting("NCCL_NET_PLUGIN_REF_COUNT")) {
    doctor_print(HINT, "this release does not load NCCL_NET_PLUGIN again after its last "
                       "communicator is destroyed; if "
                       "the job creates new ones later, set NCCL_NET_PLUGIN_REF_COUNT=1");
  }
}

/* ---- variables, devices ---- */

static void check_variables(void) {
  static const struct {
    const char *name, *meaning;
  } variables[] = {
    { "NCCL_SOCKET_IFNAME", "selects interfaces" },
    { "NCCL_SOCKET_FAMILY", "chooses IPv4 or IPv6" },
    { "NCCL_COMM_ID", "its subnet selects the interface, unless NCCL_SOCKET_IFNAME does" },
    { "NCCL_NET_MERGE_LEVEL", "controls which NICs NCCL merges into one device" },
    { "NCCL_NET_FORCE_MERGE", "controls which NICs NCCL merges into one device" },
    { "NCCL_SOCKET_NTHREADS", "has no effect on stratus; see STRATUS_FLOWS" },
    { "NCCL_NSOCKS_PERTHREAD", "has no effect on stratus; see STRATUS_FLOWS" },
    { "NCCL_IB_DISABLE", "unless 0, stratus does not use RDMA either" },
    { "NCCL_IB_HCA", "selects HCAs, and with them the NICs" },
    { "NCCL_IB_GID_INDEX",
      "is the GID index for all HCAs; without it stratus selects one per HCA" },
    { "NCCL_ALGO", "takes precedence over the tuner" },
    { "NCCL_PROTO", "takes precedence over the tuner" },
    { "NCCL_DEBUG", "INFO shows a line when stratus is loaded" },
    { "NCCL_DEBUG_SUBSYS", "must include INIT or NET to show the messages of stratus" },
  };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    const char *value = setting(variables[i].name);
    if (value) {
      doctor_print(HINT, "%s=%s %s", variables[i].name, value, variables[i].meaning);
    }
  }
  if (access("/etc/nccl.conf", R_OK) == 0) {
    doctor_print(HINT, "/etc/nccl.conf sets further variables of NCCL");
  }
}

static void tell_host(const char *text) {
  doctor_print(HINT, "%s", text);
}

/* Settings of the host that limit flows. */
static void check_host(const struct discovery *found) {
  struct host_facts facts;
  settings_use_profile(found->has_profile ? &found->profile : NULL);
  host_facts_read(&found->devices, &facts);
  if (host_check(&facts, tell_host) == 0) {
    doctor_print(GOOD, "the network settings of this host are fine for %u flows per connection",
                 facts.lanes);
  }
}

static void tell_machine(void) {
  static struct machine machine; /* too large for the stack */
  machine_identify(&machine);
  doctor_print(GOOD, "machine: cloud %s, instance type %s (from %s), %u GPUs%s%s, %u NICs",
               machine_cloud_name(machine.cloud),
               machine.instance_type[0] ? machine.instance_type : "not known",
               machine_type_origin_name(machine.type_origin), machine.gpu_count,
               machine.gpu_pci_id[0] ? " " : "", machine.gpu_pci_id, machine.nic_count);
  char *text = topology_read(param_string(PARAM_SYSFS_ROOT));
  doctor_print(GOOD, "topology %s%s: %s", machine.topology[0] ? machine.topology : "not known",
               param_string(PARAM_TOPOLOGY)[0] ? " (STRATUS_TOPOLOGY)" : "",
               text ? text : "neither GPU nor NIC on PCI");
  free(text);
}

static void tell_rdma(enum rdma_finding finding, const char *text) {
  static const enum finding same[] = { [RDMA_GOOD] = GOOD, [RDMA_HINT] = HINT, [RDMA_BAD] = BAD };
  doctor_print(same[finding], "%s", text);
}

static void check_rdma(const struct discovery *found) {
  struct rdma_report report;
  rdma_report_make(&found->devices, &report);
  rdma_report_check(&report, tell_rdma);
  rdma_report_free(&report);
}

static void check_devices(void) {
  static struct discovery found;
  if (discovery_run(&found)) {
    doctor_print(BAD, "no devices: see the message above");
    return;
  }
  char unused[DISCOVERY_TEXT_MAX];
  if (found.devices.count == 0) {
    doctor_print(BAD, "no usable network interface: %s", discovery_unused_text(&found, unused));
  }
  for (int i = 0; i < found.devices.count; i++) {
    const struct device *device = &found.devices.devices[i];
    doctor_print(device->speed_origin == DEVICE_FROM_DEFAULT ? HINT : GOOD,
                 "device %s, %u Mb/s (from %s)%s", device->name, device->speed_mbps,
                 device_origin_name(device->speed_origin),
                 device->speed_origin == DEVICE_FROM_DEFAULT
                     ? "; its speed is unknown, so set STRATUS_SPEED_MBPS"
                     : "");
  }
  check_host(&found);
  check_rdma(&found);
  discovery_free(&found);
}

static void check_trust(void) {
  unsigned ciphers = lane_crypto_ciphers();
  bool is_encrypted = param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON;
  const uint8_t *secret = NULL;
  uint8_t digest[AUTH_KEY_BYTES];
  if (protection_check() != 0) {
    doctor_print(BAD, "connections are refused: see the message above");
  } else {
    secret = secret_get(digest);
    doctor_print(GOOD, "job secret: %s", secret ? "set" : "none");
  }
  hash_wipe(digest, sizeof digest);
  doctor_print(GOOD, "checksums: %s", param_bool(PARAM_CHECKSUM) ? "on" : "off (STRATUS_CHECKSUM)");
  char name[LANE_CRYPTO_NAME_MAX];
  doctor_print(GOOD, "encryption: %s; this host would use %s", is_encrypted ? "on" : "off",
               lane_crypto_name(
                   ciphers >> LANE_AES256GCM & 1 ? LANE_AES256GCM : LANE_CHACHA20POLY1305, name));
}

int net_tool_doctor(int argument_count, char **arguments, bool is_json) {
  (void)argument_count;
  (void)arguments;
  findings = is_json ? json_array() : NULL;
  check_plugin();
  check_choice();
  check_nccl();
  tell_machine();
  check_devices();
  check_trust();
  check_variables();
  if (findings) {
    json_t *all = json_pack("{s:b, s:o}", "healthy", failures == 0, "findings", findings);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
  }
  return failures ? CLI_FAILED : CLI_OK;
}
