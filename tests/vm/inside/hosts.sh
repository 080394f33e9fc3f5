# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# hosts.sh: hosts inside the virtual machine, for the scripts of this directory. Hosts are network namespaces h0, h1...;
# NIC n of host h is eth<h><n> with 10.77.n.(h+1)/24, MTU 9000, and may get an RDMA device rxe_h<h>n<n>.
#
#   hosts_up HOSTS NICS               two hosts are joined directly, more by a bridge per rail in a namespace `switch`
#   hosts_down                        kills what runs on them and removes them, as the end of the script does
#   on HOST COMMAND...                runs it there; NCCL_IB_HCA and NCCL_SOCKET_IFNAME name the host's own devices
#   host_list                         for coll --hosts
#   rxe_add HOST NIC; rxe_add_all     RDMA devices
#   rxe_gid HOST NIC                  index of the device's IPv4 GID
#   rxe_remove HOST NIC               waits until processes have closed it, so it may belong in the background
#   netem HOST NIC ARGUMENTS...       what happens to packets that leave, as in netem 0 0 delay 25ms loss 1%; none: nothing
#   packets_not_larger_than_mtu       no segmentation offload: netem then loses packets as a network does
#   nic_down HOST NIC; nic_up HOST NIC
#
# rxe and namespaces: Linux before 7.0 receives RoCE packets only in the first namespace and looks for routes only there,
# by the index of the device. So each NIC has a companion roce<h><n> in the first namespace: a VLAN of the NIC with the
# NIC's own index and address. Devices are seen by all hosts, as `rdma system` is in its shared mode; NCCL_IB_HCA
# keeps hosts apart. Only what listens with librdmacm must run in the first namespace, where its requests arrive.

readonly hosts_state=/run/hosts
hosts_count=0 hosts_nics=0
# until_true and run_tests
# shellcheck source=tests/netns/testing.sh
source tests/netns/testing.sh
# shellcheck source=tests/netns/congestion.sh
source tests/netns/congestion.sh

hosts_up() { # HOSTS NICS
  hosts_count=$1 hosts_nics=$2
  local h n congestion
  congestion=$(congestion_control '' "$(congestion_controls_allowed)") || return
  trap hosts_down EXIT
  hosts_prepare_kernel
  [[ -z $(ip netns list) ]] || hosts_clear
  until_true 10 companions_are_gone
  hosts_read_last_index
  for ((h = 0; h < hosts_count; h++)); do
    ip netns add "h$h"
    ip -n "h$h" link set lo up
    ip netns exec "h$h" sysctl -qw net.ipv4.tcp_congestion_control="$congestion"
    hosts_write_command "$h"
  done
  ((hosts_count == 2)) || ip netns add switch
  for ((n = 0; n < hosts_nics; n++)); do
    hosts_wire "$n"
    for ((h = 0; h < hosts_count; h++)); do
      hosts_configure "$h" "$n"
    done
  done
}

# A script that was killed has left its hosts behind.
hosts_clear() {
  local each
  for each in $(ip netns list | cut -d' ' -f1); do
    ip netns pids "$each" | xargs -r kill -KILL 2>/dev/null || true
  done
  for each in /sys/class/infiniband/rxe_h*; do
    [[ ! -e $each ]] || rdma link delete "${each##*/}"
  done
  ip -all netns del
}

# The kernel takes a namespace's devices apart after it is gone.
companions_are_gone() {
  ! compgen -G '/sys/class/net/roce*' >/dev/null
}

# Companions are given the indexes that follow, in the order in which they come.
hosts_read_last_index() {
  ip link add name probe type dummy
  echo "$(<"/sys/class/net/probe/ifindex")" >"$hosts_state/last_index"
  ip link del probe
}

hosts_prepare_kernel() {
  [[ ! -e $hosts_state ]] || return 0
  mkdir -p "$hosts_state"
  # The hosts' packets for each other arrive at an address that the first namespace has as well.
  sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 \
    net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
  # Takes an index, so that companions, made with it, are given the next free one when they come to this namespace.
  ip link add name taken index 5000 type dummy
}

hosts_wire() { # NIC
  local n=$1 h index
  index=$(<"$hosts_state/last_index")
  echo $((index + hosts_count)) >"$hosts_state/last_index"
  if ((hosts_count == 2)); then
    ip link add name "eth0$n" index $((index + 1)) netns h0 type veth peer name "eth1$n" index $((index + 2)) netns h1
    return
  fi
  ip -n switch link add "br$n" mtu 9000 type bridge
  ip -n switch link set "br$n" up
  for ((h = 0; h < hosts_count; h++)); do
    ip link add name "eth$h$n" index $((index + 1 + h)) netns "h$h" type veth peer name "h${h}n$n" netns switch
    ip -n switch link set "h${h}n$n" mtu 9000 master "br$n" up
  done
}

# The NIC's addresses, and its companion in the first namespace.
hosts_configure() { # HOST NIC
  local nic=eth$1$2 companion=roce$1$2
  ip -n "h$1" -batch - <<END
link set $nic mtu 9000
addr add 10.77.$2.$(($1 + 1))/24 dev $nic
link set $nic up
link add link $nic name $companion index 5000 type vlan id 77
link set $companion netns 1
END
  ip -batch - <<END
link set $companion addrgenmode none mtu 9000 up
route append 10.77.$2.0/24 dev $companion scope link
END
  if [[ $(<"/sys/class/net/$companion/iflink") != $(<"/sys/class/net/$companion/ifindex") ]]; then
    echo "hosts.sh: $companion and $nic differ in index: this kernel gives indexes in another order"
    return 1
  fi
}

