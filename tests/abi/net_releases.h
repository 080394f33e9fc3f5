/* SPDX-License-Identifier: Apache-2.0 */
/* net_releases: which network plugin symbols each release of NCCL looks for, newest first.
 * From NVIDIA/nccl at the tags: src/net.cc (to 2.25), src/plugin/net.cc and src/plugin/net/ (from
 * 2.26); after 2.30 src/include/plugin/nccl_net.h at 8898068 (2.31.2), whose newest is v12, and as
 * of 2.32.6 there is no newer header. v6 and older, which end the lists, are not offered
 * by anything of today. */
#ifndef TESTS_ABI_NET_RELEASES_H
#define TESTS_ABI_NET_RELEASES_H

struct net_release {
  const char *name;
  int versions[16]; /* 0 ends the list */
};

/* Releases that look for the same are one row: a plugin sees no difference. */
static const struct net_release net_releases[] = {
  { "2.19.1-2.19.4", { 7 } },
  { "2.20.3-2.23.4", { 8, 7 } },
  { "2.24.3-2.25.1", { 9, 8, 7 } },
  { "2.26.2-2.27.7", { 10, 9, 8, 7 } },
  { "2.28.3-2.29.7", { 11, 10, 9, 8, 7 } },
  { "2.30.3-2.32.6", { 12, 11, 10, 9, 8, 7 } },
};

#endif
