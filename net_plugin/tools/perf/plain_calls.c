/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through send and recv. Flows are simply tried, one after another; with epoll, those are
 * that the kernel names, for which it has itself called back for each segment. With MSG_ZEROCOPY
 * the kernel numbers sends, and tells through the socket's error queue which of them need their
 * memory no more, and whether it copied it after all. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* wants <time.h> first */

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plain_slots.h"
#include "net_plugin/tools/perf/plain_way.h"

/* Sends may complete out of order, so more of them can be under way than slots. */
enum { EVENTS_MAX = 64, CALLS_PER_TURN = 16, NUMBERS = 4 * PLAIN_SLOTS_MAX };

struct zerocopy_flow {
  uint32_t next, completed; /* the number of the next send; how many are done with */
  int16_t slot_of[NUMBERS]; /* by number */
};

struct calls_way {
  int epoll;                      /* -1: without */
  struct zerocopy_flow *zerocopy; /* one for each flow; NULL: without */
};

/* ---- MSG_ZEROCOPY ---- */

static int number_of(const struct plain_round *round, const struct plain_flow *flow) {
  return (int)(flow - round->plain->flows);
}

static struct zerocopy_flow *zerocopy_of(const struct plain_round *round,
                                         const struct plain_flow *flow) {
  const struct calls_way *way = round->way;
  return &way->zerocopy[number_of(round, flow)];
}

static void complete(struct plain_round *round, struct plain_flow *flow,
                     const struct sock_extended_err *error) {
  struct zerocopy_flow *zerocopy = zerocopy_of(round, flow);
  struct zero_copy_counts *counts = &round->gauge->zero_copy;
  uint32_t count = error->ee_data - error->ee_info + 1;
  for (uint32_t i = 0; i < count; i++) {
    int16_t *slot = &zerocopy->slot_of[(error->ee_info + i) % NUMBERS];
    if (*slot != PLAIN_SLOTS_NONE) {
      plain_slots_give_back(&round->plain->slots, number_of(round, flow), *slot);
      *slot = PLAIN_SLOTS_NONE;
    }
  }
  zerocopy->completed += count;
  counts->completions += count;
  counts->copied += error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED ? count : 0;
}

