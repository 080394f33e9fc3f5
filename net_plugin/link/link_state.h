/* SPDX-License-Identifier: Apache-2.0 */
/* link_state: the inside of a link, for the files link*.c only.
 * Owns: the structs.  Threads: the link's.  Blocks: never.  Fails: as stated.
 *
 * Each calls only those below it:
 *   link_step.c       what follows from the facts: orders, frames that leave, completions
 *   link.c            facts that both roles have: lanes, frames that arrive, the end
 *   link_time.c       what time brings: silence, stalls, deadlines
 *   link_send.c       the sender's messages: posted, acknowledged
 *   link_receive.c    what only the receiver does
 *   link_lanes.c      the states of lanes; what goes with one, or with a link that fails
 *   link_carry.c      the sender's chunks: which lane carries them, and what it gives back; what
 *                     goes out again on another lane while its own stands still
 *   link_coding.c     compressed chunks
 *   link_tail.c       last packets that were lost
 * Beside them:
 *   link_init.c       its memory
 *   link_view.c       what is shown to the outside */
#ifndef NET_PLUGIN_LINK_LINK_STATE_H
#define NET_PLUGIN_LINK_LINK_STATE_H

#include "net_plugin/codec/codec.h"
#include "net_plugin/link/flight.h"
#include "net_plugin/link/link.h"
#include "net_plugin/link/link_lane.h"
#include "net_plugin/link/message.h"
#include "net_plugin/policy/policy.h"

/* This chunk goes out again on lane `to`; to < 0: none does. */
struct repeat_choice {
  int to;
  uint64_t number;
};

/* Receiver: which chunks have landed. */
struct link_landed {
  uint64_t first;                  /* the lowest number that has not */
  uint64_t end;                    /* no higher one has from here on */
  uint64_t bits[LINK_FLIGHT / 64]; /* of those between them, by number % LINK_FLIGHT */
};

/* The last frame of a side: BYE, or ABORT once the link has failed. */
enum farewell { FAREWELL_NONE, FAREWELL_DUE, FAREWELL_WRITING, FAREWELL_WRITTEN };

/* Sender: a remote buffer that came with a grant. */
struct known_remote_buffer {
  uint64_t end; /* the message's number and 1; 0: none */
  struct wire_remote_buffer remote_buffer;
};

/* Sender: what it may send, link_receive.c. */
struct credit_taken {
  uint64_t granted;   /* by the peer */
  uint64_t requested; /* messages for which a REQUEST was written: all below. 0: ask again */
};

/* Receiver: when a WINDOW is due, link_receive.c. */
struct credit_given {
  uint64_t advertised; /* receives granted by the last WINDOW */
  uint64_t wanted;     /* the sender asked for grants of all messages below */
  uint32_t frames;     /* arrived since the last WINDOW */
  uint64_t bytes;
  bool is_bulk;         /* the last message that landed was one for which a grant is of use */
  bool is_due;          /* a WINDOW must be written now */
  uint64_t deadline_ns; /* or then; LINK_NO_DEADLINE if nothing is pending */
  uint64_t opening_ns;  /* or then, if there is anything to grant; likewise */
};

/* When what was heard and asked, see link_time.c. */
struct liveness {
  uint64_t spoke_ns;    /* the last frame on any lane */
  uint64_t heard_ns;    /* the last that was no PING */
  uint64_t waiting_ns;  /* when the user began to wait */
  uint64_t answered_ns; /* the last answer of the peer's host; 0: none is known of */
  uint64_t revived_ns;  /* when a gap ended */
  uint64_t rose_ns;     /* when a gap ended that is longer than the time between PINGs */
  uint64_t quiet_ns;    /* the beginning of the silence in which the user's PINGs were sent */
  uint64_t asked_ns;    /* the last of them */
  unsigned asks;        /* how often */
};

