/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL that knows CollNet of today: members of a group, each in a
 * process of its own, load the built plugin, connect and reduce as NCCL's proxy does, over the
 * loopback interface. */
#include <dlfcn.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/abi/cases.h"
#include "tests/abi/collnet_numbers.h"
#include "net_plugin/abi/collnet_abi.h"
#include "tests/abi/net_calls.h"

enum { SOON_US = 20 }; /* what a member waits before it looks again: they share processors */
enum { MEMBERS_MAX = 4, HANDLE_BYTES = 128, PTR_HOST = 1, LARGEST = 300000, STEPS = 8 };
/* f32 elements: more than what a group has in flight (COLLNET_IN_FLIGHT_BYTES), in uneven pieces.
 */
enum { LONGEST = 5000001 };

/* What the members' processes share. */
static struct shared {
  unsigned char handles[MEMBERS_MAX][HANDLE_BYTES];
  int listening, arrived;       /* atomic */
  char logs[MEMBERS_MAX][8192]; /* each one's warnings */
  unsigned char results[MEMBERS_MAX][LONGEST * 4];
} * shared;

struct member {
  const char *path;
  int version, number, members;
  const void *table;
  void *context, *listen, *group;
};

static int own_number; /* for the logger */

static void logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                   const char *format, ...) {
  (void)flags, (void)file, (void)line;
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (level == NCCL_LOG_WARN) {
    char *log = shared->logs[own_number];
    size_t length = strlen(log);
    snprintf(log + length, sizeof(shared->logs[0]) - length, "%s\n", text);
  }
  if (getenv("STRATUS_TEST_VERBOSE")) {
    fprintf(stderr, "[%d] %s\n", own_number, text);
  }
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- calls, by version ---- */

/* A table is read as the first version that has the wanted type, as in net_calls.h. */
#define TABLE(member, v) ((const struct collnet_v##v *)(member)->table)
#define CALL(member, function, ...) (TABLE(member, 8)->function(__VA_ARGS__))

static void start(struct member *member) {
  char symbol[32];
  void *library = dlopen(member->path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  snprintf(symbol, sizeof(symbol), "ncclCollNetPlugin_v%d", member->version);
  member->table = dlsym(library, symbol);
  CHECK(member->table);
  CHECK_OK(member->version < 11 ? TABLE(member, 8)->init(logger)
                                : TABLE(member, 11)->init(&member->context, 0x1234, logger));
}

static int device_count(const struct member *member) {
  int count = -1;
  CHECK_OK(CALL(member, devices, &count));
  return count;
}

static void listen_and_meet(struct member *member) {
  void *handle = shared->handles[member->number];
  CHECK_OK(member->version < 11
               ? TABLE(member, 8)->listen(0, handle, &member->listen)
               : TABLE(member, 11)->listen(member->context, 0, handle, &member->listen));
  __atomic_add_fetch(&shared->listening, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&shared->listening, __ATOMIC_SEQ_CST) < member->members) {
    usleep(1000);
  }
}

static void join(struct member *member) {
  void *handles[MEMBERS_MAX];
  for (int i = 0; i < member->members; i++) {
    handles[i] = shared->handles[i];
  }
  CHECK_OK(CALL(member, connect, handles, member->members, member->number, member->listen,
                &member->group));
  CHECK_OK(CALL(member, closeListen, member->listen));
}

static void leave(struct member *member) {
  CHECK_OK(CALL(member, closeColl, member->group));
  if (member->version >= 11) {
    CHECK_OK(TABLE(member, 11)->finalize(member->context));
  }
}

static void meet(const struct member *member, int rounds) {
  __atomic_add_fetch(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&shared->arrived, __ATOMIC_SEQ_CST) < member->members * rounds) {
    usleep(1000);
  }
}

