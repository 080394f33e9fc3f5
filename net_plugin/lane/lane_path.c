/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_path.h. */
#include "net_plugin/lane/lane_path.h"

#include <errno.h>

#include "common/descriptor.h"
#include "net_plugin/lane/rdma/rdma_lane.h"
#include "net_plugin/lane/tcp/tcp_lane.h"

int lane_open(const struct lane_path *path, struct link *link, unsigned index, uint32_t epoch,
              bool is_dialler, struct lane **lane) {
  if (path->endpoint) {
    return rdma_lane_open(link, index, epoch, path->fd, path->endpoint, is_dialler, lane);
  }
  *lane = tcp_lane_open(link, index, epoch, path->fd, path->crypto);
  return *lane ? 0 : -ENOMEM;
}

void lane_path_drop(const struct lane_path *path) {
  endpoint_free(path->endpoint);
  if (path->fd >= 0) {
    descriptor_close(path->fd);
  }
}
