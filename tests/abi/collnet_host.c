/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL that knows CollNet of today: members of a group, each in a
 * process of its own, load the built plugin, connect and reduce as NCCL's proxy does, over the
 * loopback interface. */
#include <dlfcn.h>
#include <math.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net_plugin/abi/collnet_abi.h"
#include "tests/abi/net_driver.h"
#include "tests/coll/pattern.h"

enum {
  SOON_US = 20, /* what a member waits before it looks again: they share processors */
  MEMBERS_MAX = 4,
  LARGEST = 300000,
  STEPS = 8,
  REQUESTS = 64, /* NCCL's steps of as many channel groups as may share a group */
  LONGEST =
      5000001, /* more than a group has in flight (COLLNET_IN_FLIGHT_BYTES), in uneven pieces */
};

enum { SUM = PATTERN_SUM, OPS = PATTERN_AVG }; /* of the network, an average is a sum */

/* What the members' processes share. */
static struct shared {
  unsigned char handles[MEMBERS_MAX][HANDLE_BYTES];
  int listening, arrived; /* atomic */
  char logs[MEMBERS_MAX][CASES_LOG_BYTES];
  unsigned char results[MEMBERS_MAX][LONGEST * 4];
} * shared;

/* The member that this process is. */
static struct {
  int version, number, members;
  const void *table;
  void *context, *listen, *group;
} self;

/* ---- calls, by version ---- */

/* A table is read as the first version that has the wanted type, as in net_driver.h. */
#define TABLE(v) ((const struct collnet_v##v *)self.table)
#define CALL(function, ...) (TABLE(8)->function(__VA_ARGS__))

static void start(void) {
  char symbol[32];
  void *library = dlopen(cases_net_plugin(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  snprintf(symbol, sizeof(symbol), "ncclCollNetPlugin_v%d", self.version);
  self.table = dlsym(library, symbol);
  CHECK(self.table);
  CHECK_OK(self.version < 11 ? TABLE(8)->init(cases_log)
                             : TABLE(11)->init(&self.context, 0x1234, cases_log));
}

static int device_count(void) {
  int count = -1;
  CHECK_OK(CALL(devices, &count));
  return count;
}

static enum nccl_result make_listener(void *handle) {
  return self.version < 11 ? TABLE(8)->listen(0, handle, &self.listen)
                           : TABLE(11)->listen(self.context, 0, handle, &self.listen);
}

static void listen_and_meet(void) {
  CHECK_OK(make_listener(shared->handles[self.number]));
  __atomic_add_fetch(&shared->listening, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&shared->listening, __ATOMIC_SEQ_CST) < self.members) {
    usleep(1000);
  }
}

static void join(void) {
  void *handles[MEMBERS_MAX];
  for (int i = 0; i < self.members; i++) {
    handles[i] = shared->handles[i];
  }
  CHECK_OK(CALL(connect, handles, self.members, self.number, self.listen, &self.group));
  CHECK_OK(CALL(closeListen, self.listen));
}

static void form_group(void) {
  listen_and_meet();
  join();
  CHECK(self.group);
}

static void leave(void) {
  CHECK_OK(CALL(closeColl, self.group));
  if (self.version >= 11) {
    CHECK_OK(TABLE(11)->finalize(self.context));
  }
}

static void meet(int rounds) {
  __atomic_add_fetch(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&shared->arrived, __ATOMIC_SEQ_CST) < self.members * rounds) {
    usleep(1000);
  }
}

static enum nccl_result try_post(void *send, void *recv, size_t count, int type, int op,
                                 void *send_memory, void *recv_memory, void **request) {
  return self.version == 8 ? TABLE(8)->iallreduce(self.group, send, recv, (int)count, type, op,
                                                  send_memory, recv_memory, request)
                           : TABLE(9)->iallreduce(self.group, send, recv, count, type, op,
                                                  send_memory, recv_memory, request);
}

/* NULL: the group has ended. */
static void *post(void *send, void *recv, size_t count, int type, int op, void *send_memory,
                  void *recv_memory) {
  void *request = NULL;
  while (!request) {
    if (try_post(send, recv, count, type, op, send_memory, recv_memory, &request) != NCCL_SUCCESS) {
      return NULL;
    }
    if (!request) {
      usleep(SOON_US);
    }
  }
  return request;
}

