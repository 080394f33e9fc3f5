/* SPDX-License-Identifier: Apache-2.0 */
/* One switch per call whose arguments changed between versions. */
#include "tests/abi/net_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 20, SOON_US = 20, WINDOW = 8 };

void host_use(struct host *host, int version) {
  char symbol[32];
  snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
  host->table = dlsym(host->library, symbol);
  host->version = version;
  CHECK(host->table);
}

struct host host_open(void) {
  struct host host = { .traffic_class = -1 };
  host.library = dlopen(cases_net_plugin(), RTLD_NOW | RTLD_LOCAL);
  CHECK(host.library, "%s", dlerror());
  host_use(&host, cases_release->net);
  return host;
}

const char *host_name(const struct host *host) {
  return *(const char *const *)host->table; /* the first member of every version */
}

/* NCCL hands one over; the plugin has nothing to tell it. */
static enum nccl_result profiler(void **event, int type, void *phandle, int64_t id, void *data) {
  CHECK(false);
}

enum nccl_result host_init(const struct host *host, void **context, nccl_logger_fn *logger) {
  struct net_config_v10 config = { host->traffic_class }; /* as in NCCL, gone when init returns */
  *context = NULL;
  return host->version < 10 ? HOST_TABLE(host, 7)->init(logger)
         : host->version == 10
             ? HOST_TABLE(host, 10)->init(logger, profiler)
             : HOST_TABLE(host, 11)->init(context, 0x1234, &config, logger, profiler);
}

enum nccl_result host_finalize(const struct host *host, void *context) {
  return host->version < 11 ? NCCL_SUCCESS : HOST_TABLE(host, 11)->finalize(context);
}

/* Reads into a struct full of 0xa5 with more of it behind: members that the plugin forgets and
 * bytes that it writes too many show. */
#define HOST_READ_PROPERTIES(v)                                                                    \
  struct {                                                                                         \
    struct net_properties_v##v p;                                                                  \
    unsigned char behind[64];                                                                      \
  } raw;                                                                                           \
  memset(&raw, 0xa5, sizeof(raw));                                                                 \
  enum nccl_result result = HOST_TABLE(host, v)->getProperties(device, &raw.p);                    \
  for (size_t i = 0; i < sizeof(raw.behind); i++) {                                                \
    CHECK(raw.behind[i] == 0xa5);                                                                  \
  }                                                                                                \
  if (result != NCCL_SUCCESS) {                                                                    \
    return result;                                                                                 \
  }                                                                                                \
  out->name = raw.p.name, out->pci_path = raw.p.pciPath, out->ptr_support = raw.p.ptrSupport;      \
  out->speed = raw.p.speed, out->port = raw.p.port, out->latency = raw.p.latency;                  \
  out->max_comms = raw.p.maxComms, out->max_recvs = raw.p.maxRecvs

#define HOST_COPY_DEVICE_TYPE out->device_type = (int)raw.p.netDeviceType
#define HOST_COPY_V9                                                                               \
  HOST_COPY_DEVICE_TYPE, out->reg_is_global = raw.p.regIsGlobal,                                   \
                         out->force_flush = raw.p.forceFlush, out->ndevs = raw.p.vProps.ndevs,     \
                         out->dev0 = raw.p.vProps.devs[0], out->max_p2p_bytes = raw.p.maxP2pBytes

enum nccl_result host_properties(const struct host *host, int device, struct host_properties *out) {
  enum { NONE = -77 };
  *out = (struct host_properties){ .device_type = NONE,
                                   .reg_is_global = NONE,
                                   .force_flush = NONE,
                                   .ndevs = NONE,
                                   .dev0 = NONE,
                                   .multi_request = NONE,
                                   .rail = NONE,
                                   .plane = NONE };
  if (host->version == 7) {
    HOST_READ_PROPERTIES(7);
    HOST_COPY_DEVICE_TYPE;
  } else if (host->version == 8) {
    HOST_READ_PROPERTIES(8);
    HOST_COPY_DEVICE_TYPE, out->reg_is_global = raw.p.regIsGlobal;
  } else if (host->version <= 10) {
    HOST_READ_PROPERTIES(9);
    HOST_COPY_V9;
  } else if (host->version == 11) {
    HOST_READ_PROPERTIES(11);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
  } else {
    HOST_READ_PROPERTIES(12);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
    out->rail = raw.p.railId, out->plane = raw.p.planeId;
  }
  return NCCL_SUCCESS;
}

enum nccl_result host_listen(const struct host *host, void *context, int device, void *handle,
                             void **listen_comm) {
  return host->version < 11 ? HOST_TABLE(host, 7)->listen(device, handle, listen_comm)
                            : HOST_TABLE(host, 11)->listen(context, device, handle, listen_comm);
}

