/* SPDX-License-Identifier: Apache-2.0 */
/* What fork() does to a process that uses the plugins, as the workers of a data loader are made:
 * the child has none of the plugin's descriptors and no use of the plugin, and the parent does not
 * notice. So nothing of a process that is killed lives on in its children. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/abi/net_driver.h"
#include "tests/abi/tuner_driver.h"
#include "tests/lib/stats_file.h"

enum {
  DESCRIPTORS = 1024, /* as many are looked at */
  CHILD_S = 20,       /* a child that takes longer hangs, and is killed by SIGALRM */
};

/* ---- what NCCL gives to a plugin ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t log_owner;
static int log_lines;

/* As NCCL's it has a lock, which a child may find taken for ever. */
static void logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                   const char *format, ...) {
  CHECK(getpid() == log_owner);
  pthread_mutex_lock(&log_lock);
  log_lines++;
  pthread_mutex_unlock(&log_lock);
}

static struct host load(void **context) {
  log_owner = getpid();
  struct host host = host_open();
  CHECK_OK(host_init(&host, context, logger));
  return host;
}

/* ---- descriptors ---- */

static bool is_known[DESCRIPTORS]; /* before the plugin was loaded */

static bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

static void know_descriptors(void) {
  for (int fd = 0; fd < DESCRIPTORS; fd++) {
    is_known[fd] = is_open(fd);
  }
}

static int count_foreign(void) {
  int count = 0;
  for (int fd = 0; fd < DESCRIPTORS; fd++) {
    count += is_open(fd) && !is_known[fd];
  }
  return count;
}

/* ---- children ---- */

static pid_t fork_child(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(CHILD_S);
  }
  return child;
}

