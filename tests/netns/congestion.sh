# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# congestion.sh: which TCP congestion control emulated hosts have. `cluster` and the hosts of tests/vm source it.

# A namespace takes over the default of the machine, whatever that is: so that runs on two machines mean the same,
# hosts have CUBIC, Linux's own default. A kernel with another default lets a namespace have only that one, Reno and
# what net.ipv4.tcp_allowed_congestion_control names: Reno then. (Several BBR flows do not share a NIC of HTB as well
# as those of the other two: it is for those who ask for it.)
congestion_control() { # WANTED ALLOWED: WANTED, or if that is empty the first of cubic and reno, of a list of names
  local name
  local -a names=(cubic reno)
  [[ ! $1 ]] || names=("$1")
  for name in "${names[@]}"; do
    if [[ $name =~ ^[a-z0-9_]+$ && " $2 " == *" $name "* ]]; then
      echo "$name"
      return
    fi
  done
  echo "no congestion control '${1:-reno}' for hosts: this kernel lets network namespaces have $2" \
    "(net.ipv4.tcp_allowed_congestion_control)" >&2
  return 1
}

# The list of this machine. Also for other users than root, and without the program sysctl.
congestion_controls_allowed() {
  cat /proc/sys/net/ipv4/tcp_allowed_congestion_control
}
