/* SPDX-License-Identifier: Apache-2.0 */
/* Messages carry a pattern that tells message and place, so that anything out of place shows. */
#include "tests/abi/net_exchange.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HANDLE_BYTES = 128, PATIENCE_S = 20, PTR_HOST = 1, SOON_US = 20 };

static time_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void exchange_connect(const struct host *host, void *context, struct exchange_pair *pair) {
  *pair = (struct exchange_pair){ .host = host };
  unsigned char handle[HANDLE_BYTES + 16];
  memset(handle, 0xa5, sizeof(handle));
  CHECK_OK(host_listen(host, context, 0, handle, &pair->listen));
  CHECK(pair->listen);
  time_t deadline = now_s() + PATIENCE_S;
  while (!pair->send || !pair->recv) {
    if (!pair->send) {
      CHECK_OK(host_connect(host, context, 0, handle, &pair->send));
    }
    if (!pair->recv) {
      CHECK_OK(host_accept(host, pair->listen, &pair->recv));
    }
    CHECK(now_s() < deadline);
  }
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

static unsigned char pattern(int message, size_t at) {
  return (unsigned char)((size_t)message * 7 + at * 13 + (at >> 8));
}

void exchange_post(struct exchange_half *half, int message, void **request) {
  unsigned char *part = half->buffer + (size_t)(message % EXCHANGE_WINDOW) * half->part_bytes;
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

static bool complete(struct exchange_half *half, int message, void *request) {
  int is_done = 0, bytes = -1;
  CHECK_OK(HOST_CALL(half->host, test, request, &is_done, &bytes));
  if (!is_done) {
    return false;
  }
  CHECK(bytes == (int)half->sizes[message]);
  const unsigned char *part = half->buffer + (size_t)(message % EXCHANGE_WINDOW) * half->part_bytes;
  for (size_t i = 0; i < half->sizes[message] && !half->is_sender; i++) {
    CHECK(part[i] == pattern(message, i));
  }
  return true;
}

/* As NCCL's progress thread does: posts up to the window, tests the oldest. */
static void *run_half(void *argument) {
  struct exchange_half *half = argument;
  void *requests[EXCHANGE_WINDOW];
  int posted = 0, done = 0;
  time_t deadline = now_s() + PATIENCE_S;
  while (done < half->count) {
    if (posted < half->count && posted - done < EXCHANGE_WINDOW) {
      void *request = NULL;
      exchange_post(half, posted, &request);
      CHECK(request != (void *)1);
      if (request) {
        requests[posted++ % EXCHANGE_WINDOW] = request;
      }
    }
    if (done < posted && complete(half, done, requests[done % EXCHANGE_WINDOW])) {
      done++;
      deadline = now_s() + PATIENCE_S;
    } else {
      usleep(SOON_US);
    }
    CHECK(now_s() < deadline);
  }
  return NULL;
}

void exchange_start(struct exchange_half *half, const struct exchange_pair *pair, bool is_sender,
                    const size_t *sizes, int count) {
  *half = (struct exchange_half){ .host = pair->host,
                                  .comm = is_sender ? pair->send : pair->recv,
                                  .sizes = sizes,
                                  .count = count,
                                  .is_sender = is_sender };
  for (int i = 0; i < count; i++) {
    half->part_bytes = sizes[i] > half->part_bytes ? sizes[i] : half->part_bytes;
  }
  half->part_bytes += 128;
  half->buffer = mmap(NULL, half->part_bytes * EXCHANGE_WINDOW, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(half->buffer != MAP_FAILED);
  CHECK_OK(host_register(half->host, half->comm, half->buffer, half->part_bytes * EXCHANGE_WINDOW,
                         PTR_HOST, &half->mhandle));
}

void exchange_deregister(const struct exchange_half *half) {
  CHECK_OK(HOST_CALL(half->host, deregMr, half->comm, half->mhandle));
}

void exchange_run(const struct exchange_pair *pair, const size_t *sizes, int count) {
  struct exchange_half sender, receiver;
  exchange_start(&sender, pair, true, sizes, count);
  exchange_start(&receiver, pair, false, sizes, count);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_half, &sender) == 0);
  run_half(&receiver);
  CHECK(pthread_join(thread, NULL) == 0);
  exchange_deregister(&sender);
  exchange_deregister(&receiver);
  munmap(sender.buffer, sender.part_bytes * EXCHANGE_WINDOW);
  munmap(receiver.buffer, receiver.part_bytes * EXCHANGE_WINDOW);
}
