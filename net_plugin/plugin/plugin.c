/* SPDX-License-Identifier: Apache-2.0 */
/* The process-wide state is one device table behind one lock.
 *
 * NCCL 2.28 and later unloads plugins after the last communicator and loads them again for the
 * next. This one stays mapped (-z nodelete), so its state survives a reload that NCCL believes to
 * be a fresh start, except where NCCL_NET_PLUGIN_REF_COUNT keeps it loaded and NCCL goes on using
 * the device numbers it knows. Only the next call shows which: after a reload NCCL asks for the
 * devices (src/plugin/net.cc:179-184 at v2.30.7), otherwise it does not. So a table that is left
 * over is kept until someone asks. */
#include "net_plugin/plugin/plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fork_guard.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "common/version.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/observe/stats_socket.h"
#include "net_plugin/plugin/default_name.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/plugin/nic_renewal.h"
#include "net_plugin/plugin/placement.h"
#include "net_plugin/setup/setup.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/handle.h"

struct plugin_context {
  int traffic_class;
};

static struct {
  pthread_mutex_t lock;
  struct discovery discovery;
  struct nic_renewal renewal; /* of the discovery's NICs */
  bool is_discovered;
  bool is_left_over; /* from communicators that are gone */
  bool has_warned;   /* about unknown variables, once per process */
  unsigned contexts;
  bool is_kept;     /* there are users without a context */
  int api_version;  /* of the latest init */
  int nccl_version; /* as ncclGetVersion counts; 0: not known */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* For the tuner plugin, which finds it by name (tuner_plugin/abi/shims.c): communicators that
 * use this plugin. Of interfaces that do not tell when one ends: 1 or more for ever. Atomic. */
__attribute__((visibility("default"))) unsigned stratus_net_users;

static void count_users(void) {
  __atomic_store_n(&stratus_net_users, state.contexts + state.is_kept, __ATOMIC_RELAXED);
}

/* Calls that fail for want of memory are logged here, once for all of them. */
static int tell_if_out_of_memory(int rc, const char *what) {
  if (rc == -ENOMEM) {
    LOG_WARN("cannot %s: out of memory", what);
  }
  return rc;
}

/* ---- init, finalize ---- */

static void announce_device(int index, const struct device *device) {
  const struct nic *nic = &device->nics[0];
  char address[INTERFACE_ADDRESS_TEXT_MAX];
  char numa[24] = "unknown";
  if (nic->numa_node >= 0) {
    snprintf(numa, sizeof(numa), "%d", nic->numa_node);
  }
  char cpus[PLACEMENT_TEXT_MAX];
  bool is_placed = CPU_COUNT(&nic->thread_cpus) > 0;
  LOG_INFO("device %d: %s, address %s, %u Mb/s (from %s), PCI %s, NUMA node %s%s%s", index,
           device->name, interface_address_text(&nic->address, address), device->speed_mbps,
           device_origin_name(device->speed_origin),
           device->pci_path[0] ? strrchr(device->pci_path, '/') + 1 : "none", numa,
           is_placed ? ", thread on CPUs " : "",
           is_placed ? placement_format(&nic->thread_cpus, cpus) : "");
  for (unsigned i = 0; device->nic_count > 1 && i < device->nic_count; i++) {
    if (device->nics[i].is_idle) {
      LOG_INFO("no route to other hosts leads through %s, so its speed does not count in %s",
               device->nics[i].name, device->name);
    }
  }
}

/* What nobody chose to leave out. */
static void announce_left_out(const struct discovery *discovery) {
  static const enum interface_verdict verdicts[] = { INTERFACE_OF_THIS_HOST, INTERFACE_OF_ITS_LINK,
                                                     INTERFACE_SAME_HARDWARE,
                                                     INTERFACE_OVER_LIMIT };
  char names[DISCOVERY_TEXT_MAX];
  for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
    if (discovery_left_out_text(discovery, verdicts[i], names)[0]) {
      LOG_INFO("not used: %s: %s", names, interface_verdict_text(verdicts[i]));
    }
  }
}

