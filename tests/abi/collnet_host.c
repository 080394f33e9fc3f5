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

#include "net_plugin/abi/collnet_abi.h"
#include "tests/abi/net_driver.h"
#include "tests/coll/element.h"

enum {
  SOON_US = 20, /* what a member waits before it looks again: they share processors */
  MEMBERS_MAX = 4,
  LARGEST = 300000,
  STEPS = 8,
  LONGEST =
      5000001, /* more than a group has in flight (COLLNET_IN_FLIGHT_BYTES), in uneven pieces */
};

/* What the members' processes share. */
static struct shared {
  unsigned char handles[MEMBERS_MAX][HANDLE_BYTES];
  int listening, arrived;       /* atomic */
  char logs[MEMBERS_MAX][8192]; /* each one's warnings */
  unsigned char results[MEMBERS_MAX][LONGEST * 4];
} * shared;

struct member {
  int version, number, members;
  const void *table;
  void *context, *listen, *group;
};

static struct member self;

static void logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                   const char *format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (level == NCCL_LOG_WARN) {
    char *log = shared->logs[self.number];
    size_t length = strlen(log);
    snprintf(log + length, sizeof(shared->logs[0]) - length, "%s\n", text);
  }
}

/* ---- what each member sends and what must come out, for every data type: small whole numbers, so
 * sums, products, maxima and minima are exact in each type, in any order. With 16-bit exchange of
 * f32 they are not whole, and the result is within a bound. fp8 is in tests/unit/test_reduce*.c.
 * ---- */

enum { SUM, PROD, MAX, MIN, OPS }; /* as ncclRedOp_t */

static double number_load(const void *array, int type, size_t at) {
  const struct element_info *info = &element_infos[type];
  uint64_t code = element_load(array, info->size_bytes, at);
  unsigned shift = 64 - 8 * info->size_bytes;
  return info->is_float    ? element_decode((enum element_type)type, code)
         : info->is_signed ? (double)((int64_t)(code << shift) >> shift)
                           : (double)code;
}

static void number_store(void *array, int type, size_t at, double value) {
  const struct element_info *info = &element_infos[type];
  element_store(array, info->size_bytes, at,
                info->is_float ? element_encode((enum element_type)type, value)
                               : (uint64_t)(int64_t)value);
}

/* What a member sends as element `at`: 0 to 3. */
static double number_sent(int member, size_t at, int op, int type) {
  size_t mixed = at * 2654435761u + (size_t)member * 40503u;
  double value = (double)((mixed >> 7) % 4);
  if (op == PROD) {
    value = value == 0 ? 1 : value; /* products stay below 3^4 */
  }
  /* Not representable in 16 bits: shows whether f32 sums are rounded as stated. */
  return type == ELEMENT_FLOAT && op == SUM ? (float)(value + (double)(mixed % 97) / 128) : value;
}

/* What must come out; *magnitude: the sum of what was sent, without signs. */
static double number_reduced(int members, size_t at, int op, int type, double *magnitude) {
  double result = number_sent(0, at, op, type);
  *magnitude = fabs(result);
  for (int member = 1; member < members; member++) {
    double value = number_sent(member, at, op, type);
    *magnitude += fabs(value);
    result = op == SUM                         ? result + value
             : op == PROD                      ? result * value
             : (op == MAX) == (value > result) ? value
                                               : result;
  }
  return result;
}

/* ---- calls, by version ---- */

/* A table is read as the first version that has the wanted type, as in net_calls.h. */
#define TABLE(member, v) ((const struct collnet_v##v *)(member)->table)
#define CALL(member, function, ...) (TABLE(member, 8)->function(__VA_ARGS__))

