/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring: each flow has one send or receive under way, and one call hands over new ones and
 * brings results. A copying send is IORING_OP_SEND; a zero-copy one IORING_OP_SEND_ZC from
 * registered memory, whose slot is free after a second result, the notification. Receiving is
 * IORING_OP_RECV into the place where the bytes belong, or one multishot receive per flow into a
 * ring of buffers, out of which they are copied to that place.
 *
 * Made with liburing 2.3 or newer; without it, plain_uring_check says so. */
#include <errno.h>
#include <string.h>

#include "common/cli.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plain_way.h"

#if defined HAS_URING && __has_include(<liburing.h>)
#include <liburing.h>
#endif

#ifdef IORING_CQE_F_NOTIF

#include <stdlib.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "net_plugin/tools/perf/plain_slots.h"

/* Of Linux 6.2, and not in the header of liburing 2.3. */
#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#endif
#ifndef IORING_NOTIF_USAGE_ZC_COPIED
#define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif

enum {
  ENTRIES = 1024, /* at least one for each flow, and one more for that of a ping-pong */
  RESULTS = 8192,
  LANDINGS = 32, /* a power of two */
  LANDING_BYTES = 64 << 10,
  LANDING_GROUP = 0,
};

enum { FOR_SEND = 1, FOR_RECEIVE };

struct uring_flow {
  bool is_sending, is_receiving;
  bool is_drained; /* the last receive took all: trying at once is for nothing */
  size_t taken;
  uint8_t *place; /* where its bytes go */
};

struct uring_way {
  struct io_uring ring;
  bool is_zero_copy, is_multishot;
  struct uring_flow *flows;
  uint8_t *places;
  struct io_uring_buf_ring *landing_ring;
  uint8_t *landings;
};

/* ---- opening ---- */

/* The best way in which this kernel runs completions; one that knows no flag says EINVAL. */
static int open_ring(struct io_uring *ring, unsigned entries, unsigned results) {
  static const unsigned choices[] = { IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                      IORING_SETUP_COOP_TASKRUN, 0 };
  int status = -EINVAL;
  for (size_t i = 0; i < sizeof choices / sizeof choices[0] && status == -EINVAL; i++) {
    struct io_uring_params params = { .flags =
                                          choices[i] | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
                                      .cq_entries = results };
    status = io_uring_queue_init_params(entries, ring, &params);
  }
  return status < 0 ? failure("this kernel refuses io_uring: %s; see kernel.io_uring_disabled",
                              strerror(-status))
                    : CLI_OK;
}

int plain_uring_check(void) {
  struct io_uring ring;
  int status = open_ring(&ring, 4, 8);
  if (status == CLI_OK) {
    io_uring_queue_exit(&ring);
  }
  return status;
}

static int check(int result, const char *what) {
  return result < 0 ? failure("io_uring: %s: %s", what, strerror(-result)) : CLI_OK;
}

/* Both ends of the ring of landing buffers are ours: a buffer that was read is handed in again. */
static void hand_in(struct uring_way *way, unsigned number) {
  io_uring_buf_ring_add(way->landing_ring, way->landings + (size_t)number * LANDING_BYTES,
                        LANDING_BYTES, (unsigned short)number, io_uring_buf_ring_mask(LANDINGS), 0);
  io_uring_buf_ring_advance(way->landing_ring, 1);
}

static int open_landings(struct uring_way *way) {
  way->landings = aligned_alloc(4096, (size_t)LANDINGS * LANDING_BYTES);
  way->landing_ring = aligned_alloc(4096, 4096);
  if (!way->landings || !way->landing_ring) {
    return failure("out of memory");
  }
  struct io_uring_buf_reg reg = { .ring_addr = (uint64_t)(uintptr_t)way->landing_ring,
                                  .ring_entries = LANDINGS,
                                  .bgid = LANDING_GROUP };
  io_uring_buf_ring_init(way->landing_ring);
  int status = check(io_uring_register_buf_ring(&way->ring, &reg, 0), "ring of buffers");
  for (unsigned i = 0; i < LANDINGS && status == CLI_OK; i++) {
    hand_in(way, i);
  }
  return status;
}

/* Where nobody looks at the contents, one place serves all flows, as it does with epoll. */
static int open_places(struct plain_round *round) {
  struct plain *plain = round->plain;
  struct uring_way *way = round->way;
  size_t bytes = (plain->piece_bytes + 4095) & ~UINT64_C(4095);
  if (plain->plan->is_checked) {
    way->places = aligned_alloc(4096, (size_t)plain->flow_count * bytes);
    if (!way->places) {
      return failure("out of memory: %d flows with %zu bytes each", plain->flow_count, bytes);
    }
  }
  for (int i = 0; i < plain->flow_count; i++) {
    way->flows[i].place = way->places ? way->places + (size_t)i * bytes : plain->buffer;
  }
  return CLI_OK;
}