enum nccl_result host_connect(const struct host *host, void *context, int device, void *handle,
                              void **send_comm) {
  struct net_device_handle *device_handle = NULL;
  struct net_config_v10 config = { host->traffic_class };
  enum nccl_result result =
      host->version < 10 ? HOST_TABLE(host, 7)->connect(device, handle, send_comm, &device_handle)
      : host->version == 10
          ? HOST_TABLE(host, 10)->connect(device, &config, handle, send_comm, &device_handle)
          : HOST_TABLE(host, 11)->connect(context, device, handle, send_comm, &device_handle);
  CHECK(device_handle == NULL); /* no device code asked for */
  return result;
}

enum nccl_result host_accept(const struct host *host, void *listen_comm, void **recv_comm) {
  struct net_device_handle *device_handle = NULL;
  return HOST_TABLE(host, 7)->accept(listen_comm, recv_comm, &device_handle);
}

enum nccl_result host_register(const struct host *host, void *comm, void *data, size_t bytes,
                               int type, void **mhandle) {
  return host->version < 8 ? HOST_TABLE(host, 7)->regMr(comm, data, (int)bytes, type, mhandle)
                           : HOST_TABLE(host, 8)->regMr(comm, data, bytes, type, mhandle);
}

enum nccl_result host_isend(const struct host *host, void *comm, void *data, size_t bytes,
                            void *mhandle, void *phandle, void **request) {
  enum { TAG = 3 };
  return host->version < 9
             ? HOST_TABLE(host, 7)->isend(comm, data, (int)bytes, TAG, mhandle, request)
         : host->version == 9
             ? HOST_TABLE(host, 9)->isend(comm, data, bytes, TAG, mhandle, request)
             : HOST_TABLE(host, 10)->isend(comm, data, bytes, TAG, mhandle, phandle, request);
}

enum nccl_result host_irecv(const struct host *host, void *comm, int count, void *data,
                            size_t bytes, void *mhandle, void *phandle, bool is_hinted,
                            void **request) {
  void *datas[2] = { data, data }, *mhandles[2] = { mhandle, mhandle };
  void *phandles[2] = { phandle, phandle };
  size_t sizes[2] = { bytes, bytes };
  int int_sizes[2] = { (int)bytes, (int)bytes }, tags[2] = { 3, 3 };
  *request = is_hinted && host->version >= 9 ? (void *)1 : NULL;
  return host->version < 9
             ? HOST_TABLE(host, 7)->irecv(comm, count, datas, int_sizes, tags, mhandles, request)
         : host->version == 9
             ? HOST_TABLE(host, 9)->irecv(comm, count, datas, sizes, tags, mhandles, request)
             : HOST_TABLE(host, 10)->irecv(comm, count, datas, sizes, tags, mhandles, phandles,
                                           request);
}

enum nccl_result host_fuse(const struct host *host, int *device, int count, int a, int b) {
  struct net_vdevice_v12 parts = { .ndevs = count, .devs = { a, b } };
  struct net_vdevice_v9 old_parts = { .ndevs = count, .devs = { a, b } };
  return host->version < 9    ? NCCL_INVALID_USAGE
         : host->version < 12 ? HOST_TABLE(host, 9)->makeVDevice(device, &old_parts)
                              : HOST_TABLE(host, 12)->makeVDevice(device, &parts);
}

enum nccl_result host_set_attributes(const struct host *host, void *context) {
  struct net_attributes_v11 attributes = { .sendCommAttr = { 2, 1, 4, 1 },
                                           .recvCommAttr = { 2, 1, 4, 1 },
                                           .op = 16 };
  return host->version < 11 ? NCCL_SUCCESS : HOST_TABLE(host, 11)->setNetAttr(context, &attributes);
}

/* ---- exchanges: messages carry a pattern that tells message and place, so that anything out of
 * place shows ---- */

static time_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void exchange_meet(struct exchange_pair *pair, void *context, void *handle) {
  time_t deadline = now_s() + PATIENCE_S;
  while (!pair->send || !pair->recv) {
    if (!pair->send) {
      CHECK_OK(host_connect(pair->host, context, 0, handle, &pair->send));
    }
    if (!pair->recv) {
      CHECK_OK(host_accept(pair->host, pair->listen, &pair->recv));
    }
    CHECK(now_s() < deadline);
  }
}

void exchange_connect(const struct host *host, void *context, struct exchange_pair *pair) {
  *pair = (struct exchange_pair){ .host = host };
  unsigned char handle[HANDLE_BYTES + 16];
  memset(handle, 0xa5, sizeof(handle));
  CHECK_OK(host_listen(host, context, 0, handle, &pair->listen));
  CHECK(pair->listen);
  exchange_meet(pair, context, handle);
  for (size_t i = HANDLE_BYTES; i < sizeof(handle); i++) {
    CHECK(handle[i] == 0xa5);
  }
}