struct link {
  struct link_config config;
  int status;
  bool is_detached;
  bool is_peer_closed;
  int peer_error;                              /* of the peer's ABORT, negative; 0: none came */
  char peer_reason[WIRE_MAX_REASON_BYTES + 1]; /* likewise; empty: it gave none */
  char reason[WIRE_MAX_REASON_BYTES + 1];      /* for our ABORT */
  enum farewell farewell;
  unsigned farewell_lane;
  unsigned heard;       /* the lane on which a frame came last: known to work */
  uint64_t writing;     /* lanes with a frame handed out and not yet written */
  uint64_t pong;        /* lanes on which a PONG is due */
  uint64_t ping;        /* lanes that are to be asked */
  uint64_t tails;       /* lanes that were written, and may not have brought it across */
  uint64_t tails_due;   /* of these, those whose transport is to be asked now */
  uint64_t answer_ns;   /* from a PING until its PONG: the median */
  uint64_t policy_asks; /* lanes that the policy wanted to be measured, when it was asked last */
  uint64_t tail_ns;     /* when they are looked at; LINK_NO_DEADLINE: there are none */
  uint64_t still;       /* lanes that stand still: what they hold is sent again elsewhere */
  uint64_t rdma;        /* lanes that are up and RDMA lanes */
  uint64_t partial;     /* lanes, not RDMA lanes, in the middle of a frame that arrives */
  uint64_t partial_ns;  /* when they are looked at; LINK_NO_DEADLINE: there are none */

  /* which lanes there are, link_lanes.c */
  uint64_t up, connecting, lost; /* in these states: nothing else says it; all others are CLOSED */
  uint64_t announce;             /* a CLOSED is to be written */
  uint64_t close;                /* CLOSE orders to give */
  unsigned wanted;               /* sender: so many lanes are to be open */
  unsigned least;                /* sender: as wanted: 1, or policy_first_lanes in need */
  unsigned ceiling;              /* sender: this lane and higher ones were refused */
  bool keeps_spare;              /* sender: lanes are open for what others lose */
  bool may_dial;
  uint64_t retry_ns;       /* sender: the earliest retry_ns of lost lanes */
  uint64_t down_since_ns;  /* valid while no lane is up */
  uint64_t random;         /* for jitter */
  struct link_lane *lanes; /* untouched memory as long as they were never up, and their buffers: */
  uint8_t *controls, *staging;
  size_t control_stride;
  struct link_counts counts;
  struct liveness liveness;
  uint64_t now_ns;   /* the latest time that the owner has given */
  uint64_t due_ns;   /* the deadline of the last LINK_STEP_WAIT */
  uint64_t watch_ns; /* when lanes are checked for stalls; LINK_NO_DEADLINE: nothing is in flight */
  uint64_t moved_ns; /* the last acknowledgement of a chunk, or when the last one landed */
  uint64_t rescued_ns; /* the beginning of the silence in which a new lane was tried */

  /* sender */
  struct policy *policy; /* NULL: a receiver */
  struct credit_taken taken;
  struct flight flight;
  struct outgoing_ring outgoing;
  uint64_t stuck_ns;    /* nothing was acknowledged since, and lanes were lost that had something in
                           flight; 0: not so */
  unsigned vain_lanes;  /* how many came up after that, and were lost in the same way */
  uint64_t last_try_ns; /* it is given up since then: the next lane that comes up carries the ABORT
                           and no data; 0: not so */
  uint32_t repeat_budget; /* bytes that may be sent twice now */
  struct codec_memory codec;
  struct known_remote_buffer
      *known_remote_buffers; /* by message % LINK_WINDOW; NULL: config.remote_keys is 0 */

  /* receiver */
  struct link_landed landed;
  uint64_t unacked;  /* lanes on which a chunk came since the last WINDOW */
  uint64_t arriving; /* lanes on which one arrives that has not landed */
  struct credit_given given;
  struct incoming_ring incoming;
  uint8_t *nowhere;                          /* WIRE_MAX_CHUNK_BYTES; what arrives after a detach */
  struct wire_remote_buffer *remote_buffers; /* of posted messages, as above */
  uint64_t remote_buffers_sent;              /* of messages below */
};

/* Of a WINDOW payload: the bytes of its remote buffers, which are the last ones. */
static inline uint64_t link_remote_buffers_bytes(const struct link *link,
                                                 const struct wire_header *header) {
  return header->total * wire_remote_buffer_bytes(link->config.remote_keys);
}

