# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# rates.sh: rates of NICs and flows, kept by queues (HTB) or by drops (nftables), and what loses packets or answers
# for them. `cluster` sources it; name, hosts, nics, flow_kbit, police_kbit, loss, loss_of, buckets and for_ms are the cluster's.
# shellcheck disable=SC2154

readonly unlimited_kbit=100000000

# Bursts: two packets of 64 KiB. Less costs rate, more lets messages through faster than the NIC.
htb_class() { # CLASSID PARENT RATE CEIL [add|change]
  echo "class ${5:-add} dev $nic parent $2 classid $1 htb rate $3kbit ceil $4kbit" \
    "burst 128k cburst 128k quantum 60000"
}

shape_nic() { # NAMESPACE NIC KBIT
  local ns=$1 nic=$2 kbit=$3 b
  ((kbit > 0)) || kbit=$unlimited_kbit
  {
    echo "qdisc add dev $nic root handle 1: htb default 1"
    htb_class 1:fffe 1: "$kbit" "$kbit"
    htb_class 1:1 1:fffe "$((kbit / 10 + 1))" "$kbit"
    if ((flow_kbit > 0)); then
      for ((b = 0; b < buckets; b++)); do
        bucket_class "$b" "$flow_kbit" "$kbit" add
      done
      echo "filter add dev $nic parent 1: protocol all prio 1 bpf bytecode" \
        "\"$(flow_classifier "$buckets" | assemble)\""
    fi
  } | tc -n "$ns" -batch -
}

# Guaranteed: an even share of the NIC, so that buckets that want more share it fairly.
bucket_class() { # BUCKET FLOW_KBIT NIC_KBIT add|change; uses nic
  local share=$(($3 / buckets)) id
  printf -v id 1:%x $((first_bucket + $1))
  htb_class "$id" 1:fffe "$((share < $2 ? share : $2))" "$(($2 < $3 ? $2 : $3))" "$4"
}

# Where packets arrive, as the kernel tells a sender whose own output hook drops. A limit in bytes per second lets pass
# what was not used in the last second: OpenStack's default for ports is 0.8 s (max_burst_kbps), which Open vSwitch
# recommends for TCP; with 5 ms of the NIC's rate (Juniper's rule) a Reno flow got 0.23 of its own rate here.
police_flows() { # HOST
  local ip
  {
    echo "table inet police { chain in { type filter hook prerouting priority raw; }"
    for ip in ip ip6; do
      echo "set flows_$ip { typeof $ip saddr . $ip daddr . tcp sport . tcp dport; size 65535; flags dynamic; }"
    done
    echo "}"
    for ip in ip ip6; do
      echo "add rule inet police in iifname eth* update @flows_$ip { $ip saddr . $ip daddr . tcp sport . tcp dport" \
        "limit rate over $((police_kbit * 125)) bytes/second } counter drop"
    done
  } | in_ns "$name-h$1" nft -f -
}

# Packets of TCP that carry nothing: no longer than headers with the longest options, and without the flag that the end of each
# message has.
readonly -a bare_packets=('meta nfproto ipv4 meta length <= 80 tcp flags == ack' 'meta nfproto ipv6 meta length <= 100 tcp flags == ack')

# As lost packets of a fabric are: by chance, and unknown to the sender.
lose_packets() { # HOST
  local which
  local -a kinds=('')
  case $loss_of in
    one-way) (($1 > 0)) || return 0 ;;
    acks) kinds=("${bare_packets[@]}") ;;
  esac
  {
    echo "table inet loss { chain in { type filter hook prerouting priority raw; }; }"
    for which in "${kinds[@]}"; do
      echo "add rule inet loss in iifname eth* meta l4proto tcp $which numgen random mod 1000 < $loss counter drop"
    done
  } | in_ns "$name-h$1" nft -f -
}

# The last hop towards a host has room for so few packets, each as the sending kernel hands it over, up to 64 KiB.
shorten_queue() { # PORT PACKETS
  tc -n "$name-sw" qdisc add dev "$1" parent 1:1 pfifo limit "$2"
}

# All that arrives is lost until the kernel forgets the names of the NICs.
black_out() { # HOST MILLISECONDS
  local n
  {
    echo "table inet blackout { set now { type ifname; flags timeout; }; chain in { type filter hook prerouting priority raw; }; }"
    echo "flush chain inet blackout in"
    echo "add rule inet blackout in iifname @now counter drop"
    for ((n = 0; n < nics; n++)); do echo "add element inet blackout now { eth$n timeout ${2}ms }"; done
  } | in_ns "$name-h$1" nft -f -
}

# Packets are lost where they arrive, as the kernel tells a sender whose own output hook drops: on this
# host, and those from it on the others. A reset goes to whoever sends to this host.
add_rules() { # HOST PORT PEERS_TOO VERDICT
  local from h port word
  local -a ports
  IFS=, read -ra ports <<<"$2"
  ((${#ports[@]} > 0)) || die "bad port '$2': 1 to 65535, or several as in 4000,4001"
  for port in "${ports[@]//-/ }"; do
    for word in $port; do need_number port "$word" 1 65535; done
  done
  for ((h = 0; h < hosts; h++)); do
    case $h in
      "$1") from=('') ;;
      *) from=("ip saddr & 0.0.0.15 == 0.0.0.$(($1 + 1))" "ip6 saddr & ::f == ::$(($1 + 1))") ;;
    esac
    [[ $h == "$1" || $3 == true ]] || continue
    {
      echo "table inet faults_h$1 { chain in { type filter hook input priority 0; }; }"
      echo "table inet faults_h$1 { set seen { typeof ip saddr . tcp sport . tcp dport; size 65535; flags dynamic; }; }"
      # All packets have mark 0, so the rules match until the kernel's timeout removes the element. On a busy machine
      # nft took 9 s to heal.
      [[ ! $for_ms ]] || echo "table inet faults_h$1 { set now { type mark; flags timeout; elements = { 0 timeout ${for_ms}ms }; }; }"
      printf "add rule inet faults_h$1 in ${for_ms:+meta mark @now }%s tcp dport { $2 } $4\n" "${from[@]}"
      printf "add rule inet faults_h$1 in ${for_ms:+meta mark @now }%s tcp sport { $2 } $4\n" "${from[@]}"
    } | in_ns "$name-h$h" nft -f -
  done
}

heal() { # HOST
  local i
  # The host itself first: on a busy machine nft was seen to wait for 4.6 s. The "add" line: no error if there is none.
  for ((i = 0; i < hosts; i++)); do
    printf '%s table inet faults_h%d\n' add "$1" delete "$1" | in_ns "$name-h$((($1 + i) % hosts))" nft -f -
  done
}