static void start(struct member *member) {
  char symbol[32];
  void *library = dlopen(cases_net_plugin(), RTLD_NOW | RTLD_LOCAL);
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

static void form_group(struct member *member) {
  listen_and_meet(member);
  join(member);
  CHECK(member->group);
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
  form_group(member);
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

static void case_off(void) {
  struct member *member = &self;
  unsetenv("STRATUS_COLLNET");
  start(member);
  CHECK(device_count(member) == 0);
}

static void case_full(void) {
  struct member *member = &self;
  start(member);
  CHECK(device_count(member) > 0);
  run_matrix(member, 0, 0);
}

/* Two roundings to 8 bits of mantissa. Whole numbers are exchanged as they are, in every mode. */
static void case_bf16(void) {
  struct member *member = &self;
  setenv("STRATUS_COLLNET", "bf16", 1);
  start(member);
  run_matrix(member, ELEMENT_HALF, 2.0 / 256);
}

static void case_fp16(void) {
  struct member *member = &self;
  setenv("STRATUS_COLLNET", "fp16", 1);
  start(member);
  run_matrix(member, ELEMENT_HALF, 2.0 / 2048);
}

/* Longer than any call with maxCollBytes: before v9 NCCL hands over up to 512 MiB. */
static void case_long(void) {
  struct member *member = &self;
  setenv("STRATUS_COLLNET", "bf16", 1);
  start(member);
  form_group(member);
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LONGEST, member->version % 2 == 1,
                                     2.0 / 256 };
  exchange_and_check(member, &exchange, 2, &rounds);
  leave(member);
}

/* Memory is taken back while calls use it, as by ncclCommAbort: nothing touches it any more. */
static void case_withdrawn(void) {
  struct member *member = &self;
  setenv("STRATUS_LINK_TIMEOUT", "3s", 1);
  start(member);
  form_group(member);
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
  time_t begin = time(NULL);
  request = post(member, memory, memory, bytes / sizeof(*memory), ELEMENT_FLOAT, SUM, registration,
                 registration);
  CHECK(!request || wait_for(member, request, (int)bytes) != NCCL_SUCCESS);
  CHECK(time(NULL) - begin < 10);
  CHECK_OK(CALL(member, closeColl, member->group));
}

static void join_in_time(struct member *member) {
  time_t begin = time(NULL);
  join(member);
  CHECK(time(NULL) - begin < 10);
}

/* All are told, and none goes on alone. */
static void expect_refusal(struct member *member, const char *word) {
  join_in_time(member);
  CHECK(!member->group);
  meet(member, 1);
  bool is_named = false;
  for (int i = 0; i < member->members; i++) {
    is_named |= strstr(shared->logs[i], word) != NULL;
  }
  CHECK(is_named);
}

static void case_other_mode(void) {
  struct member *member = &self;
  setenv("STRATUS_COLLNET", member->number == 1 ? "bf16" : "full", 1);
  start(member);
  listen_and_meet(member);
  expect_refusal(member, "STRATUS_COLLNET=bf16");
}

/* What a member has whose listen failed. */
static void case_no_listener(void) {
  struct member *member = &self;
  start(member);
  listen_and_meet(member);
  memset(shared->handles[0], 0, HANDLE_BYTES);
  meet(member, 1);
  join_in_time(member);
  CHECK(!member->group);
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
  struct member *member = &self;
  enum { PORTS = 16 };
  int first_port = 20000 + getppid() % 700 * PORTS;
  char range[32];
  snprintf(range, sizeof(range), "%d-%d", first_port, first_port + PORTS - 1);
  setenv("STRATUS_PORT_RANGE", range, 1);
  start(member);
  listen_and_meet(member);
  CHECK(disturb(first_port, PORTS) >= 2 * member->members);
  join_in_time(member);
  CHECK(member->group);
  int rounds = 0;
  const struct exchange exchange = { ELEMENT_FLOAT, SUM, LARGEST, false, 0 };
  exchange_and_check(member, &exchange, STEPS, &rounds);
  leave(member);
}

/* Once for as long as it takes by itself. */
static void case_absent(void) {
  struct member *member = &self;
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
static void case_killed(void) {
  struct member *member = &self;
  setenv("STRATUS_LINK_TIMEOUT", "3s", 1);
  start(member);
  form_group(member);
  static float send[1 << 16], recv[1 << 16];
  time_t begin = time(NULL);
  for (int i = 0;; i++) {
    if (member->number == 1 && i == 20) {
      _Exit(0);
    }
    void *request = post(member, send, recv, 1 << 16, ELEMENT_FLOAT, SUM, NULL, NULL);
    enum nccl_result result = request ? wait_for(member, request, sizeof(send)) : NCCL_REMOTE_ERROR;
    if (result != NCCL_SUCCESS) {
      CHECK(i >= 19);
      CHECK(time(NULL) - begin < 10);
      CHECK(strlen(shared->logs[member->number]) > 0);
      CHECK_OK(CALL(member, closeColl, member->group));
      return;
    }
  }
}

/* As many members. */
static const struct cases_case cases[] = {
  { "off", case_off, 1 },
  { "full_2", case_full, 2 },
  { "full_3", case_full, 3 },
  { "bf16", case_bf16, 3 },
  { "fp16", case_fp16, 2 },
  { "other_mode", case_other_mode, 3 },
  { "absent", case_absent, 3 },
  { "killed", case_killed, 3 },
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
      self =
          (struct member){ .version = cases_release->net, .number = i, .members = cases_variant };
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
    fprintf(stderr, "member %d's warnings:\n%s", i, shared->logs[i]);
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