static inline bool link_is_lane_up(const struct link *link, unsigned lane) {
  return lane < link->config.policy.lanes && (link->up & lane_bit(lane)) != 0;
}

/* Or none. */
static inline bool link_has_one_lane(const struct link *link) {
  return (link->up & (link->up - 1)) == 0;
}

/* RDMA lanes of a link with remote buffers: messages that have one can be placed. */
static inline uint64_t link_placing_lanes(const struct link *link) {
  return link->config.remote_keys > 0 ? link->rdma : 0;
}

static inline bool link_lane_places(const struct link *link, unsigned lane) {
  return (link_placing_lanes(link) & lane_bit(lane)) != 0;
}

/* The lane stands still (link_stands_still) no longer. */
static inline void link_moves(struct link *link, unsigned lane) {
  link->still &= ~lane_bit(lane);
}

/* ---- time ---- */

/* The time that a caller gives, or the latest that was given, if that is later: threads read the
 * clock before they take the engine's lock. Every function of link.h passes its time through one of
 * these three, so that time never goes back behind them. */
static inline uint64_t link_later(const struct link *link, uint64_t now_ns) {
  return now_ns > link->now_ns ? now_ns : link->now_ns;
}
static inline uint64_t link_clock(struct link *link, uint64_t now_ns) {
  return link->now_ns = link_later(link, now_ns);
}
/* link_time.c. This process did not run in the last gap_ns: no lane could come up, nor anything be
 * heard. Peer and lanes have at least half of their time from now on: when in the peer's last
 * interval the process was stopped is not known. */
void link_resumed(struct link *link, uint64_t gap_ns, uint64_t now_ns);
/* A fact happened, too: was the owner away? What came due while nobody waited for it is due now. */
static inline uint64_t link_note_time(struct link *link, uint64_t now_ns) {
  now_ns = link_clock(link, now_ns);
  if (now_ns > link->due_ns && now_ns - link->due_ns > LINK_AWAY_NS) {
    link_resumed(link, now_ns - link->due_ns, now_ns);
    link->due_ns = LINK_NO_DEADLINE; /* until the owner asks again */
  }
  return now_ns;
}

/* The clock of a lane began to run. */
static inline void link_watch(struct link *link, uint64_t now_ns) {
  if (link->watch_ns == LINK_NO_DEADLINE) {
    link->watch_ns = now_ns + LIVENESS_WATCH_NS;
  }
}

/* ---- link_step.c ---- */

static inline bool send_has_credit(const struct link *link, uint64_t message, bool is_eager) {
  uint64_t granted = link->taken.granted;
  return message < granted || (is_eager && message < granted + link->config.eager_slots);
}

/* What there is to send next. Nothing of it is kept: it follows from messages, credit, RDMA lanes
 * and chunks in flight, which change at many places. */
struct send_ahead {
  bool has_chunk;
  bool needs_request; /* a message waits for credit that was not asked for. Eager ones need not ask:
                         the receiver sends a WINDOW before the eager slots are used up */
  uint64_t left;      /* bytes of the next chunk's message that are not cut; UINT64_MAX: a repeat */
};

/* May the message go without a grant, while there are eager slots? */
bool send_is_eager(const struct link *link, const struct outgoing *message);
/* Of a receiver: nothing. */
struct send_ahead send_look_ahead(const struct link *link);
/* The lane, among the set bits of `writable`, that should carry the next frame; -1: none now.
 * *repeat: the chunk that it sends again, if the frame is one (`to` is not negative). */
int link_pick_lane(const struct link *link, const struct send_ahead *ahead, uint64_t writable,
                   struct repeat_choice *repeat);
/* Picks a lane and takes the next frame for it: control frames first, then chunks that were
 * given back, then new ones, oldest message first. -1: no lane, no frame. */
int link_take_frame(struct link *link, uint64_t writable, struct link_frame *frame,
                    uint64_t now_ns);
/* The lane has taken all of its frame, see struct link_ready. */
void link_frame_taken(struct link *link, unsigned lane, uint64_t now_ns);

