/* SPDX-License-Identifier: Apache-2.0 */
/* drive: who moves an engine's bytes, NCCL's threads (inline) or the engine's own, and how many
 * engines there are. Small messages are always inline, since a hand-over costs more than they do;
 * for bulk traffic both are tried (common/trial.h).
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_ENGINE_DRIVE_H
#define NET_PLUGIN_ENGINE_DRIVE_H

#include <stdbool.h>

#include "common/trial.h"

enum drive_mode { DRIVE_INLINE = TRIAL_USUAL, DRIVE_THREAD = TRIAL_OTHER };

/* How many engines a NIC gets where the user does not say: the process has so many CPUs, uses so
 * many NICs. At least one; together not more than DRIVE_ENGINES_MAX, if the NICs are not. */
#define DRIVE_ENGINES_MAX 4
unsigned drive_engines(unsigned cpus, unsigned nics);
/* There are enough CPUs for the threads of so many engines next to NCCL's. */
bool drive_has_room(unsigned cpus, unsigned engines);

#endif
