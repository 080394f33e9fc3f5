/* SPDX-License-Identifier: Apache-2.0 */
/* See progress_mode.h. */
#include "net_plugin/engine/progress_mode.h"

enum progress_mode progress_mode_choose(unsigned cpus, unsigned engines) {
  return cpus >= 4 && cpus >= engines + 2 ? PROGRESS_THREAD : PROGRESS_INLINE;
}

unsigned progress_mode_engines(unsigned cpus, unsigned nics) {
  unsigned engines = cpus < 8 ? 1 : cpus < 32 ? 2 : PROGRESS_ENGINES_MAX;
  unsigned share = nics ? PROGRESS_ENGINES_MAX / nics : PROGRESS_ENGINES_MAX;
  share = share ? share : 1;
  return engines < share ? engines : share;
}
