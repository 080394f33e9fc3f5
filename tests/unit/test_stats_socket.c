/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of this very process, asked over their socket: by friends, by strangers, and with
 * directories of all kinds. The engine's own thread serves. */
#include "net_plugin/observe/limits.h"
#include "tests/lib/unit.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_plugin/observe/stats_path.h"
#include "net_plugin/observe/stats_socket.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/stats_file.h"
#include "tests/lib/tree.h"

#define PATIENCE_S 20

static char directory[TREE_PATH_MAX], socket_path[TREE_PATH_MAX + 32];

/* These are the parameters, beside STRATUS_STATS_DIR. */
static void set(const char *others) {
  char words[TREE_PATH_MAX + 128];
  snprintf(words, sizeof words, "STRATUS_STATS_DIR=%s %s", directory, others);
  pair_set_parameters(words);
}

/* STRATUS_STATS_DIR is `path` from now on. What is sent is zeros: where their flow is the limit (a
 * slow machine, a sanitizer), `auto` would code them, and less would be written than is sent. */
static void use_directory(const char *path) {
  snprintf(directory, sizeof directory, "%s", path);
  set("STRATUS_COMPRESS=off");
  stats_file_find(path, socket_path);
}

static struct engine *start_engine(void) {
  struct nic nic = pair_loopback(AF_INET);
  struct engine *engine;
  stats_socket_start();
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engine), 0);
  stats_file_find(directory, socket_path);
  return engine;
}

static int set_up(void **context) {
  char full[TREE_PATH_MAX];
  tree_create(&test_tree);
  use_directory(tree_path(&test_tree, "stats", full));
  log_capture_start();
  return 0;
}

static int tear_down(void **context) {
  tree_remove(&test_tree);
  return pair_tear_down(context);
}

static bool exists(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0;
}