# What a test has left running. Scripts may replace after_each.
after_each() {
  hosts_kill
}

hosts_kill() {
  local h
  for ((h = 0; h < hosts_count; h++)); do
    ip netns pids "h$h" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
  done
}

hosts_down() {
  local h n
  hosts_kill
  for ((h = 0; h < hosts_count; h++)); do
    [[ -e /run/netns/h$h ]] || continue # a test has removed them
    for ((n = 0; n < hosts_nics; n++)); do
      rxe_remove "$h" "$n" 2>/dev/null || true
    done
    ip netns del "h$h"
  done
  [[ ! -e /run/netns/switch ]] || ip netns del switch
  hosts_count=0
}

# Commands that run their arguments on the host with its own devices chosen. NCCL (2.29) ends with a crash where an RDMA
# device is not on PCI, so each appears to be: a link `device` is laid over its directory in sysfs.
hosts_write_command() { # HOST
  local n hcas='='
  for ((n = 0; n < hosts_nics; n++)); do
    hcas+=$( ((n == 0)) || echo ,)rxe_h$1n$n
    mkdir -p "$hosts_state/pci/0000:e$n:00.0" "$hosts_state/over$n"
    ln -sfn "$hosts_state/pci/0000:e$n:00.0" "$hosts_state/over$n/device"
  done
  printf '#!/bin/sh\nexec ip netns exec h%s %s "$@"\n' "$1" "$hosts_state/enter$1" >"$hosts_state/h$1"
  cat >"$hosts_state/enter$1" <<END
#!/bin/sh
for device in /sys/devices/virtual/infiniband/rxe_h$1n*; do
  test ! -d \$device || mount -t overlay overlay -o lowerdir=$hosts_state/over\${device##*n}:\$device \$device
done
export NCCL_SOCKET_IFNAME=eth$1 NCCL_IB_HCA=$hcas
exec "\$@"
END
  chmod +x "$hosts_state/h$1" "$hosts_state/enter$1"
}

on() { # HOST COMMAND...
  "$hosts_state/h$1" "${@:2}"
}

host_list() {
  local h list=$hosts_state/h0
  for ((h = 1; h < hosts_count; h++)); do
    list+=,$hosts_state/h$h
  done
  echo "$list"
}

# ---- RDMA devices ----

# The companion's address comes last, so that the NIC's own is the first of the device's IPv4 GIDs.
rxe_add() { # HOST NIC
  ip netns exec "h$1" rdma link add "rxe_h$1n$2" type rxe netdev "eth$1$2"
  until_true 10 rxe_gid "$1" "$2" "eth$1$2"
  ip addr add "10.77.$2.$(($1 + 1))/32" dev "roce$1$2"
  until_true 10 rxe_gid "$1" "$2" "roce$1$2"
  until_true 10 rxe_is_active "$1" "$2"
} >/dev/null

# The index of the IPv4 GID that belongs to the network device. Starts no process: that takes its time in emulation.
rxe_gid() { # HOST NIC [NETWORK_DEVICE]
  local port=/sys/class/infiniband/rxe_h$1n$2/ports/1 index gid='' device=''
  for index in 0 1 2 3 4 5 6 7; do
    if read -r gid && [[ $gid == 0000:0000:0000:0000:0000:ffff:* ]]; then
      { read -r device <"$port/gid_attrs/ndevs/$index"; } 2>/dev/null || continue
      [[ $device != "${3:-eth$1$2}" ]] || { echo "$index" && return; }
    fi <"$port/gids/$index"
  done
  return 1
}

rxe_is_active() { # HOST NIC
  [[ $(<"/sys/class/infiniband/rxe_h$1n$2/ports/1/state") == *ACTIVE* ]]
}

rxe_add_all() {
  local h n
  for ((h = 0; h < hosts_count; h++)); do
    for ((n = 0; n < hosts_nics; n++)); do
      rxe_add "$h" "$n"
    done
  done
}

rxe_remove() { # HOST NIC
  ip addr flush dev "roce$1$2"
  ip netns exec "h$1" rdma link delete "rxe_h$1n$2"
}

# ---- the network between ----

netem() { # HOST NIC none|ARGUMENTS...
  if [[ $3 == none ]]; then
    tc -n "h$1" qdisc del dev "eth$1$2" root
  else
    tc -n "h$1" qdisc replace dev "eth$1$2" root netem limit 100000 "${@:3}"
  fi
}

packets_not_larger_than_mtu() {
  local h n
  for ((h = 0; h < hosts_count; h++)); do
    for ((n = 0; n < hosts_nics; n++)); do
      ip -n "h$h" link set "eth$h$n" gso_max_segs 1
    done
  done
}

nic_down() { # HOST NIC
  ip -n "h$1" link set "eth$1$2" down
}

# The companion's route goes when its NIC goes down.
nic_up() { # HOST NIC
  ip -n "h$1" link set "eth$1$2" up
  ip link set "roce$1$2" up
  ip route append "10.77.$2.0/24" dev "roce$1$2" scope link 2>/dev/null || true
}
