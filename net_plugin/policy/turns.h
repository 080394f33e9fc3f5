/* SPDX-License-Identifier: Apache-2.0 */
/* turns: whether messages of some KiB take turns over the lanes, because lanes queue.
 * Owns: only its own struct.  Threads: the link's.  Blocks: never.  Fails: cannot.
 *
 * Where flows are capped a lane that gets each message that somebody waits for has used up the
 * burst that its cap lets pass, while others have theirs. A message that is alone on its lane, and
 * late, tells of that; but a thread that does not run makes it late, too. So turns are taken after
 * TURNS_MESSAGES late ones. If so many messages later most are not in time they are given up, for a
 * pause that is doubled each time. Else lanes did queue, and turns hold for TURNS_NS, as nothing is
 * late in them though the cap is still there. */
#ifndef NET_PLUGIN_POLICY_TURNS_H
#define NET_PLUGIN_POLICY_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limits.h"

enum turns_state {
  TURNS_NONE,
  TURNS_TRIED, /* taken; do they help? */
  TURNS_HELP,  /* taken, since lanes queue */
};

struct turns {
  enum turns_state state;
  unsigned late;     /* of the messages since then; TURNS_NONE: halved by one in time */
  unsigned messages; /* since then */
  uint64_t next_ns;  /* TURNS_NONE: not tried before; TURNS_HELP: taken until then */
  uint64_t pause_ns; /* the next one */
};

static inline void turns_init(struct turns *turns) {
  *turns = (struct turns){ .pause_ns = TURNS_NS };
}

/* A message that was alone on its lane arrived. */
void turns_arrived(struct turns *turns, bool is_late, uint64_t now_ns);
/* Time has passed. */
void turns_sent(struct turns *turns, uint64_t now_ns);

#endif
