/* SPDX-License-Identifier: Apache-2.0 */
/* one_voice: behind a launcher each rank has a check of its own; of those on a host that fail, the
 * first one says why, for all of them.
 * Owns: a socket whose abstract name the others meet, until the process ends.  Threads: one.
 * Blocks: one_voice_hold for ONE_VOICE_HOLD_NS.  Fails: towards saying it again. */
#ifndef COMMON_TOOLS_ONE_VOICE_H
#define COMMON_TOOLS_ONE_VOICE_H

#include <stdbool.h>

#include "common/launcher.h"

/* False: another process of this job, user and host has said it. */
bool one_voice_take(const struct launcher_place *place);

/* Called by whoever is about to end: keeps the word for ranks that come to the same a little later.
 * Nothing where this process has not taken it. */
void one_voice_hold(void);

#endif