static void announce(int api_version, const struct device_table *table,
                     const struct discovery *discovery) {
  char profile[PROFILE_ID_MAX + 32] = "no profile";
  if (discovery->has_profile) {
    snprintf(profile, sizeof(profile), "profile %s, hash %016" PRIx64, table->profile_id,
             profile_hash(&discovery->profile));
  }
  LOG_INFO("stratus %s carries this job's network traffic (NCCL net plugin interface v%d, %d "
           "device%s, %s); to turn it off: NCCL_NET_PLUGIN=none",
           STRATUS_VERSION, api_version, table->count, table->count == 1 ? "" : "s", profile);
  for (int i = 0; i < table->count; i++) {
    announce_device(i, &table->devices[i]);
  }
  announce_left_out(discovery);
}

static void warn_without_device(const struct discovery *discovery) {
  const struct interface_wishes *wishes = &discovery->wishes;
  char unused[DISCOVERY_TEXT_MAX], wish[INTERFACE_WISH_TEXT_MAX];
  LOG_WARN("no usable network interface, so NCCL goes on without stratus "
           "(%s; NCCL_SOCKET_FAMILY=\"%s\"): %s",
           interface_wish_text(wishes, wish), wishes->family ? wishes->family : "",
           discovery_unused_text(discovery, unused));
}

/* With the lock held. */
static int discover(void) {
  discovery_free(&state.discovery);
  int rc = discovery_run(&state.discovery);
  if (rc) {
    return rc;
  }
  state.is_discovered = true;
  state.is_left_over = false;
  if (state.discovery.devices.count == 0) {
    warn_without_device(&state.discovery);
  } else {
    announce(state.api_version, &state.discovery.devices, &state.discovery);
    decision_use_profile(state.discovery.has_profile ? &state.discovery.profile : NULL,
                         state.nccl_version);
    for (int i = 0; i < state.discovery.devices.physical_count; i++) {
      nic_totals_of(&state.discovery.devices.devices[i].nics[0]);
    }
  }
  nic_renewal_begin(&state.renewal, &state.discovery.devices);
  return 0;
}

/* With the lock held: what NCCL was told stays, and its NICs are what there is now. */
static void renew(void) {
  struct discovery *fresh = calloc(1, sizeof(*fresh));
  if (fresh && discovery_run(fresh) == 0) {
    nic_renewal_take(&state.renewal, &fresh->devices);
    discovery_free(fresh);
  }
  free(fresh);
}

int plugin_init(const struct plugin_host *host, struct plugin_context **context) {
  struct plugin_context *created = NULL;
  if (context) {
    created = calloc(1, sizeof(*created));
    if (!created) {
      return tell_if_out_of_memory(-ENOMEM, "start");
    }
    created->traffic_class = host->traffic_class;
  }
  pthread_mutex_lock(&state.lock);
  log_set_threshold((enum log_level)param_enum(PARAM_LOG));
  if (!state.has_warned) {
    param_warn_unknown(environ);
    state.has_warned = true;
  }
  fork_guard_install();
  open_files_raise();
  stats_socket_start();
  state.api_version = host->api_version;
  state.nccl_version = host->nccl_version;
  default_name_take(host->nccl_version);
  state.is_left_over = state.is_discovered && state.contexts == 0 && !(context && state.is_kept);
  int rc = state.is_discovered ? 0 : discover();
  if (rc == 0 && context) {
    state.contexts++;
  } else if (rc == 0) {
    state.is_kept = true;
  }
  count_users();
  pthread_mutex_unlock(&state.lock);
  if (rc) {
    free(created);
  } else if (context) {
    *context = created;
  }
  return rc;
}

void plugin_finalize(struct plugin_context *context) {
  if (!context) {
    return;
  }
  pthread_mutex_lock(&state.lock);
  state.contexts--;
  count_users();
  if (state.contexts == 0 && !state.is_kept) {
    setup_stop();
  }
  pthread_mutex_unlock(&state.lock);
  free(context);
}

/* ---- devices ---- */

int plugin_device_count(int *count) {
  pthread_mutex_lock(&state.lock);
  int rc = state.is_left_over ? discover() : 0;
  *count = state.discovery.devices.count;
  pthread_mutex_unlock(&state.lock);
  return rc;
}