/* What the error queue has. */
static int read_completions(struct plain_round *round, struct plain_flow *flow) {
  for (;;) {
    char control[128];
    struct msghdr message = { .msg_control = control, .msg_controllen = sizeof control };
    if (recvmsg(flow->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      return errno == EAGAIN || errno == EINTR ? CLI_OK : plain_round_lost(round, errno);
    }
    for (struct cmsghdr *it = CMSG_FIRSTHDR(&message); it; it = CMSG_NXTHDR(&message, it)) {
      struct sock_extended_err error;
      memcpy(&error, CMSG_DATA(it), sizeof error);
      if (error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_errno == 0) {
        complete(round, flow, &error);
      }
    }
  }
}

/* PLAIN_SLOTS_NONE: only completions can change that. */
static int find_slot(struct plain_round *round, const struct plain_flow *flow) {
  const struct zerocopy_flow *zerocopy = zerocopy_of(round, flow);
  bool has_number = zerocopy->slot_of[zerocopy->next % NUMBERS] == PLAIN_SLOTS_NONE;
  return has_number ? plain_slots_take(&round->plain->slots, number_of(round, flow))
                    : PLAIN_SLOTS_NONE;
}

/* Too much memory of the process or of the socket is under way. */
static int fail_memory(const struct plain_slots *slots) {
  return plain_slots_are_free(slots)
             ? failure("MSG_ZEROCOPY: %s; see ulimit -l and net.core.optmem_max", strerror(ENOBUFS))
             : CLI_OK;
}

static int send_zerocopy(struct plain_round *round, struct plain_flow *flow, size_t limit,
                         size_t *moved) {
  struct plain_slots *slots = &round->plain->slots;
  struct zerocopy_flow *zerocopy = zerocopy_of(round, flow);
  int number = number_of(round, flow), slot = find_slot(round, flow);
  *moved = 0;
  if (slot == PLAIN_SLOTS_NONE) {
    plain_round_sent(round, flow, limit, 0);
    return CLI_OK;
  }
  uint8_t *data = plain_slots_at(slots, number, slot);
  if (round->plain->plan->is_checked) {
    memcpy(data, plain_round_contents(round, flow), limit);
  }
  ssize_t sent = send(flow->fd, data, limit, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);
  int error = sent < 0 ? errno : 0;
  *moved = sent > 0 ? (size_t)sent : 0;
  plain_round_sent(round, flow, limit, *moved);
  if (*moved) {
    zerocopy->slot_of[zerocopy->next++ % NUMBERS] = (int16_t)slot;
    round->gauge->zero_copy.sends++;
    return CLI_OK;
  }
  plain_slots_give_back(slots, number, slot);
  return error == ENOBUFS                    ? fail_memory(slots)
         : error == EAGAIN || error == EINTR ? CLI_OK
                                             : plain_round_lost(round, error);
}

/* ---- one call ---- */

/* *moved: how many bytes, 0 if there was no room. */
static int send_some(struct plain_round *round, struct plain_flow *flow, size_t limit,
                     size_t *moved) {
  if (((struct calls_way *)round->way)->zerocopy) {
    return send_zerocopy(round, flow, limit, moved);
  }
  ssize_t sent =
      send(flow->fd, plain_round_contents(round, flow), limit, MSG_DONTWAIT | MSG_NOSIGNAL);
  int error = sent < 0 ? errno : 0;
  *moved = sent > 0 ? (size_t)sent : 0;
  plain_round_sent(round, flow, limit, *moved);
  return error && error != EAGAIN && error != EINTR ? plain_round_lost(round, error) : CLI_OK;
}

static int receive_some(struct plain_round *round, struct plain_flow *flow, size_t limit,
                        size_t *moved) {
  ssize_t got = recv(flow->fd, round->plain->buffer, limit, MSG_DONTWAIT);
  int error = got < 0 ? errno : 0;
  *moved = got > 0 ? (size_t)got : 0;
  plain_round_received(round, flow, round->plain->buffer, *moved);
  if (got == 0) {
    return plain_round_lost(round, 0);
  }
  return error && error != EAGAIN && error != EINTR ? plain_round_lost(round, error) : CLI_OK;
}

/* ---- a pass ---- */

/* Once per turn: more often costs calls, more seldom memory that is in no cache any more. */
static int read_some_completions(struct plain_round *round, struct plain_flow *flow) {
  const struct calls_way *way = round->way;
  if (!way->zerocopy) {
    return CLI_OK;
  }
  const struct zerocopy_flow *zerocopy = zerocopy_of(round, flow);
  return zerocopy->completed != zerocopy->next ? read_completions(round, flow) : CLI_OK;
}

/* A flow that can go on does so for a few calls; then it is the next one's turn. */
static int work(struct plain_round *round, struct plain_flow *flow, bool *has_moved) {
  size_t moved = 1;
  int status = read_some_completions(round, flow);
  for (int i = 0; i < CALLS_PER_TURN && moved > 0 && status == CLI_OK; i++) {
    size_t limit = flow->is_sender ? plain_round_take(round) : round->plain->piece_bytes;
    if (flow->is_sender) {
      moved = 0;
      status = limit > 0 ? send_some(round, flow, limit, &moved) : CLI_OK;
    } else {
      status = receive_some(round, flow, limit, &moved);
    }
    *has_moved |= moved > 0;
    moved = moved == limit ? moved : 0;
  }
  if (!round->plain->plan->is_timed) { /* a window of few messages may begin and end here */
    gauge_look(round->gauge, clock_now_ns());
  }
  return status;
}

/* Until a flow can go on, or it is time to look at the clock. */
static void sleep_a_little(const struct plain_round *round) {
  struct pollfd fds[2 * PLAN_PLAIN_FLOWS_MAX];
  const struct calls_way *way = round->way;
  const struct plain *plain = round->plain;
  nfds_t count = 0;
  for (int i = 0; i < plain->flow_count; i++) {
    const struct plain_flow *flow = &plain->flows[i];
    if (flow->is_sender ? round->to_send > 0 : round->to_receive > 0) {
      bool is_starved = flow->is_sender && way->zerocopy && plain->slots.stacks[i].count == 0;
      fds[count].fd = flow->fd;
      fds[count++].events = is_starved ? 0 : flow->is_sender ? POLLOUT : POLLIN;
    }
  }
  poll(fds, count, PLAIN_WAIT_MS);
}

static int pass_trying(struct plain_round *round, bool may_wait, bool *has_moved) {
  struct plain *plain = round->plain;
  int status = CLI_OK;
  for (int i = 0; i < plain->flow_count && status == CLI_OK; i++) {
    status = work(round, &plain->flows[i], has_moved);
  }
  if (may_wait && !*has_moved && status == CLI_OK) {
    sleep_a_little(round);
  }
  return status;
}

static int pass_by_epoll(struct plain_round *round, bool may_wait, bool *has_moved) {
  const struct calls_way *way = round->way;
  struct epoll_event events[EVENTS_MAX];
  int count = epoll_wait(way->epoll, events, EVENTS_MAX, may_wait ? PLAIN_WAIT_MS : 0);
  int status = CLI_OK;
  for (int i = 0; i < count && status == CLI_OK; i++) {
    status = work(round, events[i].data.ptr, has_moved);
  }
  *has_moved = count > 0;
  return status;
}

/* A ping-pong never waits: one call, for a ping that may go or for one that has to come. */
static int pass_of_ping(struct plain_round *round, bool *has_moved) {
  struct plain_flow *flow = &round->plain->flows[0];
  size_t moved = 0, limit = plain_round_take(round);
  int status = limit > 0 ? read_some_completions(round, flow) : CLI_OK;
  if (status == CLI_OK) {
    status = limit > 0 ? send_some(round, flow, limit, &moved)
                       : receive_some(round, flow, round->plain->piece_bytes, &moved);
  }
  *has_moved = moved > 0;
  return status;
}

static int pass(struct plain_round *round, bool may_wait, bool *has_moved) {
  const struct calls_way *way = round->way;
  *has_moved = false;
  return round->is_latency ? pass_of_ping(round, has_moved)
         : way->epoll >= 0 ? pass_by_epoll(round, may_wait, has_moved)
                           : pass_trying(round, may_wait, has_moved);
}

/* ---- opening and closing ---- */

static int open_zerocopy(struct plain_round *round) {
  struct plain *plain = round->plain;
  struct calls_way *way = round->way;
  int one = 1;
  way->zerocopy = calloc((size_t)plain->flow_count, sizeof *way->zerocopy);
  if (!way->zerocopy) {
    return failure("out of memory");
  }
  for (int i = 0; i < plain->flow_count; i++) {
    memset(way->zerocopy[i].slot_of, 0xff, sizeof way->zerocopy[i].slot_of); /* none */
    if (setsockopt(plain->flows[i].fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0) {
      return failure("this kernel has no MSG_ZEROCOPY: %s", strerror(errno));
    }
  }
  round->gauge->zero_copy.is_used = true;
  return plain_slots_make(&plain->slots, plain->flow_count, round->bytes, plain->contents);
}

static int open_epoll(struct plain_round *round) {
  struct plain *plain = round->plain;
  struct calls_way *way = round->way;
  way->epoll = epoll_create1(EPOLL_CLOEXEC);
  bool is_good = way->epoll >= 0;
  for (int i = 0; i < plain->flow_count && is_good; i++) {
    struct plain_flow *flow = &plain->flows[i];
    struct epoll_event event = { .events = flow->is_sender ? EPOLLOUT : EPOLLIN, .data.ptr = flow };
    is_good = epoll_ctl(way->epoll, EPOLL_CTL_ADD, flow->fd, &event) == 0;
  }
  return is_good ? CLI_OK : failure("epoll: %s", strerror(errno));
}

static int open_way(struct plain_round *round) {
  struct calls_way *way = calloc(1, sizeof *way);
  enum plan_io io = round->plain->plan->io;
  round->way = way;
  if (!way) {
    return failure("out of memory");
  }
  way->epoll = -1;
  return io == PLAN_EPOLL ? open_epoll(round) : io == PLAN_ZEROCOPY ? open_zerocopy(round) : CLI_OK;
}

static void close_way(struct plain_round *round) {
  struct calls_way *way = round->way;
  if (way && way->epoll >= 0) {
    close(way->epoll);
  }
  free(way ? way->zerocopy : NULL);
  free(way);
}

const struct plain_way plain_way_calls = { open_way, pass, close_way };