/* The result of the last call: success, or what ended it. */
static enum nccl_result wait_for(void *request, int bytes) {
  int is_done = 0, size = -1;
  while (!is_done) {
    enum nccl_result result = CALL(test, request, &is_done, &size);
    if (result != NCCL_SUCCESS) {
      return result;
    }
    if (!is_done) {
      usleep(SOON_US);
    }
  }
  CHECK(size == bytes);
  return NCCL_SUCCESS;
}

/* ---- one exchange and its check ---- */

struct exchange {
  int type, op;
  size_t count;
  bool is_in_place;
  double tolerance; /* relative to the sum of absolute values; 0: exact */
};

static void check_near(const struct exchange *exchange, const struct pattern *pattern,
                       const void *recv) {
  enum element_type type = pattern->type;
  for (size_t k = 0; k < exchange->count; k++) {
    double expected = element_decode(type, pattern_expected(pattern, k)), magnitude = 0;
    double got = element_decode(type, element_load(recv, element_infos[type].size_bytes, k));
    for (int number = 0; number < self.members; number++) {
      magnitude += fabs(element_decode(type, pattern_sent(pattern, number, k)));
    }
    CHECK(fabs(got - expected) <= exchange->tolerance * magnitude,
          "op %d, count %zu: element %zu is %g, not %g", exchange->op, exchange->count, k, got,
          expected);
  }
}

static void check_exact(const struct exchange *exchange, const struct pattern *pattern,
                        const void *recv) {
  size_t first;
  uint64_t wrong = pattern_compare(pattern, PATTERN_REDUCED, 0, recv, exchange->count, &first);
  CHECK(wrong == 0, "type %d, op %d, count %zu%s: element %zu", exchange->type, exchange->op,
        exchange->count, exchange->is_in_place ? ", in place" : "", first);
}

/* `repeats` calls at once, of the same data; every element of the last is checked, and that all
 * members have the same bits. */
static void exchange_and_check(const struct exchange *exchange, int repeats, int *rounds) {
  size_t size = element_infos[exchange->type].size_bytes, bytes = exchange->count * size;
  unsigned char *memory = mmap(NULL, bytes * 2 * STEPS + 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  void *registration = NULL, *requests[STEPS];
  CHECK_OK(CALL(regMr, self.group, memory, bytes * 2 * STEPS + 4096, PTR_HOST, &registration));
  struct pattern pattern;
  pattern_init(&pattern, (enum element_type)exchange->type, (enum pattern_redop)exchange->op,
               self.members, exchange->count, NULL);
  pattern_fill(&pattern, self.number, 0, memory, exchange->count);
  for (int i = 1; i < repeats; i++) {
    memcpy(memory + bytes * 2 * (size_t)i, memory, bytes);
  }
  unsigned char *recv = NULL;
  for (int i = 0; i < repeats; i++) {
    unsigned char *send = memory + bytes * 2 * (size_t)i;
    recv = exchange->is_in_place ? send : send + bytes;
    requests[i] =
        post(send, recv, exchange->count, exchange->type, exchange->op, registration, registration);
    CHECK(requests[i]);
  }
  for (int i = 0; i < repeats; i++) {
    CHECK_OK(wait_for(requests[i], (int)bytes));
  }
  (exchange->tolerance > 0 ? check_near : check_exact)(exchange, &pattern, recv);
  memcpy(shared->results[self.number], recv, bytes);
  meet(++*rounds);
  CHECK(memcmp(recv, shared->results[0], bytes) == 0);
  meet(++*rounds);
  CHECK_OK(CALL(deregMr, self.group, registration));
  munmap(memory, bytes * 2 * STEPS + 4096);
}

/* ---- cases; each runs in every member's process ---- */

static const size_t counts[] = { 1, 63, 2000, 8193, LARGEST };
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static void run_matrix(int first_type, double tolerance) {
  int rounds = 0;
  form_group();
  for (int type = first_type; type < ELEMENT_TYPES; type++) {
    for (int op = 0; op < OPS; op++) {
      int is_supported = 0;
      CHECK_OK(CALL(reduceSupport, type, op, &is_supported));
      /* The largest takes most of the time, and how it is cut does not depend on the operation. */
      size_t end = op == type % OPS ? COUNTS : COUNTS - 1;
      for (size_t i = 0; is_supported && i < end; i++) {
        struct exchange exchange = { type, op, counts[i], i % 2 == 1,
                                     type == ELEMENT_FLOAT && op == SUM ? tolerance : 0 };
        exchange_and_check(&exchange, i + 1 == COUNTS ? 1 : STEPS, &rounds);
      }
    }
  }
  leave();
}

static void case_off(void) {
  unsetenv("STRATUS_COLLNET");
  start();
  CHECK(device_count() == 0);
}

static void case_full(void) {
  start();
  CHECK(device_count() > 0);
  run_matrix(0, 0);
}

/* Two roundings to 8 bits of mantissa, of sums of floats alone. */
static void case_bf16(void) {
  setenv("STRATUS_COLLNET", "bf16", 1);
  start();
  run_matrix(ELEMENT_HALF, 2.0 / 256);
}

static void case_fp16(void) {
  setenv("STRATUS_COLLNET", "fp16", 1);
  start();
  run_matrix(ELEMENT_HALF, 2.0 / 2048);
}

/* In a forked child, which has neither threads nor descriptors of the plugin: everything that makes
 * or moves something fails, everything that ends something does nothing, however often. */
static void child_calls(float *data, void *registration, void *request) {
  unsigned char handle[HANDLE_BYTES];
  void *handles[] = { shared->handles[0], shared->handles[1] }, *made = NULL;
  int is_done = 0;
  CHECK(CALL(connect, handles, 2, self.number, self.listen, &made) != NCCL_SUCCESS);
  CHECK(CALL(regMr, self.group, data, sizeof *data, PTR_HOST, &made) != NCCL_SUCCESS);
  CHECK(CALL(regMrDmaBuf, self.group, data, 0, PTR_HOST, 0, -1, &made) != NCCL_SUCCESS);
  CHECK(!post(data, data, 1, ELEMENT_FLOAT, SUM, registration, registration));
  CHECK(CALL(test, request, &is_done, NULL) != NCCL_SUCCESS && !is_done);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(CALL(deregMr, self.group, registration));
    CHECK_OK(CALL(closeColl, self.group));
    CHECK_OK(CALL(closeListen, self.listen));
  }
  CHECK(make_listener(handle) != NCCL_SUCCESS);
}

