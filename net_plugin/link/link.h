/* SPDX-License-Identifier: Apache-2.0 */
/* link: the protocol of one NCCL connection, over any number of lanes. PURE: no sockets, clock,
 * threads or malloc; time and memory arrive as arguments, so that a simulator can drive it.
 *
 * Owns: only the memory given to link_init.  Threads: one at a time (the holder of the engine
 * lock). Blocks: never.  Fails: as stated at each function; a failed link stays failed
 * (link_status).
 *
 * An NCCL connection carries messages one way: the connecting side is the SENDER, the accepting
 * side the RECEIVER. Lanes are two-way: DATA flows one way, WINDOW (what has landed, and credit)
 * the other.
 *
 * Callers report facts in the past tense (link_lane_lost, link_frame_received, ...), then ask
 * link_step what follows from them: orders to the owner of the lanes, frames to write, the next
 * deadline; and link_next_completion which messages are complete.
 *
 * Invariants, asserted by link_check (tests/lib):
 *  1. Each byte of a message is in one chunk, and a chunk has one number. It leaves the sender only
 *     when its number is acknowledged: until then a lane carries it, or two do, or it is to be
 *     sent.
 *  2. Messages complete in order, each once, when every byte is acknowledged (sender; a message of
 *     at most eager_bytes is copied if there is room, and completes when written) or landed
 *     (receiver).
 *  3. No DATA without credit, except eager messages up to eager_slots beyond it: of at most
 *     eager_bytes, and none that an RDMA lane could place.
 *  4. The receiver acknowledges a number only when the chunk is in its place, and counts it for its
 *     message once. A half-received frame, and a chunk that comes again, count for nothing.
 *  5. Frames and facts of an older lane epoch change nothing.
 *
 *  6. User memory is written only for messages that were posted and are not complete, while the
 * link has not failed and the user has not left; it is read only for messages that were not copied
 * and that the peer does not have. A frame of one that was being written when the link failed may
 * be finished, until link_user_detached.
 *
 *  14. Time does not go back: who gives an earlier time than somebody before is taken to have come
 * at that time. (7 to 13 concern other modules: docs/architecture.md)
 *
 * RDMA lanes read payloads by themselves, until they are acknowledged, and may write into
 * the receiver's memory by themselves, at the message's remote buffer, which travels with
 * the credit. So their end matters more than that of others: an owner that is ordered to close one,
 * or reports it lost, has made sure first that it neither reads nor writes any more, and carries
 * out orders before it writes frames.
 */
#ifndef NET_PLUGIN_LINK_LINK_H
#define NET_PLUGIN_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/link/limits.h"
#include "net_plugin/link/wire.h"
#include "net_plugin/policy/policy.h"

#define LINK_NO_DEADLINE UINT64_MAX

enum link_role { LINK_SENDER, LINK_RECEIVER };

/* Memory for the compressed form of one chunk of this lane, or for a copy of it: at least so many
 * bytes, which stay until the link asks for the same lane again, or ends. What was in it before
 * need not. NULL: there is none. */
typedef void *link_coding_memory_fn(void *owner, unsigned lane, size_t bytes);

struct link_config {
  enum link_role role;
  /* lanes, chunk_bytes and compress are agreed in the handshake. Receiver: it reads only
   * these, and takes compressed chunks unless compress is OFF, as it is with remote keys. */
  struct policy_config policy;
  uint32_t eager_bytes; /* <= policy.chunk_bytes; agreed in the handshake */
  unsigned eager_slots; /* messages beyond the credit, 0..LINK_WINDOW/2; agreed in the handshake */
  uint64_t timeout_ns;  /* no lane up, or nothing heard, for this long: see link_status. Patience:
                           what works is found, and what is dead is replaced, as soon without */
  uint64_t stopped_timeout_ns; /* nothing heard for this long, though the peer's host answers */
  uint64_t seed;               /* for backoff jitter */
  /* Asked for each chunk that is compressed, or came so, for a second copy with a checksum, and for
   * a LINK_ORDER_MOVE, which is not given without. Where there is none a sender's lane codes no
   * more, and a receiver's lane is lost (-ENOMEM). It may be NULL if compress is OFF: there is
   * none. */
  link_coding_memory_fn *coding_memory;
  void *coding_owner;
  bool wants_checksums; /* CRC32C on every DATA payload that this side sends */
  unsigned remote_keys; /* 0..WIRE_REMOTE_KEYS: keys of a remote buffer; 0: there are no remote
                           buffers */
};

