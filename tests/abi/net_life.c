/* SPDX-License-Identifier: Apache-2.0 */
/* See net_life.h. */
#include "tests/abi/net_life.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include "tests/abi/nccl_collnet_layouts.h"
#include "tests/abi/net_exchange.h"

/* Entries of a directory of /proc; with `kind`, links that begin with it. */
static int entries(const char *path, const char *kind) {
  DIR *directory = opendir(path);
  CHECK(directory);
  int found = 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char target[64] = "";
    if (kind && readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1) < 0) {
      continue;
    }
    found += kind ? strncmp(target, kind, strlen(kind)) == 0 : entry->d_name[0] != '.';
  }
  closedir(directory);
  return found;
}

struct life_count life_count(void) {
  return (struct life_count){ entries("/proc/self/task", NULL),
                              entries("/proc/self/fd", "socket:") };
}

static void collnet_start(const struct host *host, ncclDebugLogger_t logger) {
  char symbol[32];
  snprintf(symbol, sizeof(symbol), "ncclCollNetPlugin_v%d", host->version);
  const void *table = dlsym(host->library, symbol);
  if (!table) {
    CHECK(host->version < 8); /* not offered */
    return;
  }
  void *context = NULL;
  int count = -1;
#define START(v, ...)                                                                              \
  case v:                                                                                          \
    CHECK_OK(((const ncclCollNet_v##v##_t *)table)->init(__VA_ARGS__));                            \
    CHECK_OK(((const ncclCollNet_v##v##_t *)table)->devices(&count));                              \
    break
  switch (host->version) {
    START(8, logger);
    START(9, logger);
    START(10, logger);
    START(11, &context, 0x1234, logger);
    START(12, &context, 0x1234, logger);
  }
  CHECK(count == 0);
}

void life_communicator(const struct host *host, ncclDebugLogger_t logger,
                       ncclProfilerCallback_t profiler, const size_t *sizes, int count) {
  void *context;
  int devices;
  CHECK_OK(host_init(host, &context, logger, profiler));
  CHECK_OK(HOST_CALL(host, devices, &devices));
  collnet_start(host, logger);
  struct exchange_pair pair;
  exchange_connect(host, context, &pair);
  exchange_run(&pair, sizes, count);
  exchange_close(&pair, 0);
  CHECK_OK(host_finalize(host, context));
}
