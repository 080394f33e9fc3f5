/* SPDX-License-Identifier: Apache-2.0 */
/* Few descriptors: strangers take none that the application needs, an honest peer gets in, a
 * connection takes fewer flows, who cannot dial says why, and the soft limit is raised. Each scene
 * has a process of its own, and so limits of its own. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/open_files.h"
#include "common/param.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { PORTS = 4, STRANGERS_HELD = 2000, CONNECTIONS = 60, ALL = 4096 };

/* What a scene tells the test: shared with its process. */
struct found {
  unsigned opened, failed; /* open() of the application */
  unsigned most_in_use;
  unsigned long strangers; /* connections that came through */
  uint64_t slowest_ns;     /* connect of an honest peer */
  unsigned connected, left;
  int error;
  uint64_t told_ns, failed_ns; /* after how long */
  bool names_limit, blames_firewall;
  uint64_t raised_to;
};
static struct found *found;

static void limit_descriptors(rlim_t most) {
  struct rlimit limit = { most, most };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void set(const char *first, const char *second) {
  char *environment[] = { (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };
  param_load(environment);
}

/* Takes all descriptors but so many; returns how many it took. */
static unsigned take_all_but(int taken[ALL], unsigned but) {
  unsigned count = 0;
  while (count < ALL && (taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
    count++;
  }
  for (; but > 0 && count > 0; but--) {
    close(taken[--count]);
  }
  return count;
}

/* ---- strangers: a process of their own, from another address ---- */

static int stranger_dial(const struct sockaddr_storage *to) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct linger at_once = { 1, 0 };
  struct sockaddr_in source = { .sin_family = AF_INET };
  source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* no TIME_WAIT */
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (bind(fd, (struct sockaddr *)&source, sizeof source) != 0 ||
      (connect(fd, (const struct sockaddr *)to, tcp_address_bytes(to)) != 0 &&
       errno != EINPROGRESS)) {
    close(fd);
    return -1;
  }
  return fd;
}

/* Silent ones, without end; the latest are kept. Ends with its parent. */
static void strangers_run(int ports_fd) {
  static int held[STRANGERS_HELD];
  struct sockaddr_storage ports[PORTS];
  if (read(ports_fd, ports, sizeof ports) != sizeof ports) {
    _exit(1);
  }
  for (unsigned long i = 0; getppid() != 1; i++) {
    int *slot = &held[i % STRANGERS_HELD];
    if (*slot > 0) {
      close(*slot);
    }
    *slot = stranger_dial(&ports[i % PORTS]);
    found->strangers += *slot > 0;
    if (i % 32 == 0) {
      usleep(1000);
    }
  }
  _exit(0);
}

struct strangers {
  pid_t pid;
  int fd;
};

static struct strangers strangers_prepare(void) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  struct strangers strangers = { fork(), ends[1] };
  if (strangers.pid == 0) {
    close(ends[1]);
    strangers_run(ends[0]);
  }
  close(ends[0]);
  return strangers;
}

static void strangers_end(struct strangers strangers) {
  kill(strangers.pid, SIGKILL);
  waitpid(strangers.pid, NULL, 0);
  close(strangers.fd);
}

/* ---- scenes ---- */

static void run_scene(void (*scene)(void)) {
  found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(found != MAP_FAILED);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* or it would go on with the parent's other tests */
    log_capture_start();
    scene();
    setup_stop();
    log_capture_stop();
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

static struct found end_scene(void) {
  struct found result = *found;
  munmap(found, sizeof *found);
  return result;
}

static atomic_bool is_over;

/* The application: a DataLoader, say, that opens and closes files. */
static void *use_files(void *argument) {
  (void)argument;
  while (!atomic_load(&is_over)) {
    int files[32];
    for (int i = 0; i < 32; i++) {
      files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
      found->opened++;
      found->failed += files[i] < 0;
    }
    for (int i = 0; i < 32; i++) {
      if (files[i] >= 0) {
        close(files[i]);
      }
    }
    usleep(1000);
  }
  return NULL;
}

/* Strangers hold a place for 10 s, and an attempt is given up after 5 s: who is in earlier has
 * waited for neither. */
#define FIRST_ATTEMPT_NS (5 * NS_PER_S)

/* How long it took; FIRST_ATTEMPT_NS or more: it was not made. */
static uint64_t connect_honestly(const struct nic *nic, uint8_t handle[HANDLE_BYTES],
                                 struct listener *listener) {
  struct pair pair = { NULL, NULL };
  uint64_t start_ns = clock_now_ns(), took_ns = 0;
  while ((!pair.sender || !pair.receiver) && took_ns < FIRST_ATTEMPT_NS) {
    if (!pair.sender) {
      assert_int_equal(connector_connect(nic, 1, -1, 0, handle, &pair.sender), 0);
    }
    if (!pair.receiver) {
      assert_int_equal(listener_accept(listener, &pair.receiver), 0);
    }
    usleep(20);
    took_ns = clock_now_ns() - start_ns;
  }
  if (pair.sender && pair.receiver) {
    pair_close(pair);
  }
  return took_ns;
}

static void strangers_on_all_ports(void) {
  enum { FLOOD_MS = 1500, HONEST = 8 };
  struct strangers strangers = strangers_prepare();
  limit_descriptors(1024);
  set("STRATUS_THREADS=4", NULL);
  struct nic nic = pair_loopback(AF_INET);
  struct listener *listeners[PORTS];
  uint8_t handles[PORTS][HANDLE_BYTES];
  struct sockaddr_storage ports[PORTS];
  for (int i = 0; i < PORTS; i++) {
    struct handle handle;
    assert_int_equal(listener_open(&nic, 1, handles[i], &listeners[i]), 0);
    assert_int_equal(handle_decode(handles[i], &handle), 0);
    ports[i] = handle.addresses[0];
  }
  pthread_t application;
  assert_int_equal(pthread_create(&application, NULL, use_files, NULL), 0);
  assert_int_equal(write(strangers.fd, ports, sizeof ports), sizeof ports);
  for (int i = 0; i < FLOOD_MS / 10; i++) {
    struct stat descriptors;
    assert_int_equal(stat("/proc/self/fd", &descriptors), 0);
    unsigned in_use = (unsigned)descriptors.st_size;
    found->most_in_use = in_use > found->most_in_use ? in_use : found->most_in_use;
    usleep(10000);
  }
  for (int i = 0; i < HONEST; i++) {
    uint64_t took_ns = connect_honestly(&nic, handles[i % PORTS], listeners[i % PORTS]);
    found->slowest_ns = took_ns > found->slowest_ns ? took_ns : found->slowest_ns;
  }
  atomic_store(&is_over, true);
  pthread_join(application, NULL);
  strangers_end(strangers);
}

UNIT_TEST(strangers_leave_the_application_its_descriptors) {
  run_scene(strangers_on_all_ports);
  struct found is = end_scene();
  print_message("# %lu strangers: %u of %u open() failed, at most %u descriptors in use, slowest "
                "honest connect %.3f s\n",
                is.strangers, is.failed, is.opened, is.most_in_use, (double)is.slowest_ns / 1e9);
  assert_true(is.strangers > 1000);
  assert_true(is.opened > 1000);
  assert_int_equal(is.failed, 0);
  assert_true(is.slowest_ns < FIRST_ATTEMPT_NS);
}

/* Both ends in one process, all at once, as NCCL does it for many peers. */
static void many_connections(void) {
  static struct pair pairs[CONNECTIONS];
  static uint8_t handles[CONNECTIONS][HANDLE_BYTES];
  struct listener *listeners[CONNECTIONS];
  struct nic nic = pair_loopback(AF_INET);
  limit_descriptors(256);
  uint64_t start_ns = clock_now_ns();
  for (int i = 0; i < CONNECTIONS; i++) {
    assert_int_equal(listener_open(&nic, 1, handles[i], &listeners[i]), 0);
  }
  while (found->connected < CONNECTIONS && clock_now_ns() < start_ns + 20 * NS_PER_S) {
    found->connected = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
      if (!pairs[i].sender) {
        found->error = connector_connect(&nic, 1, -1, 0, handles[i], &pairs[i].sender);
        assert_int_equal(found->error, 0);
      }
      if (!pairs[i].receiver) {
        assert_int_equal(listener_accept(listeners[i], &pairs[i].receiver), 0);
      }
      found->connected += pairs[i].sender && pairs[i].receiver;
    }
    usleep(20);
  }
  found->slowest_ns = clock_now_ns() - start_ns;
  assert_int_equal(found->connected, CONNECTIONS);
  static const size_t sizes[] = { 8, 5000, 400000 };
  for (int i = 0; i < CONNECTIONS; i++) {
    pair_exchange(pairs[i], sizes, 3, 6, NULL);
  }
  sleep(1); /* all flows that come have come */
  int taken[ALL];
  found->left = take_all_but(taken, 0);
}

UNIT_TEST(many_connections_have_fewer_flows) {
  run_scene(many_connections);
  struct found is = end_scene();
  print_message("# %u connections in %.3f s, %u descriptors left\n", is.connected,
                (double)is.slowest_ns / 1e9, is.left);
  assert_true(is.left >= 16);
}

/* ---- without any ---- */

static void dial_without_descriptors(void) {
  struct nic nic = pair_loopback(AF_INET);
  uint8_t handle[HANDLE_BYTES];
  struct listener *listener;
  struct engine *engine;
  struct connection *connection = NULL;
  limit_descriptors(256);
  set("STRATUS_CONNECT_TIMEOUT=3s", NULL);
  assert_int_equal(listener_open(&nic, 1, handle, &listener), 0);
  assert_int_equal(engine_get(&nic, ENGINE_DIALS, &engine), 0);
  int taken[ALL];
  take_all_but(taken, 0);
  uint64_t start_ns = clock_now_ns();
  while (!found->error && !connection && clock_now_ns() < start_ns + 20 * NS_PER_S) {
    found->error = connector_connect(&nic, 1, -1, 0, handle, &connection);
    if (!found->error && !found->told_ns && log_capture_count(LOG_LEVEL_WARN) > 0) {
      found->told_ns = clock_now_ns() - start_ns;
    }
    usleep(1000);
  }
  found->failed_ns = clock_now_ns() - start_ns;
  found->names_limit = log_capture_find("256") > 1 && log_capture_find("ulimit -n") > 1;
  found->blames_firewall = log_capture_find("firewall") > 0;
}

UNIT_TEST(a_dial_says_that_descriptors_are_missing) {
  run_scene(dial_without_descriptors);
  struct found is = end_scene();
  print_message("# told after %.3f s, failed after %.3f s with %s%s%s\n", (double)is.told_ns / 1e9,
                (double)is.failed_ns / 1e9, strerrorname_np(-is.error),
                is.names_limit ? ", names the limit" : "",
                is.blames_firewall ? ", blames a firewall" : "");
  assert_int_equal(is.error, -EMFILE);
  assert_true(is.told_ns > 0); /* before it failed */
  assert_true(is.names_limit);
  assert_false(is.blames_firewall);
}

/* The application has all descriptors; strangers came first and say nothing. */
static void honest_peer_without_descriptors(void) {
  enum { SILENT = 20 };
  struct nic nic = pair_loopback(AF_INET);
  uint8_t handle_bytes[HANDLE_BYTES], hello_bytes[HELLO_BYTES], challenge[CHALLENGE_BYTES];
  struct listener *listener;
  struct handle handle;
  struct hello hello;
  struct auth_keys keys;
  int strangers[SILENT], taken[ALL];
  limit_descriptors(256);
  assert_int_equal(listener_open(&nic, 1, handle_bytes, &listener), 0);
  assert_int_equal(handle_decode(handle_bytes, &handle), 0);
  for (int i = 0; i < SILENT; i++) {
    strangers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  take_all_but(taken, 0);
  const struct sockaddr *to = (struct sockaddr *)&handle.addresses[0];
  for (int i = 0; i < SILENT; i++) {
    struct sockaddr_in source = { .sin_family = AF_INET };
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    assert_int_equal(bind(strangers[i], (struct sockaddr *)&source, sizeof source), 0);
    assert_int_equal(connect(strangers[i], to, sizeof(struct sockaddr_in)), 0);
  }
  struct timeval patience = { .tv_sec = FIRST_ATTEMPT_NS / NS_PER_S };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  uint64_t start_ns = clock_now_ns();
  by_hand_hello(&handle, NULL, &hello, &keys);
  hello_encode(&hello, hello_bytes);
  assert_int_equal(connect(fd, to, sizeof(struct sockaddr_in)), 0);
  by_hand_say(fd, hello_bytes, HELLO_BYTES, false);
  found->connected = recv(fd, challenge, CHALLENGE_BYTES, MSG_WAITALL) == (ssize_t)CHALLENGE_BYTES;
  found->slowest_ns = clock_now_ns() - start_ns;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  usleep(500000);
  getrusage(RUSAGE_SELF, &after);
  found->left = (unsigned)((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
                           after.ru_utime.tv_usec - before.ru_utime.tv_usec);
}

UNIT_TEST(an_honest_peer_gets_in_without_descriptors) {
  run_scene(honest_peer_without_descriptors);
  struct found is = end_scene();
  print_message("# challenged: %s, after %.3f s; %u us of CPU in 0.5 s\n",
                is.connected ? "yes" : "no", (double)is.slowest_ns / 1e9, is.left);
  assert_int_equal(is.connected, 1);
  assert_true(is.left < 100000); /* nothing spins */
}

/* ---- the soft limit ---- */

static rlim_t hard_limit;

static void raise_soft_limit(void) {
  struct rlimit limit = { 256, hard_limit };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  set(NULL, NULL);
  open_files_raise();
  found->raised_to = open_files_limit();
}

static uint64_t raised_to(rlim_t hard) {
  hard_limit = hard;
  run_scene(raise_soft_limit);
  return end_scene().raised_to;
}

UNIT_TEST(the_soft_limit_is_raised_to_the_hard_one_or_65536) {
  struct rlimit own;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
  assert_int_equal(raised_to(300), 300);
  assert_int_equal(raised_to(own.rlim_max), own.rlim_max < 65536 ? own.rlim_max : 65536);
}

UNIT_MAIN(NULL, NULL)
