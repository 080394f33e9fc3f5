# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# hosts.sh: hosts inside the virtual machine, for the scripts of this directory. Hosts are network namespaces h0 and h1,
# joined by eth0 and eth1 with 10.77.0.1/24 and 10.77.0.2/24, MTU 9000.
#
#   hosts_up                          two hosts; they are removed at the end of the script
#   host_list                         for coll --hosts
#   netem HOST ARGUMENTS...           what happens to packets that leave, as in netem 0 delay 25ms loss 1%
#   packets_not_larger_than_mtu       no segmentation offload: netem then loses packets as a network does

readonly hosts_state=/run/hosts
# until_true and run_tests
# shellcheck source=tests/netns/testing.sh
source tests/netns/testing.sh
# shellcheck source=tests/netns/congestion.sh
source tests/netns/congestion.sh

hosts_up() {
  local h congestion
  congestion=$(congestion_control '' "$(congestion_controls_allowed)") || return
  trap hosts_down EXIT
  hosts_down # of a script that was killed
  mkdir -p "$hosts_state"
  for h in 0 1; do
    ip netns add "h$h"
    ip -n "h$h" link set lo up
    ip netns exec "h$h" sysctl -qw net.ipv4.tcp_congestion_control="$congestion"
    printf '#!/bin/sh\nNCCL_SOCKET_IFNAME=eth%s exec ip netns exec h%s "$@"\n' "$h" "$h" >"$hosts_state/h$h"
    chmod +x "$hosts_state/h$h"
  done
  ip -n h0 link add eth0 type veth peer name eth1 netns h1
  for h in 0 1; do
    ip -n "h$h" addr add "10.77.0.$((h + 1))/24" dev "eth$h"
    ip -n "h$h" link set "eth$h" mtu 9000 up
  done
}

# What a test has left running. Scripts may replace after_each.
after_each() {
  hosts_kill
}

hosts_kill() {
  local each
  for each in $(ip netns list | cut -d' ' -f1); do
    ip netns pids "$each" | xargs -r kill -KILL 2>/dev/null || true
  done
}

hosts_down() {
  hosts_kill
  ip -all netns del
}

host_list() {
  echo "$hosts_state/h0,$hosts_state/h1"
}

# ---- the network between ----

netem() { # HOST ARGUMENTS...
  tc -n "h$1" qdisc replace dev "eth$1" root netem limit 100000 "${@:2}"
}

packets_not_larger_than_mtu() {
  local h
  for h in 0 1; do
    ip -n "h$h" link set "eth$h" gso_max_segs 1
  done
}
