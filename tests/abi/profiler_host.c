/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL that has another version of the profiler: opens the built net
 * plugin, tells its profiler of collectives, and asks the statistics socket what arrived.
 *
 *   abi_profiler                         all; STRATUS_TEST_NET_PLUGIN names another plugin
 *   abi_profiler RELEASE CASE [PLUGIN]   one */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/abi/cases.h"
#include "tests/abi/nccl_profiler_layouts.h"
#include "tests/abi/net_calls.h"
#include "tests/lib/stats_file.h"

static const struct release {
  const char *name;
  int profiler, net;
} releases[] = { { "2.23.4", 1, 8 },  { "2.25.1", 2, 9 },  { "2.26.2", 3, 10 }, { "2.27.7", 4, 10 },
                 { "2.29.7", 5, 11 }, { "2.30.7", 6, 12 }, { "2.32.6", 7, 12 } };

#define ALL_REDUCE 4 /* ncclFunc_t */
#define HASH 0x1234567890abcdefull

static void *library;
static const void *table;
static char directory[] = "/tmp/stratus-profiler-XXXXXX";

static void logger(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

/* ---- one call through each version ---- */

#define PLUGIN(version) ((const ncclProfiler_v##version##_t *)table)

static void init(int version, void **context, int *mask) {
  *mask = -1;
  switch (version) {
  case 1:
    CHECK_OK(PLUGIN(1)->init(context, mask));
    return;
  case 2:
    CHECK_OK(PLUGIN(2)->init(context, mask));
    return;
  case 3:
    CHECK_OK(PLUGIN(3)->init(context, mask));
    return;
  case 4:
    CHECK_OK(PLUGIN(4)->init(context, mask, "job", HASH, 2, 4, 3, logger));
    return;
  case 5:
    CHECK_OK(PLUGIN(5)->init(context, HASH, mask, "job", 2, 4, 3, logger));
    return;
  case 6:
    CHECK_OK(PLUGIN(6)->init(context, HASH, mask, NULL, 2, 4, 3, logger));
    return;
  default:
    CHECK_OK(PLUGIN(7)->init(context, HASH, mask, NULL, 2, 4, 3, logger));
  }
}

/* All bytes that are not set are 0xa5, and none may be taken for an address. */
#define START(version, kind, ...)                                                                  \
  do {                                                                                             \
    ncclProfilerEventDescr_v##version##_t event;                                                   \
    memset(&event, 0xa5, sizeof event);                                                            \
    event.type = kind;                                                                             \
    event.parentObj = NULL;                                                                        \
    event.rank = 3;                                                                                \
    if (event.type == ncclProfileColl) {                                                           \
      event.coll.seqNumber = number;                                                               \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
    CHECK_OK(PLUGIN(version)->startEvent(context, &handle, &event));                               \
    CHECK(handle == context);                                                                      \
    CHECK_OK(PLUGIN(version)->recordEventState(handle, 0, NULL));                                  \
    CHECK_OK(PLUGIN(version)->stopEvent(handle));                                                  \
  } while (0)

static void start(int version, void *context, uint8_t type, uint64_t number) {
  void *handle = &handle;
  switch (version) {
  case 1:
    START(1, type, event.coll.commHash = HASH; event.coll.func = ALL_REDUCE);
    return;
  case 2:
    START(2, type, event.coll.commHash = HASH; event.coll.func = "AllReduce");
    return;
  case 3:
    START(3, type, event.coll.commHash = HASH; event.coll.func = "AllReduce");
    return;
  case 4:
    START(4, type, event.coll.func = "AllReduce");
    return;
  case 5:
    START(5, type, event.coll.func = "AllReduce");
    return;
  case 6:
    START(6, type, event.coll.func = "AllReduce");
    return;
  default:
    START(7, type, event.coll.func = "AllReduce");
  }
}

/* ---- what the statistics say ---- */

static bool statistics_say(const char *text) {
  static char answer[1 << 16];
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  size_t used = 0;
  ssize_t n;
  CHECK(stats_file_find(directory, address.sun_path));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
  CHECK(write(fd, "json\n", 5) == 5);
  while ((n = read(fd, answer + used, sizeof answer - 1 - used)) > 0) {
    used += (size_t)n;
  }
  close(fd);
  answer[used] = '\0';
  if (!strstr(answer, text)) {
    fprintf(stderr, "no %s in %s\n", text, answer);
    return false;
  }
  return true;
}

/* ---- cases ---- */

static void case_on(const struct release *release) {
  void *context = NULL;
  int mask;
  char text[256];
  init(release->profiler, &context, &mask);
  CHECK(mask == ncclProfileColl && context);
  start(release->profiler, context, ncclProfileGroup, 0);
  for (uint64_t i = 0; i < 18; i++) {
    start(release->profiler, context, ncclProfileColl, i);
  }
  snprintf(text, sizeof text,
           "{\"communicator\":\"0x1234567890abcdef\",\"rank\":3,\"ranks\":%d,\"entered\":18,"
           "\"sequence\":17,\"function\":\"AllReduce\",\"seconds_ago\":",
           release->profiler >= 4 ? 4 : 0);
  CHECK(statistics_say(text));
  CHECK_OK(PLUGIN(1)->stopEvent(context));
  CHECK_OK(PLUGIN(6)->finalize(context)); /* at the same place in all versions */
  CHECK(statistics_say("\"communicators\":[],"));
}

/* NCCL asks for nothing, and what it says all the same is not kept. */
static void case_off(const struct release *release) {
  void *context = &context;
  int mask;
  init(release->profiler, &context, &mask);
  CHECK(mask == 0 && context == NULL);
  start(release->profiler, context, ncclProfileColl, 0);
  CHECK(statistics_say("\"communicators\":[],"));
  CHECK_OK(PLUGIN(6)->finalize(context));
}

/* More communicators than the table has room for: those beyond it are not told of. */
static void case_many(const struct release *release) {
  enum { MANY = 40 };
  void *contexts[MANY];
  int mask, without = 0;
  for (int i = 0; i < MANY; i++) {
    init(release->profiler, &contexts[i], &mask);
    start(release->profiler, contexts[i], ncclProfileColl, 0);
    without += contexts[i] == NULL;
  }
  CHECK(without == 8);
  for (int i = 0; i < MANY; i++) {
    CHECK_OK(PLUGIN(6)->finalize(contexts[i]));
  }
  CHECK(statistics_say("\"communicators\":[],"));
}

static const struct {
  const char *name;
  const char *events; /* STRATUS_PROFILE_EVENTS; NULL: not set */
  void (*run)(const struct release *release);
} cases[] = { { "on", "1", case_on }, { "off", NULL, case_off }, { "many", "1", case_many } };

/* As NCCL: the network first, which serves the statistics as soon as it listens. */
static void run(int which_release, int which, const char *path) {
  const struct release *release = &releases[which_release];
  struct host host = { release->name, release->net, NULL, NULL, -1 };
  char symbol[32], handle[128] = { 0 };
  void *context, *listener;
  CHECK(mkdtemp(directory));
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("STRATUS_STATS_DIR", directory, 1);
  if (cases[which].events) {
    setenv("STRATUS_PROFILE_EVENTS", cases[which].events, 1);
  }
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", release->net);
  CHECK((host.table = dlsym(library, symbol)));
  snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", release->profiler);
  CHECK((table = dlsym(library, symbol)) && !strcmp(*(const char *const *)table, "stratus"));
  CHECK_OK(host_init(&host, &context, logger, NULL));
  CHECK_OK(host_listen(&host, context, 0, handle, &listener));
  cases[which].run(release);
  CHECK_OK(HOST_CALL(&host, closeListen, listener));
  CHECK_OK(host_finalize(&host, context));
  char socket_path[STATS_FILE_MAX];
  if (stats_file_find(directory, socket_path)) {
    unlink(socket_path);
  }
  CHECK(rmdir(directory) == 0);
}

int main(int argc, char **argv) {
  static const struct cases_host profiler = {
    .title = "NCCL's profiler, every version of its interface",
    .plugin_variable = "STRATUS_TEST_NET_PLUGIN",
    .plugin = "build/lib/libnccl-net-stratus.so",
    .releases = CASES_LIST(releases),
    .cases = CASES_LIST(cases),
    .run = run,
  };
  return cases_main(&profiler, argc, argv);
}
