/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a round: the server says "over" when its window is; the client, whose own window is
 * over as well, then shuts the flows down, and the server reads up to their end. */
#include "net_plugin/tools/perf/plain.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/rendezvous.h"
#include "net_plugin/tools/perf/failure.h"

#define PURPOSE "stratus-net perf flow"
/* A wake-up costs as much as a few calls, so an idle side spins before it sleeps. */
#define SPIN_NS (20 * NS_PER_US)

enum {
  PERIOD_BYTES = 65521, /* of the contents: a prime, so that a misplaced piece shows */
  SLEEP_MS = 2,         /* also how often the control connection is polled */
  CALLS_PER_TURN = 16,  /* per flow, before the next flow has its turn */
  PASSES_PER_CLOCK_READ = 64,
};

struct round {
  struct plain *plain;
  struct window *window;
  uint64_t bytes; /* of a message */
  uint64_t wrong, moved_ns, polled_ns;
  bool is_over_sent, is_over_received; /* by the server; by the client */
};

/* ---- flows ---- */

/* The address of one end of the control connection; flows have the same. */
static int find_place(int fd, bool is_peer, struct rendezvous_address *place) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  int error = is_peer ? getpeername(fd, (struct sockaddr *)&address, &length)
                      : getsockname(fd, (struct sockaddr *)&address, &length);
  error = error ? error
                : getnameinfo((const struct sockaddr *)&address, length, place->host,
                              sizeof place->host, NULL, 0, NI_NUMERICHOST);
  place->port = address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
                                              : ntohs(((struct sockaddr_in *)&address)->sin_port);
  return error ? failure("the control connection has no address") : CLI_OK;
}

static int listen_for_flows(struct plain *plain) {
  struct rendezvous_address place;
  int status = find_place(plain->channel->fd, false, &place);
  place.port = 0;
  status = status == CLI_OK ? rendezvous_listen(&place, &plain->listen_fd) : status;
  status = status == CLI_OK ? find_place(plain->listen_fd, false, &place) : status;
  if (status != CLI_OK) {
    return status;
  }
  char token[PEER_TOKEN_MAX];
  plain->gate = peer_gate_new(plain->listen_fd, &plain->key);
  if (!plain->gate || peer_draw_token(token) != 0) {
    return failure("no memory or no random numbers for the flows");
  }
  peer_key_of_token(PURPOSE, token, strlen(token), &plain->key);
  return control_channel_send(plain->channel,
                              json_pack("{s:i, s:s}", "port", place.port, "token", token));
}

static int receive_port(struct plain *plain) {
  json_t *message;
  int status = control_channel_receive(plain->channel, "port", plain->plan->timeout_ns, &message);
  if (status == CLI_OK) {
    const char *token = json_string_value(json_object_get(message, "token"));
    status = token ? find_place(plain->channel->fd, true, &plain->server)
                   : failure("the server sent no token for the flows");
    plain->server.port = (int)json_integer_value(json_object_get(message, "port"));
    peer_key_of_token(PURPOSE, token, token ? strlen(token) : 0, &plain->key);
    json_decref(message);
  }
  return status;
}

int plain_open(struct plain *plain, const struct plan *plan, bool is_client,
               struct control_channel *channel) {
  *plain =
      (struct plain){ .plan = plan, .channel = channel, .is_client = is_client, .listen_fd = -1 };
  plain->flow_count = plan->test == PLAN_LATENCY ? 1 : plan->plain_flows;
  memset(plain->flows, 0xff, sizeof plain->flows); /* no descriptors */
  plain->buffer_bytes = 64 << 10;
  for (int i = 0; i < plan->size_count; i++) {
    plain->buffer_bytes =
        plan->sizes[i] > plain->buffer_bytes ? plan->sizes[i] : plain->buffer_bytes;
  }
  plain->contents = malloc(plain->buffer_bytes + PERIOD_BYTES);
  plain->buffer = calloc(1, plain->buffer_bytes);
  if (!plain->contents || !plain->buffer) {
    return failure("out of memory");
  }
  for (size_t i = 0; i < plain->buffer_bytes + PERIOD_BYTES; i++) {
    plain->contents[i] = (uint8_t)((i % PERIOD_BYTES * 0x9e3779b9u) >> 24);
  }
  return is_client ? receive_port(plain) : listen_for_flows(plain);
}

