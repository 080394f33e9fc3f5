/* SPDX-License-Identifier: Apache-2.0 */
/* stratus doctor: checks everything between a built plugin and a job that uses it. At its
 * default log level NCCL does not report a plugin that failed to load. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/machine.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/param.h"
#include "common/plugin_file.h"
#include "common/profile.h"
#include "common/quantity.h"
#include "common/sysfs.h"
#include "common/tools/commands.h"
#include "common/tools/job_settings.h"
#include "common/version.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/doctor_check.h"
#include "net_plugin/tools/doctor_tell.h"

/* ---- the plugin ---- */

static void check_table(void *library) {
  int version;
  const char *const *table = plugin_file_table(PLUGIN_KIND_NET, library, &version);
  if (!table || strcmp(*table, STRATUS_TRANSPORT) != 0) {
    doctor_tell(DOCTOR_BAD, "this library is %s%s",
                table ? "another plugin: its name is " : "no plugin", table ? *table : "");
  } else {
    doctor_tell(DOCTOR_GOOD, "it exports ncclNetPlugin_v%d and older ones", version);
  }
}

/* Where NCCL looks for what `value` names; NULL, or a list: for stratus. */
static bool check_plugin(enum plugin_kind kind, const char *value) {
  char tried[PLUGIN_FILE_MAX];
  const char *name = kind == PLUGIN_KIND_NET ? STRATUS_TRANSPORT : PLUGIN_TUNER;
  void *library = plugin_file_open(kind, value && !strchr(value, ',') ? value : name,
                                   nccl_version_installed(), tried);
  if (!library) {
    const char *path = getenv("LD_LIBRARY_PATH");
    doctor_tell(DOCTOR_BAD, "%s cannot be loaded: %s", tried, dlerror());
    doctor_tell(DOCTOR_HINT, "LD_LIBRARY_PATH is %s; it must name the directory of the plugin",
                path && *path ? path : "not set");
    return false;
  }
  doctor_tell(DOCTOR_GOOD, "%s loads: %s", tried, plugin_file_path(library));
  if (kind == PLUGIN_KIND_NET) {
    check_table(library);
  }
  return true;
}

/* Where nothing is set. */
static bool is_default(enum plugin_kind kind) {
  void *library = dlopen(kind == PLUGIN_KIND_NET ? "libnccl-net.so" : "libnccl-tuner.so", RTLD_NOW);
  int version;
  const char *const *table = library ? plugin_file_table(kind, library, &version) : NULL;
  return table && *table && strcmp(*table, STRATUS_TRANSPORT) == 0;
}

/* What the user has set, as stratus run judges it. */
static void check_choice(void) {
  static struct job_settings settings; /* the process's, until it ends */
  static const struct job_request request = { .directory = "", .is_known = true };
  static const char *const whats[] = { "it", "the tuner of stratus" };
  job_settings_make(&request, &settings);
  char text[NCCL_CONF_TEXT_MAX];
  for (enum plugin_kind kind = PLUGIN_KIND_NET; kind <= PLUGIN_KIND_TUNER; kind++) {
    const struct job_setting *setting = &settings.settings[JOB_NET_PLUGIN + (int)kind];
    bool is_out = kind == PLUGIN_KIND_NET ? settings.is_obstructed : setting->problem;
    const char *value = is_out ? NULL : setting->theirs.value;
    bool is_there = (kind == PLUGIN_KIND_NET || value) && check_plugin(kind, value);
    if (value && is_there) {
      doctor_tell(DOCTOR_GOOD, "NCCL will load %s (%s)", whats[kind],
                  nccl_conf_text(setting->name, &setting->theirs, text));
    } else if (!setting->theirs.value && !is_default(kind)) {
      doctor_tell(kind == PLUGIN_KIND_NET ? DOCTOR_BAD : DOCTOR_HINT,
                  "NCCL will not load %s: set %s=%s", whats[kind], setting->name,
                  kind == PLUGIN_KIND_NET ? STRATUS_TRANSPORT : PLUGIN_TUNER);
    }
  }
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings.settings[i];
    if (setting->problem) {
      doctor_tell(setting->problem == JOB_OBSTACLE ? DOCTOR_BAD : DOCTOR_HINT, "%s%s",
                  setting->problem == JOB_NO_TUNER ? "the tuner of stratus is not used: " : "",
                  setting->text);
    }
  }
}

/* ---- NCCL ---- */

static void check_nccl(void) {
  void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
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
  bool is_tested = version >= 21900 && version < 23300;
  doctor_tell(version < 21304 ? DOCTOR_BAD
              : is_tested     ? DOCTOR_GOOD
                              : DOCTOR_HINT,
              "NCCL %d.%d.%d (%s)%s", version / 10000, version / 100 % 100, version % 100,
              plugin_file_path(library),
              is_tested ? "" : "; stratus is tested with " STRATUS_NCCL_RELEASES);
}

/* ---- devices ---- */

/* Settings of the host that limit flows. */
static void check_host(const struct doctor_host *host) {
  int before = doctor_tell_count(DOCTOR_HINT);
  host_check(host);
  if (doctor_tell_count(DOCTOR_HINT) == before) {
    doctor_tell(DOCTOR_GOOD,
                "the network settings of this host are fine for %u flows per connection",
                host->lanes);
  }
}