static int reach(void) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct timeval patience = { .tv_sec = PATIENCE_S };
  snprintf(address.sun_path, sizeof address.sun_path, "%.107s", socket_path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* Up to the end; what does not fit is read and forgotten. */
static char *hear(int fd) {
  static char answer[8 << 20];
  size_t used = 0;
  ssize_t n;
  while ((n = recv(fd, answer + used, sizeof answer - 1 - used, 0)) > 0) {
    used += (size_t)n;
  }
  assert_true(n == 0 || errno == ECONNRESET);
  answer[used] = '\0';
  close(fd);
  return answer;
}

static json_t *ask(void) {
  int fd = reach();
  json_error_t error;
  json_t *root = json_loads(hear(fd), 0, &error);
  if (!root) {
    fail_msg("%s", error.text);
  }
  return root;
}

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* ---- the file ---- */

#define WITH_TREE(test) UNIT_TEST_WITH(test, set_up, tear_down)

WITH_TREE(only_this_user_may_ask) {
  mode_t before = umask(0);
  start_engine();
  umask(before);
  struct stat found;
  assert_int_equal(lstat(directory, &found), 0);
  assert_int_equal(found.st_mode & 07777, 0700);
  assert_int_equal(lstat(socket_path, &found), 0);
  assert_true(S_ISSOCK(found.st_mode));
  assert_int_equal(found.st_mode & 07777, 0600);
  setup_stop();
  assert_false(exists(socket_path));
}

static void expect_refusal(const char *because) {
  start_engine();
  assert_false(exists(socket_path));
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_int_equal(log_capture_find("no statistics of this process"), 1);
  assert_int_equal(log_capture_find(because), 1);
}

WITH_TREE(an_open_directory_is_refused) {
  assert_int_equal(mkdir(directory, 0700), 0);
  assert_int_equal(chmod(directory, 0750), 0);
  expect_refusal("mode 0700");
}

/* It comes from the parent, and lets nobody in. */
WITH_TREE(a_setgid_bit_is_no_reason) {
  assert_int_equal(mkdir(directory, 0700), 0);
  assert_int_equal(chmod(directory, 02700), 0);
  start_engine();
  assert_true(exists(socket_path));
}

WITH_TREE(anothers_directory_is_refused) {
  assert_int_equal(mkdir(directory, 0700), 0);
  if (geteuid() != 0 || chown(directory, 12345, 12345) != 0) {
    SKIP_BECAUSE("giving a directory to another user needs root");
  }
  expect_refusal("must belong to this user");
}

WITH_TREE(a_link_is_refused) {
  tree_make_directory(&test_tree, "elsewhere");
  char target[TREE_PATH_MAX];
  assert_int_equal(chmod(tree_path(&test_tree, "elsewhere", target), 0700), 0);
  assert_int_equal(symlink(target, directory), 0);
  expect_refusal("irectory"); /* "Not a directory" */
}

WITH_TREE(a_missing_parent_costs_statistics_only) {
  use_directory("/nonexistent/place");
  expect_refusal("No such file");
}

WITH_TREE(a_name_that_is_too_long_costs_statistics_only) {
  char name[TREE_PATH_MAX], full[TREE_PATH_MAX];
  snprintf(name, sizeof name, "%0120d", 0);
  use_directory(tree_path(&test_tree, name, full));
  expect_refusal("too long");
}

static int bind_socket(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* A socket without a process, as a killed one leaves it. */
static void leave_socket(const char *path) {
  close(bind_socket(path));
}

static pid_t dead_process(void) {
  pid_t pid = fork();
  if (pid == 0) {
    _exit(0);
  }
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  return pid;
}

WITH_TREE(what_the_dead_left_is_removed) {
  char of_dead[TREE_PATH_MAX + 32], of_others[TREE_PATH_MAX + 32], strange[TREE_PATH_MAX + 32];
  assert_int_equal(mkdir(directory, 0700), 0);
  snprintf(of_dead, sizeof of_dead, "%s/%d-1.sock", directory, (int)dead_process());
  snprintf(strange, sizeof strange, "%s/notes.txt", directory);
  leave_socket(of_dead);
  leave_socket(strange);
  snprintf(of_others, sizeof of_others, "%s/%d-1.sock", directory, (int)getppid());
  leave_socket(of_others); /* of a container, where another process had that number */
  start_engine();
  assert_false(exists(of_dead));
  assert_false(exists(of_others));
  assert_true(exists(strange));
  json_decref(ask());
  unlink(strange);
}

/* As of two containers whose processes have one number: each has its file, and neither takes the
 * other for dead. */
WITH_TREE(equal_process_numbers_hide_nobody) {
  char other[TREE_PATH_MAX + 32];
  assert_int_equal(mkdir(directory, 0700), 0);
  snprintf(other, sizeof other, "%s/%d-1.sock", directory, (int)getpid());
  int fd = bind_socket(other);
  assert_int_equal(listen(fd, 4), 0);
  start_engine();
  assert_true(exists(other));
  unlink(other);
  stats_file_find(directory, socket_path);
  json_decref(ask());
  close(fd);
}

/* A file shows when somebody listens there: a sweep in between would remove it. */
WITH_TREE(a_file_listens_from_its_first_moment) {
  char other[TREE_PATH_MAX + 32], name[TREE_PATH_MAX + 32];
  start_engine();
  snprintf(name, sizeof name, "%s", socket_path);
  snprintf(other, sizeof other, "%s/1-1.new", directory);
  leave_socket(other); /* one that is about to listen */
  stats_path_sweep(directory);
  assert_true(exists(other) && exists(name));
  unlink(other);
}

WITH_TREE(names_are_numbers) {
  assert_int_equal(stats_path_pid("4711-5f3a21c00.sock"), 4711);
  static const char *const others[] = { "",          ".sock",     "0-1.sock",
                                        "07-1.sock", "-1.sock",   "1-1.socks",
                                        "1-1.new",   "x1-1.sock", "12345678901-1.sock",
                                        "1-1sock",   "1.sock",    "1-.sock",
                                        "1-x.sock",  "1-A.sock",  "1-12345678901234567.sock" };
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    assert_int_equal(stats_path_pid(others[i]), 0);
  }
}

WITH_TREE(a_forked_child_leaves_the_socket_alone) {
  start_engine();
  pid_t pid = fork();
  if (pid == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  pid = fork();
  if (pid == 0) {
    log_capture_stop();
    exit(0); /* runs destructors */
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(exists(socket_path));
  json_decref(ask());
}

/* ---- clients ---- */

/* Nobody is asked what they want, and what they say is not heard. */
WITH_TREE(whoever_connects_gets_a_document) {
  static const char *const said[] = { "", "json\n", "\xff\xfe\n", "GET / HTTP/1.1\r\n\r\n" };
  start_engine();
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
    int fd = reach();
    if (send(fd, said[i], strlen(said[i]), MSG_NOSIGNAL) < 0) {
      assert_int_equal(errno, EPIPE); /* it has all that it gets */
    }
    assert_int_equal(hear(fd)[0], '{');
  }
}

WITH_TREE(a_thousand_callers_harm_nobody) {
  start_engine();
  for (int i = 0; i < 1000; i++) {
    close(reach()); /* without reading */
  }
  json_decref(ask());
}

/* A client does not read a document that is larger than the buffers of a socket: others wait until
 * it is hung up on. */
WITH_TREE(the_slow_are_hung_up_on) {
  enum { PAIRS = 6, LARGE = 360 << 10 }; /* buffers take up to 1.5 * 208 KiB */
  static const size_t bytes = CONTENT_MAX;
  set("STRATUS_FLOWS=64");
  start_engine();
  struct pair pairs[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    pairs[i] = pair_make(AF_INET);
  }
  while (strlen(hear(reach())) < LARGE) { /* all flows are opened when there is data for them */
    for (int i = 0; i < PAIRS; i++) {
      pair_exchange(pairs[i], &bytes, 1, 3, NULL);
    }
  }
  int slow = reach();
  uint64_t begun_ns = clock_now_ns();
  json_decref(ask());
  assert_true(clock_now_ns() - begun_ns > STATS_CLIENT_NS / 2);
  assert_true(strlen(hear(slow)) < LARGE); /* the rest never came */
  for (int i = 0; i < PAIRS; i++) {
    pair_close(pairs[i]);
  }
}

WITH_TREE(the_end_of_engines_hangs_up) {
  start_engine();
  int fd = reach();
  setup_stop();
  hear(fd);
  start_engine(); /* a second life */
  json_decref(ask());
}

/* ---- what is told ---- */

static double nic_count(const json_t *root, const char *key) {
  const json_t *nics = json_object_get(root, "nics");
  assert_int_equal(json_array_size(nics), 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(nics, 0), "name")), "lo");
  return number(json_array_get(nics, 0), key);
}

