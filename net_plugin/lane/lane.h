/* SPDX-License-Identifier: Apache-2.0 */
/* lane: one path of a link: a TCP flow, later a queue pair. A lane reports what arrives to its link
 * and writes the frames its link hands out; it decides nothing.
 *
 *   UP --close--> CLOSING --peer closed or stop--> CLOSED --fini--> gone
 *   UP --the path broke--> BROKEN --fini--> gone
 *
 * close says goodbye and returns at once; stop gives up waiting for the peer; fini frees. Never
 * merged, since closing a socket that holds unread bytes resets it and destroys what the peer has
 * not read yet.
 *
 * Owns: its descriptor and buffers, from a successful open to fini.  Threads: the holder of the
 * engine lock. Blocks: never.  Fails: read and write return a negative errno once the path is
 * broken; the owner then calls fini and reports link_lane_lost. */
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

struct lane_ops {
  /* Takes what has arrived to the link, at most about a megabyte. *got: how many bytes that was.
   * 0; -EPIPE: the peer closed in an orderly way; other negative errno: broken. */
  int (*read)(struct lane *lane, uint64_t now_ns, size_t *got);
  /* Starts to write the frame, which must stay as link.h says. Only when can_write. If it is still
   * so afterwards and has_unwritten, too, the lane waits for more frames: resume ends that. 0 or
   * negative errno. */
  int (*write)(struct lane *lane, const struct link_frame *frame, uint64_t now_ns);
  /* Goes on with what the path did not take before; call when the owner saw the descriptor
   * writable, or has no more frames for now. */
  int (*resume)(struct lane *lane, uint64_t now_ns);
  /* Nothing more will be written; what the peer sends is read and dropped from now on. */
  void (*close)(struct lane *lane);
  /* After close: the peer has closed, too, or nothing is to be waited for. */
  bool (*is_closed)(const struct lane *lane);
  void (*stats)(const struct lane *lane, struct lane_stats *stats);
  /* When the peer's host answered last on this path, by what the transport shows, whether the
   * peer's process reads or not. 0: that is not known, or it does not answer. */
  uint64_t (*answered_ns)(const struct lane *lane, uint64_t now_ns);
  /* Frees the lane, closes the descriptor. It must no longer be watched. 0: from now on nothing
   * writes into the link's or the user's memory for it, so the peer may be told that the lane is
   * fenced. Negative errno, after LOG_WARN: a device may still do so, and the link must fail. */
  int (*fini)(struct lane *lane);
};

struct lane {
  const struct lane_ops *ops;
  struct link *link;
  unsigned index;
  uint32_t epoch;
  int fd;             /* becomes readable and writable as the path does */
  bool can_write;     /* the last frame was taken whole: another may be written */
  bool has_followers; /* the owner has several frames to write: they may go out together */
  bool has_unwritten; /* resume must be called when the descriptor is writable */
  bool is_polled;     /* by a thread that waits, and will read again at once */
};

#endif
