/* SPDX-License-Identifier: Apache-2.0 */
/* See no_path.h. */
#include "net_plugin/setup/no_path.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "common/open_files.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"

/* Nothing came back, or a router on the way, or this host, knows no way. */
static bool is_about_paths(int error) {
  return error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH;
}

/* Where neither the address nor the routing tables say more. */
static const char *reason_of(int error, bool is_near) {
  switch (error) {
  case -EHOSTUNREACH:
    return is_near ? "nobody has this address on the link: is the NIC of the other host up, and in "
                     "the same network, VLAN or sub-interface?"
                   : "a router or a firewall on the way refuses";
  case -ENETUNREACH:
    return "this host has no route there";
  case -ETIMEDOUT:
    return "nothing answers: does a firewall drop TCP between the hosts (STRATUS_PORT_RANGE says "
           "which ports), or rp_filter=1 what comes in by another NIC than the way back?";
  case -ECONNREFUSED:
    return "nobody listens there: has the peer's process ended, or does a firewall reject?";
  case -EPERM:
    return "flows cannot be bound to this NIC, and routing takes another: binding needs Linux 5.7 "
           "or CAP_NET_RAW";
  case -EADDRNOTAVAIL:
    return "the NIC's own address is still in duplicate address detection, or gone";
  case -EPROTONOSUPPORT:
    return "what answers there runs another release of stratus. Install the same on every host";
  default:
    return "check that the peer's process lives and that no firewall blocks TCP between the hosts";
  }
}

const char *no_path_text(const struct nic *nic, const struct sockaddr_storage *address,
                         bool is_advertised, int error, char text[NO_PATH_TEXT]) {
  char why[OPEN_FILES_TEXT];
  enum route_way way = route_find(nic, address);
  error = error ? error : -ETIMEDOUT;
  if (open_files_are_short(error)) {
    snprintf(text, NO_PATH_TEXT, "%s", open_files_why(error, why));
  } else if (way == ROUTE_OWN) {
    snprintf(text, NO_PATH_TEXT,
             "%s; this host has that address, too: if the peer is another host, both have the same "
             "one, as bridges of containers and virtual machines do; name the NICs between the "
             "hosts in NCCL_SOCKET_IFNAME",
             strerror(-error));
  } else if (is_about_paths(error) && way == ROUTE_ELSEWHERE) {
    snprintf(text, NO_PATH_TEXT,
             "%s; no route leads there through %.15s, and what leaves another way with its address "
             "may be dropped: give it a route and a rule (ip route add default via GATEWAY dev "
             "%.15s table 101; ip rule add from ITS-ADDRESS table 101)",
             strerror(-error), nic->name, nic->name);
  } else if (is_advertised && (is_about_paths(error) || error == -ECONNREFUSED)) {
    snprintf(text, NO_PATH_TEXT,
             "%s; the peer has this address in STRATUS_ADVERTISE_ADDRESS, in place of that of its "
             "NIC, which its log names: is it right, and is this TCP port passed on to the NIC "
             "(STRATUS_PORT_RANGE there says which ports)?",
             strerror(-error));
  } else {
    snprintf(text, NO_PATH_TEXT, "%s; %s", strerror(-error),
             reason_of(error, tcp_address_is_near(address, nic)));
  }
  return text;
}

const char *no_path_nic_state(const struct nic *nic) {
  int flags = tcp_nic_flags(nic);
  if (flags < 0) {
    return flags == -ENODEV ? "is gone" : "is in a state that is not known";
  }
  return !(flags & IFF_UP) ? "is down" : flags & IFF_RUNNING ? "is up" : "has no carrier";
}