void plain_close(struct plain *plain) {
  plain_disconnect(plain);
  peer_gate_free(plain->gate);
  if (plain->listen_fd >= 0) {
    close(plain->listen_fd);
  }
  free(plain->contents);
  free(plain->buffer);
}

static const uint8_t hello[PEER_HELLO_BYTES];

static int connect_flow(struct plain *plain, int *fd) {
  int status = rendezvous_connect(&plain->server, "stratus-net perf --listen", fd);
  status = status == CLI_OK ? rendezvous_prove(&plain->key, hello, *fd) : status;
  *fd = status == CLI_OK ? *fd : -1;
  return status;
}

static int accept_flow(struct plain *plain, int *fd) {
  uint8_t said[PEER_HELLO_BYTES];
  uint64_t until_ns = clock_now_ns() + plain->plan->timeout_ns;
  if (rendezvous_accept_proven(plain->gate, until_ns, fd, said) == CLI_OK) {
    return CLI_OK;
  }
  *fd = -1;
  return failure("the client did not connect all of %d flows", plain->flow_count);
}

int plain_connect(struct plain *plain) {
  int status = CLI_OK;
  for (int i = 0; i < plain->flow_count && status == CLI_OK; i++) {
    struct plain_flow *flow = &plain->flows[i];
    *flow = (struct plain_flow){ .fd = -1 };
    status = plain->is_client ? connect_flow(plain, &flow->fd) : accept_flow(plain, &flow->fd);
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
}

/* ---- a round ---- */

/* One call. Returns the bytes moved, 0 if the kernel has no room or no bytes, -1 after a message.
 * The server closes a flow at its end. Without a check the bytes sent are always the same ones,
 * which stay in the cache. */
static ssize_t move_some(struct round *round, struct plain_flow *flow, bool is_send, size_t limit) {
  struct plain *plain = round->plain;
  struct counts *now = &round->window->now;
  uint64_t *position = is_send ? &flow->sent : &flow->received;
  const uint8_t *contents =
      plain->contents + (plain->plan->is_checked ? *position % PERIOD_BYTES : 0);
  ssize_t moved = is_send ? send(flow->fd, contents, limit, MSG_DONTWAIT | MSG_NOSIGNAL)
                          : recv(flow->fd, plain->buffer, limit, MSG_DONTWAIT);
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) {
    return 0;
  }
  if (moved < 0 || (moved == 0 && plain->is_client)) {
    failure("a flow was lost: %s", moved < 0 ? strerror(errno) : "closed by the server");
    return -1;
  }
  if (moved == 0) {
    close(flow->fd);
    flow->fd = -1;
  }
  *position += (size_t)moved;
  if (is_send) {
    now->bytes_sent += (size_t)moved;
    now->messages_sent = now->bytes_sent / round->bytes;
  } else {
    now->bytes_received += (size_t)moved;
    now->messages_received = now->bytes_received / round->bytes;
    round->wrong += plain->plan->is_checked && memcmp(plain->buffer, contents, (size_t)moved) != 0;
  }
  return moved;
}

/* The client may stop sending. */
static bool is_over(const struct round *round) {
  return round->window->state == WINDOW_OVER && round->is_over_received;
}

/* Looks at the clock and the control connection; fails when nothing has moved for too long. */
static int watch(struct round *round, bool has_moved) {
  const struct plain *plain = round->plain;
  uint64_t now_ns = clock_now_ns();
  json_t *message = NULL;
  window_update(round->window, now_ns);
  round->moved_ns = has_moved ? now_ns : round->moved_ns;
  if (now_ns - round->moved_ns > plain->plan->timeout_ns) {
    return failure("nothing has moved for %.0f s", (double)(now_ns - round->moved_ns) * 1e-9);
  }
  if (!plain->is_client && round->window->state == WINDOW_OVER && !round->is_over_sent) {
    round->is_over_sent = true;
    return control_channel_send(plain->channel, json_pack("{s:b}", "over", 1));
  }
  if (now_ns - round->polled_ns < SLEEP_MS * NS_PER_MS || round->is_over_received) {
    return CLI_OK;
  }
  round->polled_ns = now_ns;
  int status = control_channel_poll(plain->channel, &message);
  round->is_over_received = json_object_get(message, "over") != NULL;
  if (message && !round->is_over_received) { /* the client is a step further */
    control_channel_keep(plain->channel, json_incref(message));
  }
  json_decref(message);
  return status;
}

