/* SPDX-License-Identifier: Apache-2.0 */
/* See drive.h. */
#include "net_plugin/engine/drive.h"

unsigned drive_engines(unsigned cpus, unsigned nics) {
  unsigned engines = cpus < 8 ? 1 : cpus < 32 ? 2 : DRIVE_ENGINES_MAX;
  unsigned share = nics ? DRIVE_ENGINES_MAX / nics : DRIVE_ENGINES_MAX;
  share = share ? share : 1;
  return engines < share ? engines : share;
}

bool drive_has_room(unsigned cpus, unsigned engines) {
  return cpus >= 4 && cpus >= engines + 2;
}