/* And the parent does not notice. */
static void case_forked(void) {
  int status;
  unsigned char handle[HANDLE_BYTES];
  void *registration = NULL;
  float data = 1;
  start();
  form_group();
  CHECK_OK(make_listener(handle));
  CHECK_OK(CALL(regMr, self.group, &data, sizeof data, PTR_HOST, &registration));
  void *request = post(&data, &data, 1, ELEMENT_FLOAT, SUM, registration, registration);
  CHECK(request);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    child_calls(&data, registration, request);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_OK(wait_for(request, sizeof data));
  CHECK(data == 2);
  CHECK_OK(CALL(deregMr, self.group, registration));
  CHECK_OK(CALL(closeListen, self.listen));
  leave();
}

/* Longer than any call with maxCollBytes: before v9 NCCL hands over up to 512 MiB. */
static void case_long(void) {
  setenv("STRATUS_COLLNET", "bf16", 1);
  start();
  form_group();
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LONGEST, self.version % 2 == 1,
                                     2.0 / 256 };
  exchange_and_check(&exchange, 2, &rounds);
  leave();
}

/* As many calls as a group takes, and one that has to wait. Memory is taken back while they use it,
 * as by ncclCommAbort: nothing touches it any more. */
static void case_withdrawn(void) {
  setenv("STRATUS_LINK_TIMEOUT", "3s", 1);
  start();
  form_group();
  size_t bytes = 1 << 20;
  float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  void *registration = NULL, *request = NULL;
  CHECK_OK(CALL(regMr, self.group, memory, bytes, PTR_HOST, &registration));
  int is_done = 0, size = 0;
  if (self.number == 0) {
    void *more = NULL;
    for (int i = 0; i < REQUESTS; i++) {
      request = post(memory, memory, bytes / sizeof(*memory), ELEMENT_FLOAT, SUM, registration,
                     registration);
    }
    CHECK_OK(try_post(memory, memory, 1, ELEMENT_FLOAT, SUM, registration, registration, &more));
    CHECK(!more);
    CHECK_OK(CALL(deregMr, self.group, registration));
    munmap(memory, bytes);
    CHECK(CALL(test, request, &is_done, &size) != NCCL_SUCCESS);
    CHECK_OK(CALL(closeColl, self.group));
    meet(1);
    return;
  }
  meet(1);
  time_t begin = time(NULL);
  request =
      post(memory, memory, bytes / sizeof(*memory), ELEMENT_FLOAT, SUM, registration, registration);
  CHECK(!request || wait_for(request, (int)bytes) != NCCL_SUCCESS);
  CHECK(time(NULL) - begin < 10);
  CHECK_OK(CALL(closeColl, self.group));
}

