/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps the TCP sockets of the network namespace and keeps those that this process has open, by
 * inode. */
#include "net_plugin/tools/perf/flows.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"

enum { ESTABLISHED = 1, CLOSE_WAIT = 8 };

/* ---- the process's sockets ---- */

struct inodes {
  int count;
  uint32_t inodes[FLOWS_MAX];
};

static uint32_t inode_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? (uint32_t)status.st_ino : 0;
}

static int compare_inodes(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void read_inodes(struct inodes *inodes, int except) {
  DIR *fds = opendir("/proc/self/fd");
  inodes->count = 0;
  for (const struct dirent *it = fds ? readdir(fds) : NULL; it; it = readdir(fds)) {
    int fd = atoi(it->d_name);
    uint32_t inode = it->d_name[0] != '.' && fd != except ? inode_of(fd) : 0;
    if (inode && inodes->count < FLOWS_MAX) {
      inodes->inodes[inodes->count++] = inode;
    }
  }
  if (fds) {
    closedir(fds);
  }
  qsort(inodes->inodes, (size_t)inodes->count, sizeof inodes->inodes[0], compare_inodes);
}

/* ---- the kernel's answer ---- */

static void print_address(char text[64], const struct inet_diag_msg *diag, const __be32 *address,
                          __be16 port) {
  char host[INET6_ADDRSTRLEN];
  inet_ntop(diag->idiag_family, address, host, sizeof host);
  bool is_v6 = diag->idiag_family == AF_INET6;
  snprintf(text, 64, is_v6 ? "[%s]:%u" : "%s:%u", host, ntohs(port));
}

static void take_socket(struct flows *flows, const struct inodes *inodes,
                        const struct nlmsghdr *header) {
  const struct inet_diag_msg *diag = NLMSG_DATA(header);
  if (flows->count == FLOWS_MAX ||
      !bsearch(&diag->idiag_inode, inodes->inodes, (size_t)inodes->count, sizeof inodes->inodes[0],
               compare_inodes)) {
    return;
  }
  struct flow *flow = &flows->flows[flows->count++];
  *flow = (struct flow){ .inode = diag->idiag_inode };
  print_address(flow->local, diag, diag->id.idiag_src, diag->id.idiag_sport);
  print_address(flow->remote, diag, diag->id.idiag_dst, diag->id.idiag_dport);
  int left = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof *diag);
  const struct nlattr *attribute = (const void *)(diag + 1);
  while (left >= (int)sizeof *attribute && attribute->nla_len >= sizeof *attribute &&
         attribute->nla_len <= left) {
    if (attribute->nla_type == INET_DIAG_INFO) {
      struct tcp_info info = { 0 }; /* older kernels fill in less */
      size_t length = attribute->nla_len - sizeof *attribute;
      memcpy(&info, attribute + 1, length < sizeof info ? length : sizeof info);
      flow->bytes_acked = info.tcpi_bytes_acked;
      flow->bytes_received = info.tcpi_bytes_received;
      flow->rtt_us = info.tcpi_rtt;
      flow->retransmits = info.tcpi_total_retrans;
      flow->window_packets = info.tcpi_snd_cwnd;
    }
    left -= (int)NLMSG_ALIGN(attribute->nla_len);
    attribute = (const void *)((const char *)attribute + NLMSG_ALIGN(attribute->nla_len));
  }
}

/* False: this was the last part. */
static bool take_part(struct flows *flows, const struct inodes *inodes, int netlink) {
  static char buffer[64 << 10] __attribute__((aligned(NLMSG_ALIGNTO)));
  ssize_t got = recv(netlink, buffer, sizeof buffer, 0);
  if (got <= 0) {
    return false;
  }
  unsigned left = (unsigned)got;
  for (struct nlmsghdr *it = (void *)buffer; NLMSG_OK(it, left); it = NLMSG_NEXT(it, left)) {
    if (it->nlmsg_type == NLMSG_DONE || it->nlmsg_type == NLMSG_ERROR) {
      return false;
    }
    take_socket(flows, inodes, it);
  }
  return true;
}

static void dump_family(struct flows *flows, const struct inodes *inodes, int netlink, int family) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
  } ask = {
    .header = { .nlmsg_len = sizeof ask,
                .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
    .request = { .sdiag_family = (uint8_t)family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                 .idiag_states = 1u << ESTABLISHED | 1u << CLOSE_WAIT },
  };
  if (send(netlink, &ask, sizeof ask, 0) != (ssize_t)sizeof ask) {
    return;
  }
  while (take_part(flows, inodes, netlink)) {
  }
}

void flows_take(struct flows *flows, int except) {
  static struct inodes inodes;
  struct timeval timeout = { .tv_sec = 1 };
  flows->count = 0;
  flows->taken_ns = clock_now_ns();
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) {
    return;
  }
  setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  read_inodes(&inodes, except);
  dump_family(flows, &inodes, netlink, AF_INET);
  dump_family(flows, &inodes, netlink, AF_INET6);
  close(netlink);
}

/* ---- for people ---- */

static const struct flow *flows_find(const struct flows *flows, uint32_t inode) {
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
