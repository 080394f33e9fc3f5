/* SPDX-License-Identifier: Apache-2.0 */
/* The circle method of round-robin tournaments: one host is fixed, the others rotate by one place
 * per round, and opposite places are partners. With an odd number of hosts one has no partner. */
#include "net_plugin/tools/probe/results.h"

unsigned pairs_round_count(unsigned hosts) {
  return hosts < 2 ? 0 : hosts % 2 ? hosts : hosts - 1;
}

unsigned pairs_partner(unsigned hosts, unsigned round, unsigned host) {
  unsigned count = pairs_round_count(hosts), last = count; /* the fixed host, or none */
  if (count == 0) {
    return host;
  }
  unsigned partner;
  if (host == last) {
    /* opposite: 2 * partner = round, among count places, whose number is odd */
    partner = round % 2 ? (round + count) / 2 % count : round / 2;
  } else {
    partner = (round % count + count - host) % count;
    partner = partner == host ? last : partner;
  }
  return partner < hosts ? partner : host;
}