/* The next order for the owner of the lanes, each given once. */
bool link_next_order(struct link *link, struct link_order *order, uint64_t now_ns);

/* ---- link_time.c ---- */

/* Between PINGs. */
static inline uint64_t link_interval_ns(const struct link *link) {
  uint64_t interval_ns = link->config.timeout_ns / 4 + 1;
  return interval_ns < LIVENESS_INTERVAL_MAX_NS ? interval_ns : LIVENESS_INTERVAL_MAX_NS;
}
/* After so long without answer, or without lane, the peer is in doubt. */
static inline uint64_t link_doubt_ns(const struct link *link) {
  uint64_t doubt_ns = link->config.timeout_ns / 2;
  return doubt_ns < LIVENESS_DOUBT_NS ? doubt_ns : LIVENESS_DOUBT_NS;
}

/* A PING came. */
static inline void liveness_spoke(struct link *link, unsigned lane, uint64_t now_ns) {
  struct liveness *liveness = &link->liveness;
  uint64_t gap_ns = now_ns - liveness->spoke_ns;
  if (gap_ns > LIVENESS_GAP_NS) {
    liveness->revived_ns = now_ns;
    liveness->rose_ns = gap_ns > 2 * link_interval_ns(link) ? now_ns : liveness->rose_ns;
  }
  liveness->spoke_ns = link->lanes[lane].spoke_ns = now_ns;
}
/* Anything else came. */
static inline void liveness_heard(struct link *link, unsigned lane, uint64_t now_ns) {
  liveness_spoke(link, lane, now_ns);
  link->liveness.heard_ns = link->lanes[lane].heard_ns = now_ns;
}
/* A PING goes out on it. */
static inline void liveness_asked(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *asked = &link->lanes[lane];
  asked->asked_ns = asked->asked_ns > asked->heard_ns ? asked->asked_ns : now_ns;
}
static inline bool liveness_owes_answer(const struct link *link, unsigned lane) {
  return link->lanes[lane].asked_ns > link->lanes[lane].heard_ns;
}
/* A frame goes out on it without which the peer may not go on, and to which it need not answer. */
static inline void liveness_told(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *told = &link->lanes[lane];
  told->told_ns = told->told_ns > told->heard_ns ? told->told_ns : now_ns;
}
/* Nothing was heard on the lane since it carried such a frame. */
static inline bool liveness_is_doubtful(const struct link *link, unsigned lane) {
  return link->lanes[lane].told_ns > link->lanes[lane].heard_ns;
}
/* When the clock of a lane that is up, with bytes in flight or an unanswered PING, began to run.
 * is_alone: no other lane is up. */
static inline uint64_t liveness_start_ns(const struct link *link, unsigned lane, bool has_bytes,
                                         bool is_alone) {
  const struct link_lane *watched = &link->lanes[lane];
  uint64_t own_ns = has_bytes ? watched->moved_ns : watched->asked_ns;
  uint64_t all_ns = is_alone ? link->liveness.rose_ns : link->liveness.revived_ns;
  return own_ns > all_ns ? own_ns : all_ns;
}
/* The lane's bytes have been acknowledged: did its clock begin anew meanwhile, after a pause?
 * Before moved_ns says so. */
static inline bool liveness_has_paused(const struct link *link, unsigned lane) {
  return liveness_start_ns(link, lane, true, link_has_one_lane(link)) > link->lanes[lane].moved_ns;
}

/* When link_time_passed must be called next; never before the latest time that was given. Notes the
 * answer: what has passed beyond it when a fact happens is time in which the owner was away
 * (link_note_time). */
uint64_t link_next_deadline_ns(struct link *link);

/* ---- link_tail.c ---- */

