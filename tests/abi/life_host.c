/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL that has another set of interfaces: all of both plugins'
 * tables together, in its order; also half way, with another release in the process, and unloaded.
 * What they leave is looked for in /proc/self. */
#include <dirent.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/abi/cases.h"
#include "tests/abi/life_tables.h"
#include "tests/abi/net_exchange.h"

/* Releases with the same interfaces are one row. */
static const struct life_release releases[] = {
  { "2.19.1-2.19.4", 7, 1 },  { "2.20.3-2.20.5", 8, 1 },  { "2.21.5", 8, 2 },
  { "2.22.3-2.23.4", 8, 3 },  { "2.24.3-2.25.1", 9, 4 },  { "2.26.2-2.27.7", 10, 4 },
  { "2.28.3-2.29.7", 11, 5 }, { "2.30.3-2.32.3", 12, 6 }, { "2.32.6", 12, 7 },
};
enum { RELEASES = sizeof(releases) / sizeof(releases[0]), ROUNDS = 3 };

static const size_t sizes[] = { 0, 8, 5000, 300000 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const char *net_plugin;

/* ---- what a process has ---- */

struct traces {
  int threads, descriptors;
};

static int entries(const char *path) {
  DIR *directory = opendir(path);
  CHECK(directory);
  int found = 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    found += entry->d_name[0] != '.';
  }
  closedir(directory);
  return found;
}

static struct traces traces(void) {
  return (struct traces){ entries("/proc/self/task"), entries("/proc/self/fd") };
}

/* A thread that was joined leaves /proc a little later. Interfaces before v11 have no finalize:
 * there a thread, its descriptors and a socket stay by design. */
static void check_nothing_is_left(const struct life *life, struct traces before) {
  struct traces now = traces();
  for (int i = 0; i < 1000 && now.threads > before.threads; i++) {
    usleep(1000);
    now = traces();
  }
  if (life->release->net >= 11) {
    CHECK(now.threads == before.threads);
    CHECK(now.descriptors == before.descriptors);
  }
}

static bool is_mapped(const char *path) {
  char line[512];
  bool is_found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  while (fgets(line, sizeof(line), maps)) {
    is_found |= strstr(line, path) != NULL;
  }
  fclose(maps);
  return is_found;
}

/* ---- cases ---- */

static const char *nccl_file = "/abi_nccl.so";

/* Beside this program. */
static const char *nccl_path(void) {
  static char path[512];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
  CHECK(length > 0);
  path[length] = '\0';
  strcpy(strrchr(path, '/'), nccl_file);
  return path;
}

static void load(struct life *life, const struct life_release *release) {
  const char *tuner = getenv("STRATUS_TEST_TUNER_PLUGIN");
  life_load(life, release, net_plugin, tuner ? tuner : "build/lib/libnccl-tuner-stratus.so",
            nccl_path());
}

static void begin(const struct life *life, struct life_communicator *communicator) {
  int devices;
  CHECK_OK(life_begin(life, communicator, &devices));
  CHECK(devices == 1);
}

static void exchange(const struct life *life, const struct life_communicator *communicator) {
  struct exchange_pair pair;
  exchange_connect(&life->host, communicator->net, &pair);
  exchange_run(&pair, sizes, SIZES);
  exchange_close(&pair, 0);
}

static void case_order(const struct life_release *release) {
  struct life life;
  struct life_communicator communicator;
  load(&life, release);
  struct traces before = traces();
  for (int round = 0; round < ROUNDS; round++) {
    begin(&life, &communicator);
    exchange(&life, &communicator);
    life_end(&life, &communicator);
    check_nothing_is_left(&life, before);
  }
  CHECK(*life.warnings == 0);
}

/* Some communicators at once, of which the first ends first. */
static void case_several(const struct life_release *release) {
  struct life life;
  struct life_communicator communicators[ROUNDS];
  load(&life, release);
  struct traces before = traces();
  for (int i = 0; i < ROUNDS; i++) {
    begin(&life, &communicators[i]);
  }
  for (int i = 0; i < ROUNDS; i++) {
    exchange(&life, &communicators[i]);
    life_end(&life, &communicators[i]);
  }
  check_nothing_is_left(&life, before);
  CHECK(*life.warnings == 0);
}

/* NCCL goes on with its own transport; what had begun it ends. */
static void fails(const struct life_release *release, bool has_begun) {
  struct life life;
  struct life_communicator communicator;
  int devices;
  load(&life, release);
  struct traces before = traces();
  for (int round = 0; round < ROUNDS; round++) {
    enum nccl_result result = life_begin(&life, &communicator, &devices);
    CHECK((result == NCCL_SUCCESS) == has_begun && devices == 0);
    life_end(&life, &communicator);
    check_nothing_is_left(&life, before);
  }
  CHECK(*life.warnings > 0);
}

