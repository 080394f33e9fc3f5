/* SPDX-License-Identifier: Apache-2.0 */
/* world: a deterministic network with two ends, driven by one seed and its own clock.
 *
 *    user --posts--> end (sender's link) ==lane 0==> end (receiver's link) <--posts-- user
 *                        |               ==lane 1==>      |
 *                     orders, dials         ...        handshakes
 *
 * An epoch of a lane is a socket: two pipes of bytes with a buffer, a rate and a latency. Each
 * end sees the breaking of a socket at its own time. An RDMA one places bytes: what
 * is to be placed is read from the sender's memory when its header departs, perhaps once more
 * later, and written to the receiver's memory when the header arrives there, while both have it
 * open. The world plays the part of the lanes' owner as the engine does: it parses frames in pieces
 * of any size, writes them in pieces, and carries out the orders of the links.
 *
 * Owns: everything in it.  Threads: one.  Blocks: never.
 * Fails: world_fail prints what is wrong, with the seed, and leaves the run. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"
#include "net_plugin/policy/policy.h"
#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/coding_memory.h"

#define WORLD_NEVER UINT64_MAX
#define WORLD_MESSAGES 256 /* most messages of one run */
#define WORLD_DIALS 256    /* dials in progress at once */
#define WORLD_SEGMENTS 64
#define WORLD_REPLAYS 8
#define WORLD_SMALL_BYTES 700
#define WORLD_LONG_WAIT_NS 100000000ull /* less than TCP waits before it sends again */
#define WORLD_PLACEMENTS LINK_FLIGHT

enum side { SENDER, RECEIVER };

/* One direction of a socket. Counters only grow; a byte's place in the ring is its count. */
struct pipe {
  uint8_t *ring;
  uint32_t capacity; /* a power of two */
  uint64_t written, departed, arrived, read;
  uint64_t bytes_per_second, latency_ns;
  uint64_t free_ns; /* when the wire can take the next segment */
  bool is_cut;      /* what has not departed never will */
  /* Its last packets were lost: they depart again at that time, or when there is more behind them.
   */
  uint64_t lost_end, lost_until_ns;
  uint64_t losses;
  bool is_lost_again; /* only at that time: what TCP sent again was lost, too */
  struct segment {
    uint64_t end, arrival_ns;
    bool is_app_limited; /* nothing was left behind it, and there was room for more */
  } segments[WORLD_SEGMENTS];
  unsigned first_segment, segment_count;
  uint64_t counted_ns, busy_ns, peer_ns; /* struct policy_transport; counted until counted_ns */
  bool is_app_limited;
};

/* Bytes that an RDMA socket places. */
struct placement {
  uint64_t end; /* of its header, in the pipe */
  const uint8_t *from;
  uint8_t *to, *taken; /* what departed; NULL before */
  uint32_t length;
};

struct socket {
  unsigned lane;
  uint32_t epoch;
  struct pipe pipes[2];  /* by the side that writes */
  bool is_held[2];       /* by the side that has it open */
  uint64_t broken_ns[2]; /* when each side notices that it is broken */
  uint64_t stalled_until_ns;
  bool is_rdma;
  struct placement placements[WORLD_PLACEMENTS];
  unsigned first_placement, placement_count;
};

/* What a side does with a lane's current socket. */
struct port {
  struct socket *socket;
  uint8_t header[WIRE_HEADER_BYTES];
  uint32_t header_got, payload_got;
  struct wire_header incoming;
  bool has_header;
  struct link_frame frame; /* being written */
  uint32_t frame_bytes;    /* of its payload that go into the pipe: none if they are placed */
  uint32_t frame_put;      /* bytes of header and payload that are in the pipe */
  bool has_frame;
  uint64_t written_ns;   /* when the link hears that all of the frame is in the pipe */
  uint32_t payload_hash; /* of what was lent; it must not change until then */
};

struct replay {
  uint8_t bytes[WIRE_HEADER_BYTES + WIRE_MAX_WINDOW_BYTES];
  uint32_t length;
};