/* A frame is written that the peer needs. */
void link_tail_written(struct link *link, unsigned lane, uint64_t now_ns);
/* Before a WINDOW is written. */
void link_tails_outdated(struct link *link);
/* A PONG to a PING of this side comes on the lane. Before liveness is told. */
void link_tail_answered(struct link *link, unsigned lane, uint64_t now_ns);
void link_tail_dropped(struct link *link, unsigned lane);
/* At tail_ns: those that were quiet for longer than usual are due. */
void link_look_at_tails(struct link *link, uint64_t now_ns);
/* Of a lane that is due: a PING goes out if its last packets were lost. True: it stands still. */
bool link_tail_measured(struct link *link, unsigned lane, const struct policy_transport *transport,
                        uint64_t now_ns);
/* Has these lanes measured again. True: the peer's kernel had acknowledged all that they carried
 * when they were measured last. */
bool link_measure_tails(struct link *link, uint64_t lanes);
/* A part of a frame has arrived, and the rest has not. */
void link_partial_arrived(struct link *link, unsigned lane, uint64_t now_ns);
/* All of it has, or it never will. */
void link_partial_ended(struct link *link, unsigned lane);
#define LINK_UNASKED 0 /* the token of a PONG that answers no PING: they begin with 1 */
/* At partial_ns: a PONG goes out on each lane on which the rest is long in coming. */
void link_look_at_partial(struct link *link, uint64_t now_ns);

/* ---- link_send.c ---- */

/* With the result of link_frame_completed. */
int send_window_arrived(struct link *link, const struct wire_header *header, const uint8_t *payload,
                        uint64_t now_ns);
void send_bye_arrived(struct link *link, uint64_t landed, uint64_t now_ns);
void send_detach(struct link *link, uint64_t now_ns);

/* ---- link_carry.c ---- */

/* Messages may have been retired. If the user has left, and everything is delivered, BYE is due. */
void send_may_end(struct link *link);
/* The lane is about to write the chunk. */
void carry_begins(struct link *link, unsigned lane, uint64_t number, uint64_t now_ns);
/* It has written all of it. */
void carry_written(struct link *link, unsigned lane, uint64_t now_ns);
/* It reads the payload no more. */
void carry_released(struct link *link, unsigned lane);
/* It writes no more of its DATA frame. */
void carry_stops(struct link *link, unsigned lane);
/* What a WINDOW acknowledges: the lanes that carried it, and bytes that they have written. */
struct carry_acked {
  bool is_any;
  uint64_t lanes;
  uint64_t bytes[WIRE_MAX_LANES];
};
/* The peer has the chunk, which is in the ring. */
void carry_acked(struct link *link, uint64_t number, struct carry_acked *acked);
/* So many bytes that the lane, which is up, has written are acknowledged. Before its
 * moved_ns says so. */
void carry_note_acked(struct link *link, unsigned lane, uint64_t bytes, uint64_t arrived_ns);
/* Nothing more of the lane's old epoch lands: what no other lane carries is to be sent again. */
void carry_settle(struct link *link, unsigned lane);

/* Asked while a lane stands still. */
struct repeat_choice repeat_choose(const struct link *link, uint64_t writable);
/* What was chosen is about to be written. */
void repeat_take(struct link *link, const struct repeat_choice *choice);
/* So many bytes go out once. */
static inline void repeat_earn(struct link *link, uint32_t bytes) {
  uint32_t budget = link->repeat_budget + bytes / REPEAT_SHARE;
  link->repeat_budget = budget < REPEAT_BURST_BYTES ? budget : REPEAT_BURST_BYTES;
}

/* A lane stands still in the middle of a frame that the peer has from another lane: it gets a copy
 * of the payload, and the message waits for it no longer. */
bool repeat_move_payload(struct link *link, struct link_order *order);

/* ---- link_coding.c ---- */

/* The lane's, until it is asked for again: at least so many bytes; NULL: there is none. */
uint8_t *coding_take_memory(const struct link *link, unsigned lane, size_t bytes);
/* The whole payload is there: the chunk goes to its destination. 0, or -EBADMSG. */
int coding_ends(struct link *link, const struct link_lane *receiving);

/* ---- link_receive.c ---- */

