/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a CollNet group in which the k-th allocation or system call fails, for k = 1, 2,
 * ... until none fails any more: all members have a group, or none has one, nobody waits for ever,
 * and what they sum is right or an error. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/param.h"
#include "net_plugin/collnet/hello.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/handle.h"
#include "tests/lib/fault.h"
#include "tests/lib/job.h"
#include "tests/lib/unit.h"

/* COUNT: f32 elements, so that both phases run. */
enum { MEMBERS = 3, COUNT = 30000, K_MAX = 400 };

struct member {
  unsigned number;
  pthread_t thread;
  struct collnet_listener *listener;
  bool is_connected, is_wrong;
  uint64_t connect_ns, end_ns; /* how long it took */
};

static uint8_t handles[MEMBERS][HANDLE_BYTES];
static struct member members[MEMBERS];
static bool takes_memory_back; /* during the sums */

static bool is_sum(const float *result) {
  for (unsigned i = 0; i < COUNT; i++) {
    if (result[i] != (float)(MEMBERS * i + MEMBERS * (MEMBERS - 1) / 2)) {
      return false;
    }
  }
  return true;
}

static void allreduce(struct member *member, struct collnet_group *group) {
  static float data[MEMBERS][COUNT];
  float *own = data[member->number];
  for (unsigned i = 0; i < COUNT; i++) {
    own[i] = (float)(i + member->number);
  }
  struct collnet_memory *memory = NULL;
  int rc = collnet_register(group, own, sizeof(data[0]), MEMORY_HOST, &memory);
  member->is_wrong |= rc != 0;
  struct collnet_call call = { own, own, COUNT, REDUCE_FLOAT32, REDUCE_SUM, memory, memory };
  struct collnet_request *request = NULL;
  while (!rc && !request) {
    rc = collnet_allreduce(group, &call, &request);
  }
  bool is_done = false;
  size_t bytes;
  while (!rc && !is_done) {
    rc = collnet_test(request, &is_done, &bytes);
  }
  member->is_wrong |= rc ? takes_memory_back : !is_sum(own);
  collnet_deregister(group, memory);
}

struct other_memory {
  struct collnet_group *group;
  atomic_bool is_over;
  unsigned times;
};

/* As NCCL's service thread: registers memory that no call uses, and takes it back. */
static void *take_memory_back(void *argument) {
  struct other_memory *other = argument;
  static float data[1024];
  while (!atomic_load(&other->is_over)) {
    struct collnet_memory *memory = NULL;
    other->times += collnet_register(other->group, data, sizeof(data), MEMORY_HOST, &memory) == 0;
    collnet_deregister(other->group, memory);
  }
  return NULL;
}

static void sum_while_memory_is_taken_back(struct member *member, struct collnet_group *group) {
  struct other_memory other = { .group = group };
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, take_memory_back, &other), 0);
  for (int i = 0; i < 20 && !member->is_wrong; i++) {
    allreduce(member, group);
  }
  atomic_store(&other.is_over, true);
  pthread_join(thread, NULL);
  member->is_wrong |= other.times == 0;
}

static void *run_member(void *argument) {
  struct member *member = argument;
  void *to[MEMBERS];
  for (unsigned i = 0; i < MEMBERS; i++) {
    to[i] = handles[i];
  }
  struct collnet_group *group = NULL;
  uint64_t start_ns = clock_now_ns();
  collnet_connect(to, MEMBERS, (int)member->number, member->listener, &group);
  collnet_close_listener(member->listener);
  member->connect_ns = clock_now_ns() - start_ns;
  member->is_connected = group != NULL;
  if (group && takes_memory_back) {
    sum_while_memory_is_taken_back(member, group);
  } else if (group) {
    allreduce(member, group);
  }
  collnet_close(group);
  member->end_ns = clock_now_ns() - start_ns;
  return NULL;
}

/* The threads are the test's own: FAULT_THREAD counts only what the plugin starts. */
static void run_group(void) {
  for (unsigned i = 0; i < MEMBERS; i++) {
    members[i] = (struct member){ .number = i };
    collnet_listen(0, handles[i], &members[i].listener);
  }
  for (unsigned i = 0; i < MEMBERS; i++) {
    while (pthread_create(&members[i].thread, NULL, run_member, &members[i])) {
    }
  }
  for (unsigned i = 0; i < MEMBERS; i++) {
    pthread_join(members[i].thread, NULL);
  }
}

/* True if the fault happened. */
static bool run_with(enum fault_call call, unsigned long k, int error) {
  struct plugin_host host = { .api_version = 12, .traffic_class = PLUGIN_TRAFFIC_CLASS_NONE };
  struct plugin_context *context;
  int devices;
  assert_int_equal(plugin_init(&host, &context), 0);
  assert_int_equal(plugin_device_count(&devices), 0);
  unsigned descriptors = job_descriptors();
  fault_fail(call, k, error);
  run_group();
  bool has_failed = fault_clear();
  for (unsigned i = 0; i < MEMBERS; i++) {
    const struct member *member = &members[i];
    bool is_alone = member->is_connected != members[0].is_connected;
    bool is_slow = member->connect_ns > 10 * NS_PER_S || member->end_ns > 20 * NS_PER_S;
    if (is_alone || is_slow || member->is_wrong || (!has_failed && !member->is_connected)) {
      fail_msg("%s number %lu failing with %s: member %u %s%s%s after %.1f s",
               fault_call_name(call), k, strerrorname_np(error), i,
               member->is_connected ? "connected" : "not connected",
               is_alone ? ", others not so" : "", member->is_wrong ? ", wrong data" : "",
               (double)member->end_ns / NS_PER_S);
    }
  }
  plugin_finalize(context);
  assert_int_equal(job_descriptors(), descriptors);
  return has_failed;
}