struct link; /* size: link_memory_bytes */

/* Bytes of memory that link_init needs for this configuration (16-byte aligned). Eager buffers are
 * the last and largest part; pages of them that are never used are never touched. 0: bad config. */
size_t link_memory_bytes(const struct link_config *config);
/* Builds a link in `memory`, which must be zeroed. No lane is up yet. */
struct link *link_init(void *memory, const struct link_config *config, uint64_t now_ns);
/* The link ends: its memory may be freed then. */
void link_end(struct link *link);

/* ---- facts in ---- */

/* The user wants `bytes` at `data` sent. The memory must stay valid until the completion. memory:
 * handed on with the frames (link_frame.memory), for RDMA lanes; NULL if there are none.
 * 0, -EAGAIN (window full: nothing happened), or the status of a failed link. */
int link_send_posted(struct link *link, const void *data, size_t bytes, const void *memory,
                     uint64_t now_ns);
/* The user offers a buffer for the next message. remote buffer: how a NIC gets there; NULL: not at
 * all. Same results. */
int link_receive_posted(struct link *link, void *data, size_t bytes,
                        const struct wire_remote_buffer *remote_buffer, uint64_t now_ns);

/* Lanes whose transports are to be asked what they have counted, now: each answer is reported by
 * link_lane_measured at once (NULL: it counts nothing). Asked before link_step; seldom any. */
uint64_t link_wants_measured(struct link *link, uint64_t now_ns);
void link_lane_measured(struct link *link, unsigned lane, const struct policy_transport *transport,
                        uint64_t now_ns);

/* A lane can carry frames. epoch: which connect, from 1; of a SENDER one that the peer's
 * link_lane_fence has passed: nothing of the epochs before is written there any more. One that is
 * not the latest is refused by a LINK_ORDER_CLOSE. */
