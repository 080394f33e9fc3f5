/* SPDX-License-Identifier: Apache-2.0 */
/* lane_path: what a handshake leads to, and the lane that is made of it, of whatever kind.
 * Owns: as stated.  Threads: the holder of the engine lock; before a lane is made, the path's
 * owner.  Blocks: never.  Fails: as stated. */
#ifndef NET_PLUGIN_LANE_LANE_PATH_H
#define NET_PLUGIN_LANE_LANE_PATH_H

#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/lane_crypto.h"

struct lane_path {
  int fd;                           /* a connected and tuned socket; -1: there is none to drop */
  const struct lane_crypto *crypto; /* NULL: not encrypted */
  struct endpoint *endpoint;        /* NULL: the socket carries everything */
};

/* Makes a lane, which owns socket and endpoint then and copies the keys. 0, or a negative errno:
 * both are still the caller's. is_dialler: this side speaks first on an endpoint. The caller
 * reports link_lane_up. */
int lane_open(const struct lane_path *path, struct link *link, unsigned index, uint32_t epoch,
              bool is_dialler, struct lane **lane);
/* Closes and frees what no lane is made of. An endpoint whose peer may have used it is stopped
 * before (endpoint_stop). */
void lane_path_drop(const struct lane_path *path);

#endif