static void check_child(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

static void tell_descriptors_and_exit(void) {
  int count = count_foreign();
  for (int fd = 0; count && fd < DESCRIPTORS; fd++) {
    char path[64], target[128] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (is_open(fd) && !is_known[fd] && readlink(path, target, sizeof(target) - 1) > 0) {
      fprintf(stderr, "a forked child has descriptor %d, %s\n", fd, target);
    }
  }
  _exit(count != 0);
}

/* ---- transfers beside it ---- */

struct traffic {
  struct exchange_pair pair;
  pthread_t thread;
  atomic_bool must_stop;
  atomic_int rounds;
};

static void *run_traffic(void *argument) {
  static const size_t sizes[] = { 8, 4096, 70000, 0, 1 << 20, 131072, 300000, 64 };
  struct traffic *traffic = argument;
  while (!atomic_load(&traffic->must_stop)) {
    exchange_run(&traffic->pair, sizes, sizeof(sizes) / sizeof(sizes[0]));
    atomic_fetch_add(&traffic->rounds, 1);
  }
  return NULL;
}

static void traffic_start(struct traffic *traffic, const struct host *host, void *context) {
  exchange_connect(host, context, &traffic->pair);
  CHECK(pthread_create(&traffic->thread, NULL, run_traffic, traffic) == 0);
}

static void pause_ms(int ms) {
  struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
  nanosleep(&pause, NULL);
}

/* Some more messages have come through, and are right. */
static void traffic_goes_on(struct traffic *traffic) {
  int before = atomic_load(&traffic->rounds);
  while (atomic_load(&traffic->rounds) < before + 2) {
    pause_ms(1);
  }
}

static void traffic_stop(struct traffic *traffic) {
  traffic_goes_on(traffic);
  atomic_store(&traffic->must_stop, true);
  CHECK(pthread_join(traffic->thread, NULL) == 0);
  exchange_close(&traffic->pair, 0);
}

/* ---- cases ---- */

/* A worker closes what it inherited, forks on, and ends by exit(), which runs destructors. */
static void case_exit(void) {
  char directory[] = "/tmp/stratus-fork-XXXXXX", file[STATS_FILE_MAX];
  struct stat found;
  CHECK(mkdtemp(directory));
  setenv("STRATUS_STATS_DIR", directory, 1);
  know_descriptors();
  void *context;
  struct traffic traffic = { 0 };
  struct host host = load(&context);
  traffic_start(&traffic, &host, context);
  CHECK(stats_file_find(directory, file));
  for (int i = 0; i < 10; i++) {
    pid_t child = fork_child();
    if (child == 0) {
      check_child(fork() ?: (_exit(count_foreign()), 0));
      dlclose(host.library);
      exit(0);
    }
    check_child(child);
    traffic_goes_on(&traffic);
    CHECK(stat(file, &found) == 0);
  }
  traffic_stop(&traffic);
  CHECK_OK(host_finalize(&host, context));
  unlink(file);
  rmdir(directory);
}

/* Everything that moves or makes something fails, everything that ends something does nothing. */
static void call_all(struct host host, void *context, const struct exchange_pair *pair,
                     void *request) {
  unsigned char handle[HANDLE_BYTES] = { 0 }, data[64] = { 0 };
  void *made = NULL, *new_context = NULL;
  int count = 0, done = 0, sizes[1] = { 1 };
  void *datas[1] = { data };
  struct host_properties properties;
  CHECK(host_init(&host, &new_context, logger) != NCCL_SUCCESS);
  CHECK(HOST_CALL(&host, devices, &count) != NCCL_SUCCESS);
  CHECK(host_properties(&host, 0, &properties) != NCCL_SUCCESS);
  CHECK(host_fuse(&host, &count, 1, 0, 0) != NCCL_SUCCESS);
  CHECK(host_listen(&host, context, 0, handle, &made) != NCCL_SUCCESS);
  CHECK(host_connect(&host, context, 0, handle, &made) != NCCL_SUCCESS);
  CHECK(host_accept(&host, pair->listen, &made) != NCCL_SUCCESS);
  CHECK(host_register(&host, pair->send, data, sizeof(data), PTR_HOST, &made) != NCCL_SUCCESS);
  CHECK(HOST_CALL(&host, regMrDmaBuf, pair->send, data, sizeof(data), 2, 0, -1, &made) !=
        NCCL_SUCCESS);
  CHECK(host_isend(&host, pair->send, data, 8, NULL, NULL, &made) != NCCL_SUCCESS);
  CHECK(host_irecv(&host, pair->recv, 1, data, 8, NULL, NULL, false, &made) != NCCL_SUCCESS);
  CHECK(HOST_CALL(&host, iflush, pair->recv, 1, datas, sizes, NULL, &made) != NCCL_SUCCESS);
  CHECK(HOST_CALL(&host, test, request, &done, sizes) != NCCL_SUCCESS && !done);
  CHECK_OK(HOST_CALL(&host, deregMr, pair->send, NULL));
  CHECK_OK(HOST_CALL(&host, closeSend, pair->send));
  CHECK_OK(HOST_CALL(&host, closeRecv, pair->recv));
  CHECK_OK(HOST_CALL(&host, closeListen, pair->listen));
  CHECK_OK(host_set_attributes(&host, context));
  CHECK_OK(host_finalize(&host, context));
}

/* The messages are a forked child's only word to the outside, and there is one. */
static void child_calls(struct host host, void *context, const struct exchange_pair *pair,
                        void *request, int standard_error) {
  CHECK(dup2(standard_error, STDERR_FILENO) == STDERR_FILENO);
  for (int version = 7; version <= 12; version++) {
    host_use(&host, version);
    call_all(host, context, pair, request);
  }
  _exit(0);
}

static void case_calls(void) {
  void *context, *request = NULL;
  struct traffic traffic = { 0 };
  struct exchange_pair idle;
  struct host host = load(&context);
  traffic_start(&traffic, &host, context);
  exchange_connect(&host, context, &idle);
  unsigned char data[64];
  int done = 0, bytes;
  while (!request) {
    CHECK_OK(host_irecv(&host, idle.recv, 1, data, sizeof(data), NULL, NULL, false, &request));
  }
  for (int i = 0; i < 20; i++) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork_child();
    if (child == 0) {
      child_calls(host, context, &idle, request, ends[1]);
    }
    close(ends[1]);
    char said[4096] = "";
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], said + used, sizeof(said) - 1 - used)) > 0) {
      used += (size_t)n;
    }
    close(ends[0]);
    if (!strstr(said, "fork") || strchr(said, '\n') != said + used - 1) {
      fprintf(stderr, "a forked child said: %s\n", said);
      CHECK(false && "one line on what is wrong");
    }
    check_child(child);
  }
  CHECK_OK(HOST_CALL(&host, test, request, &done, &bytes));
  CHECK(!done);
  traffic_stop(&traffic);
  exchange_close(&idle, 2);
  CHECK_OK(host_finalize(&host, context));
}

