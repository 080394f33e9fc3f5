/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL calls, through the newest tables, while the k-th call of a kind fails (each_failure.h).
 * Each job comes to an end: all data right, or a clean error with a warning. Once the connection
 * stands, only the former will do: a flow that fails is reconnected. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/param.h"
#include "common/profile.h"
#include "common/sysfs.h"
#include "net_plugin/lane/lane_crypto.h"
#include "tests/lib/each_failure.h"
#include "tests/lib/fault.h"
#include "tests/lib/job.h"
#include "tests/lib/json_text.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/stats_file.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/abi/tuner_abi.h"

/* ---- the net table: a job ---- */

static void run_job(struct outcome *outcome) {
  job_run(&(struct job_options){ NULL, false }, outcome);
}

static void run_connected_job(struct outcome *outcome) {
  job_run(&(struct job_options){ each_failure_arm, false }, outcome);
}

static void run_job_whose_flows_are_cut(struct outcome *outcome) {
  job_run(&(struct job_options){ each_failure_arm, true }, outcome);
}

static const struct entry_point job = { .name = "net table", .run = run_job };
static const struct entry_point connected_job = { .name = "net table, connected",
                                                  .run = run_connected_job,
                                                  .must_succeed = true,
                                                  .arms_itself = true };
static const struct entry_point cut_job = { .name = "net table, reconnecting",
                                            .run = run_job_whose_flows_are_cut,
                                            .must_succeed = true,
                                            .arms_itself = true };

static const char *const by_auto[2] = { NULL };
static const char *const by_thread[2] = { "STRATUS_PROGRESS=thread" };
static const char *const encrypted[2] = { "STRATUS_ENCRYPT=on",
                                          "STRATUS_SECRET=long enough for a secret" };

static int set_up(void **state) {
  const char *const *parameters = *state;
  job_set_parameters(parameters[0], parameters[1]);
  return 0;
}

static int tear_down(void **state) {
  fault_clear();
  param_load((char *[]){ NULL });
  return 0;
}

#define FAILURE_TEST(test, parameters) UNIT_TEST_EACH(test, set_up, tear_down, parameters)

/* Before any other: what a process has found once stays. */
FAILURE_TEST(a_first_start_that_fails_leaves_nothing, by_auto) {
  void *context = NULL;
  log_capture_start();
  fault_refuse(FAULT_SOCKET, EMFILE);
  assert_int_not_equal(ncclNetPlugin_v12.init(&context, 1, NULL, job_logger, NULL), NCCL_SUCCESS);
  fault_clear();
  assert_null(context);
  assert_int_equal(ncclNetPlugin_v12.init(&context, 1, NULL, job_logger, NULL), NCCL_SUCCESS);
  assert_int_equal(ncclNetPlugin_v12.finalize(context), NCCL_SUCCESS);
  log_capture_stop();
}

UNIT_TEST_EACH(a_job_survives_each_failing_call, set_up, tear_down, by_auto, by_thread) {
  assert_true(each_failure_of_all(&job) > 0);
}

UNIT_TEST_EACH(a_job_survives_other_errors, set_up, tear_down, by_auto) {
  static const struct failure others[] = {
    { FAULT_BIND, EACCES },         { FAULT_ACCEPT, ECONNABORTED }, { FAULT_ACCEPT, EINTR },
    { FAULT_CONNECT, ENETUNREACH }, { FAULT_SEND, EAGAIN },         { FAULT_SEND, EINTR },
    { FAULT_RECEIVE, EAGAIN },      { FAULT_EPOLL_ADD, ENOSPC },
  };
  assert_true(EACH_FAILURE(&job, others) > 0);
}

FAILURE_TEST(loses_nothing_without_memory_for_a_flow, by_thread) {
  static const struct failure failures[] = { { FAULT_ALLOCATION, ENOMEM } };
  assert_true(EACH_FAILURE(&cut_job, failures) > 0);
}

/* What carries data: a flow is lost, its chunks go to the others. */
FAILURE_TEST(loses_nothing_when_a_flow_fails, by_auto) {
  static const struct failure failures[] = {
    { FAULT_SEND, EPIPE },    { FAULT_SEND, ENOBUFS },       { FAULT_SEND, EINTR },
    { FAULT_SEND, EAGAIN },   { FAULT_RECEIVE, ECONNRESET }, { FAULT_RECEIVE, ETIMEDOUT },
    { FAULT_RECEIVE, EINTR }, { FAULT_EPOLL_WAIT, EINTR },
  };
  assert_true(EACH_FAILURE(&connected_job, failures) > 0);
}

/* What dials again after flows were cut. */
FAILURE_TEST(loses_nothing_when_a_dial_fails, by_auto) {
  static const struct failure failures[] = {
    { FAULT_SOCKET, EMFILE },     { FAULT_CONNECT, ECONNREFUSED }, { FAULT_CONNECT, EINTR },
    { FAULT_BIND, EADDRINUSE },   { FAULT_ACCEPT, EMFILE },        { FAULT_EPOLL_ADD, ENOMEM },
    { FAULT_SETSOCKOPT, EACCES }, { FAULT_SEND, EPIPE },           { FAULT_RECEIVE, ECONNRESET },
  };
  assert_true(EACH_FAILURE(&cut_job, failures) > 0);
}

