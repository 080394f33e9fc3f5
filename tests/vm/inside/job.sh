# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# job.sh: stock NCCL on emulated GPUs between the hosts of hosts.sh, through a transport of choice:
#
#   socket, socket2x8   NCCL's Socket as it comes; with 2 threads of 8 sockets each
#   tcp, rdma           stratus: TCP lanes only; RDMA lanes, as it chooses
#
#   coll TRANSPORT ARGUMENTS...       runs coll, checks that NCCL used the transport; figures in $scratch/TRANSPORT.json
#   endure_start TRANSPORT SECONDS [ARGUMENTS...]; endure_operations; endure_end
#   report FILE... <<<PROGRAM         runs it in Python: `times` has, for each of coll's JSON files, seconds by size in bytes
#
# The script that sources it has made `scratch`, a directory.
# shellcheck source=tests/vm/inside/hosts.sh disable=SC2154
source tests/vm/inside/hosts.sh

: "${SUITE:=sid}"
# The loader would take another release's, which it finds elsewhere.
if [[ ! -e build/fake_cuda/lib/$SUITE/libnccl.so.2 ]]; then
  echo "no NCCL of $SUITE is built: make nccl SUITE=$SUITE" >&2
  exit 1
fi
LD_LIBRARY_PATH=$PWD/build/lib:$PWD/build/fake_cuda/lib/$SUITE:$PWD/build/fake_cuda/lib
export LD_LIBRARY_PATH
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_DEBUG_FILE=/tmp/nccl.%p

transport_variables() { # TRANSPORT
  case $1 in
    # Without inlining: NCCL's Socket may lose a header whose payload is late (2.27.3 and later).
    socket) echo NCCL_NET_PLUGIN=none NCCL_NET=Socket NCCL_SOCKET_INLINE=0 ;;
    socket2x8) echo NCCL_NET_PLUGIN=none NCCL_NET=Socket NCCL_SOCKET_INLINE=0 NCCL_SOCKET_NTHREADS=2 NCCL_NSOCKS_PERTHREAD=8 ;;
    tcp) echo NCCL_NET_PLUGIN=stratus STRATUS_RDMA=off ;;
    rdma) echo NCCL_NET_PLUGIN=stratus STRATUS_RDMA=auto ;;
    *) echo "no transport '$1'" >&2 && return 1 ;;
  esac
}

coll() { # TRANSPORT ARGUMENTS...
  local transport=$1
  shift
  rm -f /tmp/nccl.*
  # shellcheck disable=SC2046
  if ! env $(transport_variables "$transport") build/tests/coll/coll --hosts "$(host_list)" -T "${limit_s:-100}s" \
    --json "$scratch/$transport.json" "$@" >"$scratch/out" 2>&1; then
    echo "coll through $transport failed:"
    grep -hE 'WARN' /tmp/nccl.* | sort -u | head -n 8 || true
    tail -n 12 "$scratch/out"
    return 1
  fi
  used "$transport"
}

# NCCL falls back to another transport without an error.
used() { # TRANSPORT
  local name=$1
  case $1 in
    socket*) name=Socket ;;
    tcp | rdma) name=stratus ;;
  esac
  grep -qi "Using network $name" /tmp/nccl.* || { echo "NCCL did not use $name" && return 1; }
  [[ $1 != rdma ]] || grep -q 'RDMA through' /tmp/nccl.* || { echo "stratus did not use RDMA" && return 1; }
}

# ---- a job that runs until it is told to end ----

endure_start() { # TRANSPORT SECONDS [ARGUMENTS...]
  rm -f /tmp/nccl.* "$scratch/operations"
  # shellcheck disable=SC2046
  env $(transport_variables "$1") build/tests/coll/coll --hosts "$(host_list)" --soak "$2s" -T "$(($2 + 30))s" \
    --log "$scratch/operations" "${@:3}" >"$scratch/out" 2>&1 &
  endure=$!
  until_true 120 endure_has_done 3 || endure_failed "it does not begin"
  until_true 30 used "$1"
}

endure_operations() {
  wc -l <"$scratch/operations"
}

endure_has_done() { # OPERATIONS
  [[ -e $scratch/operations ]] && (($(endure_operations) >= $1))
}

# So many more operations complete from now on.
endure_goes_on() { # OPERATIONS SECONDS
  until_true "$2" endure_has_done $(($(endure_operations) + $1)) || endure_failed "after $(endure_operations) operations it stalled"
}

endure_end() {
  local status=0
  pgrep -P "$endure" -x coll | head -n 1 | xargs kill -USR1 # one of its ranks
  wait "$endure" || status=$?
  if ((status != 0)) || ! grep -E '^# [0-9]+ operations, .*: 0 wrong$' "$scratch/out"; then
    endure_failed "the job ended with status $status after $(endure_operations) operations"
  fi
}

endure_failed() { # TEXT
  tail -n 3 "$scratch/out"
  grep -hE 'WARN|stratus' /tmp/nccl.* | tail -n 8 | cut -c1-200 || true
  echo "$1"
  return 1
}

# ---- figures ----

report() { # FILE...
  python3 -c 'import json, sys
def times_of(path):
    rows = json.load(open(path))["results"]
    return {row["size"]: min(row[place]["time"] for place in ("out_of_place", "in_place") if row[place]) / 1e6 for row in rows}
exec(sys.stdin.read(), {"times": {path: times_of(path) for path in sys.argv[1:]}})' "$@"
}