/* A flow moves a few messages, then it is the next one's turn. */
static int give_turn(struct round *round, struct plain_flow *flow, bool *has_moved) {
  bool is_sender = round->plain->is_client;
  size_t limit = is_sender ? round->bytes : round->plain->buffer_bytes;
  ssize_t moved = (ssize_t)limit;
  for (int i = 0; i < CALLS_PER_TURN && moved == (ssize_t)limit && flow->fd >= 0; i++) {
    moved = move_some(round, flow, is_sender, limit);
    *has_moved |= moved > 0;
  }
  return moved < 0 ? CLI_FAILED : CLI_OK;
}

static void sleep_until_ready(const struct plain *plain) {
  struct pollfd events[PLAN_PLAIN_FLOWS_MAX];
  for (int i = 0; i < plain->flow_count; i++) {
    events[i].fd = plain->flows[i].fd; /* poll ignores -1 */
    events[i].events = plain->is_client ? POLLOUT : POLLIN;
  }
  poll(events, (nfds_t)plain->flow_count, SLEEP_MS);
}

static int run_bulk(struct round *round) {
  struct plain *plain = round->plain;
  int status = CLI_OK, open_flows = plain->flow_count;
  while (status == CLI_OK && open_flows > 0 && !is_over(round)) {
    bool has_moved = false;
    open_flows = 0;
    for (int i = 0; i < plain->flow_count && status == CLI_OK; i++) {
      status = give_turn(round, &plain->flows[i], &has_moved);
      open_flows += plain->flows[i].fd >= 0;
    }
    status = status == CLI_OK ? watch(round, has_moved) : status;
    if (!has_moved && clock_now_ns() - round->moved_ns >= SPIN_NS) {
      sleep_until_ready(plain);
    }
  }
  return status;
}

/* The client sends first; neither side sleeps. */
static int run_ping_pong(struct round *round) {
  struct plain_flow *flow = &round->plain->flows[0];
  bool is_client = round->plain->is_client, is_sending = is_client, has_moved = false;
  uint64_t done = 0, sent_ns = 0, passes = 0; /* bytes of this message; when it was sent */
  int status = CLI_OK;
  while (status == CLI_OK && flow->fd >= 0 && !(is_sending && done == 0 && is_over(round))) {
    sent_ns = is_sending && done == 0 ? clock_now_ns() : sent_ns;
    ssize_t moved = move_some(round, flow, is_sending, round->bytes - done);
    done += moved > 0 ? (size_t)moved : 0;
    has_moved |= moved > 0;
    if (done == round->bytes) {
      if (is_client && !is_sending && window_is_measuring(round->window)) {
        histogram_add(&round->window->half_trips, (clock_now_ns() - sent_ns) / 2);
      }
      done = 0;
      is_sending = !is_sending;
    }
    status = moved < 0 ? CLI_FAILED : CLI_OK;
    if (status == CLI_OK && ++passes % PASSES_PER_CLOCK_READ == 0) {
      status = watch(round, has_moved);
      has_moved = false;
    }
  }
  return status;
}

int plain_run(struct plain *plain, uint64_t bytes, struct window *window, uint64_t *wrong) {
  struct round round = { .plain = plain, .window = window, .bytes = bytes };
  bool is_ping_pong = plain->plan->test == PLAN_LATENCY;
  round.moved_ns = clock_now_ns();
  window_start(window, plain->plan, is_ping_pong ? 2 : 1);
  int status = is_ping_pong ? run_ping_pong(&round) : run_bulk(&round);
  for (int i = 0; i < plain->flow_count && plain->is_client; i++) {
    shutdown(plain->flows[i].fd, SHUT_WR);
  }
  *wrong += round.wrong;
  return status != CLI_OK || window->state == WINDOW_OVER ? status
                                                          : failure("the client closed its flows");
}
