/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of many is killed: how long until all others know? Links and the rules of
 * setup/refusal.h are the real ones; sockets, dials and NCCL are played: a frame, a dial and NCCL's
 * next look at a connection take a tick each. As in connection_failure.c, a rank that knows ends
 * all its connections with what began it, and NCCL looks at all of them. */
#include "net_plugin/setup/limits.h"
#include "tests/lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/link/link.h"
#include "net_plugin/setup/refusal.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define TICK_NS MS /* more than a packet takes within a data centre */
#define LIMIT_NS (5 * SECOND)
#define RANKS_MAX 64u
#define LANES 2u
#define BYTES 64u /* of a receive that waits */

/* One end of a connection. */
struct end {
  struct link *link;
  enum link_role role;
  unsigned rank, peer;
  struct end *other;
  struct refusal refusal;
  uint64_t lanes;      /* open */
  uint64_t due_ns;     /* of the link */
  uint64_t inquiry_ns; /* receiver: the next one */
  struct link_order dials[LANES];
  uint64_t dialling; /* lanes */
  bool has_left, is_known;
  bool is_idle; /* NCCL waits for nothing here, and so does not look */
  uint8_t memory[BYTES];
};

static struct {
  unsigned ranks, dead, ends;
  bool is_dead;        /* its process */
  uint64_t refuses_ns; /* its host refuses until then */
  uint64_t now_ns;
  struct end *all;
  bool knows[RANKS_MAX];
  char causes[RANKS_MAX][WIRE_MAX_REASON_BYTES + 1];
} job;

/* ---- the ends ---- */

static void end_init(struct end *end, enum link_role role, unsigned rank, unsigned peer) {
  struct link_config config = {
    .role = role,
    .policy = { .lanes = LANES, .chunk_bytes = 4096 },
    .eager_bytes = BYTES,
    .eager_slots = 1,
    .timeout_ns = 10 * SECOND,
    .stopped_timeout_ns = 300 * SECOND,
    .seed = rank + 1,
  };
  void *memory = calloc(1, link_memory_bytes(&config));
  assert_non_null(memory);
  *end = (struct end){ .role = role, .rank = rank, .peer = peer, .inquiry_ns = UINT64_MAX };
  end->link = link_init(memory, &config, job.now_ns);
}