/* The slots of a flow are its registered buffer. */
static int open_slots(struct plain_round *round) {
  struct plain *plain = round->plain;
  struct uring_way *way = round->way;
  struct iovec memory[2 * PLAN_PLAIN_FLOWS_MAX];
  int status = plain_slots_make(&plain->slots, plain->flow_count, round->bytes, plain->contents);
  if (status != CLI_OK) {
    return status;
  }
  for (int i = 0; i < plain->flow_count; i++) {
    memory[i].iov_base = plain_slots_at(&plain->slots, i, 0);
    memory[i].iov_len = plain_slots_bytes_per_flow(&plain->slots);
  }
  round->gauge->zero_copy.is_used = true;
  return check(io_uring_register_buffers(&way->ring, memory, (unsigned)plain->flow_count),
               "registered buffers (see ulimit -l)");
}

static int open_way(struct plain_round *round) {
  struct plain *plain = round->plain;
  struct uring_way *way = calloc(1, sizeof *way);
  struct uring_flow *flows = calloc((size_t)plain->flow_count, sizeof *flows);
  int fds[2 * PLAN_PLAIN_FLOWS_MAX];
  if (!way || !flows || open_ring(&way->ring, ENTRIES, RESULTS) != CLI_OK) {
    bool has_memory = way && flows;
    free(flows);
    free(way);
    return has_memory ? CLI_FAILED : failure("out of memory");
  }
  round->way = way;
  way->flows = flows;
  way->is_zero_copy = plain->plan->io == PLAN_URING_ZC;
  way->is_multishot = plain->plan->io == PLAN_URING_MULTISHOT;
  io_uring_register_ring_fd(&way->ring); /* cheaper calls, where there is such a thing */
  for (int i = 0; i < plain->flow_count; i++) {
    fds[i] = plain->flows[i].fd;
  }
  int status = check(io_uring_register_files(&way->ring, fds, (unsigned)plain->flow_count),
                     "registered files");
  status = status == CLI_OK ? open_places(round) : status;
  status = status == CLI_OK && way->is_zero_copy ? open_slots(round) : status;
  return status == CLI_OK && way->is_multishot ? open_landings(way) : status;
}

/* ---- what is handed over ---- */

static uint64_t mark(int kind, int flow, int slot) {
  return (uint64_t)kind << 48 | (uint64_t)flow << 32 | (uint32_t)slot;
}

static void hand_over_send(struct plain_round *round, int number) {
  struct uring_way *way = round->way;
  struct uring_flow *flow = &way->flows[number];
  const struct plain_flow *of_plain = &round->plain->flows[number];
  struct plain_slots *slots = &round->plain->slots;
  int slot = way->is_zero_copy ? plain_slots_take(slots, number) : 0;
  flow->taken = slot != PLAIN_SLOTS_NONE ? plain_round_take(round) : 0;
  if (!flow->taken) {
    if (way->is_zero_copy && slot != PLAIN_SLOTS_NONE) {
      plain_slots_give_back(slots, number, slot);
    }
    return;
  }
  const int flags = MSG_NOSIGNAL | MSG_WAITALL; /* goes on by itself when a part was sent */
  struct io_uring_sqe *entry = io_uring_get_sqe(&way->ring);
  const uint8_t *contents = plain_round_contents(round, of_plain);
  if (way->is_zero_copy) {
    uint8_t *data = plain_slots_at(slots, number, slot);
    if (round->plain->plan->is_checked) {
      memcpy(data, contents, flow->taken);
    }
    io_uring_prep_send_zc_fixed(entry, number, data, flow->taken, flags,
                                IORING_SEND_ZC_REPORT_USAGE, (unsigned)number);
    round->gauge->zero_copy.sends++;
  } else {
    io_uring_prep_send(entry, number, contents, flow->taken, flags);
  }
  entry->flags |= IOSQE_FIXED_FILE;
  entry->user_data = mark(FOR_SEND, number, slot);
  flow->is_sending = true;
}

