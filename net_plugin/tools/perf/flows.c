/* SPDX-License-Identifier: Apache-2.0 */
/* Asks each socket that this process has open. A number of a descriptor may be taken again, so two
 * snapshots are compared by inode. */
#include "net_plugin/tools/perf/flows.h"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/clock.h"

enum { ESTABLISHED = 1, CLOSE_WAIT = 8 };

/* False: it is no TCP connection. */
static bool take_flow(int fd, struct flow *flow) {
  struct stat status;
  struct tcp_info info = { 0 }; /* older kernels fill in less */
  struct sockaddr_storage local, remote;
  socklen_t bytes = sizeof info, local_bytes = sizeof local, remote_bytes = sizeof remote;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
      (info.tcpi_state != ESTABLISHED && info.tcpi_state != CLOSE_WAIT) ||
      fstat(fd, &status) != 0 || getsockname(fd, (struct sockaddr *)&local, &local_bytes) != 0 ||
      getpeername(fd, (struct sockaddr *)&remote, &remote_bytes) != 0) {
    return false;
  }
  *flow = (struct flow){ .inode = status.st_ino,
                         .bytes_acked = info.tcpi_bytes_acked,
                         .bytes_received = info.tcpi_bytes_received,
                         .rtt_us = info.tcpi_rtt,
                         .retransmits = info.tcpi_total_retrans,
                         .window_packets = info.tcpi_snd_cwnd };
  tcp_address_text(&local, flow->local);
  tcp_address_text(&remote, flow->remote);
  return true;
}

void flows_take(struct flows *flows, int except) {
  DIR *fds = opendir("/proc/self/fd");
  flows->count = 0;
  flows->taken_ns = clock_now_ns();
  for (const struct dirent *it = fds ? readdir(fds) : NULL; it; it = readdir(fds)) {
    int fd = atoi(it->d_name);
    if (it->d_name[0] != '.' && fd != except && flows->count < FLOWS_MAX) {
      flows->count += take_flow(fd, &flows->flows[flows->count]);
    }
  }
  if (fds) {
    closedir(fds);
  }
}

static const struct flow *flows_find(const struct flows *flows, ino_t inode) {
  for (int i = 0; i < flows->count; i++) {
    if (flows->flows[i].inode == inode) {
      return &flows->flows[i];
    }
  }
  return NULL;
}

json_t *flows_to_json(const struct flows *before, const struct flows *after) {
  static const struct flow nothing;
  double seconds = (double)(after->taken_ns - before->taken_ns) * 1e-9;
  json_t *list = json_array();
  for (int i = 0; i < after->count; i++) {
    const struct flow *flow = &after->flows[i], *old = flows_find(before, flow->inode);
    old = old ? old : &nothing;
    uint64_t sent = flow->bytes_acked - old->bytes_acked;
    uint64_t received = flow->bytes_received - old->bytes_received;
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:I, s:f, s:i, s:i, s:i}", "local", flow->local, "remote", flow->remote,
        "bytes_sent", (json_int_t)sent, "bytes_received", (json_int_t)received, "gbps",
        seconds > 0 ? (double)(sent + received) * 8e-9 / seconds : 0.0, "rtt_us", (int)flow->rtt_us,
        "retransmits", (int)(flow->retransmits - old->retransmits), "window_packets",
        (int)flow->window_packets);
    json_array_append_new(list, json);
  }
  return list;
}
