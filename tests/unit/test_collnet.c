/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a CollNet group in which the k-th allocation or system call fails, for k = 1, 2,
 * ... until none fails any more: all members have a group, or none has one, nobody waits for ever,
 * and what they sum is right or an error. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/abi/collnet_abi.h"
#include "net_plugin/collnet/hello.h"
#include "net_plugin/setup/handle.h"
#include "tests/lib/each_failure.h"
#include "tests/lib/job.h"
#include "tests/lib/unit.h"

/* COUNT: f32 elements, so that both phases run. */
enum { MEMBERS = 3, COUNT = 30000 };
#define PATIENCE_NS (120 * NS_PER_S) /* a member that takes longer waits for ever */

static const struct collnet_v12 *const table = &ncclCollNetPlugin_v12;

struct member {
  unsigned number;
  pthread_t thread;
  void *listener;
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

static void allreduce(struct member *member, void *group) {
  static float data[MEMBERS][COUNT];
  float *own = data[member->number];
  for (unsigned i = 0; i < COUNT; i++) {
    own[i] = (float)(i + member->number);
  }
  void *memory = NULL, *request = NULL;
  enum nccl_result rc = table->regMr(group, own, sizeof(data[0]), NCCL_PTR_HOST, &memory);
  member->is_wrong |= rc != NCCL_SUCCESS;
  while (!rc && !request) {
    rc = table->iallreduce(group, own, own, COUNT, REDUCE_FLOAT32, REDUCE_SUM, memory, memory,
                           &request);
  }
  int is_done = 0, bytes;
  while (!rc && !is_done) {
    rc = table->test(request, &is_done, &bytes);
    usleep(20);
  }
  member->is_wrong |= rc ? takes_memory_back : !is_sum(own);
  table->deregMr(group, memory);
}

struct other_memory {
  void *group;
  atomic_bool is_over;
  unsigned times;
};

/* As NCCL's service thread: registers memory that no call uses, and takes it back. */
static void *take_memory_back(void *argument) {
  struct other_memory *other = argument;
  static float data[1024];
  while (!atomic_load(&other->is_over)) {
    void *memory = NULL;
    other->times += table->regMr(other->group, data, sizeof(data), NCCL_PTR_HOST, &memory) == 0;
    table->deregMr(other->group, memory);
    usleep(20);
  }
  return NULL;
}

static void sum_while_memory_is_taken_back(struct member *member, void *group) {
  struct other_memory other = { .group = group };
  pthread_t thread;
  while (pthread_create(&thread, NULL, take_memory_back, &other)) {
  }
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
  void *group = NULL;
  uint64_t start_ns = clock_now_ns();
  member->is_wrong |= table->connect(to, MEMBERS, (int)member->number, member->listener, &group);
  member->is_wrong |= table->closeListen(member->listener);
  member->connect_ns = clock_now_ns() - start_ns;
  member->is_connected = group != NULL;
  if (group && takes_memory_back) {
    sum_while_memory_is_taken_back(member, group);
  } else if (group) {
    allreduce(member, group);
  }
  if (group) {
    member->is_wrong |= table->closeColl(group);
  }
  member->end_ns = clock_now_ns() - start_ns;
  return NULL;
}

static void start_members(void *context) {
  for (unsigned i = 0; i < MEMBERS; i++) {
    members[i] = (struct member){ .number = i };
    members[i].is_wrong = table->listen(context, 0, handles[i], &members[i].listener);
  }
  /* The threads are the test's own, and may fail to start as the plugin's may. */
  for (unsigned i = 0; i < MEMBERS; i++) {
    while (pthread_create(&members[i].thread, NULL, run_member, &members[i])) {
    }
  }
  for (unsigned i = 0; i < MEMBERS; i++) {
    pthread_join(members[i].thread, NULL);
  }
}

static void judge_members(struct outcome *outcome) {
  for (unsigned i = 0; i < MEMBERS; i++) {
    const struct member *member = &members[i];
    outcome->error |= member->is_connected ? 0 : NCCL_SYSTEM_ERROR;
    if (member->is_connected != members[0].is_connected) {
      outcome->problem = "only some are connected";
    } else if (member->connect_ns > PATIENCE_NS || member->end_ns > PATIENCE_NS) {
      outcome->problem = "slow";
    } else if (member->is_wrong) {
      outcome->problem = "wrong data, or a call fails that may not";
    }
  }
}

/* NCCL inits the network, then CollNet, and ends both. */
static void run_group(struct outcome *outcome) {
  void *net = NULL, *context = NULL;
  int devices;
  outcome->stage = "init";
  outcome->error = (int)ncclNetPlugin_v12.init(&net, 1, NULL, job_logger, NULL);
  if (!outcome->error) {
    outcome->error = (int)table->init(&context, 1, job_logger);
  }
  if (!outcome->error) {
    outcome->error = (int)table->devices(&devices);
  }
  if (!outcome->error) {
    outcome->stage = "group";
    start_members(context);
    judge_members(outcome);
  }
  if (context && table->finalize(context)) {
    outcome->problem = "CollNet's finalize fails";
  }
  if (net && ncclNetPlugin_v12.finalize(net)) {
    outcome->problem = "the network's finalize fails";
  }
}

/* Where a call fails, others may wait for that member in vain, and do so in short; a busy machine
 * alone takes longer than that. */
static void set_patience(bool is_short) {
  char *environment[] = { "STRATUS_COLLNET=full", "STRATUS_FLOWS=2",
                          is_short ? "STRATUS_CONNECT_TIMEOUT=500ms"
                                   : "STRATUS_CONNECT_TIMEOUT=30s",
                          is_short ? "STRATUS_LINK_TIMEOUT=1s" : "STRATUS_LINK_TIMEOUT=30s", NULL };
  param_load(environment);
  sysfs_process_root = "/nonexistent";
}

static void run_entry(struct outcome *outcome) {
  unsigned long k;
  each_failure_pending(&k);
  set_patience(k > 0);
  run_group(outcome);
  if (k > 0 && outcome->error && !fault_clear()) { /* the machine was slow */
    *outcome = (struct outcome){ 0 };
    set_patience(false);
    run_group(outcome);
  }
}

UNIT_TEST(other_memory_is_taken_back_meanwhile) {
  struct outcome outcome = { 0 };
  set_patience(false);
  takes_memory_back = true;
  run_group(&outcome);
  takes_memory_back = false;
  assert_int_equal(outcome.error, 0);
  assert_null(outcome.problem);
}

UNIT_TEST(all_or_none_when_a_call_fails) {
  static const struct entry_point entry = { .name = "CollNet table",
                                            .run = run_entry,
                                            .is_slow = true };
  assert_true(each_failure_of_all(&entry) > 0);
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

UNIT_TEST(a_hello_says_who_differs) {
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
UNIT_TEST(the_name_of_a_host_is_plain_text) {
  uint8_t bytes[COLLNET_HELLO_BYTES];
  struct collnet_hello theirs = ours, decoded;
  theirs.member = 2;
  strcpy(theirs.host, "a\x1b[2J\nb\xc3");
  collnet_hello_encode(&theirs, bytes);
  assert_int_equal(collnet_hello_decode(bytes, sizeof(bytes), &ours, &decoded), 0);
  assert_string_equal(decoded.host, "a?[2J?b?");
}

UNIT_TEST(what_is_no_hello_is_refused) {
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
  return unit_run(NULL, NULL);
}