void link_lane_up(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* The lane, which has just come up, is an RDMA lane. On a RECEIVER not after link_user_detached:
 * the peer may still know remote buffers. */
void link_lane_is_rdma(struct link *link, unsigned lane);
/* The peer takes no compressed chunk on this lane any more: it had no memory. SENDER only. */
void link_lane_is_raw(struct link *link, unsigned lane);
/* The lane works, but its owner may be able to open it on a better path: it is closed and
 * reconnected. SENDER only. */
void link_lane_outdated(struct link *link, unsigned lane, uint64_t now_ns);
/* The lane broke, or could not be opened (then epoch is the one that was ordered). */
void link_lane_lost(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* The peer closed it in good order. The same, but not counted among the losses. */
void link_lane_left(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* SENDER: the lane could not be opened, and will not be soon: one end has no descriptor for it. It
 * and higher ones are not tried before more lanes are wanted than now. */
void link_lane_refused(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns);
/* A handshake for new_epoch goes on. The epochs before are fenced: their later frames are refused,
 * and their connection is ordered closed, which the owner does before it answers. RECEIVER only.
 * false: new_epoch is not newer than what is known (a connect that was overtaken by a later one),
 * or the lane does not exist; refuse it. */
bool link_lane_fence(struct link *link, unsigned lane, uint32_t new_epoch, uint64_t now_ns);

/* A header arrived. 0: the payload (wire_stream_bytes(header), possibly none) goes to
 * link_receive_buffer, then call link_frame_completed. Negative: the lane is lost for the link,
 * close it (reporting it lost is allowed and changes nothing): -EPROTO, the peer or the lane broke
 * the protocol; -ESTALE, the epoch was fenced; -ENOMEM, there is no memory for the compressed
 * chunk. Or the link has failed (link_status, -EMSGSIZE or -ESTALE): read no more, write what there
 * is to write, then close. */
int link_frame_received(struct link *link, unsigned lane, const struct wire_header *header,
                        uint64_t now_ns);
/* For wire_header_from_immediate. RECEIVER only. */
struct wire_near link_near(const struct link *link);
/* Where the payload of the lane's current frame goes: valid until any other call for this link, so
 * ask again before each read. NULL while no frame with a payload is arriving: also in the middle of
 * one when its epoch was fenced (a LINK_ORDER_CLOSE follows); then close the lane. After
 * link_user_detached, a place where the bytes harm nobody. */
void *link_receive_buffer(struct link *link, unsigned lane);
/* A part of a frame arrived: the peer lives. Needed for large payloads on slow paths only. */
void link_bytes_arrived(struct link *link, unsigned lane, uint64_t now_ns);
/* The whole payload arrived. 0, or negative with the same meaning as above, or -EBADMSG (checksum
 * wrong). */
int link_frame_completed(struct link *link, unsigned lane, uint64_t now_ns);
void link_time_passed(struct link *link, uint64_t now_ns);

/* The user waits, and the peer has been silent for so long that it matters whether its host is
 * there: the owner checks its lanes and reports link_host_answered before link_time_passed. */
bool link_wants_evidence(const struct link *link, uint64_t now_ns);
/* The peer's host (its kernel, its NIC) has answered on a path of ours, whether its process did or
 * not; when_ns: the last time that is known of. Of a path that shows nothing report nothing. */
void link_host_answered(struct link *link, uint64_t when_ns, uint64_t now_ns);
/* After link_time_passed: what the link knows of the peer. It does not fail for it yet. */
enum link_trouble {
  LINK_WELL,
  /* For LIVENESS_DOUBT_NS no lane was up, or the user waits and nothing was heard, nor of the
   * peer's host: the path may be gone, or the host. A lane is dialled again and again. */
  LINK_NO_ANSWER,
  /* The same, but the peer's host answers: its process is stopped. */
  LINK_STOPPED,
  /* SENDER: for LIVENESS_DOUBT_NS lanes came up and were lost, and nothing of what was sent was
   * acknowledged. After the timeout no more data is sent; if a lane comes up within two seconds,
   * and acknowledges nothing either, the link fails with -ECOMM; if none does, there is no path:
   * see above. */
  LINK_STUCK,
};
struct link_health {
  enum link_trouble trouble;
  uint64_t since_ns; /* of a trouble: nothing was heard, was up, was acknowledged since then */
};
struct link_health link_health(const struct link *link, uint64_t now_ns);

/* The user closed its end, or takes back memory that messages need. User buffers are no longer
 * touched after this returns; completions stop. What was copied eagerly is still delivered, then
 * BYE is sent; then link_is_finished. */
void link_user_detached(struct link *link, uint64_t now_ns);
/* Is the user's memory needed for this message, which was posted and whose completion was not
 * taken? Not for one that was copied, or that the peer has. */
bool link_needs_memory(const struct link *link, uint64_t number);
/* Gives up: status becomes `error` (negative errno) unless the link had failed already. An ABORT
 * is sent to the peer. */
void link_fail(struct link *link, int error);
/* The same, and the ABORT says why: the first WIRE_MAX_REASON_BYTES of it. */
void link_fail_because(struct link *link, int error, const char *reason);

/* ---- work out ---- */

struct link_frame {
  uint8_t header[WIRE_HEADER_BYTES];
  const void *payload; /* NULL if length is 0 */
  uint32_t length;
  /* For RDMA lanes. memory: what link_send_posted was given; NULL: the payload is in the memory
   * of the link. remote buffer: the payload may be written there, `offset` behind its address,
   * instead of being sent, and wire_header_place be used on the header; NULL: it may not. Valid
   * until any other call for this link. */
  const void *memory;
  const struct wire_remote_buffer *remote_buffer;
  uint64_t offset;
  bool wants_coding; /* call link_encode before it is written */
};

enum link_order_kind {
  LINK_ORDER_OPEN,  /* SENDER: connect this lane with this epoch, then report up or lost */
  LINK_ORDER_CLOSE, /* close what is open of this lane with this epoch or an older one, and neither
                       read nor write more of it; report nothing */
  LINK_ORDER_MOVE,  /* SENDER: the payload of the frame that is being written on this lane is at
                       `payload` now, byte for byte: its old place is not read any more */
};
/* Why a lane is to be closed, for messages. */
enum link_close_reason {
  LINK_CLOSE_OVER,    /* the peer or the user is done with it, or it was overtaken */
  LINK_CLOSE_STALLED, /* it stalled while the peer was heard */
  LINK_CLOSE_SLOW,    /* it was much slower than the others: another path is tried */
  LINK_CLOSE_SILENT,  /* all lanes were silent: a new one is tried */
  LINK_CLOSE_BETTER,  /* the owner may have a better path: see link_lane_outdated */
};
const char *link_close_reason_text(enum link_close_reason reason);
struct link_order {
  enum link_order_kind kind;
  unsigned lane;
  uint32_t epoch;
  enum link_close_reason reason; /* of a CLOSE */
  const void *payload;           /* of a MOVE; valid as that of the frame was */
};
/* What follows from the facts so far, one thing at a time. */
enum link_step_kind {
  LINK_STEP_ORDER, /* carry out `order`; each is given once */
  LINK_STEP_WRITE, /* write `frame` on `lane` */
  LINK_STEP_WAIT,  /* nothing to do until the next fact, at the latest at deadline_ns */
};

struct link_step {
  struct link_order order;

  unsigned lane;
  struct link_frame frame;

  /* Of LINK_STEP_WAIT: when link_time_passed must be called, LINK_NO_DEADLINE if never. The link
   * notes it: an owner that comes much later was stopped, and that time does not count as anybody's
   * silence. */
  uint64_t deadline_ns;
};

/* Lanes, as they are now. Those that are not up, or have no frame of the link's, are ignored. */
struct link_ready {
  uint64_t writable; /* they can take a frame */
  uint64_t taken;    /* they have taken all of their last frame: it is with the operating system, or
                        with a device, or the lane has copied it */
};

/* The owner calls it after facts until it answers LINK_STEP_WAIT.
 *
 * The policy may leave a slow lane idle while a faster one is busy, so offer all lanes that are
 * writable at once, and again after every fact. Control frames come first, then chunks that are
 * sent again, then new ones, oldest message first.
 *
 * A frame must be taken entirely and in order by its lane, and the link told so, before it gets
 * another. The payload stays valid until then, or until the lane is lost: by link_lane_lost, or by
 * a LINK_ORDER_CLOSE, which comes before any other frame. What lanes need longer is said by their
 * registrations. */
enum link_step_kind link_step(struct link *link, const struct link_ready *ready, uint64_t now_ns,
                              struct link_step *step);

/* The next message that has completed, in the order in which they were posted, each once: the bytes
 * that were sent or received with it. False: none. Frames that were read, and steps, complete
 * messages. */
bool link_next_completion(struct link *link, uint64_t *bytes);

/* The frame, which wants it, is compressed, if that makes it shorter: its header, payload and
 * length are then others. Takes some microseconds for 100 KB. The owner measures them, sets took_ns
 * of what this returns, and hands it to link_encoded. */
struct policy_encoded link_encode(struct link *link, unsigned lane, struct link_frame *frame);
void link_encoded(struct link *link, const struct policy_encoded *encoded);
/* The last frame that was completed was a compressed one, and it took so long. */
void link_decoded(struct link *link, uint64_t took_ns);

/* 0 while it works; -ETIMEDOUT (no lane up for timeout_ns), -EHOSTDOWN (silent peer: lanes are up,
 * the user waits, and nothing was heard for timeout_ns, PINGs or not, nor of its host), -ETIME
 * (its host answers, the peer does not, for stopped_timeout_ns), -ECOMM (see LINK_STUCK),
 * -ECONNRESET (peer closed with messages in flight), -ECONNABORTED (the peer's link failed and sent
 * an ABORT: its log has the reason), -EMSGSIZE (peer sent a message larger than the receive),
 * -EPROTO, or what link_fail was given. */
int link_status(const struct link *link);
/* It failed, and an ABORT is still to be written: when no lane takes it soon, do without. Then
 * close the lanes. */
bool link_has_last_word(const struct link *link);
/* After link_user_detached: nothing is left to deliver and BYE was written; or the link failed. */
bool link_is_finished(const struct link *link);
/* The peer sent BYE. */
bool link_is_peer_closed(const struct link *link);

/* ---- views: for messages, statistics and tests ---- */

enum link_lane_state { LINK_LANE_CLOSED, LINK_LANE_CONNECTING, LINK_LANE_UP, LINK_LANE_LOST };

/* Over all epochs of a lane. */
struct link_lane_counts {
  uint64_t bytes_sent, bytes_received; /* DATA payload */
  uint64_t requeued;                   /* chunks that it gave back when it was lost */
  uint64_t losses;                     /* how often it was lost; in this number: */
  uint64_t stalls_cut;                 /* of these, cut by us: stalled while others moved */
  uint64_t slow_reconnects; /* of these, reconnected by us: much slower than the others */
};

struct link_lane_view {
  enum link_lane_state state;
  uint32_t epoch;
  struct link_lane_counts counts;
  uint64_t outstanding_bytes; /* sender: sent and not acknowledged */
  uint64_t bytes_acked;       /* sender */
  uint32_t ps_per_byte;       /* sender: learned drain time; 0: not known */
  enum policy_limit limit;    /* sender: what held it up lately */
  uint64_t heard_ns;          /* the last frame or handshake; 0: never */
};
void link_view_lane(const struct link *link, unsigned lane, struct link_lane_view *view);
/* "network", "peer", "CPU", "application", "-" if it is not known. */
const char *link_limit_name(enum policy_limit limit);

/* Chunks that could be compressed (net_plugin/codec), and what became of them. */
struct link_coding {
  uint64_t coded;                     /* chunks: sent, or received, compressed */
  uint64_t raw;                       /* sender: coding them would not have paid */
  uint64_t untried;                   /* sender: the policy wanted them as they are */
  uint64_t bytes_before, bytes_after; /* of the compressed ones */
  uint64_t took_ns; /* sender: to code, those that it did not pay for, too; receiver: to decode */
};

struct link_counts {
  uint64_t stalls; /* sender: work but no credit */
  uint64_t pings_sent;
  uint64_t tail_pings;       /* of these, behind packets that seemed to be lost */
  uint64_t repeats;          /* chunks sent again on another lane while their own stood still */
  uint64_t repeated_bytes;   /* of these */
  uint64_t duplicates;       /* receiver: chunks that came twice */
  struct link_coding coding; /* repeats included */
};

struct link_view {
  uint64_t posted, completed; /* messages */
  uint64_t credited;          /* receives that the peer granted (sender) or we granted */
  struct link_counts counts;
  uint64_t chunks_requeued, losses, stalls_cut, slow_reconnects; /* of all lanes */
  uint64_t heard_ns;       /* the last frame or handshake on any lane; 0: never */
  int peer_error;          /* of the peer's ABORT, a negative errno; 0: none came */
  const char *peer_reason; /* likewise, printable; lives as long as the link; empty: none */
  unsigned vain_lanes;     /* LINK_STUCK: that came up since then and brought nothing across */
  unsigned lanes_up;
  unsigned lanes_wanted; /* that are up or should be; receiver: that the peer opened */
};
void link_view(const struct link *link, struct link_view *view);

struct link_message_view {
  uint64_t number;       /* from 0 */
  uint64_t bytes, moved; /* receiver: of the buffer, while the message's size is not known */
  uint64_t posted_ns;
  uint64_t still_ns; /* since then nothing of the connection was acknowledged, nor has landed */
};
/* The oldest message that is not complete; false: there is none. */
bool link_view_oldest(const struct link *link, struct link_message_view *view);

#endif
