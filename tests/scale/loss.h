/* SPDX-License-Identifier: Apache-2.0 */
/* loss: which packets of a stream are lost, and when they are sent again, as Linux's TCP does it
 * (net/ipv4/tcp_recovery.c, tcp_output.c and tcp_timer.c of 6.x), without its congestion window.
 * What is behind a lost packet waits for it at the receiver.
 *
 *   three packets or more behind it arrive             again when the sender hears of these
 *   one or two, sent in the same burst                 again 2 ms later
 *   one that was sent later                            again when the sender hears of it
 *   nothing arrives, and more than one is on the way   the last one again after two round trips
 *                                                      and 2 ms, once
 *   nothing arrives, and it is alone                   again after 200 ms, then 400, 800 ...
 *
 * What is sent again may be lost again. Acknowledgements are not: the next one says the same.
 * Owns: what a stream misses, from loss_begin to loss_end.  Threads: one.  Blocks: never.
 * Fails: without memory the program ends. */
#ifndef TESTS_SCALE_LOSS_H
#define TESTS_SCALE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

struct loss_hole {
  uint64_t begin, end; /* bytes of the stream */
  uint64_t sent_ns;    /* the last time */
  uint64_t heard_ns;   /* the sender knows that something behind it arrived; EVENTS_NEVER */
  uint64_t again_ns;   /* it sends it again then; EVENTS_NEVER */
  unsigned behind;     /* packets that arrived since it was sent */
  bool is_on_way;
};

/* Where chance is to take nothing by itself: of a group of streams one packet is lost, and chance
 * takes others only of the next ones, and of what is sent again. */
struct loss_aim {
  uint64_t packets; /* until that one; 0: none */
  unsigned in_danger;
};
#define LOSS_IN_DANGER 16u /* what follows a loss until it is repaired: PINGs, repeats */

struct loss {
  struct loss_hole *holes; /* in order */
  unsigned count, capacity;
  uint64_t passed_bytes; /* these have arrived, or are holes */
  uint64_t timer_ns;     /* when the sender has waited long enough */
  uint64_t event_ns;     /* of the event that looks at it; EVENTS_NEVER: none */
  unsigned backoff;      /* timeouts since anything arrived in order */
  bool has_probed;       /* likewise */
  uint64_t retransmits;
};

/* The stream is open from here to loss_end. */
void loss_begin(struct stream *stream);
void loss_end(struct stream *stream);
/* So many bytes have just left; and arrive now, but for what was lost of them. */
void loss_sent(struct stream *stream, uint64_t bytes);
void loss_arrived(struct stream *stream, uint64_t bytes);
/* The sender's kernel knows that something is missing. */
bool loss_is_repairing(const struct stream *stream);
/* Packets of so many bytes. */
uint64_t loss_packets(uint64_t bytes);

#endif