/* NCCL has asked for the count before, so the table is not made anew meanwhile. */
const struct device *plugin_device(int device) {
  pthread_mutex_lock(&state.lock);
  const struct device *found = device_table_find(&state.discovery.devices, device);
  pthread_mutex_unlock(&state.lock);
  return found;
}

int plugin_fuse_devices(const int *devices, int count, int limit, int *device) {
  pthread_mutex_lock(&state.lock);
  int rc = device_table_fuse(&state.discovery.devices, devices, count, limit, device);
  pthread_mutex_unlock(&state.lock);
  return rc;
}

/* The NICs of the device as they are now, if the kernel is asked. */
static int copy_nics(int device, bool asks, struct nic nics[NIC_MAX_FUSED], unsigned *count) {
  pthread_mutex_lock(&state.lock);
  const struct device *found = device_table_find(&state.discovery.devices, device);
  if (found && asks && nic_renewal_is_due(&state.renewal, found)) {
    renew();
  }
  *count = found ? nic_renewal_nics(&state.renewal, found, nics) : 0;
  pthread_mutex_unlock(&state.lock);
  return !found ? -EINVAL : *count ? 0 : -ENODEV;
}

int plugin_device_nic(int device, struct nic *nic) {
  struct nic nics[NIC_MAX_FUSED];
  unsigned count;
  int rc = copy_nics(device, true, nics, &count);
  if (!rc) {
    *nic = nics[0];
  }
  return rc;
}

/* ---- connections ---- */

int plugin_listen(int device, void *handle, struct listener **listener) {
  struct nic nics[NIC_MAX_FUSED];
  unsigned count;
  int rc = copy_nics(device, true, nics, &count);
  return rc ? rc : tell_if_out_of_memory(listener_open(nics, count, handle, listener), "listen");
}

/* The user's word, then NCCL's, then the profile's. */
static int choose_dscp(int traffic_class) {
  int dscp = (int)param_int(PARAM_DSCP);
  if (traffic_class > UINT8_MAX) {
    LOG_WARN_EVERY(SETTING_WARN_INTERVAL_NS, "traffic class %d is ignored; accepted is 0..255",
                   traffic_class);
    traffic_class = PLUGIN_TRAFFIC_CLASS_NONE;
  }
  bool is_parameter = param_is_set(PARAM_DSCP) && dscp >= 0;
  /* the lower two bits of the byte are for congestion marks */
  return is_parameter || traffic_class < 0 ? dscp : traffic_class >> 2;
}

int plugin_connect(const struct plugin_context *context, int device, int traffic_class,
                   unsigned group_peers, void *handle, struct connection **connection) {
  struct nic nics[NIC_MAX_FUSED];
  unsigned count;
  int dscp = choose_dscp(context ? context->traffic_class : traffic_class);
  bool is_new = handle_pending(handle) == 0; /* else NCCL asks again */
  int rc = copy_nics(device, is_new, nics, &count);
  rc = rc ? rc : connector_connect(nics, count, dscp, group_peers, handle, connection);
  return tell_if_out_of_memory(rc, "connect");
}

int plugin_post(struct connection *connection, void *data, size_t bytes,
                const struct memory *memory, struct request **request) {
  return connection_post(connection, memory_address(memory, data), bytes, memory,
                         memory ? memory->devices : NULL, request);
}

int plugin_irecv(struct connection *connection, int count, void **data, const size_t *bytes,
                 void **memories, struct request **request) {
  if (count != 1) {
    /* maxRecvs is 1, so NCCL never groups. */
    LOG_WARN("NCCL asks for %d receives in one; this plugin offers 1", count);
    return -EINVAL;
  }
  const struct memory *memory = memories ? memories[0] : NULL;
  return plugin_post(connection, data[0], bytes[0], memory, request);
}

int plugin_test(struct request *request, bool *is_done, size_t *bytes) {
  int error = connection_test(request, is_done);
  if (*is_done) {
    *bytes = request->bytes;
  }
  return error;
}

void plugin_deregister(struct connection *connection, const struct memory *memory) {
  if (connection && memory) {
    connection_withdraw(connection, memory);
  }
  memory_deregister(memory);
}
