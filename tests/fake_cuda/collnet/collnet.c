/* SPDX-License-Identifier: Apache-2.0 */
/* A collective network for tests of NCCL's CollNet on emulated hosts of one machine: the first host
 * receives what the others send over loopback, reduces it in the order of the hosts, and sends the
 * result back. Slow on purpose, exact, the same bits on every host. It is linked to NCCL's Socket
 * transport, because NCCL takes a CollNet only from the library that its net comes from.
 *
 * Owns: its group's sockets, requests and thread.  Threads: one per group runs the requests in
 * order.  Blocks: connect, until all hosts are there or CONNECT_MS are over; nothing else.  Fails:
 * connect gives no group; a request that cannot be done, and all behind it, end with an error.
 *
 * FAKE_COLLNET_DELAY_US   each request waits up to so long, and every third call is told to come
 * again FAKE_COLLNET_FAIL       HOST:N, request N of that host fails; or "connect", on every
 * host FAKE_COLLNET_GPU        1: takes GPU memory, too FAKE_COLLNET_LOG        1: what NCCL calls,
 * with sizes, to stderr */
#include <arpa/inet.h>
#include <nccl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/abi/collnet_abi.h"
#include "tests/fake_cuda/nccl/block.h"
#include "tests/fake_cuda/transport/as_plugin.h"

#define CONNECT_MS 5000
#define MAX_HOSTS 16
#define MAX_REQUESTS 16 /* in flight, twice NCCL_STEPS */

/* What is sent before the data: hosts must agree on all of it. */
struct header {
  uint32_t number, count, type, op;
};

enum state { FREE, WAITING, DONE, FAILED };

struct request {
  enum state state; /* through get_state and set_state: test() takes no lock */
  struct header header;
  void *send, *recv, *send_handle, *recv_handle;
  size_t bytes;
};

struct group {
  int host, n_hosts;
  int sockets[MAX_HOSTS]; /* host 0: by host; others: only the first, to host 0 */
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t started_one, finished;
  uint32_t started, calls;
  bool is_closing;
  struct request requests[MAX_REQUESTS];
};

static enum state get_state(const struct request *q) {
  return __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct request *q, enum state state) {
  __atomic_store_n(&q->state, state, __ATOMIC_RELEASE);
}

static long option(const char *name) {
  const char *value = getenv(name);
  return value ? atol(value) : 0;
}

__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...) {
  char text[256];
  va_list list;
  if (!option("FAKE_COLLNET_LOG"))
    return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fprintf(stderr, "collnet: thread %d: %s\n", gettid(), text);
}

/* What FAKE_COLLNET_FAIL asks for. */
struct failure {
  bool is_valid, in_connect;
  int host; /* -1: none */
  uint32_t number;
};

static struct failure failure(void) {
  const char *value = getenv("FAKE_COLLNET_FAIL");
  struct failure f = { .is_valid = true, .host = -1 };
  char rest;
  if (!value)
    return f;
  f.in_connect = !strcmp(value, "connect");
  f.is_valid = f.in_connect || sscanf(value, "%d:%u%c", &f.host, &f.number, &rest) == 2;
  return f;
}

/* ---- the exchange ---- */

static bool send_all(int fd, const void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
    if (n <= 0)
      return false;
    done += (size_t)n;
  }
  return true;
}

