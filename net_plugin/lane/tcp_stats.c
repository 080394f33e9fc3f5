/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_stats.h. The kernel's own header is used, since libc's tcp_info ends before the delivery
 * rate. An older kernel fills in less than the struct has, and the rest stays 0. */
#include "net_plugin/lane/tcp_stats.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "net_plugin/lane/limits.h"

#define CA_RECOVERY 3       /* or LOSS: TCP_CA_Recovery of the kernel's net/tcp.h */
#define STATE_ESTABLISHED 1 /* netinet/tcp.h has it, and cannot be had beside linux/tcp.h */

/* 0: nothing was measured yet. */
static uint32_t least_rtt_us(const struct tcp_info *info) {
  return info->tcpi_min_rtt == UINT32_MAX ? 0 : info->tcpi_min_rtt;
}

/* How many bytes the kernel has filled in; 0: none, and all of it is 0. */
static socklen_t read_info(int fd, struct tcp_info *info) {
  socklen_t bytes = sizeof *info;
  memset(info, 0, sizeof *info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 ? bytes : 0;
}

uint64_t tcp_stats_answered_ns(int fd, uint64_t now_ns) {
  struct tcp_info info;
  if (read_info(fd, &info) == 0 || info.tcpi_state != STATE_ESTABLISHED) {
    return 0;
  }
  /* What it sends by itself says that it lives, and not that it hears us. */
  if (info.tcpi_unacked > 0 && info.tcpi_backoff > 1) {
    return 0;
  }
  /* A buffer that the peer does not empty is probed, where TCP_RTO_MAX_MS is not known at intervals
   * of up to two minutes: an answered probe counts until the next one. */
  bool is_probing = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes > 0;
  uint64_t ago_ns = is_probing && info.tcpi_probes == 0 ? 0 : info.tcpi_last_ack_recv * NS_PER_MS;
  return ago_ns < now_ns ? now_ns - ago_ns : 0;
}

uint64_t tcp_stats_ack_wait_ns(int fd) {
  struct tcp_info info;
  read_info(fd, &info);
  uint64_t rtts_ns = info.tcpi_rtt * TCP_ACK_WAIT_RTTS * NS_PER_US;
  return rtts_ns > TCP_ACK_WAIT_NS ? rtts_ns : TCP_ACK_WAIT_NS;
}

bool tcp_stats_has_unacked(int fd) {
  struct tcp_info info;
  return read_info(fd, &info) > 0 && info.tcpi_unacked > 0;
}

bool tcp_stats_measure(const struct lane *lane, struct policy_transport *transport) {
  struct tcp_info info;
  if (read_info(lane->fd, &info) < offsetof(struct tcp_info, tcpi_sndbuf_limited)) {
    return false;
  }
  *transport = (struct policy_transport){
    .busy_us = info.tcpi_busy_time,
    .peer_us = info.tcpi_rwnd_limited,
    .is_app_limited = info.tcpi_delivery_rate_app_limited,
    .has_unacked = info.tcpi_unacked > 0,
    .acked_bytes = info.tcpi_bytes_acked,
    .rtt_min_us = least_rtt_us(&info),
    .retransmits = info.tcpi_total_retrans,
    .is_repairing = info.tcpi_ca_state >= CA_RECOVERY || info.tcpi_backoff > 0 ||
                    info.tcpi_retransmits > 0 || info.tcpi_sacked > 0,
  };
  return true;
}

void tcp_stats_read(int fd, struct lane_stats *stats) {
  memset(stats, 0, sizeof *stats);
  struct tcp_info info;
  if (read_info(fd, &info) > 0) {
    stats->retransmits = info.tcpi_total_retrans;
    stats->rtt_us = info.tcpi_rtt;
    stats->rtt_min_us = least_rtt_us(&info);
    stats->delivery_rate_bytes = info.tcpi_delivery_rate;
    stats->congestion_window_bytes = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
  }
  socklen_t bytes = sizeof stats->local;
  if (getsockname(fd, (struct sockaddr *)&stats->local, &bytes) != 0) {
    stats->local.ss_family = AF_UNSPEC;
  }
  bytes = sizeof stats->remote;
  if (getpeername(fd, (struct sockaddr *)&stats->remote, &bytes) != 0) {
    stats->remote.ss_family = AF_UNSPEC;
  }
}