/* A process that has only loaded the plugin is not using it: the child may. */
static void case_unused(void) {
  know_descriptors();
  CHECK(dlopen(cases_net_plugin(), RTLD_NOW | RTLD_LOCAL));
  pid_t child = fork_child();
  if (child == 0) {
    static const size_t sizes[] = { 8, 70000, 1 << 20 };
    void *context;
    struct exchange_pair pair;
    struct host host = load(&context);
    exchange_connect(&host, context, &pair);
    exchange_run(&pair, sizes, 3);
    exchange_close(&pair, 1);
    CHECK_OK(host_finalize(&host, context));
    _exit(0);
  }
  check_child(child);
}

struct storm {
  const struct host *host;
  void *context;
  atomic_bool must_stop;
  atomic_int pairs;
};

static void *make_connections(void *argument) {
  struct storm *storm = argument;
  while (!atomic_load(&storm->must_stop)) {
    struct exchange_pair pair;
    exchange_connect(storm->host, storm->context, &pair);
    exchange_close(&pair, atomic_fetch_add(&storm->pairs, 1) % 3);
  }
  return NULL;
}

/* Each is closed by exec, whenever one is made. */
static void check_own_descriptors(void) {
  for (int fd = 0; fd < DESCRIPTORS; fd++) {
    CHECK(is_known[fd] || !is_open(fd) || (fcntl(fd, F_GETFD) & FD_CLOEXEC));
  }
}

/* Descriptors come and go at any moment of a fork. */
static void case_storm(void) {
  setenv("STRATUS_FLOWS", "4", 1);
  setenv("STRATUS_THREADS", "2", 1);
  know_descriptors();
  void *context;
  pthread_t threads[2];
  struct host host = load(&context);
  struct storm storm = { .host = &host, .context = context };
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_create(&threads[i], NULL, make_connections, &storm) == 0);
  }
  for (int i = 0; i < 400 || atomic_load(&storm.pairs) < 20; i++) {
    check_own_descriptors();
    pid_t child = fork_child();
    if (child == 0) {
      tell_descriptors_and_exit();
    }
    check_child(child);
  }
  atomic_store(&storm.must_stop, true);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  CHECK_OK(host_finalize(&host, context));
}

/* ---- tuners ---- */

enum { TUNER_FORKS = 100, RANKS = 8, NODES = 2 };

static atomic_bool must_stop;

static void *open_and_close(void *plugin) {
  while (!atomic_load(&must_stop)) {
    struct driver_comm comm;
    CHECK_OK(driver_init_comm(&comm, plugin, RANKS, NODES));
    driver_close_comm(&comm);
  }
  return NULL;
}

/* In a child: nothing is made, and nothing is chosen. */
static void call_tuner(struct driver_plugin *plugin, struct driver_comm *comm) {
  struct driver_memory memory = { .algo = -1, .proto = -1, .channels = 3 }, before;
  struct driver_comm made;
  for (int i = 0; i < DRIVER_CELLS_MAX; i++) {
    memory.costs[i] = (float)(i + 1);
  }
  before = memory;
  CHECK(driver_init_comm(&made, plugin, RANKS, NODES) != NCCL_SUCCESS && !made.context);
  CHECK_OK(driver_ask(comm, (struct driver_call){ HOST_ALLREDUCE, 1 << 20, 1, 0 }, &memory));
  CHECK(memcmp(&memory, &before, sizeof memory) == 0);
  driver_close_comm(comm);
}

/* Forks while threads open and close tuners, which takes the plugin's locks. The example profile
 * has rows that fit, so a choice would show. */
static void case_tuner(void) {
  struct driver_plugin plugin;
  struct driver_comm comm;
  pthread_t threads[2];
  setenv("STRATUS_PROFILE", "tuner_plugin/profiles/example.profile", 1);
  driver_open(&plugin, cases_release);
  plugin.logger = NULL;
  CHECK_OK(driver_init_comm(&comm, &plugin, RANKS, NODES));
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_create(&threads[i], NULL, open_and_close, &plugin) == 0);
  }
  for (int i = 0; i < TUNER_FORKS; i++) {
    pid_t child = fork_child();
    if (child == 0) {
      call_tuner(&plugin, &comm);
      _exit(0);
    }
    check_child(child);
  }
  atomic_store(&must_stop, true);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
}

static const struct cases_case cases[] = {
  { "exit", case_exit, 0 },   { "calls", case_calls, 0 }, { "unused", case_unused, 0 },
  { "storm", case_storm, 0 }, { "tuner", case_tuner, 0 }, { 0 },
};

const struct cases_host fork_host = {
  .name = "fork",
  .title = "plugins and fork",
  .is_of_ends = true, /* the oldest and the newest interface */
  .cases = cases,
};