FAILURE_TEST(an_encrypted_job_survives_each_failing_call, encrypted) {
  static const struct entry_point entry = { .name = "net table, encrypted", .run = run_job };
  static const struct failure failures[] = {
    { FAULT_ALLOCATION, ENOMEM },
    { FAULT_LIBRARY, ENOENT },
    { FAULT_RANDOM, ENOSYS },
    { FAULT_SEAL, EIO },
  };
  assert_true(lane_crypto_ciphers() != 0); /* libcrypto is opened once, before any of it fails */
  assert_true(EACH_FAILURE(&entry, failures) > 0);
}

/* ---- the statistics of a job ---- */

/* True if all of a document came. Its own calls are counted with the server's, and may fail, too.
 */
static bool has_statistics(void) {
  static char answer[1 << 16];
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  stats_file_find(test_tree.root, address.sun_path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  size_t used = 0;
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
    ssize_t n;
    while ((n = recv(fd, answer + used, sizeof answer - 1 - used, 0)) > 0) {
      used += (size_t)n;
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  answer[used] = '\0';
  return used > 2 && answer[0] == '{' && strcmp(answer + used - 2, "}\n") == 0;
}

static bool was_served;

/* One call fails, so one of two clients is served. */
static void ask_for_statistics(void) {
  each_failure_arm();
  bool first = has_statistics();
  was_served = has_statistics() || first;
}

static void run_watched_job(struct outcome *outcome) {
  was_served = false;
  job_run(&(struct job_options){ ask_for_statistics, false }, outcome);
  if (!was_served && !outcome->problem) {
    outcome->problem = "no statistics";
  }
}

FAILURE_TEST(statistics_survive_each_failing_call, by_auto) {
  static const struct entry_point entry = {
    .name = "statistics", .run = run_watched_job, .must_succeed = true, .arms_itself = true
  };
  char directory[128];
  tree_create(&test_tree);
  snprintf(directory, sizeof directory, "STRATUS_STATS_DIR=%s", test_tree.root);
  job_set_parameters(by_thread[0], directory);
  assert_true(each_failure_of_all(&entry) > 0);
  tree_remove(&test_tree);
}

/* ---- the tuner's table ---- */

static void tuner_logger(enum nccl_log_level level, unsigned long subsystems, const char *file,
                         int line, const char *format, ...) {
  (void)subsystems, (void)file, (void)line;
  char text[LOG_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log_capture_keep(level == NCCL_LOG_WARN ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, text);
}

/* Each time another file, as the tuner warns of each error once. */
static void use_new_profile(void) {
  static char profile[TREE_PATH_MAX + 32];
  static unsigned number;
  char name[32], path[TREE_PATH_MAX];
  snprintf(name, sizeof name, "p%u.profile", number++);
  tree_write(&test_tree, name, "%s",
             json_text("{'schema': 2, 'id': 'p', 'tables': [{'coll': 'allreduce', 'nodes': 4, "
                       "'ppn': 8, 'rows': [{'bytes_lo': 1024, 'bytes_hi': 1048576, 'algo': 'ring', "
                       "'proto': 'simple', 'channels': 4}]}]}"));
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s", tree_path(&test_tree, name, path));
  sysfs_process_root = test_tree.root;
  param_load((char *[]){ profile, NULL });
  each_failure_arm();
}

static void run_tuner(struct outcome *outcome) {
  use_new_profile();
  void *context = NULL;
  float us[7][3]; /* algorithms and protocols of NCCL 2.30 */
  int channels = 0;
  for (int cell = 0; cell < 21; cell++) {
    us[cell / 3][cell % 3] = cell % 3 == 2 && cell < 6 ? 10.0f + (float)cell : -1.0f;
  }
  outcome->error = (int)ncclTunerPlugin_v6.init(&context, 1, 32, 4, tuner_logger, NULL, NULL);
  outcome->error |= (int)ncclTunerPlugin_v6.getCollInfo(context, PROFILE_ALLREDUCE, 4096, 1,
                                                        (float **)us, 7, 3, 0, &channels);
  if (us[PROFILE_RING][PROFILE_SIMPLE] != 0 && log_capture_count(LOG_LEVEL_WARN) == 0) {
    outcome->problem = "it does not follow its profile, and does not say why";
  }
  if (context) {
    outcome->error |= (int)ncclTunerPlugin_v6.finalize(context);
  }
}

FAILURE_TEST(the_tuner_survives_each_failing_call, by_auto) {
  static const struct entry_point entry = {
    .name = "tuner table", .run = run_tuner, .must_succeed = true, .arms_itself = true
  };
  tree_create(&test_tree);
  assert_true(each_failure_of_all(&entry) > 0);
  tree_remove(&test_tree);
}

FAILURE_TEST(short_reads_and_writes_are_whole, by_auto) {
  static const size_t pieces[] = { 1000, 7 };
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    struct job_options options = { NULL, i == 0 };
    struct outcome outcome;
    fault_shorten(pieces[i]);
    job_run(&options, &outcome);
    fault_clear();
    assert_int_equal(outcome.error, 0);
    assert_null(outcome.problem);
  }
}

/* With an argument, as in '*encrypted*', the tests of that name. */
int main(int argc, char **argv) {
  cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
  return unit_run(NULL, NULL);
}