static void tell_machine(void) {
  static struct machine machine; /* too large for the stack */
  machine_identify(&machine);
  doctor_tell(DOCTOR_GOOD, "machine: cloud %s, instance type %s (from %s), %u GPUs%s%s, %u NICs",
              machine.cloud, machine.instance_type[0] ? machine.instance_type : "not known",
              machine.type_origin, machine.devices.gpus, machine.devices.gpu[0] ? " " : "",
              machine.devices.gpu, machine.devices.nics);
  doctor_tell(DOCTOR_GOOD, "topology %s%s", machine.topology[0] ? machine.topology : "not known",
              param_string(PARAM_TOPOLOGY)[0] ? " (STRATUS_TOPOLOGY)" : "");
}

/* Devices pin what they read and write. */
static void check_lockable(void) {
  const rlim_t enough = (rlim_t)1 << 30;
  struct rlimit limit;
  char text[QUANTITY_TEXT_MAX];
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < enough) {
    doctor_tell(DOCTOR_BAD,
                "the limit of locked memory is %s (ulimit -l): registrations will fail, set it to "
                "unlimited",
                quantity_format_size(limit.rlim_cur, text));
  }
}

static void check_rdma(const struct doctor_host *host) {
  unsigned used = 0;
  char text[ENDPOINT_TEXT_MAX];
  if (access("/dev/infiniband", F_OK) != 0) {
    doctor_tell(DOCTOR_GOOD, "RDMA: there is no device (no /dev/infiniband); TCP is used");
    return;
  }
  for (unsigned i = 0; i < host->nic_count; i++) {
    bool is_found = endpoint_find(&host->nics[i], text);
    doctor_tell(is_found ? DOCTOR_GOOD : DOCTOR_HINT, "RDMA: %s %s: %s", host->nics[i].name,
                is_found ? "uses" : "has no device, TCP is used", text);
    used += is_found;
  }
  if (used > 0) {
    check_lockable();
  }
}

static void check_devices(void) {
  static struct discovery found; /* too large for the stack, as is the next */
  static struct doctor_host host;
  if (discovery_run(&found)) {
    doctor_tell(DOCTOR_BAD, "no devices: see the message above");
    return;
  }
  char unused[DISCOVERY_TEXT_MAX], wish[INTERFACE_WISH_TEXT_MAX];
  if (found.devices.count == 0) {
    doctor_tell(DOCTOR_BAD, "no usable network interface (%s): %s",
                interface_wish_text(&found.wishes, wish), discovery_unused_text(&found, unused));
  }
  for (int i = 0; i < found.devices.count; i++) {
    const struct device *device = &found.devices.devices[i];
    doctor_tell(device->speed_origin == DEVICE_FROM_DEFAULT ? DOCTOR_HINT : DOCTOR_GOOD,
                "device %s, %u Mb/s (from %s)%s", device->name, device->speed_mbps,
                device_origin_name(device->speed_origin),
                device->speed_origin == DEVICE_FROM_DEFAULT
                    ? "; its speed is unknown, so set STRATUS_SPEED_MBPS"
                    : "");
  }
  if (found.has_profile) {
    doctor_tell(DOCTOR_GOOD, "profile %s, hash %016" PRIx64, found.devices.profile_id,
                profile_hash(&found.profile));
  }
  settings_use_profile(found.has_profile ? &found.profile : NULL);
  doctor_host_read(&found, &host);
  nics_check(&host);
  check_host(&host);
  check_rdma(&host);
  discovery_free(&found);
}

static void check_trust(void) {
  unsigned ciphers = lane_crypto_ciphers();
  bool is_encrypted = param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON;
  if (protection_check() != 0) {
    doctor_tell(DOCTOR_BAD, "connections are refused: see the message above");
  } else {
    doctor_tell(DOCTOR_GOOD, "job secret: %s", protection_has_secret() ? "set" : "none");
  }
  doctor_tell(DOCTOR_GOOD, "checksums: %s",
              param_bool(PARAM_CHECKSUM) ? "on" : "off (STRATUS_CHECKSUM)");
  char name[LANE_CRYPTO_NAME_MAX];
  enum lane_cipher best = ciphers >> LANE_AES256GCM & 1 ? LANE_AES256GCM : LANE_CHACHA20POLY1305;
  doctor_tell(is_encrypted && !ciphers ? DOCTOR_BAD : DOCTOR_GOOD, "encryption: %s; this host %s%s",
              is_encrypted ? "on" : "off", ciphers ? "would use " : "cannot: OpenSSL's libcrypto: ",
              ciphers ? lane_crypto_name(best, name) : lane_crypto_library());
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments;
  doctor_tell_begin(is_json);
  check_choice();
  check_nccl();
  tell_machine();
  check_devices();
  check_trust();
  conf_tell();
  return doctor_tell_end();
}

const struct cli_command command_doctor = {
  .name = "doctor",
  .summary = "check that NCCL will load the plugin, and the settings of this host",
  .arguments = "",
  .example = "NCCL_NET_PLUGIN=stratus stratus doctor",
  .has_json = true,
  .run = run,
};