static bool recv_all(int fd, void *data, size_t size) {
  return size == 0 || recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

/* For integers NCCL's minimum compares after an XOR with the argument: nothing turns a minimum of
 * unsigned numbers into one of signed ones but the top bit, and into a maximum but all bits. */
static struct reduction reduction_of(const struct header *h) {
  struct reduction r = { .type = (int)h->type, .size = nccl_type_size((int)h->type) };
  bool is_signed = r.type == TYPE_I8 || r.type == TYPE_I32 || r.type == TYPE_I64;
  r.op = h->op == ncclSum ? OP_SUM : h->op == ncclProd ? OP_PROD : OP_MINMAX;
  if (h->op == ncclMax)
    r.arg = ~0ull;
  if (is_signed && r.op == OP_MINMAX)
    r.arg ^= 1ull << (8 * r.size - 1);
  return r;
}

/* Host 0. The sum is made aside: NCCL may hand over one buffer for both. */
static bool collect(struct group *g, struct request *q) {
  struct reduction r = reduction_of(&q->header);
  char *sum = malloc(q->bytes), *theirs = malloc(q->bytes);
  bool ok = true;
  memcpy(sum, q->send, q->bytes);
  for (int host = 1; ok && host < g->n_hosts; host++) {
    struct header h;
    ok = recv_all(g->sockets[host], &h, sizeof h);
    if (ok && memcmp(&h, &q->header, sizeof h)) {
      fprintf(stderr,
              "collnet: host %d has request %u, %u x type %u, operation %u; host 0 has "
              "request %u, %u x type %u, operation %u\n",
              host, h.number, h.count, h.type, h.op, q->header.number, q->header.count,
              q->header.type, q->header.op);
      ok = false;
    }
    ok = ok && recv_all(g->sockets[host], theirs, q->bytes);
    if (ok)
      reduce_pair(&r, sum, sum, theirs, q->header.count);
  }
  for (int host = 1; ok && host < g->n_hosts; host++)
    ok = send_all(g->sockets[host], sum, q->bytes);
  if (ok)
    memcpy(q->recv, sum, q->bytes);
  free(sum);
  free(theirs);
  return ok;
}

static bool exchange(struct group *g, struct request *q) {
  long delay_us = option("FAKE_COLLNET_DELAY_US");
  if (delay_us)
    usleep((useconds_t)(random() % delay_us));
  if (failure().host == g->host && failure().number == q->header.number)
    return false;
  if (!g->host)
    return collect(g, q);
  return send_all(g->sockets[0], &q->header, sizeof q->header) &&
         send_all(g->sockets[0], q->send, q->bytes) && recv_all(g->sockets[0], q->recv, q->bytes);
}

/* The other hosts see the end of the connection. */
static void hang_up(struct group *g) {
  for (int i = 0; i < MAX_HOSTS; i++) {
    if (g->sockets[i] >= 0)
      shutdown(g->sockets[i], SHUT_RDWR);
  }
}

static void *run(void *arg) {
  struct group *g = arg;
  bool ok = true;
  pthread_mutex_lock(&g->mutex);
  for (uint32_t next = 0;; next++) {
    while (next == g->started && !g->is_closing)
      pthread_cond_wait(&g->started_one, &g->mutex);
    if (g->is_closing)
      break;
    struct request *q = &g->requests[next % MAX_REQUESTS];
    pthread_mutex_unlock(&g->mutex);
    ok = ok && exchange(g, q);
    if (!ok)
      hang_up(g);
    pthread_mutex_lock(&g->mutex);
    set_state(q, ok ? DONE : FAILED);
    pthread_cond_broadcast(&g->finished);
  }
  pthread_mutex_unlock(&g->mutex);
  return NULL;
}

/* ---- what NCCL calls ---- */

static enum nccl_result collnet_init(nccl_logger_fn *logger) {
  (void)logger;
  trace("init");
  if (!failure().is_valid) {
    fprintf(stderr, "collnet: FAKE_COLLNET_FAIL=%s: expected HOST:NUMBER or \"connect\"\n",
            getenv("FAKE_COLLNET_FAIL"));
    return NCCL_INVALID_USAGE;
  }
  return NCCL_SUCCESS;
}

/* The same devices as the net's, by number and name: NCCL 2.22 counts only the CollNet's, and 2.29
 * uses only those that it finds in both. */
static enum nccl_result collnet_devices(int *count) {
  trace("devices");
  return transport_devices(count);
}

static enum nccl_result collnet_properties(int device, struct net_properties_v8 *out) {
  trace("getProperties %d", device);
  enum nccl_result result = transport_properties(device, out);
  if (option("FAKE_COLLNET_GPU"))
    out->ptrSupport |= NCCL_PTR_CUDA;
  return result;
}

static enum nccl_result collnet_listen(int device, void *handle, void **listener) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  trace("listen %d", device);
  if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, MAX_HOSTS) ||
      getsockname(fd, (struct sockaddr *)&address, &size)) {
    perror("collnet: listen");
    close(fd);
    return NCCL_SYSTEM_ERROR;
  }
  memcpy(handle, &address, sizeof address);
  int *kept = malloc(sizeof *kept);
  *kept = fd;
  *listener = kept;
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_close_listen(void *listener) {
  trace("closeListen");
  close(*(int *)listener);
  free(listener);
  return NCCL_SUCCESS;
}

static bool accept_all(struct group *g, int listener) {
  for (int i = 1; i < g->n_hosts; i++) {
    struct pollfd p = { .fd = listener, .events = POLLIN };
    int host, fd = poll(&p, 1, CONNECT_MS) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (fd < 0 || !recv_all(fd, &host, sizeof host))
      return false;
    g->sockets[host] = fd;
  }
  return true;
}

static bool connect_first(struct group *g, const struct sockaddr_in *address) {
  g->sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return !connect(g->sockets[0], (const struct sockaddr *)address, sizeof *address) &&
         send_all(g->sockets[0], &g->host, sizeof g->host);
}

static void group_free(struct group *g) {
  for (int i = 0; i < MAX_HOSTS; i++) {
    if (g->sockets[i] >= 0)
      close(g->sockets[i]);
  }
  free(g);
}

