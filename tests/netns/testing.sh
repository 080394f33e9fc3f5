# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# testing.sh: what the test scripts of this directory share. The script that sources it calls begin_tests, defines
# test_NAME functions, and calls run_tests, which runs them in the order of its text. `repeat` may say how to run the
# script, where it is not tests/netns/SCRIPT.
#
# A script that measures rates sets `tries`: a test in which something was too slow is repeated, since a machine
# that is busy with something else makes everything slow.

# shellcheck source=tests/lib/tap.sh
source "${BASH_SOURCE[0]%/*}/../lib/tap.sh"

cleanup() { :; }    # what a script does in the end
after_each() { :; } # and after each test, whether it failed or not

# Goes to the script's directory. Sets `root`, the repository's, and `scratch`, a new one that goes in the end. -h prints the
# script's head.
# shellcheck disable=SC2034 # scripts use root
begin_tests() { # the script's arguments
  if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    sed -n '4,$ { /^# shellcheck\|^[^#]/q; s/^# \{0,1\}//p }' "$0"
    exit 0
  fi
  root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
  scratch=$(mktemp -d)
  readonly root scratch
  cd "$(dirname "$0")"
  trap 'cleanup; rm -rf "$scratch"' EXIT
  trap 'exit 130' INT TERM
}

until_true() { # SECONDS COMMAND...: polls
  local end=$((SECONDS + $1 + 1))
  shift
  until "$@"; do
    ((SECONDS < end)) || { echo "still not: $*" && return 1; }
    sleep 0.05
  done
}

# Leaves a net plugin in which that header is another at $other_release. What does not include it comes from build/.
# shellcheck disable=SC2034 # scripts use it
make_other_release() { # HEADER EXPRESSION of sed
  local tree=${scratch:?}/$1
  other_release=$tree/build/lib/libnccl-net-stratus.so
  mkdir -p "$tree"
  tar -C "${root:?}" --format=posix -c Makefile common net_plugin tuner_plugin scripts/glibc-floor tests/fake_cuda/rules.mk \
    build/obj/common build/obj/net_plugin | tar -xC "$tree"
  sed -Ei "$2" "$tree/net_plugin/$1"
  if cmp -s {"$root","$tree"}/"net_plugin/$1"; then return 1; fi
  make -s -C "$tree" -j2 build/lib/libnccl-net-stratus.so
}

readonly too_low=75 # exit status
between() { # LOW VALUE HIGH
  (($1 <= $2 && $2 <= $3)) && return
  echo "$2 is not within $1 to $3"
  (($2 >= $1)) || return "$too_low"
  return 1
}

fails() { # STATUS TEXT COMMAND...: the command exits like this and says so
  local status=0 said
  said=$("${@:3}" 2>&1) || status=$?
  [[ $status == "$1" && $said == *"$2"* ]] || { echo "status $status: $said" && return 1; }
}

# Ends what runs in a network namespace. Some of it may end by itself meanwhile: not an error.
end_processes() { # NAMESPACE [SIGNAL]
  ip netns pids "$1" | xargs -r kill "-${2:-TERM}" 2>/dev/null || true
}

# What is worth to be seen of a test that passes, behind its name.
remark() { echo "$*" >"${scratch:?}/remark"; }

# Ends a test that cannot run here.
skip() { # WHY
  echo "$*" >"${scratch:?}/skipped"
  exit 77
}

# Each test in a shell of its own, under set -e; `after_each` restores what a failed one left behind.
run_tests() { # SCRIPT [NAME...]: without names all
  local script=$1 status name left tried start said
  local -a names=("${@:2}")
  ((EUID == 0)) || tap_skip_all 'network namespaces need root'
  ((${#names[@]} > 0)) || mapfile -t names < <(sed -n 's/^test_\([a-z0-9_]*\)() {$/\1/p' "$script")
  for name in "${names[@]}"; do
    declare -F "test_$name" >/dev/null || { echo "$script: no test '$name'" >&2 && return 2; }
    left=${tries:-1} status=$too_low start=$SECONDS
    while ((status == too_low && left-- > 0)); do
      rm -f "$scratch/remark" "$scratch/skipped"
      set +e
      (
        set -e
        "test_$name"
      ) >"${scratch:?}/log" 2>&1
      status=$?
      set -e
      after_each
    done
    if ((status == 0)); then
      tried=$((${tries:-1} - left)) said="$((SECONDS - start)) s"
      ((tried == 1)) || said+=", try $tried"
      [[ ! -e $scratch/remark ]] || said+=": $(<"$scratch/remark")"
      tap_ok "$name" "$said"
    elif ((status == 77)) && [[ -e $scratch/skipped ]]; then
      tap_skip "$name" "$(<"$scratch/skipped")"
    else
      tap_not_ok "$name" <(tail -n 12 "$scratch/log") "sudo ${repeat:-tests/netns/$script} $name"
    fi
  done
  tap_end
}