/* Every k at first, then fewer and fewer: what comes often comes from the same place. */
static void run_for_all(enum fault_call call, int error) {
  enum { DENSE = 5 };
  unsigned long k = 1;
  while (k <= K_MAX && run_with(call, k, error)) {
    k += k < DENSE ? 1 : 1 + k / (call == FAULT_ALLOCATION ? 8 : 2);
  }
}

static void a_group_without_faults_sums(void **state) {
  (void)state;
  assert_false(run_with(FAULT_RANDOM, 100000, EIO));
}

static void other_memory_is_taken_back_meanwhile(void **state) {
  (void)state;
  takes_memory_back = true;
  assert_false(run_with(FAULT_RANDOM, 100000, EIO));
  takes_memory_back = false;
}

static void all_or_none_without_memory(void **state) {
  (void)state;
  run_for_all(FAULT_ALLOCATION, ENOMEM);
}

static void all_or_none_when_a_call_fails(void **state) {
  (void)state;
  static const struct {
    enum fault_call call;
    int error;
  } failures[] = {
    { FAULT_SOCKET, EMFILE },      { FAULT_BIND, EADDRINUSE },   { FAULT_LISTEN, EADDRINUSE },
    { FAULT_ACCEPT, EMFILE },      { FAULT_CONNECT, ETIMEDOUT }, { FAULT_SEND, EPIPE },
    { FAULT_RECEIVE, ECONNRESET }, { FAULT_EPOLL_ADD, ENOMEM },  { FAULT_RANDOM, ENOSYS },
  };
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    run_for_all(failures[i].call, failures[i].error);
  }
}

/* ---- what a hello says ---- */

static const struct collnet_hello ours = { HELLO_WIRE_VERSION, 3, 0, 1, COLLNET_FULL, "here" };

static void compares_to(struct collnet_hello theirs, int expected, const char *word) {
  uint8_t bytes[COLLNET_HELLO_BYTES];
  char text[HELLO_TEXT_BYTES] = "";
  struct collnet_hello decoded;
  collnet_hello_encode(&theirs, bytes);
  assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes), &ours, &decoded), 0);
  assert_memory_equal(&decoded, &theirs, sizeof(decoded));
  assert_int_equal(collnet_hello_compare(&ours, &decoded, text), expected);
  assert_non_null(strstr(text, word));
}

static void a_hello_says_who_differs(void **state) {
  (void)state;
  struct collnet_hello theirs = ours;
  strcpy(theirs.host, "there");
  theirs.member = 2;
  compares_to(theirs, 0, "");
  theirs.members = 4;
  compares_to(theirs, -EPROTO, "there has a group of 4 members");
  theirs.mode = COLLNET_FP16;
  compares_to(theirs, -EPROTO, "there has STRATUS_COLLNET=fp16");
  theirs.mode = 77;
  compares_to(theirs, -EPROTO, "STRATUS_COLLNET=unknown");
  theirs.version = 99;
  compares_to(theirs, -EPROTO, "there has version 99 of the exchange");
}

/* It goes into logs. */
static void the_name_of_a_host_is_plain_text(void **state) {
  (void)state;
  uint8_t bytes[COLLNET_HELLO_BYTES];
  struct collnet_hello theirs = ours, decoded;
  theirs.member = 2;
  strcpy(theirs.host, "a\x1b[2J\nb\xc3");
  collnet_hello_encode(&theirs, bytes);
  assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes), &ours, &decoded), 0);
  assert_string_equal(decoded.host, "a?[2J?b?");
}

static void what_is_no_hello_is_refused(void **state) {
  (void)state;
  uint8_t bytes[COLLNET_HELLO_BYTES];
  struct collnet_hello theirs = ours, decoded;
  theirs.member = 2;
  collnet_hello_encode(&theirs, bytes);
  assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes) - 1, &ours, &decoded), -EPROTO);
  bytes[0] ^= 1;
  assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes), &ours, &decoded), -EPROTO);
  static const struct collnet_hello strangers[] = {
    { HELLO_WIRE_VERSION, 3, 0, 1, COLLNET_FULL, "ourselves" },
    { HELLO_WIRE_VERSION, 3, 3, 1, COLLNET_FULL, "beyond" },
    { HELLO_WIRE_VERSION, 3, 1, COLLNET_PHASES, COLLNET_FULL, "phase" },
  };
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
    collnet_hello_encode(&strangers[i], bytes);
    assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes), &ours, &decoded), -EPROTO);
  }
}

int main(void) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  char *environment[] = { "STRATUS_COLLNET=full",
                          "STRATUS_FLOWS=2",
                          "STRATUS_CONNECT_TIMEOUT=500ms",
                          "STRATUS_LINK_TIMEOUT=1s",
                          "STRATUS_SYSFS_ROOT=/nonexistent",
                          NULL };
  param_load(environment);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_hello_says_who_differs),
    cmocka_unit_test(what_is_no_hello_is_refused),
    cmocka_unit_test(the_name_of_a_host_is_plain_text),
    cmocka_unit_test(a_group_without_faults_sums),
    cmocka_unit_test(other_memory_is_taken_back_meanwhile),
    cmocka_unit_test(all_or_none_without_memory),
    cmocka_unit_test(all_or_none_when_a_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