static void join_in_time(void) {
  time_t begin = time(NULL);
  join();
  CHECK(time(NULL) - begin < 10);
}

/* All are told, and none goes on alone. */
static void expect_refusal(const char *word) {
  join_in_time();
  CHECK(!self.group);
  meet(1);
  bool is_named = false;
  for (int i = 0; i < self.members; i++) {
    is_named |= strstr(shared->logs[i], word) != NULL;
  }
  CHECK(is_named);
}

/* What a member has whose listen failed. */
static void case_no_listener(void) {
  start();
  listen_and_meet();
  memset(shared->handles[0], 0, HANDLE_BYTES);
  meet(1);
  join_in_time();
  CHECK(!self.group);
}

/* To every listener of this test, and to whatever else has a port in its range. Returns how many
 * connections came about; they stay open. */
static int disturb(int first_port, int ports) {
  int connected = 0;
  for (int i = 0; i < 2 * ports; i++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)(first_port + i / 2)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
      close(fd);
      continue;
    }
    connected++;
    unsigned char noise[4096];
    CHECK(getrandom(noise, sizeof(noise), 0) == (ssize_t)sizeof(noise));
    if (i % 2 == 0) { /* the other one is silent */
      send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
    }
  }
  return connected;
}

/* Random bytes and silence at the listeners, before the members connect and while they do. */
static void case_strangers(void) {
  enum { PORTS = 16 };
  int first_port = 20000 + getppid() % 700 * PORTS;
  char range[32];
  snprintf(range, sizeof(range), "%d-%d", first_port, first_port + PORTS - 1);
  setenv("STRATUS_PORT_RANGE", range, 1);
  start();
  listen_and_meet();
  CHECK(disturb(first_port, PORTS) >= 2 * self.members);
  join_in_time();
  CHECK(self.group);
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LARGEST, false, 0 };
  exchange_and_check(&exchange, STEPS, &rounds);
  leave();
}

/* Once for as long as it takes by itself. */
static void case_absent(void) {
  if (self.version < 12) {
    setenv("STRATUS_CONNECT_TIMEOUT", "2s", 1);
  }
  start();
  listen_and_meet();
  if (self.number == 1) {
    CHECK_OK(CALL(closeListen, self.listen));
    meet(1);
  } else {
    expect_refusal("member 1 of 3");
  }
}

/* As many members. */
static const struct cases_case cases[] = {
  { "off", case_off, 1 },
  { "full_2", case_full, 2 },
  { "full_3", case_full, 3 },
  { "bf16", case_bf16, 3 },
  { "fp16", case_fp16, 2 },
  { "absent", case_absent, 3 },
  { "forked", case_forked, 2 },
  { "long", case_long, 3 },
  { "withdrawn", case_withdrawn, 2 },
  { "no_listener", case_no_listener, 3 },
  { "strangers", case_strangers, 3 },
  { 0 },
};

/* Returns in each member's process; this one waits for them, and ends. */
static void begin(void) {
  setenv("STRATUS_COLLNET", "full", 1);
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  pid_t pids[MEMBERS_MAX];
  for (int i = 0; i < cases_variant; i++) {
    pids[i] = fork();
    CHECK(pids[i] >= 0);
    if (pids[i] == 0) {
      self.version = cases_release->net;
      self.number = i;
      self.members = cases_variant;
      cases_log_text = shared->logs[i];
      return;
    }
  }
  bool is_good = true;
  for (int i = 0; i < cases_variant; i++) {
    int status;
    CHECK(waitpid(pids[i], &status, 0) == pids[i]);
    is_good &= status == 0;
  }
  for (int i = 0; !is_good && i < cases_variant; i++) {
    fprintf(stderr, "member %d's log:\n%s", i, shared->logs[i]);
  }
  CHECK(is_good);
  exit(0);
}

static void end(void) {
  _Exit(0);
}

const struct cases_host collnet_host = {
  .name = "collnet",
  .title = "CollNet, every version of its interface",
  .first_net = 8,
  .is_by_net = true,
  .cases = cases,
  .begin = begin,
  .end = end,
};
