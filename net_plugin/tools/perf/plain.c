/* SPDX-License-Identifier: Apache-2.0 */
/* Flows of plain TCP: opening them. plain_run.c moves the bytes. */
#include "net_plugin/tools/perf/plain.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/meet.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plain_run.h"
#include "net_plugin/tools/perf/plain_way.h"

/* What a new flow says first. */
struct hello {
  uint32_t token, flow;
};

/* ---- memory ---- */

static int make_memory(struct plain *plain) {
  const struct plan *plan = plain->plan;
  uint64_t largest = 64 << 10;
  for (int i = 0; i < plan->size_count; i++) {
    largest = plan->sizes[i] > largest ? plan->sizes[i] : largest;
  }
  plain->piece_bytes = largest;
  plain->contents = aligned_alloc(4096, (largest + PLAIN_PERIOD_BYTES + 4095) & ~UINT64_C(4095));
  plain->buffer = aligned_alloc(4096, (largest + 4095) & ~UINT64_C(4095));
  if (!plain->contents || !plain->buffer) {
    return failure("out of memory");
  }
  plain_run_fill(plain->contents, largest + PLAIN_PERIOD_BYTES);
  memset(plain->buffer, 0, largest);
  return CLI_OK;
}

/* ---- the server's port ---- */

static void set_port(struct sockaddr_storage *address, unsigned port) {
  if (address->ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
  } else {
    ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
  }
}

static unsigned get_port(const struct sockaddr_storage *address) {
  return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                              : ((const struct sockaddr_in *)address)->sin_port);
}

/* On the address at which the client found this host. */
static int listen_there(struct plain *plain) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  getsockname(plain->talk->fd, (struct sockaddr *)&address, &length);
  set_port(&address, 0);
  plain->listen_fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (plain->listen_fd < 0 ||
      bind(plain->listen_fd, (const struct sockaddr *)&address, length) != 0 ||
      listen(plain->listen_fd, PLAN_PLAIN_FLOWS_MAX) != 0 ||
      getsockname(plain->listen_fd, (struct sockaddr *)&address, &length) != 0 ||
      getrandom(&plain->token, sizeof plain->token, 0) != (ssize_t)sizeof plain->token) {
    return failure("cannot listen for flows: %s", strerror(errno));
  }
  plain->port = get_port(&address);
  return talk_say(plain->talk, json_pack("{s:i, s:I}", "port", (int)plain->port, "token",
                                         (json_int_t)plain->token));
}

static int hear_port(struct plain *plain) {
  json_t *message;
  int status = talk_hear(plain->talk, "port", plain->plan->patience_ns, &message);
  if (status == CLI_OK) {
    plain->port = (unsigned)json_integer_value(json_object_get(message, "port"));
    plain->token = (unsigned)json_integer_value(json_object_get(message, "token"));
    json_decref(message);
  }
  return status;
}

int plain_open(struct plain *plain, const struct plan *plan, bool is_client, struct talk *talk) {
  *plain = (struct plain){ .plan = plan, .talk = talk, .is_client = is_client, .listen_fd = -1 };
  plain->flow_count = plan->plain_flows * (plan->test == PLAN_BOTH_WAYS ? 2 : 1);
  if (plan->test == PLAN_LATENCY) {
    plain->flow_count = 1;
  }
  for (int i = 0; i < plain->flow_count; i++) {
    plain->flows[i].fd = -1;
  }
  int status = plan->io >= PLAN_URING ? plain_uring_check() : CLI_OK;
  status = status == CLI_OK ? make_memory(plain) : status;
  return status != CLI_OK ? status : is_client ? hear_port(plain) : listen_there(plain);
}

void plain_close(struct plain *plain) {
  plain_disconnect(plain);
  if (plain->listen_fd >= 0) {
    close(plain->listen_fd);
  }
  free(plain->contents);
  free(plain->buffer);
}

/* ---- flows ---- */

static int call_one(struct plain *plain, int flow) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  struct hello hello = { .token = plain->token, .flow = (uint32_t)flow };
  getpeername(plain->talk->fd, (struct sockaddr *)&address, &length);
  set_port(&address, plain->port);
  int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  plain->flows[flow].fd = fd;
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) != 0 ||
      meet_write(fd, &hello, sizeof hello) != 0) {
    return failure("flow %d of %d does not come about: %s", flow, plain->flow_count,
                   strerror(errno));
  }
  return CLI_OK;
}

/* One that is not ours is closed again. */
static void accept_one(struct plain *plain) {
  struct timeval patience = { .tv_sec = 1 };
  struct hello hello;
  int fd = accept4(plain->listen_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) {
    return;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  bool is_ours = meet_read(fd, &hello, sizeof hello) == 0 && hello.token == plain->token &&
                 hello.flow < (uint32_t)plain->flow_count && plain->flows[hello.flow].fd < 0;
  if (is_ours) {
    plain->flows[hello.flow].fd = fd;
  } else {
    close(fd);
  }
}

static int accept_all(struct plain *plain) {
  uint64_t until_ns = clock_now_ns() + plain->plan->patience_ns;
  for (;;) {
    int missing = 0;
    for (int i = 0; i < plain->flow_count; i++) {
      missing += plain->flows[i].fd < 0;
    }
    if (!missing) {
      return CLI_OK;
    }
    if (clock_now_ns() > until_ns) {
      return failure("%d of %d flows do not come about", missing, plain->flow_count);
    }
    struct pollfd poll_fd = { .fd = plain->listen_fd, .events = POLLIN };
    if (poll(&poll_fd, 1, 100) > 0) {
      accept_one(plain);
    }
  }
}

static void set_send_buffer(int fd, uint64_t bytes) {
  int wanted = (int)bytes;
  if (bytes) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
  }
}

int plain_connect(struct plain *plain) {
  int status = plain->is_client ? CLI_OK : accept_all(plain), one = 1;
  for (int i = 0; i < plain->flow_count && status == CLI_OK; i++) {
    status = plain->is_client ? call_one(plain, i) : CLI_OK;
    struct plain_flow *flow = &plain->flows[i];
    flow->is_sender = (i < plain->plan->plain_flows) == plain->is_client;
    flow->position = 0;
    set_send_buffer(flow->fd, plain->plan->send_buffer_bytes);
    setsockopt(flow->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  return status;
}

void plain_disconnect(struct plain *plain) {
  for (int i = 0; i < plain->flow_count; i++) {
    if (plain->flows[i].fd >= 0) {
      close(plain->flows[i].fd);
      plain->flows[i].fd = -1;
    }
  }
  plain_slots_free(&plain->slots);
}