static enum nccl_result collnet_connect(void *handles[], int n_hosts, int host, void *listener,
                                        void **group) {
  struct group *g = calloc(1, sizeof *g);
  trace("connect host %d of %d", host, n_hosts);
  *g = (struct group){ .host = host, .n_hosts = n_hosts };
  memset(g->sockets, -1, sizeof g->sockets);
  bool ok = n_hosts <= MAX_HOSTS && !failure().in_connect;
  if (ok)
    ok = host ? connect_first(g, handles[0]) : accept_all(g, *(int *)listener);
  *group = NULL;
  if (!ok) {
    group_free(g);
    collnet_close_listen(listener); /* NCCL closes it only after success */
    return NCCL_SYSTEM_ERROR;
  }
  pthread_mutex_init(&g->mutex, NULL);
  pthread_cond_init(&g->started_one, NULL);
  pthread_cond_init(&g->finished, NULL);
  pthread_create(&g->thread, NULL, run, g);
  *group = g;
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_close(void *group) {
  struct group *g = group;
  trace("closeColl after %u requests", g->started);
  pthread_mutex_lock(&g->mutex);
  g->is_closing = true;
  hang_up(g);
  pthread_cond_signal(&g->started_one);
  pthread_mutex_unlock(&g->mutex);
  pthread_join(g->thread, NULL);
  group_free(g);
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_reduce_support(int type, int op, int *is_supported) {
  *is_supported = type < TYPE_F8E4M3 && op <= (int)ncclMin;
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_reg_mr(void *group, void *data, size_t bytes, int type,
                                       void **handle) {
  trace("regMr %s %zu B", type == NCCL_PTR_CUDA ? "GPU" : "host", bytes);
  (void)group;
  *handle = data;
  return type == NCCL_PTR_HOST || option("FAKE_COLLNET_GPU") ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

static bool is_in_use(const struct group *g, const void *handle) {
  for (int i = 0; i < MAX_REQUESTS; i++) {
    const struct request *q = &g->requests[i];
    if (get_state(q) == WAITING && (q->send_handle == handle || q->recv_handle == handle))
      return true;
  }
  return false;
}

/* After an abort NCCL frees the memory next, and closes the group last. */
static enum nccl_result collnet_dereg_mr(void *group, void *handle) {
  struct group *g = group;
  trace("deregMr");
  pthread_mutex_lock(&g->mutex);
  if (is_in_use(g, handle))
    hang_up(g);
  while (is_in_use(g, handle))
    pthread_cond_wait(&g->finished, &g->mutex);
  pthread_mutex_unlock(&g->mutex);
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_iallreduce(void *group, void *send, void *recv, int count, int type,
                                           int op, void *send_handle, void *recv_handle,
                                           void **request) {
  struct group *g = group;
  *request = NULL;
  pthread_mutex_lock(&g->mutex);
  struct request *q = &g->requests[g->started % MAX_REQUESTS];
  bool come_again = option("FAKE_COLLNET_DELAY_US") && g->calls++ % 3 == 0;
  if (get_state(q) == FREE && !come_again) {
    *q =
        (struct request){ .header = { g->started++, (uint32_t)count, (uint32_t)type, (uint32_t)op },
                          .send = send,
                          .recv = recv,
                          .send_handle = send_handle,
                          .recv_handle = recv_handle,
                          .bytes = (size_t)count * (size_t)nccl_type_size(type) };
    trace("iallreduce %u, %zu B in %s, type %d, operation %d", q->header.number, q->bytes,
          send == recv ? "place" : "two buffers", type, op);
    set_state(q, WAITING);
    *request = q;
    pthread_cond_signal(&g->started_one);
  }
  pthread_mutex_unlock(&g->mutex);
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_iflush(void *group, void *data, int size, void *handle,
                                       void **request) {
  trace("iflush %d B", size);
  (void)group, (void)data, (void)handle;
  *request = NULL;
  return NCCL_SUCCESS;
}

static enum nccl_result collnet_test(void *request, int *is_done, int *bytes) {
  struct request *q = request;
  enum state state = get_state(q);
  *is_done = state == DONE;
  if (state == FAILED)
    return NCCL_SYSTEM_ERROR;
  if (*is_done && bytes)
    *bytes = (int)q->bytes;
  if (*is_done)
    set_state(q, FREE);
  return NCCL_SUCCESS;
}

/* Scatter and gather are not offered. */
__attribute__((visibility("default"))) const struct collnet_v8 ncclCollNetPlugin_v8 = {
  .name = "collnet",
  .init = collnet_init,
  .devices = collnet_devices,
  .getProperties = collnet_properties,
  .listen = collnet_listen,
  .connect = collnet_connect,
  .reduceSupport = collnet_reduce_support,
  .regMr = collnet_reg_mr,
  .deregMr = collnet_dereg_mr,
  .iallreduce = collnet_iallreduce,
  .iflush = collnet_iflush,
  .test = collnet_test,
  .closeColl = collnet_close,
  .closeListen = collnet_close_listen,
};