struct end {
  struct link *link;
  struct coding_memory coding; /* refused: drawn from the seed */
  struct port ports[WIRE_MAX_LANES];
  bool is_detached, is_gone; /* gone: finished, its sockets are closed */
  uint64_t stopped_until_ns; /* the process does not run; its sockets do */
  uint64_t deadline_ns;      /* what the link answered last */
  uint64_t linger_ns;        /* detached: what is not delivered by then is dropped */
  uint64_t last_word_ns;     /* the link has failed: its ABORT is written until then, or never */
  uint64_t posted, completed;
  uint64_t next_post_ns;
  struct replay replays[WORLD_REPLAYS]; /* old control frames */
  unsigned replay_count;
};

/* hello -> (reply to the sender, the receiver takes the lane: in either order) -> done */
struct dial {
  bool is_used;
  bool fails, loses_reply; /* decided beforehand */
  unsigned lane;
  uint32_t epoch;
  uint64_t hello_ns, sender_ns, receiver_ns; /* WORLD_NEVER when done */
  struct socket *socket;
};

struct message_plan {
  uint64_t bytes, capacity;
  uint8_t *out, *in;  /* what the two users lent; NULL before and after */
  bool has_landed;    /* the receiver had all of it before it detached */
  bool is_polled;     /* has LL128's flags, and a receiver who looks at them */
  uint64_t posted_ns; /* by the later one of the two */
};

struct world {
  uint64_t seed, random, now_ns, steps;
  jmp_buf *escape;
  bool is_verbose;

  /* drawn from the seed */
  struct link_config config[2];
  struct policy_shared policy_shared; /* the sender's; its decisions change at any time */
  unsigned lanes, message_count;
  bool is_codable;           /* messages are such that their chunks are compressed */
  bool is_bulk;              /* seconds of large messages over slow lanes */
  unsigned depth[2];         /* how many messages a user keeps posted */
  uint64_t pause_ns[2];      /* longest pause between posts */
  uint32_t read_bytes;       /* largest piece that a read returns */
  uint32_t buffer_bytes;     /* of a pipe */
  uint64_t written_delay_ns; /* longest time until a link hears that a frame was written */
  uint64_t latency_ns, bytes_per_second;
  uint64_t clock_random;  /* a stream of its own, so that other draws do not depend on it */
  uint64_t clock_back_ns; /* how far behind a thread's reading of the clock may be; 0: never */
  uint64_t lane_speed_percent[WIRE_MAX_LANES];
  struct message_plan plans[WORLD_MESSAGES];

  /* faults.c */
  uint64_t next_fault_ns, fault_gap_ns;
  uint64_t dead_lanes; /* their dials fail */
  unsigned spared_lane;
  unsigned replay_percent;
  unsigned faults_left;
  uint64_t no_dial_until_ns;
  uint64_t small_until_ns; /* frames of the sender with more than WORLD_SMALL_BYTES are lost */
  uint64_t detach_ns[2];
  uint64_t no_stop_until_ns;
  uint64_t down_ns; /* when one of the hosts went down; 0: both are up */
  bool may_time_out, may_reset, may_corrupt, may_abort, has_black_holes;
  bool has_long_stops; /* and nothing else goes wrong */
  unsigned dial_failure_percent;
  unsigned rdma_percent; /* of the sockets; 0: no targets are told either */

  struct world_totals *totals; /* counted on */
  uint64_t waited_ns; /* for messages that both had posted, WORLD_LONG_WAIT_NS at most for each */
  uint64_t raw_lanes; /* the receiver had no memory for a compressed chunk on these, and says so */
  struct end ends[2];
  unsigned dials_used;
  struct dial dials[WORLD_DIALS];
};

