/* SPDX-License-Identifier: Apache-2.0 */
/* Few descriptors: strangers take none that the application needs, an honest peer gets in, a
 * connection takes fewer flows, who cannot dial says why, and the soft limit is raised. Each scene
 * has a process of its own, and so limits of its own. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/open_files.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { PORTS = 4, LIMIT = 1024, STRANGERS_HELD = 2000, CONNECTIONS = 60, ALL = 4096 };

static void limit_descriptors(rlim_t most) {
  struct rlimit limit = { most, most };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
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

/* A scene's assertions end its process. */
static void run_scene(void (*scene)(void)) {
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

/* Of all ports together, at any moment: the rest is the application's. */
static void strangers_have_few(void) {
  unsigned used = 0;
  for (int fd = 0; fd < LIMIT; fd++) {
    used += fcntl(fd, F_GETFD) >= 0;
  }
  assert_in_range(used, 0, LIMIT / 4);
}

/* Strangers hold a place for 10 s, and an attempt is given up after 5 s: who is in earlier has
 * waited for neither. */
#define FIRST_ATTEMPT_NS (5 * NS_PER_S)

/* How long it took. */
static uint64_t connect_honestly(struct meeting *meeting) {
  uint64_t start_ns = clock_now_ns();
  pair_close(meeting_pair(meeting));
  return clock_now_ns() - start_ns;
}

static void strangers_on_all_ports(void) {
  enum { HONEST = 8 };
  struct strangers strangers = strangers_prepare();
  limit_descriptors(LIMIT);
  pair_set_parameters("STRATUS_THREADS=4");
  struct meeting meetings[PORTS];
  struct sockaddr_storage ports[PORTS];
  for (int i = 0; i < PORTS; i++) {
    meetings[i] = meeting_open(AF_INET);
    ports[i] = meetings[i].handle.addresses[0];
  }
  assert_int_equal(write(strangers.fd, ports, sizeof ports), sizeof ports);
  UNTIL(log_capture_find("too many strangers at once") > 0) {
    strangers_have_few();
  }
  for (int i = 0; i < HONEST; i++) {
    assert_true(connect_honestly(&meetings[i % PORTS]) < FIRST_ATTEMPT_NS);
    strangers_have_few();
  }
  strangers_end(strangers);
}

UNIT_TEST(strangers_leave_the_application_its_descriptors) {
  run_scene(strangers_on_all_ports);
}

/* Both ends in one process, all at once, as NCCL does it for many peers. */
static void many_connections(void) {
  static struct meeting meetings[CONNECTIONS];
  limit_descriptors(256);
  for (int i = 0; i < CONNECTIONS; i++) {
    meetings[i] = meeting_open(AF_INET);
  }
  int connected = 0;
  UNTIL(connected == CONNECTIONS) {
    connected = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
      meeting_step(&meetings[i]);
      connected += meetings[i].pair.sender && meetings[i].pair.receiver;
    }
  }
  static const size_t sizes[] = { 8, 5000, 400000 };
  for (int i = 0; i < CONNECTIONS; i++) {
    pair_exchange(meetings[i].pair, sizes, 3, 6, NULL);
  }
  sleep(1); /* all flows that come have come */
  int taken[ALL];
  assert_true(take_all_but(taken, 0) >= 16);
}

UNIT_TEST(many_connections_have_fewer_flows) {
  run_scene(many_connections);
}

/* ---- without any ---- */

static void dial_without_descriptors(void) {
  struct engine *engine;
  limit_descriptors(256);
  pair_set_parameters("STRATUS_CONNECT_TIMEOUT=3s");
  struct meeting meeting = meeting_open(AF_INET);
  assert_int_equal(engine_get(meeting.nics, ENGINE_DIALS, &engine), 0);
  int taken[ALL];
  take_all_but(taken, 0);
  bool is_told = false; /* before it fails */
  int error = 0;
  UNTIL(error) {
    is_told = is_told || log_capture_count(LOG_LEVEL_WARN) > 0;
    error = meeting_connect(&meeting);
  }
  assert_int_equal(error, -EMFILE);
  assert_true(is_told);
  assert_true(log_capture_find("256") > 1 && log_capture_find("ulimit -n") > 1);
  assert_int_equal(log_capture_find("firewall"), 0);
}

UNIT_TEST(a_dial_says_that_descriptors_are_missing) {
  run_scene(dial_without_descriptors);
}

/* The application has all descriptors; strangers came first and say nothing. */
static void honest_peer_without_descriptors(void) {
  enum { SILENT = 20 };
  struct nic nic = pair_loopback(AF_INET);
  uint8_t handle_bytes[HANDLE_BYTES], challenge[CHALLENGE_BYTES];
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
  by_hand_hello(&handle, NULL, &hello, &keys);
  handshake_finish(&hello, HANDSHAKE_HELLO);
  assert_int_equal(connect(fd, to, sizeof(struct sockaddr_in)), 0);
  by_hand_say(fd, &hello, HELLO_BYTES, false);
  assert_int_equal(recv(fd, challenge, CHALLENGE_BYTES, MSG_WAITALL), CHALLENGE_BYTES);
  clock_t before = clock();
  usleep(500000);
  assert_true(clock() - before < CLOCKS_PER_SEC / 10); /* nothing spins */
}

UNIT_TEST(an_honest_peer_gets_in_without_descriptors) {
  run_scene(honest_peer_without_descriptors);
}

/* ---- the soft limit ---- */

static rlim_t hard_limit, raised_to;

static void raise_soft_limit(void) {
  struct rlimit limit = { 256, hard_limit };
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  pair_set_parameters(NULL);
  open_files_raise();
  assert_int_equal(open_files_limit(), raised_to);
}

UNIT_TEST(the_soft_limit_is_raised_to_the_hard_one_or_65536) {
  struct rlimit own;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
  hard_limit = raised_to = 300;
  run_scene(raise_soft_limit);
  hard_limit = own.rlim_max;
  raised_to = own.rlim_max < 65536 ? own.rlim_max : 65536;
  run_scene(raise_soft_limit);
}