static double sum_of_flows(const json_t *connection, const char *key) {
  size_t i;
  json_t *flow;
  double sum = 0;
  json_array_foreach(json_object_get(connection, "flow_list"), i, flow) {
    sum += number(flow, key);
  }
  return sum;
}

WITH_TREE(counts_add_up_and_outlive_connections) {
  const unsigned count = 40;
  const size_t bytes = 300000;
  const double total = (double)count * 300000;
  start_engine();
  json_t *before = ask();
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, &bytes, 1, count, NULL);
  json_t *during = ask();
  const json_t *connections = json_object_get(during, "connections"), *connection;
  size_t i;
  assert_int_equal(json_array_size(connections), 2);
  json_array_foreach(connections, i, connection) {
    bool is_sender = strcmp(json_string_value(json_object_get(connection, "role")), "send") == 0;
    assert_true(number(connection, "bytes") == total);
    assert_true(number(connection, "messages_completed") == count);
    assert_true(sum_of_flows(connection, is_sender ? "bytes_acked" : "bytes_received") == total);
    assert_true(sum_of_flows(connection, is_sender ? "wire_bytes_sent" : "wire_bytes_received") >
                total);
    assert_true(json_is_null(json_object_get(connection, "stall")));
    assert_true(number(connection, "flows_up") >= 1);
  }
  assert_true(nic_count(during, "bytes_received") - nic_count(before, "bytes_received") == total);
  assert_true(nic_count(during, "messages_sent") - nic_count(before, "messages_sent") == count);
  double wire = nic_count(during, "wire_bytes_sent");
  pair_close(pair);
  json_t *after = NULL;
  do {
    json_decref(after);
    usleep(1000);
    after = ask();
  } while (json_array_size(json_object_get(after, "connections")) > 0);
  assert_true(nic_count(after, "bytes_received") - nic_count(before, "bytes_received") == total);
  assert_true(nic_count(after, "connections") - nic_count(before, "connections") == 2);
  assert_true(nic_count(after, "wire_bytes_sent") >= wire);
  assert_true(nic_count(after, "connections_failed") == nic_count(before, "connections_failed"));
  setup_stop();
  start_engine();
  json_t *again = ask();
  assert_true(nic_count(again, "bytes_received") == nic_count(after, "bytes_received"));
  json_decref(before);
  json_decref(during);
  json_decref(after);
  json_decref(again);
}

WITH_TREE(who_moves_the_bytes_is_told) {
  set("STRATUS_PROGRESS=thread STRATUS_THREADS=2");
  start_engine(); /* takes the first turn of listeners */
  struct pair pair = pair_make(AF_INET);
  json_t *document = ask();
  const json_t *connections = json_object_get(document, "connections"), *connection;
  size_t i;
  assert_int_equal(json_array_size(connections), 2);
  json_array_foreach(connections, i, connection) {
    bool is_sender = strcmp(json_string_value(json_object_get(connection, "role")), "send") == 0;
    assert_true(number(connection, "by_thread") == 1);
    assert_true(number(connection, "engine") == (is_sender ? 0 : 1));
  }
  json_decref(document);
  pair_close(pair);
}