static void hand_over_receive(struct plain_round *round, int number) {
  struct uring_way *way = round->way;
  struct uring_flow *flow = &way->flows[number];
  struct io_uring_sqe *entry = io_uring_get_sqe(&way->ring);
  if (way->is_multishot) {
    io_uring_prep_recv_multishot(entry, number, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = LANDING_GROUP;
  } else {
    io_uring_prep_recv(entry, number, flow->place, round->plain->piece_bytes, 0);
    entry->ioprio |= flow->is_drained ? IORING_RECVSEND_POLL_FIRST : 0;
  }
  entry->flags |= IOSQE_FIXED_FILE;
  entry->user_data = mark(FOR_RECEIVE, number, 0);
  flow->is_receiving = true;
}

static void hand_over(struct plain_round *round) {
  struct uring_way *way = round->way;
  for (int i = 0; i < round->plain->flow_count; i++) {
    bool is_sender = round->plain->flows[i].is_sender;
    if ((is_sender || round->is_latency) && !way->flows[i].is_sending) {
      hand_over_send(round, i);
    }
    if ((!is_sender || round->is_latency) && !way->flows[i].is_receiving && round->to_receive > 0 &&
        !round->has_ended) {
      hand_over_receive(round, i);
    }
  }
}

/* ---- what comes back ---- */

static int end_send(struct plain_round *round, int number, int slot,
                    const struct io_uring_cqe *result) {
  struct uring_way *way = round->way;
  struct uring_flow *flow = &way->flows[number];
  struct zero_copy_counts *counts = &round->gauge->zero_copy;
  if (result->flags & IORING_CQE_F_NOTIF) {
    counts->completions++;
    counts->copied += (uint32_t)result->res & IORING_NOTIF_USAGE_ZC_COPIED ? 1 : 0;
    plain_slots_give_back(&round->plain->slots, number, slot);
    return CLI_OK;
  }
  if (way->is_zero_copy && !(result->flags & IORING_CQE_F_MORE)) { /* nothing was sent */
    plain_slots_give_back(&round->plain->slots, number, slot);
  }
  flow->is_sending = false;
  plain_round_sent(round, &round->plain->flows[number], flow->taken,
                   result->res > 0 ? (size_t)result->res : 0);
  if (result->res == -EINVAL && way->is_zero_copy) {
    return failure("this kernel has no IORING_OP_SEND_ZC that reports copies: it takes Linux 6.2");
  }
  return result->res < 0 && result->res != -EAGAIN && result->res != -EINTR
             ? plain_round_lost(round, -result->res)
             : CLI_OK;
}

static int end_receive(struct plain_round *round, int number, const struct io_uring_cqe *result) {
  struct uring_way *way = round->way;
  struct uring_flow *flow = &way->flows[number];
  flow->is_receiving = result->flags & IORING_CQE_F_MORE;
  flow->is_drained = !(result->flags & IORING_CQE_F_SOCK_NONEMPTY);
  if (result->res > 0 && result->flags & IORING_CQE_F_BUFFER) {
    unsigned landing = result->flags >> IORING_CQE_BUFFER_SHIFT;
    memcpy(flow->place, way->landings + (size_t)landing * LANDING_BYTES, (size_t)result->res);
    hand_in(way, landing);
  }
  if (result->res > 0) {
    plain_round_received(round, &round->plain->flows[number], flow->place, (size_t)result->res);
    return CLI_OK;
  }
  if (result->res == -EINVAL && way->is_multishot) {
    return failure("this kernel has no multishot receive: it takes Linux 6.0");
  }
  /* Whoever has got all of a ping-pong may see the other side close first. */
  bool is_end = result->res == 0 && round->to_receive == 0;
  bool is_for_now = result->res == -ENOBUFS || result->res == -EAGAIN || result->res == -EINTR;
  return is_end || is_for_now ? CLI_OK : plain_round_lost(round, -result->res);
}

static int pass(struct plain_round *round, bool may_wait, bool *has_moved) {
  struct uring_way *way = round->way;
  struct io_uring *ring = &way->ring;
  struct io_uring_cqe *result;
  struct __kernel_timespec wait = { .tv_nsec = PLAIN_WAIT_MS * (long long)NS_PER_MS };
  unsigned head, count = 0;
  int status = CLI_OK;
  hand_over(round);
  int error = may_wait ? io_uring_submit_and_wait_timeout(ring, &result, 1, &wait, NULL)
                       : io_uring_submit_and_get_events(ring);
  if (error < 0 && error != -ETIME && error != -EINTR && error != -EAGAIN && error != -EBUSY) {
    return check(error, "submitting");
  }
  io_uring_for_each_cqe(ring, head, result) {
    int kind = (int)(result->user_data >> 48), number = (int)(result->user_data >> 32 & 0xffff);
    int one = kind == FOR_SEND ? end_send(round, number, (int)(uint32_t)result->user_data, result)
                               : end_receive(round, number, result);
    status = status == CLI_OK ? one : status;
    count++;
    if (!round->plain->plan->is_timed) { /* a window of few messages may begin and end here */
      gauge_look(round->gauge, clock_now_ns());
    }
  }
  io_uring_cq_advance(ring, count);
  *has_moved = count > 0;
  return status;
}

/* ---- closing ---- */

/* What is under way ends before its memory goes. Slots stay with the flows: the kernel may still
 * send from them. */
static void close_way(struct plain_round *round) {
  struct uring_way *way = round->way;
  if (!way) {
    return;
  }
  struct io_uring_sync_cancel_reg all = { .flags = IORING_ASYNC_CANCEL_ANY,
                                          .timeout = { .tv_sec = 1, .tv_nsec = 0 } };
  io_uring_register_sync_cancel(&way->ring, &all);
  io_uring_get_events(&way->ring);
  io_uring_queue_exit(&way->ring);
  free(way->landing_ring);
  free(way->landings);
  free(way->places);
  free(way->flows);
  free(way);
}

const struct plain_way plain_way_uring = { open_way, pass, close_way };

#else

int plain_uring_check(void) {
  return failure("this stratus-net was built without io_uring: it takes liburing 2.3 or newer "
                 "(Debian: liburing-dev)");
}

static int open_way(struct plain_round *round) {
  (void)round;
  return plain_uring_check();
}

static int pass(struct plain_round *round, bool may_wait, bool *has_moved) {
  (void)round, (void)may_wait, (void)has_moved;
  return plain_uring_check();
}

static void close_way(struct plain_round *round) {
  (void)round;
}

const struct plain_way plain_way_uring = { open_way, pass, close_way };

#endif
