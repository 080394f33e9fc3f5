/* SPDX-License-Identifier: Apache-2.0 */
/* See life_tables.h. The order is that of initTransportsRank and commFree, src/init.cc at v2.30.7:
 * network, CollNet, tuner; at the end tuner, network. */
#include "tests/abi/life_tables.h"

#include <dlfcn.h>

#include "tests/abi/nccl_collnet_layouts.h"
#include "tests/abi/nccl_tuner_layouts.h"

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
  life->logger = (ncclDebugLogger_t)dlsym(life->nccl, "nccl_logger");
  life->warnings = dlsym(life->nccl, "nccl_warnings");
  CHECK(life->logger && life->warnings);
}

/* CollNet is off, so it shows no devices, and NCCL does not end it. */
static void start_collnet(const struct life *life) {
  void *context = NULL;
  int count = -1;
#define START(v, ...)                                                                              \
  case v:                                                                                          \
    CHECK_OK(((const ncclCollNet_v##v##_t *)life->collnet)->init(__VA_ARGS__));                    \
    CHECK_OK(((const ncclCollNet_v##v##_t *)life->collnet)->devices(&count));                      \
    CHECK(count == 0);                                                                             \
    break
  switch (life->collnet ? life->release->net : 0) {
    START(8, life->logger);
    START(9, life->logger);
    START(10, life->logger);
    START(11, &context, ID, life->logger);
    START(12, &context, ID, life->logger);
  }
}

#define TUNER_V(v) ((const host_tuner_v##v *)life->tuner)

static ncclResult_t start_tuner(const struct life *life, void **context) {
  host_logger logger = (host_logger)(void *)life->logger;
  host_nvl_info domains = { NODES, RANKS / NODES, RANKS / NODES };
  host_constants constants;
  host_constants_v7 constants_v7;
  memset(&constants, 0, sizeof(constants));
  memset(&constants_v7, 0, sizeof(constants_v7));
  switch (life->release->tuner) {
  case 1:
    return (ncclResult_t)TUNER_V(1)->init(RANKS, NODES, logger);
  case 2:
    return (ncclResult_t)TUNER_V(2)->init(RANKS, NODES, logger, context);
  case 3:
    return (ncclResult_t)TUNER_V(3)->init(RANKS, NODES, logger, context);
  case 4:
    return (ncclResult_t)TUNER_V(4)->init(RANKS, NODES, logger, context);
  case 5:
    return (ncclResult_t)TUNER_V(5)->init(context, ID, RANKS, NODES, logger, &domains, &constants);
  case 6:
    return (ncclResult_t)TUNER_V(6)->init(context, ID, RANKS, NODES, logger, &domains, &constants);
  default:
    return (ncclResult_t)TUNER_V(7)->init(context, ID, RANKS, NODES, logger, &domains,
                                          &constants_v7);
  }
}

static void end_tuner(const struct life *life, void *context) {
  switch (life->release->tuner) {
  case 1:
    CHECK_OK((ncclResult_t)TUNER_V(1)->destroy());
    return;
  case 2:
  case 3:
  case 4: /* the same place in all three */
    CHECK_OK((ncclResult_t)TUNER_V(4)->destroy(context));
    return;
  case 5:
    CHECK_OK((ncclResult_t)TUNER_V(5)->finalize(context));
    return;
  case 6:
    CHECK_OK((ncclResult_t)TUNER_V(6)->finalize(context));
    return;
  default:
    CHECK_OK((ncclResult_t)TUNER_V(7)->finalize(context));
  }
}

ncclResult_t life_begin(const struct life *life, struct life_communicator *communicator,
                        int *devices) {
  *communicator = (struct life_communicator){ NULL, NULL };
  *devices = 0;
  ncclResult_t result = host_init(&life->host, &communicator->net, life->logger);
  if (result == ncclSuccess) {
    CHECK_OK(HOST_CALL(&life->host, devices, devices));
    start_collnet(life);
  }
  return result == ncclSuccess ? start_tuner(life, &communicator->tuner) : result;
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
