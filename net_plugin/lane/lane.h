/* SPDX-License-Identifier: Apache-2.0 */
/* lane: one path of a link: a TCP flow, plain or encrypted, or an RDMA queue pair. A lane passes
 * what arrives to its link and writes the frames that its link hands out; it decides nothing.
 *
 *   UP --close--> CLOSING --the peer has closed, or broke--> CLOSED --fini--> gone
 *   UP --the path broke--> BROKEN --fini--> gone
 *
 * close announces the end and returns at once; is_closed says when the peer has done the same; fini
 * frees. Never merged: closing a socket that holds unread bytes resets it, and destroys what the
 * peer has not read yet.
 *
 * Owns: its descriptor and buffers, from a successful lane_open to fini.  Threads: the
 * holder of the engine lock.  Blocks: fini of an RDMA lane, while the driver stops the queue pair
 * (one ibv_modify_qp): what it promises cannot wait; the others never.
 * Fails: read, write and resume return a negative errno once the path is broken; the owner then
 * calls fini and reports link_lane_lost. */
#ifndef NET_PLUGIN_LANE_LANE_H
#define NET_PLUGIN_LANE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/link/link.h"

struct lane;

/* Since the lane was opened. What the transport does not measure is 0. */
struct lane_stats {
  uint64_t bytes_written, bytes_read; /* on the wire, headers included */
  uint64_t retransmits;               /* packets sent again */
  /* as they are now */
  uint64_t rtt_us, rtt_min_us;
  uint64_t delivery_rate_bytes; /* per second, the last that the transport measured */
  uint64_t congestion_window_bytes;
  struct sockaddr_storage local, remote; /* AF_UNSPEC: not known */
};

/* Every kind of lane lists all of them by position, so that the compiler notices a new one. */
struct lane_ops {
  /* Passes what has arrived to the link, up to LANE_READ_BYTES. *got: how many bytes that was.
   * 0; -EPIPE: the peer closed in an orderly way; other negative errno: broken. */
  int (*read)(struct lane *lane, uint64_t now_ns, size_t *got);
  /* False: read would find nothing. Reads no clock and makes no system call, so it may be asked at
   * any rate. A lane that cannot tell answers true: lane_may_have_news. */
  bool (*has_news)(struct lane *lane);
  /* Starts to write the frame, whose memory must stay as link.h says. Only while can_write. Has it
   * taken all of it: lane_has_taken. If can_write and has_unwritten are both set afterwards, the
   * lane coalesces: it keeps a copy of the frame for more to come, and resume sends it. 0 or
   * negative errno. */
  int (*write)(struct lane *lane, const struct link_frame *frame);
  /* The payload of the frame that is being written is there now, byte for byte. */
  void (*move)(struct lane *lane, const void *payload);
  /* Continues with what the path has not taken yet: call it when the descriptor is writable, or
   * when there are no more frames for now. read may do the same. */
  int (*resume)(struct lane *lane);
  /* Nothing more will be written; from now on what the peer sends is read and dropped. */
  void (*close)(struct lane *lane);
  /* After close: the peer has closed, too, or will not. */
  bool (*is_closed)(const struct lane *lane);
  void (*stats)(const struct lane *lane, struct lane_stats *stats);
  /* What the policy wants to know (policy.h), by one system call. False: the transport counts
   * nothing of the kind. */
  bool (*measure)(const struct lane *lane, struct policy_transport *transport);
  /* When the peer's host last answered on this path, as far as the transport knows, whether the
   * peer's process reads or not. 0: not known, or it does not answer. */
  uint64_t (*answered_ns)(const struct lane *lane, uint64_t now_ns);
  /* Frees the lane, closes the descriptor. It must no longer be watched. 0: from now on nothing
   * writes into the link's or the user's memory for it, so the peer may get CLOSED
   * for the lane. Negative errno, after LOG_WARN: a device may still do so, and the link must fail.
   */
  int (*fini)(struct lane *lane);
};

struct lane {
  const struct lane_ops *ops;
  struct link *link;
  unsigned index;
  uint32_t epoch;
  int fd;             /* readable and writable as the path is */
  bool can_write;     /* the last frame was taken whole: another may be written */
  bool has_followers; /* the owner has more frames to write after this one */
  bool has_unwritten; /* resume must be called when the descriptor is writable */
  bool is_moving;     /* of what is unwritten, the path took a piece when it was asked last */
  bool is_polled;     /* the reader polls: it will read again at once */
  bool is_mid_frame;  /* of a stream: a frame has begun to arrive, and not ended */
};

/* All of the last frame: nobody reads its memory any more, but as its registration says. */
static inline bool lane_has_taken(const struct lane *lane) {
  return lane->can_write || !lane->has_unwritten;
}

/* The measure of lanes whose transport does not count. */
static inline bool lane_is_unmeasured(const struct lane *lane, struct policy_transport *transport) {
  (void)lane, (void)transport;
  return false;
}

/* The move of lanes that a link never takes to stand still. */
static inline void lane_never_moves(struct lane *lane, const void *payload) {
  (void)lane, (void)payload;
}

/* The has_news of lanes that would need a system call for it. */
static inline bool lane_may_have_news(struct lane *lane) {
  (void)lane;
  return true;
}

/* ---- the frame that is arriving on a lane, of whatever kind: its header, progress and end are
 * reported to the link, which decides where the payload goes. All with the errors of read ---- */

struct frame_in {
  bool in_payload; /* the header is complete, the payload is not */
  bool is_coded;
  uint32_t payload_length, payload_got;
  uint32_t header_got; /* of the next header, while there is no payload */
  uint8_t header[WIRE_HEADER_BYTES];
  uint64_t placed_bytes; /* of all payloads that did not come in the stream */
};

/* The next bytes of the stream of frames, in any portions. */
int frame_in_take(struct lane *lane, struct frame_in *frame, const uint8_t *bytes, size_t count,
                  uint64_t now_ns);
/* Its header is complete. A frame without payload ends at once. */
int frame_in_begin(struct lane *lane, struct frame_in *frame, const struct wire_header *header,
                   uint64_t now_ns);
/* That many more bytes of its payload are in place, perhaps the last ones. */
int frame_in_grow(struct lane *lane, struct frame_in *frame, size_t bytes, uint64_t now_ns);
/* Where the next byte of the payload goes; NULL: the link takes no more from this lane. Ask before
 * each write: the user may take the memory back at any time. */
static inline uint8_t *frame_in_end(const struct lane *lane, const struct frame_in *frame) {
  uint8_t *payload = link_receive_buffer(lane->link, lane->index);
  return payload ? payload + frame->payload_got : NULL;
}

#endif
