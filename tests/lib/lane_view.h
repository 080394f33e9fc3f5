/* SPDX-License-Identifier: Apache-2.0 */
/* lane_view: how the lane of a connection is doing. */
#ifndef TESTS_LIB_LANE_VIEW_H
#define TESTS_LIB_LANE_VIEW_H

#include "net_plugin/connection/connection_state.h"

static inline struct link_lane_view lane_view(struct connection *connection, unsigned lane) {
  struct link_lane_view view;
  engine_lock(connection->engine);
  link_view_lane(connection->link, lane, &view);
  engine_unlock(connection->engine);
  return view;
}

#endif