/* NULL: the group has ended. */
static void *post(const struct member *member, void *send, void *recv, size_t count, int type,
                  int op, void *send_memory, void *recv_memory) {
  void *request = NULL;
  while (!request) {
    enum nccl_result result =
        member->version == 8
            ? TABLE(member, 8)->iallreduce(member->group, send, recv, (int)count, type, op,
                                           send_memory, recv_memory, &request)
            : TABLE(member, 9)->iallreduce(member->group, send, recv, count, type, op, send_memory,
                                           recv_memory, &request);
    if (result != NCCL_SUCCESS) {
      return NULL;
    }
    if (!request) {
      usleep(SOON_US);
    }
  }
  return request;
}

/* The result of the last call: success, or what ended it. */
static enum nccl_result wait_for(const struct member *member, void *request, int bytes) {
  int is_done = 0, size = -1;
  while (!is_done) {
    enum nccl_result result = CALL(member, test, request, &is_done, &size);
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

/* `repeats` calls at once, of the same data; every element of the last is checked, and that all
 * members have the same bits. */
static void exchange_and_check(struct member *member, const struct exchange *exchange, int repeats,
                               int *rounds) {
  size_t size = element_infos[exchange->type].size_bytes, bytes = exchange->count * size;
  unsigned char *memory = mmap(NULL, bytes * 2 * STEPS + 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  void *registration = NULL, *requests[STEPS];
  CHECK_OK(CALL(member, regMr, member->group, memory, bytes * 2 * STEPS + 4096, PTR_HOST,
                &registration));
  for (size_t k = 0; k < exchange->count; k++) {
    number_store(memory, exchange->type, k,
                 number_sent(member->number, k, exchange->op, exchange->type));
  }
  for (int i = 1; i < repeats; i++) {
    memcpy(memory + bytes * 2 * (size_t)i, memory, bytes);
  }
  unsigned char *recv = NULL;
  for (int i = 0; i < repeats; i++) {
    unsigned char *send = memory + bytes * 2 * (size_t)i;
    recv = exchange->is_in_place ? send : send + bytes;
    requests[i] = post(member, send, recv, exchange->count, exchange->type, exchange->op,
                       registration, registration);
    CHECK(requests[i]);
  }
  for (int i = 0; i < repeats; i++) {
    CHECK_OK(wait_for(member, requests[i], (int)bytes));
  }
  for (size_t k = 0; k < exchange->count; k++) {
    double magnitude,
        expected = number_reduced(member->members, k, exchange->op, exchange->type, &magnitude);
    double got = number_load(recv, exchange->type, k);
    if (fabs(got - expected) > exchange->tolerance * magnitude) {
      fprintf(stderr, "member %d, type %d, op %d, count %zu%s: element %zu is %g, not %g\n",
              member->number, exchange->type, exchange->op, exchange->count,
              exchange->is_in_place ? ", in place" : "", k, got, expected);
      _Exit(1);
    }
  }
  memcpy(shared->results[member->number], recv, bytes);
  meet(member, ++*rounds);
  CHECK(memcmp(recv, shared->results[0], bytes) == 0);
  meet(member, ++*rounds);
  CHECK_OK(CALL(member, deregMr, member->group, registration));
  munmap(memory, bytes * 2 * STEPS + 4096);
}

/* ---- cases; each runs in every member's process ---- */

static const size_t counts[] = { 1, 63, 2000, 8193, LARGEST };
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static void run_matrix(struct member *member, int first_type, double tolerance) {
  int rounds = 0;
  listen_and_meet(member);
  join(member);
  CHECK(member->group);
  for (int type = first_type; type < ELEMENT_TYPES; type++) {
    for (int op = 0; op < OPS; op++) {
      int is_supported = 0;
      CHECK_OK(CALL(member, reduceSupport, type, op, &is_supported));
      /* The largest takes most of the time, and how it is cut does not depend on the operation. */
      size_t end = op == type % OPS ? COUNTS : COUNTS - 1;
      for (size_t i = 0; is_supported && i < end; i++) {
        struct exchange exchange = { type, op, counts[i], i % 2 == 1,
                                     type == ELEMENT_FLOAT && op == SUM ? tolerance : 0 };
        exchange_and_check(member, &exchange, i + 1 == COUNTS ? 1 : STEPS, &rounds);
      }
    }
  }
  leave(member);
}

static void case_off(struct member *member) {
  unsetenv("STRATUS_COLLNET");
  start(member);
  CHECK(device_count(member) == 0);
}

static void case_full(struct member *member) {
  start(member);
  CHECK(device_count(member) > 0);
  run_matrix(member, 0, 0);
}

/* Two roundings to 8 bits of mantissa. Whole numbers are exchanged as they are, in every mode. */
static void case_bf16(struct member *member) {
  setenv("STRATUS_COLLNET", "bf16", 1);
  start(member);
  run_matrix(member, ELEMENT_HALF, 2.0 / 256);
}

static void case_fp16(struct member *member) {
  setenv("STRATUS_COLLNET", "fp16", 1);
  start(member);
  run_matrix(member, ELEMENT_HALF, 2.0 / 2048);
}

/* Longer than any call with maxCollBytes: before v9 NCCL hands over up to 512 MiB. */
static void case_long(struct member *member) {
  setenv("STRATUS_COLLNET", "bf16", 1);
  start(member);
  listen_and_meet(member);
  join(member);
  CHECK(member->group);
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LONGEST, member->version % 2 == 1,
                                     2.0 / 256 };
  exchange_and_check(member, &exchange, 2, &rounds);
  leave(member);
}

/* Memory is taken back while calls use it, as by ncclCommAbort: nothing touches it any more. */
static void case_withdrawn(struct member *member) {
  setenv("STRATUS_LINK_TIMEOUT", "3s", 1);
  start(member);
  listen_and_meet(member);
  join(member);
  CHECK(member->group);
  size_t bytes = 1 << 20;
  float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  void *registration = NULL, *request = NULL;
  CHECK_OK(CALL(member, regMr, member->group, memory, bytes, PTR_HOST, &registration));
  int is_done = 0, size = 0;
  if (member->number == 0) {
    for (int i = 0; i < STEPS; i++) {
      request = post(member, memory, memory, bytes / sizeof(*memory), ELEMENT_FLOAT, SUM,
                     registration, registration);
    }
    CHECK_OK(CALL(member, deregMr, member->group, registration));
    munmap(memory, bytes);
    CHECK(CALL(member, test, request, &is_done, &size) != NCCL_SUCCESS);
    CHECK_OK(CALL(member, closeColl, member->group));
    meet(member, 1);
    return;
  }
  meet(member, 1);
  double begin = seconds_now();
  request = post(member, memory, memory, bytes / sizeof(*memory), ELEMENT_FLOAT, SUM, registration,
                 registration);
  CHECK(!request || wait_for(member, request, (int)bytes) != NCCL_SUCCESS);
  CHECK(seconds_now() - begin < 10);
  CHECK_OK(CALL(member, closeColl, member->group));
}

/* All are told, and none goes on alone. */
static void expect_refusal(struct member *member, const char *word) {
  double begin = seconds_now();
  join(member);
  CHECK(!member->group);
  CHECK(seconds_now() - begin < 10);
  meet(member, 1);
  bool is_named = false;
  for (int i = 0; i < member->members; i++) {
    is_named |= strstr(shared->logs[i], word) != NULL;
  }
  CHECK(is_named);
}

static void case_other_mode(struct member *member) {
  setenv("STRATUS_COLLNET", member->number == 1 ? "bf16" : "full", 1);
  start(member);
  listen_and_meet(member);
  expect_refusal(member, "STRATUS_COLLNET=bf16");
}

/* What a member has whose listen failed. */
static void case_no_listener(struct member *member) {
  start(member);
  listen_and_meet(member);
  memset(shared->handles[0], 0, HANDLE_BYTES);
  meet(member, 1);
  double begin = seconds_now();
  join(member);
  CHECK(!member->group);
  CHECK(seconds_now() - begin < 10);
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
static void case_strangers(struct member *member) {
  enum { PORTS = 16 };
  int first_port = 20000 + getppid() % 700 * PORTS;
  char range[32];
  snprintf(range, sizeof(range), "%d-%d", first_port, first_port + PORTS - 1);
  setenv("STRATUS_PORT_RANGE", range, 1);
  start(member);
  listen_and_meet(member);
  CHECK(disturb(first_port, PORTS) >= 2 * member->members);
  double begin = seconds_now();
  join(member);
  CHECK(member->group);
  CHECK(seconds_now() - begin < 10);
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LARGEST, false, 0 };
  exchange_and_check(member, &exchange, STEPS, &rounds);
  leave(member);
}

/* Once for as long as it takes by itself. */
static void case_absent(struct member *member) {
  if (member->version < 12) {
    setenv("STRATUS_CONNECT_TIMEOUT", "2s", 1);
  }
  start(member);
  listen_and_meet(member);
  if (member->number == 1) {
    CHECK_OK(CALL(member, closeListen, member->listen));
    meet(member, 1);
  } else {
    expect_refusal(member, "member 1 of 3");
  }
}

/* A member is killed half-way: the others get an error, in the time of a link. */
static void case_killed(struct member *member) {
  setenv("STRATUS_LINK_TIMEOUT", "3s", 1);
  start(member);
  listen_and_meet(member);
  join(member);
  CHECK(member->group);
  static float send[1 << 16], recv[1 << 16];
  double begin = seconds_now();
  for (int i = 0;; i++) {
    if (member->number == 1 && i == 20) {
      _Exit(0);
    }
    void *request = post(member, send, recv, 1 << 16, ELEMENT_FLOAT, SUM, NULL, NULL);
    enum nccl_result result = request ? wait_for(member, request, sizeof(send)) : NCCL_REMOTE_ERROR;
    if (result != NCCL_SUCCESS) {
      CHECK(i >= 19);
      CHECK(seconds_now() - begin < 10);
      CHECK(strlen(shared->logs[member->number]) > 0);
      CHECK_OK(CALL(member, closeColl, member->group));
      return;
    }
  }
}

static const struct collnet_case {
  const char *name;
  int members;
  void (*run)(struct member *member);
} cases[] = {
  { "off", 1, case_off },
  { "full_2", 2, case_full },
  { "full_3", 3, case_full },
  { "bf16", 3, case_bf16 },
  { "fp16", 2, case_fp16 },
  { "other_mode", 3, case_other_mode },
  { "absent", 3, case_absent },
  { "killed", 3, case_killed },
  { "long", 3, case_long },
  { "withdrawn", 2, case_withdrawn },
  { "no_listener", 3, case_no_listener },
  { "strangers", 3, case_strangers },
};

/* ---- the host ---- */

/* A release of each version of the interface. */
static const struct collnet_release {
  const char *name;
  int version;
} releases[] = {
  { "2.22.3", 8 }, { "2.25.1", 9 }, { "2.27.7", 10 }, { "2.29.7", 11 }, { "2.30.7", 12 }
};

static void run(int release, int which, const char *path) {
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("STRATUS_COLLNET", "full", 1);
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  pid_t pids[MEMBERS_MAX];
  for (int i = 0; i < cases[which].members; i++) {
    pids[i] = fork();
    CHECK(pids[i] >= 0);
    if (pids[i] == 0) {
      struct member member = { .path = path,
                               .version = releases[release].version,
                               .number = i,
                               .members = cases[which].members };
      own_number = i;
      cases[which].run(&member);
      _Exit(0);
    }
  }
  bool is_good = true;
  for (int i = 0; i < cases[which].members; i++) {
    int status;
    CHECK(waitpid(pids[i], &status, 0) == pids[i]);
    is_good &= status == 0;
  }
  for (int i = 0; !is_good && i < cases[which].members; i++) {
    fprintf(stderr, "member %d's warnings:\n%s", i, shared->logs[i]);
  }
  CHECK(is_good);
}

const struct cases_host collnet_host = {
  .name = "collnet",
  .title = "CollNet, every version of its interface",
  .plugin_variable = "STRATUS_TEST_NET_PLUGIN",
  .plugin = "build/lib/libnccl-net-stratus.so",
  .releases = CASES_LIST(releases),
  .cases = CASES_LIST(cases),
  .run = run,
};
