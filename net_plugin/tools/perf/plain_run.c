/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over flows of plain TCP, as fast as one thread can. */
#include "net_plugin/tools/perf/plain_run.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plain.h"

/* Being woken costs the other side as much as a few calls, so sleep comes after a while only. */
#define SPIN_NS (20 * NS_PER_US)

enum { WAIT_MS = 2, CALLS_PER_EVENT = 16, LOOK_EVERY_PASSES = 64 };

struct run {
  struct plain *plain;
  struct gauge *gauge;
  uint64_t bytes, to_send, to_receive; /* of a message; left in this round */
  uint64_t wrong, moved_ns, moved_bytes, polled_ns;
  uint64_t busy_ns;                            /* when last a flow could go on */
  bool is_over_told, is_over_there, has_ended; /* a ping-pong, by the client */
};

void plain_run_fill(uint8_t *contents, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    contents[i] = (uint8_t)((i % PLAIN_PERIOD_BYTES * 0x9e3779b9u) >> 24);
  }
}

/* ---- one call ---- */

/* Where nobody looks at the contents, always the same ones: copying from a page's start is cheaper.
 */
static const uint8_t *contents_at(const struct run *run, const struct plain_flow *flow) {
  size_t number = (size_t)(flow - run->plain->flows);
  if (!run->plain->plan->is_checked) {
    return run->plain->contents;
  }
  return run->plain->contents + (flow->position + number * 997) % PLAIN_PERIOD_BYTES;
}

static int fail_flow(struct run *run, int error) {
  const struct plan *plan = run->plain->plan;
  if (error == 0 && plan->test == PLAN_LATENCY && plan->is_timed &&
      run->gauge->state == GAUGE_OVER) {
    run->has_ended = true;
    return CLI_OK;
  }
  return failure("a flow was lost: %s", error ? strerror(error) : "closed by the other side");
}

/* *moved: how many bytes, 0 if there was no room. */
static int send_some(struct run *run, struct plain_flow *flow, size_t limit, size_t *moved) {
  ssize_t sent = send(flow->fd, contents_at(run, flow), limit, MSG_DONTWAIT | MSG_NOSIGNAL);
  *moved = sent > 0 ? (size_t)sent : 0;
  flow->position += *moved;
  run->to_send -= *moved;
  run->gauge->now.bytes_sent += *moved;
  run->gauge->now.messages_sent = run->gauge->now.bytes_sent / run->bytes;
  return sent < 0 && errno != EAGAIN && errno != EINTR ? fail_flow(run, errno) : CLI_OK;
}

static int receive_some(struct run *run, struct plain_flow *flow, size_t limit, size_t *moved) {
  struct plain *plain = run->plain;
  ssize_t got = recv(flow->fd, plain->buffer, limit, MSG_DONTWAIT);
  *moved = got > 0 ? (size_t)got : 0;
  if (plain->plan->is_checked) {
    run->wrong += memcmp(plain->buffer, contents_at(run, flow), *moved) != 0;
  }
  flow->position += *moved;
  run->to_receive -= *moved < run->to_receive ? *moved : run->to_receive;
  run->gauge->now.bytes_received += *moved;
  run->gauge->now.messages_received = run->gauge->now.bytes_received / run->bytes;
  if (got == 0) {
    return fail_flow(run, 0);
  }
  return got < 0 && errno != EAGAIN && errno != EINTR ? fail_flow(run, errno) : CLI_OK;
}

static size_t least(uint64_t a, uint64_t b) {
  return (size_t)(a < b ? a : b);
}

/* ---- throughput ---- */

/* A flow that can go on does so for a few calls; then it is the next one's turn. */
static int work(struct run *run, struct plain_flow *flow) {
  size_t moved = 1;
  int status = CLI_OK;
  for (int i = 0; i < CALLS_PER_EVENT && moved > 0 && status == CLI_OK; i++) {
    if (flow->is_sender) {
      size_t limit = least(run->bytes, run->to_send);
      moved = 0;
      status = limit > 0 ? send_some(run, flow, limit, &moved) : CLI_OK;
      moved = moved == limit ? moved : 0;
    } else {
      size_t limit = run->plain->piece_bytes;
      status = receive_some(run, flow, limit, &moved);
      moved = moved == limit ? moved : 0;
    }
  }
  return status;
}

/* One turn of each flow. They are simply tried: an epoll would have the kernel call back for each
 * segment, which costs more than a try that fails. */
static int work_all(struct run *run) {
  struct plain *plain = run->plain;
  int status = CLI_OK;
  for (int i = 0; i < plain->flow_count && status == CLI_OK; i++) {
    status = work(run, &plain->flows[i]);
    if (!plain->plan->is_timed) { /* a window of few messages may begin and end here */
      gauge_look(run->gauge, clock_now_ns());
    }
  }
  return status;
}

/* Until a flow can go on, or it is time to look at the clock. */
static void sleep_a_little(struct run *run) {
  struct pollfd fds[2 * PLAN_PLAIN_FLOWS_MAX];
  const struct plain *plain = run->plain;
  nfds_t count = 0;
  for (int i = 0; i < plain->flow_count; i++) {
    const struct plain_flow *flow = &plain->flows[i];
    if (flow->is_sender ? run->to_send > 0 : run->to_receive > 0) {
      fds[count].fd = flow->fd;
      fds[count++].events = flow->is_sender ? POLLOUT : POLLIN;
    }
  }
  poll(fds, count, WAIT_MS);
}

/* ---- the end ---- */