static void lane_up(struct end *sender, unsigned lane, uint32_t epoch) {
  struct end *receiver = sender->other;
  uint64_t count = link_lane_fence(receiver->link, lane, epoch, job.now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(receiver->link, lane, epoch, 0, job.now_ns);
  link_lane_up(sender->link, lane, epoch, count, job.now_ns);
  struct end *both[] = { sender, receiver };
  for (int i = 0; i < 2; i++) {
    both[i]->lanes |= lane_bit(lane);
    both[i]->has_left = false;
    both[i]->due_ns = 0;
  }
}

static void connect_ranks(unsigned from, unsigned to) {
  struct end *sender = &job.all[job.ends++], *receiver = &job.all[job.ends++];
  end_init(sender, LINK_SENDER, from, to);
  end_init(receiver, LINK_RECEIVER, to, from);
  sender->other = receiver;
  receiver->other = sender;
  for (unsigned lane = 0; lane < LANES; lane++) {
    lane_up(sender, lane, 1);
  }
  assert_int_equal(link_receive_posted(receiver->link, receiver->memory, BYTES, NULL, job.now_ns),
                   0);
}

enum shape { RING, TREE, ALLTOALL };
static const char *const shapes[] = { "ring", "tree", "AlltoAll" };

static void begin(enum shape shape, unsigned ranks) {
  memset(&job, 0, sizeof job);
  job.now_ns = SECOND;
  job.ranks = ranks;
  job.dead = ranks / 3;
  job.all = calloc((size_t)2 * ranks * ranks, sizeof *job.all);
  assert_non_null(job.all);
  for (unsigned rank = 0; rank < ranks; rank++) {
    if (shape == RING) {
      connect_ranks(rank, (rank + 1) % ranks);
    } else if (shape == TREE && rank > 0) {
      connect_ranks(rank, (rank - 1) / 2);
      connect_ranks((rank - 1) / 2, rank);
    }
    for (unsigned peer = 0; shape == ALLTOALL && peer < ranks; peer++) {
      if (peer != rank) {
        connect_ranks(rank, peer);
      }
    }
  }
}

static int finish(void **state) {
  (void)state;
  for (unsigned i = 0; i < job.ends; i++) {
    free(job.all[i].link);
  }
  free(job.all);
  job.all = NULL;
  job.ends = 0;
  return 0;
}

/* ---- what each rank does ---- */

static bool is_gone(unsigned rank) {
  return job.is_dead && rank == job.dead;
}

static void end_with(struct end *end, int error) {
  link_fail(end->link, error);
  end->due_ns = 0;
}

/* As process_is_gone in peering.c. */
static void peer_is_gone(const struct end *sender) {
  for (unsigned i = 0; i < job.ends; i++) {
    struct end *end = &job.all[i];
    bool is_same = end->rank == sender->rank && end->peer == sender->peer;
    if (is_same && (end == sender || (end->role == LINK_RECEIVER && end->lanes == 0))) {
      end_with(end, -ESRCH);
    }
  }
}

static bool is_refused(const struct end *end) {
  return is_gone(end->peer) || (end->peer == job.dead && job.now_ns < job.refuses_ns);
}

/* As connection_has_failed_sibling. */
static bool has_failed_sibling(const struct end *end) {
  for (unsigned i = 0; i < job.ends; i++) {
    const struct end *other = &job.all[i];
    if (other->rank == end->rank && other != end && link_status(other->link) != 0) {
      return true;
    }
  }
  return false;
}

/* A dial, or an inquiry, has ended. */
static bool hears(struct end *end) {
  return refusal_heard(&end->refusal, is_refused(end), end->lanes != 0,
                       end->has_left || has_failed_sibling(end), job.now_ns);
}

static void end_dials(struct end *end) {
  for (uint64_t lanes = end->dialling; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    end->dialling &= ~lane_bit(lane);
    if (hears(end)) {
      peer_is_gone(end);
    } else if (is_refused(end)) {
      link_lane_lost(end->link, lane, end->dials[lane].epoch, job.now_ns);
      end->due_ns = 0;
    } else {
      lane_up(end, lane, end->dials[lane].epoch);
    }
  }
}

static void inquire(struct end *end) {
  if (end->lanes != 0 || link_status(end->link) != 0) {
    refusal_over(&end->refusal);
    end->inquiry_ns = UINT64_MAX;
  } else if (end->inquiry_ns == UINT64_MAX) {
    end->inquiry_ns = job.now_ns + REFUSAL_FIRST_INQUIRY_NS;
  } else if (job.now_ns >= end->inquiry_ns) {
    end->inquiry_ns = job.now_ns + REFUSAL_INQUIRY_NS;
    if (hears(end)) {
      end_with(end, -ESRCH);
    }
  }
}

/* NCCL looks at this connection. */
static void look(struct end *end) {
  if (link_status(end->link) == 0 || end->is_known || end->is_idle) {
    return;
  }
  end->is_known = true;
  if (job.knows[end->rank]) {
    return;
  }
  job.knows[end->rank] = true;
  struct link_view view;
  char *cause = job.causes[end->rank];
  link_view(end->link, &view);
  snprintf(cause, sizeof job.causes[0], "%s", view.peer_reason);
  if (!cause[0]) {
    snprintf(cause, sizeof job.causes[0], "rank %u is gone", end->peer);
  }
  for (unsigned i = 0; i < job.ends; i++) {
    struct end *one = &job.all[i];
    if (one->rank == end->rank && link_status(one->link) == 0) {
      link_fail_because(one->link, -ESHUTDOWN, cause);
      one->due_ns = 0;
    }
  }
}

static void deliver(struct end *to, unsigned lane, const struct link_frame *frame) {
  struct wire_header header;
  assert_int_equal(wire_header_decode(frame->header, &header), 0);
  to->due_ns = 0;
  if (link_frame_received(to->link, lane, &header, job.now_ns) == 0) {
    if (header.length > 0) {
      memcpy(link_receive_buffer(to->link, lane), frame->payload, header.length);
    }
    link_frame_completed(to->link, lane, job.now_ns);
  }
}

static void run_link(struct end *end) {
  struct link_step step;
  enum link_step_kind kind;
  link_time_passed(end->link, job.now_ns);
  struct link_ready ready = { .writable = end->lanes, .taken = UINT64_MAX };
  while ((kind = link_step(end->link, &ready, job.now_ns, &step)) != LINK_STEP_WAIT) {
    if (kind == LINK_STEP_WRITE) {
      if (end->other->lanes >> step.lane & 1) {
        deliver(end->other, step.lane, &step.frame);
      }
    } else if (step.order.kind == LINK_ORDER_OPEN) {
      end->dials[step.order.lane] = step.order;
      end->dialling |= lane_bit(step.order.lane);
    } else {
      ready.writable = end->lanes &= ~lane_bit(step.order.lane);
    }
  }
  end->due_ns = step.deadline_ns;
  link_check(end->link);
}

static void tick(void) {
  job.now_ns += TICK_NS;
  for (unsigned i = 0; i < job.ends; i++) {
    struct end *end = &job.all[i];
    if (!is_gone(end->rank)) {
      end_dials(end);
      if (end->role == LINK_RECEIVER) {
        inquire(end);
      }
      look(end);
    }
  }
  for (unsigned i = 0; i < job.ends; i++) {
    struct end *end = &job.all[i];
    if (!is_gone(end->rank) && job.now_ns >= end->due_ns) {
      run_link(end);
    }
  }
}

static void pass(uint64_t for_ns) {
  for (uint64_t end_ns = job.now_ns + for_ns; job.now_ns < end_ns;) {
    tick();
  }
}

/* ---- what happens ---- */

/* Its peers see that all flows of this rank end: by FIN, by reset, or those by FIN to which it
 * sends and the others by reset. */
enum close { FIN, RESET, FIN_BEHIND };

static void lose_flows(enum close close) {
  for (unsigned i = 0; i < job.ends; i++) {
    struct end *end = &job.all[i];
    bool is_hit = end->peer == job.dead || (end->rank == job.dead && !job.is_dead);
    bool is_fin = close == FIN || (close == FIN_BEHIND && end->role == LINK_RECEIVER);
    for (unsigned lane = 0; is_hit && lane < LANES; lane++) {
      end->lanes &= ~lane_bit(lane);
      (is_fin ? link_lane_left : link_lane_lost)(end->link, lane, 1, job.now_ns);
    }
    end->has_left |= is_hit && is_fin;
    end->due_ns = is_hit ? 0 : end->due_ns;
  }
}

static unsigned count_knowing(void) {
  unsigned count = 0;
  for (unsigned rank = 0; rank < job.ranks; rank++) {
    count += job.knows[rank];
  }
  return count;
}

/* Seconds until all others know. */
static double wait_for_all(unsigned ranks) {
  uint64_t begin_ns = job.now_ns;
  while (count_knowing() < ranks - 1 && job.now_ns < begin_ns + LIMIT_NS) {
    tick();
  }
  char cause[32];
  snprintf(cause, sizeof cause, "rank %u is gone", job.dead);
  for (unsigned rank = 0; rank < ranks; rank++) {
    if (rank != job.dead) {
      assert_true(job.knows[rank]);
      assert_string_equal(job.causes[rank], cause);
    }
  }
  return (double)(job.now_ns - begin_ns) / (double)SECOND;
}

static void begin_and_kill(enum shape shape, unsigned ranks, enum close close) {
  begin(shape, ranks);
  pass(100 * MS);
  assert_int_equal(count_knowing(), 0);
  job.is_dead = true;
  lose_flows(close);
}

static double kill_one(enum shape shape, unsigned ranks, enum close close) {
  begin_and_kill(shape, ranks, close);
  double seconds = wait_for_all(ranks);
  finish(NULL);
  return seconds;
}

UNIT_TEST_WITH(all_know_within_5_s, NULL, finish) {
  for (enum shape shape = RING; shape <= ALLTOALL; shape++) {
    for (unsigned ranks = 16; ranks <= RANKS_MAX; ranks *= 4) {
      double left = kill_one(shape, ranks, FIN), reset = kill_one(shape, ranks, RESET);
      printf("# %s of %u, one killed: all know after %.2f s if its kernel closes its flows, "
             "%.2f s if it resets them\n",
             shapes[shape], ranks, left, reset);
      assert_true(left < 0.5 && reset < 5);
    }
  }
}

/* Nothing goes on from the rank before the dead one: it waits to send, and for nothing to come, so
 * NCCL does not look at what it is told behind the dead one. */
UNIT_TEST_WITH(who_only_waits_to_send_knows_as_well, NULL, finish) {
  begin_and_kill(RING, 16, FIN_BEHIND);
  for (unsigned i = 0; i < job.ends; i++) {
    job.all[i].is_idle = job.all[i].role == LINK_RECEIVER && job.all[i].rank == job.dead - 1;
  }
  double seconds = wait_for_all(16);
  printf("# all know after %.2f s\n", seconds);
  assert_true(seconds < 1);
}

/* A firewall that is reloaded: it resets all flows of a host and refuses new ones for 3 s. */
UNIT_TEST_WITH(who_comes_back_is_not_dead, NULL, finish) {
  for (enum shape shape = RING; shape <= ALLTOALL; shape++) {
    begin(shape, 16);
    pass(100 * MS);
    job.refuses_ns = job.now_ns + 3 * SECOND;
    lose_flows(RESET);
    pass(10 * SECOND);
    assert_int_equal(count_knowing(), 0);
    for (unsigned i = 0; i < job.ends; i++) {
      assert_int_equal(job.all[i].lanes, (1u << LANES) - 1);
    }
    finish(NULL);
  }
}

UNIT_MAIN(NULL, NULL)
