/* SPDX-License-Identifier: Apache-2.0 */
/* See life_tables.h. Where a step fails and what is closed then, in NCCL
 * v2.19.3, v2.22.3, v2.29.7 and v2.30.7:
 * proxyProgressAsync (src/proxy.cc) takes a connect or accept that failed for connected, so
 * sendProxyFree and recvProxyFree (src/transport/net.cc) deregister and close what never was; one
 * that was still waiting they forget. recvProxyConnect closes its listener after a success only.
 * CollNet's sharedConnect (src/transport/coll_net.cc) closes its listener when no group came. */
#include <time.h>

#include "tests/abi/life_tables.h"

enum { HANDLE_BYTES = 128, PATIENCE_S = 20, BYTES = 4096 };

/* What set-up does, in turn. */
enum step { INIT, LISTEN, CONNECT, CONNECTED, REGISTER_SEND, REGISTER_RECV, POST, STEPS };

struct teardown {
  const struct host *host;
  void *context, *listen, *send, *recv, *send_mhandle, *recv_mhandle;
  char send_data[BYTES], recv_data[BYTES];
};

static void connect_both(struct teardown *t, void *handle) {
  time_t deadline = time(NULL) + PATIENCE_S;
  while (!t->send || !t->recv) {
    if (!t->send) {
      CHECK_OK(host_connect(t->host, t->context, 0, handle, &t->send));
    }
    if (!t->recv) {
      CHECK_OK(host_accept(t->host, t->listen, &t->recv));
    }
    CHECK(time(NULL) < deadline);
  }
  CHECK_OK(HOST_CALL(t->host, closeListen, t->listen));
}

static void set_up(struct teardown *t, const struct life *life, enum step failed) {
  unsigned char handle[HANDLE_BYTES] = { 0 };
  void *request;
  for (enum step step = INIT; step < failed; step++) {
    switch (step) {
    case INIT:
      CHECK_OK(host_init(t->host, &t->context, life->logger));
      break;
    case LISTEN:
      CHECK_OK(host_listen(t->host, t->context, 0, handle, &t->listen));
      break;
    case CONNECT: /* and is not finished */
      CHECK_OK(host_connect(t->host, t->context, 0, handle, &t->send));
      break;
    case CONNECTED:
      connect_both(t, handle);
      break;
    case REGISTER_SEND:
      CHECK_OK(host_register(t->host, t->send, t->send_data, BYTES, 1, &t->send_mhandle));
      break;
    case REGISTER_RECV:
      CHECK_OK(host_register(t->host, t->recv, t->recv_data, BYTES, 1, &t->recv_mhandle));
      break;
    default:
      CHECK_OK(host_irecv(t->host, t->recv, 1, t->recv_data, BYTES, t->recv_mhandle, NULL, false,
                          &request));
      CHECK_OK(host_isend(t->host, t->send, t->send_data, BYTES, t->send_mhandle, NULL, &request));
    }
  }
}

static void tear_down(struct teardown *t) {
  CHECK_OK(HOST_CALL(t->host, deregMr, t->send, t->send_mhandle));
  CHECK_OK(HOST_CALL(t->host, closeSend, t->send));
  CHECK_OK(HOST_CALL(t->host, deregMr, t->recv, t->recv_mhandle));
  CHECK_OK(HOST_CALL(t->host, closeRecv, t->recv));
  CHECK_OK(host_finalize(t->host, t->context));
}

/* From 2.28 on NCCL closes what a failed connect gave, and tears it down like any other later:
 * twice (sendProxyConnect, sendProxyFree). So nothing is given. */
static int fail_to_connect(const struct life *life) {
  struct teardown t = { .host = &life->host };
  unsigned char handle[HANDLE_BYTES];
  memset(handle, 0xa5, sizeof(handle));
  CHECK_OK(host_init(t.host, &t.context, life->logger));
  CHECK(host_connect(t.host, t.context, 0, handle, &t.send) != NCCL_SUCCESS && !t.send);
  CHECK(host_connect(t.host, t.context, 99, handle, &t.send) != NCCL_SUCCESS && !t.send);
  tear_down(&t);
  return 1;
}

static int tear_down_net(const struct life *life) {
  for (enum step failed = INIT; failed <= STEPS; failed++) {
    struct teardown t = { .host = &life->host };
    set_up(&t, life, failed);
    tear_down(&t);
  }
  CHECK_OK(HOST_CALL(&life->host, closeListen, NULL));
  return STEPS + 1 + fail_to_connect(life);
}

static void tear_down_group(const struct life *life, void *listen) {
  void *handle = NULL, *group = NULL;
  unsigned char bytes[HANDLE_BYTES] = { 0 };
  handle = bytes;
  CHECK_OK(
      LIFE_COLLNET(life, 8)->connect(&handle, 1, 0, listen, &group)); /* one member is no group */
  CHECK(!group);
  CHECK_OK(LIFE_COLLNET(life, 8)->closeListen(listen));
  CHECK_OK(LIFE_COLLNET(life, 8)->deregMr(NULL, NULL));
  CHECK_OK(LIFE_COLLNET(life, 8)->closeColl(NULL));
  CHECK_OK(LIFE_COLLNET(life, 8)->closeListen(NULL));
}

/* Before init, which may have failed, and with a listener that comes to nothing. */
static int tear_down_collnet(const struct life *life) {
  void *context = NULL, *listen = NULL;
  unsigned char handle[HANDLE_BYTES] = { 0 };
  bool has_context = life->release->net >= 11;
  if (!life->collnet) {
    return 0;
  }
  tear_down_group(life, NULL);
  if (has_context) {
    CHECK_OK(LIFE_COLLNET(life, 11)->finalize(NULL));
    CHECK_OK(LIFE_COLLNET(life, 11)->init(&context, 1, life->logger));
    CHECK_OK(LIFE_COLLNET(life, 11)->listen(context, 0, handle, &listen));
  } else {
    CHECK_OK(LIFE_COLLNET(life, 8)->init(life->logger));
    CHECK_OK(LIFE_COLLNET(life, 8)->listen(0, handle, &listen));
  }
  tear_down_group(life, listen);
  if (has_context) {
    CHECK_OK(LIFE_COLLNET(life, 11)->finalize(context));
  }
  return has_context ? 3 : 2;
}

int life_tear_down(const struct life *life) {
  const struct life_communicator none = { NULL, NULL };
  int steps = tear_down_net(life) + tear_down_collnet(life);
  life_end(life, &none);
  return steps + 1;
}
