/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL does around a tuner plugin, release by release. Members are at the same
 * place in all versions that have them (layouts.c), so a table is read as the first that has the
 * wanted type. */
#include "tests/abi/tuner_driver.h"

#include <dlfcn.h>
#include <float.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/json_text.h"

/* ---- the release ---- */

static bool is_release_told;

void driver_tell_release(void) {
  is_release_told = true;
}

/* As libnccl exports it; the plugin looks for it to learn the release. */
__attribute__((visibility("default"))) enum nccl_result ncclGetVersion(int *version);
enum nccl_result ncclGetVersion(int *version) {
  *version = is_release_told ? cases_release->version : 0;
  return is_release_told ? NCCL_SUCCESS : NCCL_INVALID_USAGE; /* the other hosts do not tell */
}

/* ---- loading ---- */

void driver_open(struct driver_plugin *plugin, const struct release *release) {
  plugin->logger = cases_log;
  plugin->handle = dlopen(cases_tuner_plugin(), release->dlopen_flag | RTLD_LOCAL);
  CHECK(plugin->handle, "%s", dlerror());
  plugin->symbol = NULL;
  for (const char *version = release->tuners; *version && !plugin->symbol; version++) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%c", *version);
    plugin->symbol = dlsym(plugin->handle, symbol);
    plugin->abi = *version - '0';
  }
  CHECK(plugin->symbol, "NCCL %s finds none of its symbols", release->name);
  plugin->constants =
      mmap(NULL, DRIVER_CONSTANTS_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(plugin->constants != MAP_FAILED, "no address space");
}

void driver_close(struct driver_plugin *plugin) {
  munmap(plugin->constants, DRIVER_CONSTANTS_BYTES);
  CHECK(dlclose(plugin->handle) == 0, "%s", dlerror());
}

const char *driver_name(const struct driver_plugin *plugin) {
  const char *name;
  memcpy(&name, plugin->symbol, sizeof name);
  return name;
}

/* ---- communicators ---- */

#define TABLE(symbol, v) ((const struct tuner_abi_v##v *)(symbol))

/* As NCCL fills it: a domain is a node. */
static struct tuner_abi_nvl_domain_info nvl_of(size_t ranks, size_t nodes) {
  size_t domains = nodes > 0 ? nodes : 1;
  return (struct tuner_abi_nvl_domain_info){
    .nNvlDomains = (int)nodes,
    .minRanksPerNvlDomain = (int)(ranks / domains),
    .maxRanksPerNvlDomain = (int)((ranks + domains - 1) / domains),
  };
}

enum nccl_result driver_init_comm(struct driver_comm *comm, const struct driver_plugin *plugin,
                                  size_t ranks, size_t nodes) {
  static uint64_t next_comm_id = 0x1234567890abcdef;
  *comm = (struct driver_comm){ .plugin = plugin, .ranks = ranks, .nodes = nodes };
  comm->nvl = nvl_of(ranks, nodes);
  uint64_t comm_id = __atomic_fetch_add(&next_comm_id, 1, __ATOMIC_RELAXED);
  const void *table = plugin->symbol;
  nccl_logger_fn *logger = plugin->logger;
  return plugin->abi == 1  ? TABLE(table, 1)->init(ranks, nodes, logger)
         : plugin->abi < 5 ? TABLE(table, 2)->init(ranks, nodes, logger, &comm->context)
                           : TABLE(table, 5)->init(&comm->context, comm_id, ranks, nodes, logger,
                                                   &comm->nvl, plugin->constants);
}

static void check_inputs_untouched(const struct driver_comm *comm) {
  struct tuner_abi_nvl_domain_info nvl = nvl_of(comm->ranks, comm->nodes);
  CHECK(memcmp(&nvl, &comm->nvl, sizeof nvl) == 0, "the NVLink facts were changed");
}