/* 0, -EPROTO, -EMSGSIZE or -ENOMEM; chooses lane->arrival and lane->buffer. */
int receive_data_begins(struct link *link, unsigned lane);
int receive_data_ends(struct link *link, unsigned lane, uint64_t now_ns);
void receive_request_arrived(struct link *link, uint64_t message);
void receive_time_passed(struct link *link, uint64_t now_ns);
void receive_lane_up(struct link *link, unsigned lane);
void receive_bye_arrived(struct link *link);
void receive_fill_window(struct link *link, unsigned lane, struct wire_header *header,
                         uint64_t now_ns);
void receive_detach(struct link *link, uint64_t now_ns);

/* ---- link_lanes.c ---- */

static inline enum link_lane_state link_lane_state_of(const struct link *link, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  return (link->up & bit) != 0           ? LINK_LANE_UP
         : (link->connecting & bit) != 0 ? LINK_LANE_CONNECTING
         : (link->lost & bit) != 0       ? LINK_LANE_LOST
                                         : LINK_LANE_CLOSED;
}

/* The lane is up. false: the epoch is over already, or an older one is still UP; a CLOSE order was
 * queued. */
bool lanes_come_up(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* The epoch is over, at least for new frames. true: the lane was UP with it; it is LOST now, and
 * what was arriving and being written on it is dropped. A connect that failed is noted, anything
 * older changes nothing. is_loss: it counts as one; not if the peer closed it in good order. */
bool lanes_lose(struct link *link, unsigned lane, uint32_t epoch, bool is_loss, uint64_t now_ns);
/* The peer, or the owner on the peer's behalf, closes all epochs up to this one, even ones that are
 * not known here. true as above. */
bool lanes_fence(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* Our own decision: the lane is given up, closed and reconnected. */
void lanes_cut(struct link *link, unsigned lane, enum link_close_reason reason, uint64_t now_ns);
/* Sender: no lane brings anything across. Lost ones that would wait for long are tried soon. */
void lanes_hurry(struct link *link, uint64_t now_ns);
/* Sender: so many lanes are to be open, which lets those be tried that were refused if it is more
 * than before. The lanes that are up and not wanted, while no wanted one is lost; those of
 * policy_first_lanes stay. Called often. */
uint64_t lanes_want(struct link *link, unsigned lanes);
/* Sender: such a lane, with nothing in flight, is closed in good order. */
void lanes_leave(struct link *link, unsigned lane);
/* The lane could not be opened, and will not be: one end has no descriptor for it. false: the epoch
 * is over. */
bool lanes_refuse(struct link *link, unsigned lane, uint32_t epoch);
/* Sender: paths may be gone for good, and others not tried yet: policy_first_lanes are to be open.
 * false: they are open, or were ordered before. */
bool lanes_grow(struct link *link);

/* An acknowledgement came: the lane works, a later loss is a new story. */
static inline void lanes_proved(struct link *link, unsigned lane) {
  link->lanes[lane].failures = 0;
  link->lanes[lane].stalls = 0;
}

/* Sender: lanes that are to be open. */
static inline uint64_t lanes_goal(const struct link *link) {
  return lanes_below(link->wanted > link->least ? link->wanted : link->least);
}
/* Sender: of these, the ones that are CLOSED and can be opened. The first lane comes by itself. */
static inline uint64_t lanes_unopened(const struct link *link) {
  uint64_t seen = link->up | link->connecting | link->lost | 1;
  return lanes_goal(link) & lanes_below(link->ceiling) & ~seen;
}

/* Whether lanes_next_order may have one: asked for every frame, mostly in vain. */
static inline bool lanes_may_order(const struct link *link, uint64_t now_ns) {
  bool may_open = now_ns >= link->retry_ns || lanes_unopened(link) != 0;
  return link->close != 0 || (link->may_dial && may_open);
}
/* Only then. */
bool lanes_next_order(struct link *link, struct link_order *order, uint64_t now_ns);

/* The kernel says that the lane stands still. What it carried of the peer's business is told again;
 * a sender that has no other lane opens one. */
void link_stands_still(struct link *link, unsigned lane);
/* Receiver: acknowledgements and grants may not have come across. */
void receive_tell_again(struct link *link);
/* What is arriving for the user is read and forgotten. Does nothing on a sender. */
void receive_drop_arrivals(struct link *link);

#endif
