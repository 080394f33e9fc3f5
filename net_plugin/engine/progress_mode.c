/* SPDX-License-Identifier: Apache-2.0 */
/* See progress_mode.h. */
#include "net_plugin/engine/progress_mode.h"

#include "net_plugin/engine/limits.h"

enum progress_mode progress_mode_choose(unsigned cpus, unsigned engines) {
  return cpus >= PROGRESS_THREAD_CPUS && cpus >= engines + PROGRESS_OTHER_CPUS ? PROGRESS_THREAD
                                                                               : PROGRESS_INLINE;
}

unsigned progress_mode_engines(unsigned cpus, unsigned nics) {
  unsigned engines = cpus < PROGRESS_TWO_ENGINES_CPUS    ? 1
                     : cpus < PROGRESS_MOST_ENGINES_CPUS ? 2
                                                         : PROGRESS_ENGINES_MAX;
  unsigned share = nics ? PROGRESS_ENGINES_MAX / nics : PROGRESS_ENGINES_MAX;
  share = share ? share : 1;
  return engines < share ? engines : share;
}
