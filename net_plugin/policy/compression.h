/* SPDX-License-Identifier: Apache-2.0 */
/* compression: whether the connections of an engine code their chunks (codec/), from what limits
 * them (STRATUS_COMPRESS=auto).
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * Coding pays where the network is the limit and more flows do not help. Bursts of FSDP, say, pass
 * before the kernel could tell that: what leaves an idle flow is application-limited for a round
 * trip, however long the network takes. So it is also tried where it takes next to nothing of the
 * time of delivery, and stays on if more is delivered. Whether the data becomes
 * shorter the codec finds out, which leaves alone what does not (codec_memory). Once chunks are
 * compressed, the network is less of a limit, and perhaps none any more. So it goes on while no
 * less is delivered than the network carried before. It ends
 *
 *   where less is delivered than before, whatever the limit seems to be: processors do not keep up,
 *   ours, or the peer's, whose window is then full as where the network is slow. It begins again
 *   after a pause, which is doubled each time.
 *   where the compressed bytes alone are more than the network carried before: it carries more now.
 *
 * The decision is that of the engine, for the same reason as with flow_count.h. */
#ifndef NET_PLUGIN_POLICY_COMPRESSION_H
#define NET_PLUGIN_POLICY_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limit.h"
#include "net_plugin/policy/limits.h"

struct compression {
  bool is_asked;               /* some connection leaves it to us */
  bool is_on;                  /* chunks are to be given to the codec now */
  uint64_t turns;              /* changes of is_on */
  uint64_t saved_bytes;        /* by which chunks became shorter, since the last window */
  uint64_t ps_per_byte;        /* what coding takes of a thread, before coding; 0: not known */
  struct limit_window limited; /* windows in a row in which it may pay, */
  unsigned limited_windows;    /* how many these are, */
  unsigned network_windows;    /* and in how many of the last ones the network is the limit */
  struct limit_window tried;   /* windows since it began in which it costs next to nothing, */
  unsigned tried_windows;      /* and how many these are */
  uint64_t before;             /* the speed in those before it began, in KB/s */
  unsigned poor,
      rich;    /* windows in a row that deliver less than before; whose compressed bytes are more */
  uint64_t ns; /* of all windows so far */
  uint64_t due_ns; /* it does not begin before, on the scale of ns */
  uint64_t pause_ns;
};

void compression_init(struct compression *compression);

/* A chunk was compressed. */
void compression_encoded(struct compression *compression, const struct policy_encoded *encoded);
/* A window of bulk traffic is over, and more flows do not help, as far as is known. */
void compression_window(struct compression *compression, const struct limit_window *window,
                        uint64_t ns);

#endif