static int watch(struct run *run, uint64_t now_ns) {
  const struct counts *now = &run->gauge->now;
  struct talk *talk = run->plain->talk;
  json_t *message;
  if (now->bytes_sent + now->bytes_received != run->moved_bytes) {
    run->moved_bytes = now->bytes_sent + now->bytes_received;
    run->moved_ns = now_ns;
  }
  if (now_ns - run->moved_ns > run->plain->plan->patience_ns) {
    return failure("nothing has moved for %.0f s", (double)(now_ns - run->moved_ns) * 1e-9);
  }
  if (now_ns - run->polled_ns < WAIT_MS * NS_PER_MS) {
    return CLI_OK;
  }
  run->polled_ns = now_ns;
  int status = talk_poll(talk, &message);
  if (status == CLI_OK && message && json_object_get(message, "over")) {
    run->is_over_there = true;
  } else if (status == CLI_OK && message) {
    talk_keep(talk, json_incref(message));
  }
  json_decref(message);
  if (status == CLI_OK && run->plain->plan->is_timed && run->gauge->state == GAUGE_OVER &&
      !run->is_over_told) {
    run->is_over_told = true;
    status = talk_say(talk, json_pack("{s:b}", "over", 1));
  }
  return status;
}

static bool is_finished(const struct run *run) {
  if (run->gauge->state != GAUGE_OVER) {
    return false;
  }
  bool is_timed = run->plain->plan->is_timed;
  return run->has_ended || (is_timed ? run->is_over_told && run->is_over_there
                                     : run->to_send == 0 && run->to_receive == 0);
}

/* Whoever sees the flows close before the word "over" came has it still to hear. */
static int hear_over(struct run *run) {
  const struct plan *plan = run->plain->plan;
  json_t *message = NULL;
  if (!plan->is_timed) {
    return CLI_OK;
  }
  int status =
      run->is_over_told ? CLI_OK : talk_say(run->plain->talk, json_pack("{s:b}", "over", 1));
  if (status == CLI_OK && !run->is_over_there) {
    status = talk_hear(run->plain->talk, "over", plan->patience_ns, &message);
  }
  json_decref(message);
  return status;
}

static int run_throughput(struct run *run) {
  int status = CLI_OK;
  uint64_t busy_ns = clock_now_ns(); /* when last anything moved */
  while (status == CLI_OK && !is_finished(run)) {
    const struct counts before = run->gauge->now;
    status = work_all(run);
    uint64_t now_ns = clock_now_ns();
    bool has_moved = run->gauge->now.bytes_sent != before.bytes_sent ||
                     run->gauge->now.bytes_received != before.bytes_received;
    busy_ns = has_moved ? now_ns : busy_ns;
    gauge_look(run->gauge, now_ns);
    status = status == CLI_OK ? watch(run, now_ns) : status;
    if (now_ns - busy_ns > SPIN_NS) {
      sleep_a_little(run);
    }
  }
  return status;
}

/* ---- latency ---- */

/* One call of the ping-pong; the client sends first. *left: bytes of the message under way. */
static int ping(struct run *run, bool *is_sending, uint64_t *left, uint64_t *sent_ns) {
  struct plain_flow *flow = &run->plain->flows[0];
  bool is_client = run->plain->is_client;
  size_t moved;
  if (*is_sending && is_client && *left == run->bytes) {
    *sent_ns = clock_now_ns();
  }
  int status =
      *is_sending ? send_some(run, flow, *left, &moved) : receive_some(run, flow, *left, &moved);
  *left -= moved;
  if (*left == 0) {
    if (!*is_sending && is_client && gauge_is_measuring(run->gauge)) {
      histogram_add(&run->gauge->half_trips, (clock_now_ns() - *sent_ns) / 2);
    }
    *is_sending = !*is_sending;
    *left = run->bytes;
  }
  return status;
}

/* Of a timed one the client makes an end, between two messages; the server sees it in the flow. */
static int run_latency(struct run *run) {
  struct plain *plain = run->plain;
  bool is_sending = plain->is_client;
  uint64_t left = run->bytes, sent_ns = 0, passes = 0;
  int status = CLI_OK;
  for (;;) {
    bool is_between = left == run->bytes && is_sending == plain->is_client;
    bool may_end = plain->plan->is_timed ? plain->is_client || run->has_ended : true;
    if (status != CLI_OK || (is_between && may_end && is_finished(run))) {
      shutdown(plain->flows[0].fd, SHUT_WR);
      return status;
    }
    if (run->to_send > 0 || run->to_receive > 0) {
      status = ping(run, &is_sending, &left, &sent_ns);
    }
    if (++passes % LOOK_EVERY_PASSES == 0 || !plain->plan->is_timed) {
      uint64_t now_ns = clock_now_ns();
      gauge_look(run->gauge, now_ns);
      status = status == CLI_OK ? watch(run, now_ns) : status;
    }
  }
}

int plain_run(struct plain *plain, uint64_t bytes, struct gauge *gauge, uint64_t *wrong) {
  const struct plan *plan = plain->plan;
  bool is_latency = plan->test == PLAN_LATENCY, is_two_way = plan->test == PLAN_BOTH_WAYS;
  uint64_t all = plan->is_timed ? UINT64_MAX : (plan->warmup_count + plan->count) * bytes;
  struct run run = { .plain = plain, .gauge = gauge, .bytes = bytes, .moved_ns = clock_now_ns() };
  run.to_send = plain->is_client || is_two_way || is_latency ? all : 0;
  run.to_receive = !plain->is_client || is_two_way || is_latency ? all : 0;
  gauge_start(gauge, plan, is_latency || is_two_way ? 2 : 1);
  int status = is_latency ? run_latency(&run) : run_throughput(&run);
  status = status == CLI_OK ? hear_over(&run) : status;
  *wrong += run.wrong;
  return status;
}