void exchange_close(struct exchange_pair *pair, int order) {
  for (int i = 0; i < 3; i++) {
    switch ((order + i) % 3) {
    case 0:
      CHECK_OK(HOST_CALL(pair->host, closeSend, pair->send));
      break;
    case 1:
      CHECK_OK(HOST_CALL(pair->host, closeRecv, pair->recv));
      break;
    case 2:
      CHECK_OK(HOST_CALL(pair->host, closeListen, pair->listen));
      break;
    }
  }
}

struct half {
  const struct host *host;
  void *comm, *mhandle;
  unsigned char *buffer; /* WINDOW parts */
  size_t part_bytes;
  const size_t *sizes;
  int count;
  bool is_sender;
};

static unsigned char pattern(int message, size_t at) {
  return (unsigned char)((size_t)message * 7 + at * 13 + (at >> 8));
}

static void post(struct half *half, int message, void **request) {
  unsigned char *part = half->buffer + (size_t)(message % WINDOW) * half->part_bytes;
  size_t bytes = half->sizes[message];
  int phandle;
  if (half->is_sender) {
    for (size_t i = 0; i < bytes; i++) {
      part[i] = pattern(message, i);
    }
    CHECK_OK(host_isend(half->host, half->comm, part, bytes, half->mhandle, &phandle, request));
    return;
  }
  memset(part, 0, bytes);
  /* Sometimes more is asked for than comes. */
  size_t room = bytes + (message % 3 ? 0 : 100);
  room = room < half->part_bytes ? room : half->part_bytes;
  CHECK_OK(host_irecv(half->host, half->comm, 1, part, room, half->mhandle, &phandle, message % 2,
                      request));
}

static bool complete(struct half *half, int message, void *request) {
  int is_done = 0, bytes = -1;
  CHECK_OK(HOST_CALL(half->host, test, request, &is_done, &bytes));
  if (!is_done) {
    return false;
  }
  CHECK(bytes == (int)half->sizes[message]);
  const unsigned char *part = half->buffer + (size_t)(message % WINDOW) * half->part_bytes;
  for (size_t i = 0; i < half->sizes[message] && !half->is_sender; i++) {
    CHECK(part[i] == pattern(message, i));
  }
  return true;
}

/* As NCCL's progress thread does: posts up to the window, tests the oldest. */
static void *run_half(void *argument) {
  struct half *half = argument;
  void *requests[WINDOW];
  int posted = 0, done = 0;
  time_t deadline = now_s() + PATIENCE_S;
  while (done < half->count) {
    if (posted < half->count && posted - done < WINDOW) {
      void *request = NULL;
      post(half, posted, &request);
      CHECK(request != (void *)1);
      if (request) {
        requests[posted++ % WINDOW] = request;
      }
    }
    if (done < posted && complete(half, done, requests[done % WINDOW])) {
      done++;
      deadline = now_s() + PATIENCE_S;
    } else {
      usleep(SOON_US);
    }
    CHECK(now_s() < deadline);
  }
  return NULL;
}

/* Maps and registers the buffer. */
static void start(struct half *half, const struct exchange_pair *pair, bool is_sender,
                  const size_t *sizes, int count) {
  *half = (struct half){ .host = pair->host,
                         .comm = is_sender ? pair->send : pair->recv,
                         .sizes = sizes,
                         .count = count,
                         .is_sender = is_sender };
  for (int i = 0; i < count; i++) {
    half->part_bytes = sizes[i] > half->part_bytes ? sizes[i] : half->part_bytes;
  }
  half->part_bytes += 128;
  half->buffer = mmap(NULL, half->part_bytes * WINDOW, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(half->buffer != MAP_FAILED);
  CHECK_OK(host_register(half->host, half->comm, half->buffer, half->part_bytes * WINDOW, PTR_HOST,
                         &half->mhandle));
}

static void end(const struct half *half) {
  CHECK_OK(HOST_CALL(half->host, deregMr, half->comm, half->mhandle));
  munmap(half->buffer, half->part_bytes * WINDOW);
}

void exchange_run(const struct exchange_pair *pair, const size_t *sizes, int count) {
  struct half sender, receiver;
  start(&sender, pair, true, sizes, count);
  start(&receiver, pair, false, sizes, count);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_half, &sender) == 0);
  run_half(&receiver);
  CHECK(pthread_join(thread, NULL) == 0);
  end(&sender);
  end(&receiver);
}