void driver_close_comm(struct driver_comm *comm) {
  const struct driver_plugin *plugin = comm->plugin;
  enum nccl_result result = plugin->abi == 1 ? TABLE(plugin->symbol, 1)->destroy()
                                             : TABLE(plugin->symbol, 5)->finalize(comm->context);
  CHECK(result == NCCL_SUCCESS, "destroy gave %d", result);
  check_inputs_untouched(comm);
}

/* ---- calls ---- */

/* v2.30.7-1 src/enqueue.cc:2308-2318: a plugin without the function keeps NCCL's chunk. */
static size_t ask_chunk(struct driver_comm *comm, int func, size_t bytes) {
  const struct tuner_abi_v6 *tuner = TABLE(comm->plugin->symbol, 6);
  size_t chunk_size = 524288;
  if (tuner->getChunkSize) {
    enum nccl_result result =
        tuner->getChunkSize(comm->context, func, bytes, HOST_RING, HOST_SIMPLE, 1, &chunk_size);
    CHECK(result == NCCL_SUCCESS, "getChunkSize gave %d", (int)result);
  }
  return chunk_size;
}

static enum nccl_result get(struct driver_comm *comm, struct driver_call call,
                            struct driver_memory *memory) {
  const void *table = comm->plugin->symbol;
  int func = call.func, algos = cases_release->algos;
  float **costs = (float **)memory->costs;
  switch (comm->plugin->abi) {
  case 1:
    return TABLE(table, 1)->getCollInfo(func, call.bytes, 0, 0, call.pipe_ops, &memory->algo,
                                        &memory->proto, &memory->channels);
  case 2:
    return TABLE(table, 2)->getCollInfo(comm->context, func, call.bytes, 0, 0, call.pipe_ops,
                                        &memory->algo, &memory->proto, &memory->channels);
  case 3:
    return TABLE(table, 3)->getCollInfo(comm->context, func, call.bytes, call.pipe_ops, costs,
                                        algos, HOST_PROTOS, &memory->channels);
  default:
    return TABLE(table, 4)->getCollInfo(comm->context, func, call.bytes, call.pipe_ops, costs,
                                        algos, HOST_PROTOS, call.is_registered, &memory->channels);
  }
}

enum nccl_result driver_ask(struct driver_comm *comm, struct driver_call call,
                            struct driver_memory *memory) {
  if (comm->plugin->abi >= 6) {
    CHECK(ask_chunk(comm, call.func, call.bytes) == 524288,
          "the chunk of a row without one was changed");
  }
  return get(comm, call, memory);
}

/* v2.30.7-1 src/enqueue.cc:2028-2046. */
bool driver_select(const float *costs, int algos, int *algo, int *proto) {
  float least = FLT_MAX;
  bool is_found = false;
  for (int cell = 0; cell < algos * HOST_PROTOS; cell++) {
    if (costs[cell] != HOST_IGNORE && costs[cell] >= 0.0f && costs[cell] < least) {
      least = costs[cell];
      *algo = cell / HOST_PROTOS;
      *proto = cell % HOST_PROTOS;
      is_found = true;
    }
  }
  return is_found;
}

/* ---- surroundings ---- */

static char scratch[] = "/tmp/stratus-abi-XXXXXX";

void driver_isolate(void) {
  CHECK(mkdtemp(scratch), "no directory for scratch files");
  static const char *const unset[] = { "STRATUS_PROFILE", "STRATUS_TUNER", "STRATUS_LOG",
                                       "NCCL_ALGO", "NCCL_PROTO" };
  for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++) {
    unsetenv(unset[i]);
  }
  setenv("XDG_CONFIG_HOME", scratch, 1);
  setenv("HOME", scratch, 1);
}

static const char *profile_path(void) {
  static char path[64];
  snprintf(path, sizeof path, "%s/test.profile", scratch);
  return path;
}

void driver_remove_scratch(void) {
  unlink(profile_path());
  rmdir(scratch);
}

void driver_write_profile(const char *text) {
  const char *path = profile_path();
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(json_text(text), file) >= 0 && fclose(file) == 0, "cannot write %s", path);
  setenv("STRATUS_PROFILE", path, 1);
}
