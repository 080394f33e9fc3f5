/* SPDX-License-Identifier: Apache-2.0 */
/* See life_tables.h. The order is that of initTransportsRank and commFree, src/init.cc at v2.30.7:
 * network, CollNet, tuner; at the end tuner, network. */
#include "tests/abi/life_tables.h"

#include <dlfcn.h>

#include "tuner_plugin/abi/tuner_abi.h"

enum { NODES = 2, RANKS = 4, ID = 0x1234 };

static const void *find(void *library, const char *table, int version) {
  char symbol[48];
  snprintf(symbol, sizeof(symbol), "%s_v%d", table, version);
  return version ? dlsym(library, symbol) : NULL;
}

void life_load(struct life *life, const struct life_release *release, const char *net_plugin,
               const char *tuner_plugin, const char *nccl) {
  void *library = dlopen(net_plugin, RTLD_NOW | RTLD_LOCAL);
  *life = (struct life){ .release = release,
                         .host = { release->name, release->net, library, NULL, -1 },
                         .nccl = dlopen(nccl, RTLD_NOW | RTLD_LOCAL),
                         .tuner_library = dlopen(tuner_plugin, RTLD_NOW | RTLD_LOCAL) };
  CHECK(library && life->nccl && life->tuner_library);
  CHECK((life->host.table = find(library, "ncclNetPlugin", release->net)));
  CHECK((life->tuner = find(life->tuner_library, "ncclTunerPlugin", release->tuner)));
  life->collnet = find(library, "ncclCollNetPlugin", release->net);
  life->logger = (nccl_logger_fn *)dlsym(life->nccl, "nccl_logger");
  life->warnings = dlsym(life->nccl, "nccl_warnings");
  CHECK(life->logger && life->warnings);
}

/* CollNet is off, so it shows no devices, and NCCL does not end it. */
static void start_collnet(const struct life *life) {
  void *context = NULL;
  int count = -1;
  if (!life->collnet) {
    return;
  }
  CHECK_OK(life->release->net < 11 ? LIFE_COLLNET(life, 8)->init(life->logger)
                                   : LIFE_COLLNET(life, 11)->init(&context, ID, life->logger));
  CHECK_OK(LIFE_COLLNET(life, 8)->devices(&count));
  CHECK(count == 0);
}

#define TUNER_V(v) ((const struct tuner_abi_v##v *)life->tuner)

static enum nccl_result start_tuner(const struct life *life, void **context) {
  struct tuner_abi_nvl_domain_info domains = { NODES, RANKS / NODES, RANKS / NODES };
  char constants[1]; /* which a tuner of ours does not look at */
  return life->release->tuner == 1 ? TUNER_V(1)->init(RANKS, NODES, life->logger)
         : life->release->tuner < 5
             ? TUNER_V(2)->init(RANKS, NODES, life->logger, context)
             : TUNER_V(5)->init(context, ID, RANKS, NODES, life->logger, &domains, constants);
}

static void end_tuner(const struct life *life, void *context) {
  CHECK_OK(life->release->tuner == 1 ? TUNER_V(1)->destroy() : TUNER_V(5)->finalize(context));
}

enum nccl_result life_begin(const struct life *life, struct life_communicator *communicator,
                            int *devices) {
  *communicator = (struct life_communicator){ NULL, NULL };
  *devices = 0;
  enum nccl_result result = host_init(&life->host, &communicator->net, life->logger);
  if (result == NCCL_SUCCESS) {
    CHECK_OK(HOST_CALL(&life->host, devices, devices));
    start_collnet(life);
  }
  return result == NCCL_SUCCESS ? start_tuner(life, &communicator->tuner) : result;
}

void life_end(const struct life *life, const struct life_communicator *communicator) {
  end_tuner(life, communicator->tuner);
  CHECK_OK(host_finalize(&life->host, communicator->net));
}

void life_unload(struct life *life) {
  CHECK(dlclose(life->tuner_library) == 0);
  CHECK(dlclose(life->host.library) == 0);
  CHECK(dlclose(life->nccl) == 0);
}
