/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net doctor: checks everything between a built plugin and a job that uses it. At its
 * default log level NCCL does not report a plugin that failed to load. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/host_command.h"
#include "common/machine.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/param.h"
#include "common/plugin_file.h"
#include "common/profile.h"
#include "common/sysfs.h"
#include "common/topology.h"
#include "common/version.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/plugin/nic_facts.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/doctor_all.h"
#include "net_plugin/tools/doctor_check.h"
#include "net_plugin/tools/document.h"
#include "net_plugin/tools/net_tool.h"
#include "net_plugin/tools/rdma.h"

static int told[DOCTOR_BAD + 1];
static json_t *findings;  /* NULL: printed as text */
static json_t *all_facts; /* what doctor --all compares; NULL as well */

void doctor_tell(enum doctor_finding finding, const char *format, ...) {
  static const char *const marks[] = { "ok  ", "note", "BAD " };
  static const char *const words[] = { "ok", "note", "bad" };
  char text[DOCTOR_TEXT_MAX];
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
  told[finding]++;
}

/* The same name again adds to the first text. */
static void note_fact(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note_fact(const char *name, const char *format, ...) {
  char text[512], all[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const char *before = json_string_value(json_object_get(all_facts, name));
  snprintf(all, sizeof(all), "%s%s%s", before ? before : "", before ? ", " : "", text);
  json_object_set_new(all_facts, name, json_string(all));
}

/* ---- the plugin ---- */

static void check_symbols(void *library) {
  for (int version = 6; version <= 12; version++) {
    char symbol[32];
    snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
    const char *const *table = dlsym(library, symbol);
    if (!table) {
      doctor_tell(DOCTOR_BAD, "%s is missing: this is not the built plugin", symbol);
      return;
    }
    if (strcmp(*table, "stratus") != 0) {
      doctor_tell(DOCTOR_BAD, "this library is another plugin: its name is %s", *table);
      return;
    }
  }
  doctor_tell(DOCTOR_GOOD, "it exports ncclNetPlugin_v6 to v12");
}

static void check_plugin(void) {
  char tried[PLUGIN_FILE_MAX];
  void *library = plugin_file_open(PLUGIN_KIND_NET, "stratus", nccl_version_installed(), tried);
  if (!library) {
    const char *path = getenv("LD_LIBRARY_PATH");
    doctor_tell(DOCTOR_BAD, "%s cannot be loaded: %s", tried, dlerror());
    doctor_tell(DOCTOR_HINT, "LD_LIBRARY_PATH is %s; it must name the directory of the plugin",
                path && *path ? path : "not set");
    return;
  }
  doctor_tell(DOCTOR_GOOD, "%s loads: %s", tried, plugin_file_path(library));
  check_symbols(library);
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

/* AMD's NCCL. Which of the two a framework loads only its own process knows. */
static bool check_rccl(void) {
  void *library = dlopen("librccl.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    return false;
  }
  void *plugin = dlopen("librccl-net-stratus.so", RTLD_LAZY | RTLD_LOCAL);
  doctor_tell(
      DOCTOR_HINT,
      "RCCL is here (%s): it has NCCL's interfaces, and stratus with it is untested on ROCm",
      plugin_file_path(library));
  doctor_tell(plugin ? DOCTOR_GOOD : DOCTOR_BAD,
              plugin ? "RCCL will find librccl-net-stratus.so"
                     : "RCCL looks for librccl-net-stratus.so, which is not in the library path");
  return true;
}

static void check_nccl(void) {
  bool has_rccl = check_rccl();
  void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (!library && has_rccl) {
    return;
  }
  if (!library) {
    doctor_tell(DOCTOR_HINT, "no NCCL in the library path (%s); frameworks may bring their own",
                dlerror());
    return;
  }
  int version = nccl_version_installed();
  if (version == 0) {
    doctor_tell(DOCTOR_BAD, "%s has no ncclGetVersion", plugin_file_path(library));
    return;
  }
  int interface = interface_version(version);
  note_fact("nccl", "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  doctor_tell(interface ? DOCTOR_GOOD : DOCTOR_BAD, "NCCL %d.%d.%d (%s)%s", version / 10000,
              version / 100 % 100, version % 100, plugin_file_path(library),
              has_rccl ? "; a job of RCCL does not use it" : "");
  if (version < 21900 || version >= 23300) {
    doctor_tell(DOCTOR_HINT, "stratus is tested with NCCL " STRATUS_NCCL_RELEASES);
  } else {
    doctor_tell(DOCTOR_GOOD, "it will use net plugin interface v%d", interface);
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
    { "NCCL_NET_MERGE_POLICY", "RAIL merges none: NICs of stratus name no rail" },
    { "NCCL_SOCKET_NTHREADS", "has no effect on stratus; see STRATUS_FLOWS" },
    { "NCCL_NSOCKS_PERTHREAD", "has no effect on stratus; see STRATUS_FLOWS" },
    { "NCCL_SOCKET_MAGIC", "has no effect on stratus; see STRATUS_SECRET" },
    { "NCCL_OOB_NET_ENABLE", "unless 0, a part of NCCL's bootstrap goes through stratus, too" },
    { "NCCL_IB_DISABLE", "unless 0, stratus does not use RDMA either" },
    { "NCCL_IB_HCA", "selects HCAs, and with them the NICs" },
    { "NCCL_IB_GID_INDEX",
      "is the GID index for all HCAs; without it stratus selects one per HCA" },
    { "NCCL_ALGO", "takes precedence over the tuner" },
    { "NCCL_PROTO", "takes precedence over the tuner" },
    { "NCCL_GIN_PLUGIN", "names who carries GIN, which never goes through stratus" },
    { "NCCL_RMA_PLUGIN", "names who carries RMA, which never goes through stratus" },
    { "NCCL_ENV_PLUGIN", "names a plugin that may change variables, which doctor does not ask" },
    { "NCCL_DEBUG", "INFO shows a line when stratus is loaded" },
    { "NCCL_DEBUG_LEVELS", "adds levels to those of NCCL_DEBUG, from NCCL 2.32 on" },
    { "NCCL_DEBUG_SUBSYS", "must include INIT or NET to show the messages of stratus" },
  };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    choice_tell_variable(variables[i].name, variables[i].meaning);
  }
  choice_tell_files();
}

/* Settings of the host that limit flows. */
static void check_host(const struct discovery *found) {
  struct host_facts facts;
  settings_use_profile(found->has_profile ? &found->profile : NULL);
  host_facts_read(&found->devices, &facts);
  int before = told[DOCTOR_HINT];
  host_check(&facts);
  if (told[DOCTOR_HINT] == before) {
    doctor_tell(DOCTOR_GOOD,
                "the network settings of this host are fine for %u flows per connection",
                facts.lanes);
  }
}

static void tell_machine(void) {
  static struct machine machine; /* too large for the stack */
  machine_identify(&machine);
  doctor_tell(DOCTOR_GOOD, "machine: cloud %s, instance type %s (from %s), %u GPUs%s%s, %u NICs",
              machine_cloud_name(machine.cloud),
              machine.instance_type[0] ? machine.instance_type : "not known",
              machine_type_origin_name(machine.type_origin), machine.gpu_count,
              machine.gpu_pci_id[0] ? " " : "", machine.gpu_pci_id, machine.nic_count);
  note_fact("topology", "%s", machine.topology[0] ? machine.topology : "not known");
  char *text = topology_read(param_string(PARAM_SYSFS_ROOT));
  doctor_tell(DOCTOR_GOOD, "topology %s%s: %s",
              machine.topology[0] ? machine.topology : "not known",
              param_string(PARAM_TOPOLOGY)[0] ? " (STRATUS_TOPOLOGY)" : "",
              text ? text : "neither GPU nor NIC on PCI");
  free(text);
}

static void check_rdma(const struct discovery *found) {
  struct rdma_report report;
  rdma_report_make(&found->devices, &report);
  rdma_report_check(&report);
  rdma_report_free(&report);
}

/* A port behind several PCI links has a NIC for each (nic_facts.h). */
static void check_other_half(const struct discovery *found, const char *name) {
  const char *root = param_string(PARAM_SYSFS_ROOT);
  struct nic nics[DEVICE_PHYSICAL_MAX];
  unsigned count = device_table_nics(&found->devices, nics), twin = count;
  struct nic_facts other, used;
  nic_facts_read(root, name, 0, &other);
  for (unsigned i = 0; other.port[0] && i < count; i++) {
    if (strcmp(nics[i].name, name) == 0) {
      return;
    }
    nic_facts_read(root, nics[i].name, 0, &used);
    twin = strcmp(used.port, other.port) == 0 ? i : twin;
  }
  if (twin < count) {
    doctor_tell(DOCTOR_BAD,
                "%s is another NIC of the port of %s, and is not used, so a part of the port's "
                "bandwidth is lost: give it an address, and leave it in NCCL_SOCKET_IFNAME",
                name, nics[twin].name);
  }
}

static void check_other_halves(const struct discovery *found) {
  struct sysfs_list list;
  if (sysfs_list(param_string(PARAM_SYSFS_ROOT), &list, "sys/class/net") == 0) {
    for (size_t i = 0; i < list.count; i++) {
      check_other_half(found, list.entries[i]->d_name);
    }
    sysfs_list_free(&list);
  }
}

/* Files that decide what NCCL knows of the machine. */
static void check_topology_files(int devices) {
  const char *topology = getenv("NCCL_TOPO_FILE"), *graph = getenv("NCCL_GRAPH_FILE");
  if (topology && *topology) {
    topology_file_check_system(topology, param_string(PARAM_SYSFS_ROOT));
  }
  if (graph && *graph) {
    topology_file_check_graph(graph, devices);
  }
}

/* What doctor --all compares. The machine is where its addresses are its own: a host that is named
 * twice has them twice. */
static void note_nics(const struct discovery *found) {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  unsigned count = device_table_nics(&found->devices, nics);
  char text[SYSFS_TEXT_MAX];
  char address[INTERFACE_ADDRESS_TEXT_MAX], own[INTERFACE_ADDRESS_TEXT_MAX];
  struct stat space;
  if (sysfs_read_text("/", text, sizeof(text), "proc/sys/kernel/random/boot_id") > 0 &&
      stat("/proc/self/ns/net", &space) == 0) {
    note_fact("machine", "%.64s %llu", text, (unsigned long long)space.st_ino);
  }
  for (unsigned i = 0; i < count; i++) {
    note_fact("mtu", "%u", usefulness_mtu(param_string(PARAM_SYSFS_ROOT), nics[i].name));
    bool is_advertised = nics[i].advertised.ss_family != AF_UNSPEC;
    note_fact(
        "addresses", "%s %s", nics[i].name,
        interface_address_text(is_advertised ? &nics[i].advertised : &nics[i].address, address));
    if (is_advertised) {
      doctor_tell(DOCTOR_GOOD, "other hosts dial %s at %s (STRATUS_ADVERTISE_ADDRESS), not at %s",
                  nics[i].name, address, interface_address_text(&nics[i].address, own));
    }
  }
}

static void check_devices(void) {
  static struct discovery found;
  if (discovery_run(&found)) {
    doctor_tell(DOCTOR_BAD, "no devices: see the message above");
    check_topology_files(0);
    return;
  }
  char unused[DISCOVERY_TEXT_MAX], wish[INTERFACE_WISH_TEXT_MAX];
  if (found.devices.count == 0) {
    doctor_tell(DOCTOR_BAD, "no usable network interface (%s): %s",
                interface_wish_text(&found.wishes, wish), discovery_unused_text(&found, unused));
  }
  for (int i = 0; i < found.devices.count; i++) {
    const struct device *device = &found.devices.devices[i];
    note_fact("devices", "%u Mb/s", device->speed_mbps);
    doctor_tell(device->speed_origin == DEVICE_FROM_DEFAULT ? DOCTOR_HINT : DOCTOR_GOOD,
                "device %s, %u Mb/s (from %s)%s", device->name, device->speed_mbps,
                device_origin_name(device->speed_origin),
                device->speed_origin == DEVICE_FROM_DEFAULT
                    ? "; its speed is unknown, so set STRATUS_SPEED_MBPS"
                    : "");
  }
  note_fact("profile", "%s", found.devices.profile_id[0] ? found.devices.profile_id : "none");
  if (found.has_profile) {
    note_fact("profile", "hash %016" PRIx64, profile_hash(&found.profile));
  }
  check_other_halves(&found);
  usefulness_check(&found, param_string(PARAM_SYSFS_ROOT));
  note_nics(&found);
  check_host(&found);
  check_rdma(&found);
  check_topology_files(found.devices.count);
  discovery_free(&found);
}

static void check_trust(void) {
  unsigned ciphers = lane_crypto_ciphers();
  bool is_encrypted = param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON;
  const uint8_t *secret = NULL;
  uint8_t digest[AUTH_KEY_BYTES];
  if (protection_check() != 0) {
    doctor_tell(DOCTOR_BAD, "connections are refused: see the message above");
  } else {
    secret = protection_secret(digest);
    doctor_tell(DOCTOR_GOOD, "job secret: %s", secret ? "set" : "none");
    note_fact("secret", "%s", secret ? "set" : "none");
  }
  hash_wipe(digest, sizeof digest);
  note_fact("encryption", "%s", is_encrypted ? "on" : "off");
  doctor_tell(DOCTOR_GOOD, "checksums: %s",
              param_bool(PARAM_CHECKSUM) ? "on" : "off (STRATUS_CHECKSUM)");
  char name[LANE_CRYPTO_NAME_MAX];
  if (!ciphers) {
    doctor_tell(is_encrypted ? DOCTOR_BAD : DOCTOR_GOOD,
                "encryption: %s; this host cannot: OpenSSL's libcrypto: %s",
                is_encrypted ? "on" : "off", lane_crypto_library());
    return;
  }
  doctor_tell(DOCTOR_GOOD, "encryption: %s; this host would use %s", is_encrypted ? "on" : "off",
              lane_crypto_name(
                  ciphers >> LANE_AES256GCM & 1 ? LANE_AES256GCM : LANE_CHACHA20POLY1305, name));
}

/* NCCL's own transport for RDMA takes what it finds in sysfs, too. */
static bool has_rdma(void) {
  const char *off = getenv("NCCL_IB_DISABLE");
  struct sysfs_list list;
  if ((off && strcmp(off, "0") != 0) ||
      sysfs_list(param_string(PARAM_SYSFS_ROOT), &list, "sys/class/infiniband") != 0) {
    return false;
  }
  bool is_there = list.count > 0;
  sysfs_list_free(&list);
  return is_there;
}

static void check_bypass(void) {
  struct bypass_facts facts = { nccl_version_installed(), has_rdma(),
                                param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON };
  bypass_check(&facts);
}

static bool is_all, is_here;
struct doctor_all_options doctor_all_options = { .tool = "stratus-net",
                                                 .ssh = HOST_COMMAND_SSH,
                                                 .timeout_ns = 30 * NS_PER_S };

const struct cli_option net_tool_doctor_options[] = {
  { "all", 0, CLI_FLAG, &is_all, NULL, "check these hosts by ssh, and whether they are alike", 0,
    0 },
  { "here", 0, CLI_FLAG, &is_here, NULL, "what --all runs on each: JSON, exit status 0", 0, 0 },
  { "tool", 0, CLI_STRING, &doctor_all_options.tool, "PATH", "path of stratus-net on the hosts", 0,
    0 },
  { "ssh", 0, CLI_STRING, &doctor_all_options.ssh, "COMMAND",
    "how to reach a host, as in COMMAND HOST WORDS...", 0, 0 },
  { "timeout", 0, CLI_DURATION, &doctor_all_options.timeout_ns, "TIME",
    "how long to wait for answers", 0, 0 },
  { 0 },
};

int net_tool_doctor(int argument_count, char **arguments, bool is_json) {
  if (!is_all && argument_count > 0) {
    return cli_fail_usage("doctor does not take \"%s\" without --all", arguments[0]);
  }
  if (is_all) {
    if (argument_count == 0) {
      return cli_fail_usage("doctor --all: give the HOSTs");
    }
    nccl_conf_withdraw(); /* each host reads its own files */
    return doctor_all(arguments, argument_count, is_json);
  }
  int status = CLI_OK;
  if (is_json || is_here) {
    findings = json_array();
    all_facts = json_object();
    note_fact("stratus", "%s", STRATUS_VERSION);
  }
  check_plugin();
  choice_check_net(nccl_version_installed());
  choice_check_tuner(nccl_version_installed());
  check_nccl();
  tell_machine();
  check_devices();
  check_trust();
  check_bypass();
  check_variables();
  if (findings) {
    status = document_print(json_pack("{s:b, s:o, s:o}", "healthy", !told[DOCTOR_BAD], "findings",
                                      findings, "facts", all_facts),
                            is_here ? JSON_COMPACT : JSON_INDENT(2));
  }
  return told[DOCTOR_BAD] && !is_here ? CLI_FAILED : status;
}