static void case_network_fails(const struct life_release *release) {
  setenv("STRATUS_ADVERTISE_ADDRESS", "nowhere", 1);
  fails(release, false);
}

static void case_no_devices(const struct life_release *release) {
  setenv("NCCL_SOCKET_IFNAME", "=nothing", 1);
  fails(release, true);
}

/* As of a framework's own NCCL beside the system's. */
static void case_two_releases(const struct life_release *release) {
  struct life one, other;
  struct life_communicator first, second;
  load(&one, release);
  load(&other, &releases[RELEASES - 1]);
  begin(&one, &first);
  for (int round = 0; round < ROUNDS; round++) {
    begin(&other, &second);
    exchange(&other, &second);
    exchange(&one, &first);
    life_end(&other, &second);
    exchange(&one, &first);
  }
  life_end(&one, &first);
  CHECK(*one.warnings == 0);
}

/* A stranger, to every port that is listening. */
static int write_to_ports(void) {
  int count = 0;
  for (int fd = 3; fd < 256; fd++) {
    struct sockaddr_in address;
    socklen_t bytes = sizeof(address), flag_bytes = sizeof(int);
    int is_listening = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &flag_bytes) == 0 &&
        is_listening && getsockname(fd, (struct sockaddr *)&address, &bytes) == 0 &&
        address.sin_family == AF_INET) {
      char text[64] = "what is no hello";
      int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      CHECK(connect(stranger, (struct sockaddr *)&address, bytes) == 0);
      CHECK(send(stranger, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text));
      while (recv(stranger, text, sizeof(text), 0) > 0) {
      }
      close(stranger);
      count++;
    }
  }
  return count;
}

/* What has an end can be unloaded; the NCCL that it logged through stays. */
static void case_unload(const struct life_release *release) {
  struct life life;
  struct life_communicator communicator;
  load(&life, release);
  begin(&life, &communicator);
  exchange(&life, &communicator);
  life_end(&life, &communicator);
  life_unload(&life);
  int ports = write_to_ports();
  CHECK((ports > 0) == (release->net < 11));
  CHECK(is_mapped(nccl_path()));
}

/* Other libraries number the levels of their log otherwise: a good start is no warning there, and
 * a bad one is. */
static void check_levels(const struct life_release *release, const char *file) {
  struct life life;
  struct life_communicator communicator;
  nccl_file = file;
  setenv("STRATUS_ENCRYPT", "of course", 1); /* which ends listen */
  load(&life, release);
  begin(&life, &communicator);
  CHECK(*life.warnings == 0);
  void *comm = NULL;
  unsigned char handle[128];
  CHECK(host_listen(&life.host, communicator.net, 0, handle, &comm) != NCCL_SUCCESS);
  CHECK(*life.warnings > 0);
  life_end(&life, &communicator);
}

static void case_levels_rccl(const struct life_release *release) {
  check_levels(release, "/librccl_abi.so");
}

static void case_levels_ncclx(const struct life_release *release) {
  check_levels(release, "/abi_ncclx.so");
}

/* Whatever step failed; then all of it works. */
static void case_tear_down(const struct life_release *release) {
  struct life life;
  struct life_communicator communicator = { NULL, NULL };
  setenv("STRATUS_COLLNET", "full", 1);
  load(&life, release);
  struct traces before = traces();
  printf("%d steps\n", life_tear_down(&life));
  fflush(stdout);
  check_nothing_is_left(&life, before);
  CHECK_OK(host_init(&life.host, &communicator.net, life.logger));
  exchange(&life, &communicator);
  life_end(&life, &communicator);
  check_nothing_is_left(&life, before);
}

static const struct {
  const char *name;
  void (*run)(const struct life_release *release);
} cases[] = {
  { "order", case_order },
  { "several", case_several },
  { "network_fails", case_network_fails },
  { "no_devices", case_no_devices },
  { "two_releases", case_two_releases },
  { "levels_rccl", case_levels_rccl },
  { "levels_ncclx", case_levels_ncclx },
  { "tear_down", case_tear_down },
  { "unload", case_unload },
};

static void run(int release, int which, const char *path) {
  net_plugin = path;
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  cases[which].run(&releases[release]);
  if (releases[release].net < 11) {
    cases_leave_running();
  }
}

const struct cases_host life_host = {
  .name = "life",
  .title = "All tables in NCCL's order, and what is left of them",
  .plugin_variable = "STRATUS_TEST_NET_PLUGIN",
  .plugin = "build/lib/libnccl-net-stratus.so",
  .releases = CASES_LIST(releases),
  .cases = CASES_LIST(cases),
  .run = run,
};