/* What the runs so far went through: a fault that never happens tests nothing. */
struct world_totals {
  uint64_t losses, stalls_cut, requeued, pings, tail_pings;
  uint64_t placed;   /* frames */
  uint64_t moved;    /* payloads of frames that were being written */
  uint64_t measured; /* lanes */
  uint64_t repeats, duplicates;
  uint64_t clock_steps; /* readings that were behind */
  uint64_t coded, raw;  /* chunks of links that code them */
  uint64_t decoded;
  uint64_t raw_lanes;
  uint64_t silent, timed_out, stuck; /* links that ended so */
  uint64_t messages, waited_us;
  uint64_t late; /* messages that took WORLD_LONG_WAIT_NS */
  uint64_t dials;
  uint64_t frames[WIRE_TYPE_END]; /* written */
};

/* ---- world.c ---- */

struct world *world_create(uint64_t seed, bool is_verbose, struct world_totals *totals);
void world_destroy(struct world *world);
/* Runs until both ends are done. */
void world_run(struct world *world);
/* Adds to the totals what its links have counted. */
void world_add_links(const struct world *world);

uint64_t world_random(struct world *world);
/* Uniform in [low, high]. */
uint64_t world_between(struct world *world, uint64_t low, uint64_t high);
bool world_chance(struct world *world, unsigned percent);
/* The time as a thread reads it before it waits for the engine's lock: sometimes earlier than what
 * the link was told last. */
uint64_t world_clock(struct world *world);

_Noreturn void world_fail(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void world_trace(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- pipe.c ---- */

struct socket *socket_open(struct world *world, unsigned lane, uint32_t epoch);
/* One side closes; the other one notices some time later, when it notices at all before. */
void socket_close(struct world *world, struct socket *socket, enum side side);
/* The sender writes a header next whose bytes are placed. */
void socket_place(struct socket *socket, const struct link_frame *frame);
uint32_t pipe_space(const struct pipe *pipe);
void pipe_write(struct pipe *pipe, const void *bytes, uint32_t count);
uint32_t pipe_readable(const struct pipe *pipe);
void pipe_read(struct pipe *pipe, void *bytes, uint32_t count);
/* What the lane of that side has counted. */
struct policy_transport socket_measure(const struct socket *socket, enum side side);
/* What is on the way is lost, and nothing is behind it. */
void pipe_lose_tail(struct pipe *pipe, uint64_t until_ns, bool is_lost_again);
/* Lets bytes depart and arrive; returns when something will happen next. */
uint64_t socket_advance(struct world *world, struct socket *socket);

/* ---- owner.c ---- */

/* Everything that a lane owner does at one moment: notices, reads, orders, writes. */
void owner_run(struct world *world, enum side side);
/* The process of this side is stopped, as by SIGSTOP. */
bool owner_is_stopped(const struct world *world, enum side side);
/* When the owner of this side must run again, as far as links and broken sockets go. */
uint64_t owner_next_ns(const struct world *world, enum side side);
void owner_close_all(struct world *world, enum side side);
/* Closes the side's socket of the lane, if there is one, and forgets what was read and written. */
void port_drop(struct world *world, enum side side, unsigned lane);

/* ---- dials.c ---- */

/* As the sender's link orders it. */
void dials_start(struct world *world, unsigned lane, uint32_t epoch);
void dials_run(struct world *world);
/* When something will happen to one of them next. */
uint64_t dials_next_ns(const struct world *world);

/* ---- faults.c ---- */

void faults_plan(struct world *world);
void faults_run(struct world *world);

/* ---- invariants.c ---- */

void users_plan(struct world *world);
/* Completions of this side's user, with all checks of content and order. */
void users_completed(struct world *world, enum side side);
/* Its posts and its end. The link has been asked for completions just before. */
void users_run(struct world *world, enum side side);
/* A NIC reads (sender) or writes (receiver) so many bytes there: may it? */
void users_check_lent(struct world *world, enum side side, const uint8_t *at, uint32_t bytes);
void users_detach(struct world *world, enum side side);
/* After every step. */
void invariants_check(struct world *world);
/* After the run. */
void invariants_check_end(struct world *world);

#endif
