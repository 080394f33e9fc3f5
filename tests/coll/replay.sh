# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables and functions are those of tests/coll/run, which reads this file
#
# The cases of --replay: workloads in tests/data/workloads, a few short steps each.

readonly workloads=tests/data/workloads
check() { python3 -B tests/coll/replay_check.py "$@" 2>&1; }

# plan FILE RANKS WORKLOAD OPTIONS...: what a step is, in FILE, without NCCL.
plan() {
  NCCL_HOME=/nonexistent "$coll" --replay "$3" --replay-list "$2" "${@:4}" >"$scratch/$1"
}

# replays NAME HOSTS PPN WORKLOAD OPTIONS...: no wrong value, a line in PyTorch's format, and a JSON file that is the plan's.
replays() {
  local name=$1 hosts=$2 ppn=$3 workload=$4 ranks=$(($2 * $3))
  wanted "$name" || return 0
  shift 4
  t 0 "$name" -- --hosts "local:$hosts" --ppn "$ppn" --replay "$workload" --replay-steps 5 --replay-skip 1 \
    --json "$json" "$@"
  [[ $problem ]] || grep -qE "^[a-z-]+: $ranks GPUs -- ${hosts}M/${ranks}G: p50: [0-9.]+s [0-9.]+/s p75: .* p90: .* p95: [0-9.]+s [0-9.]+/s$" "$table" ||
    problem='no line in the format of PyTorch'
  [[ $problem ]] || plan plan "$ranks" "$workload" "$@" || problem='no plan'
  [[ $problem ]] || problem=$(check json "$json" 5 "$scratch/plan")
  report "$name" "$problem"
}

# The same layers in another kind of parallelism.
for kind in fsdp tensor; do
  sed "/bucket_bytes/d; s/\"ddp\"/\"$kind\"/; s/three-layers/$kind/" "$workloads/three-layers.json" >"$scratch/$kind.json"
done

replays 'replay: ddp, one rank' 1 1 "$workloads/three-layers.json"
replays 'replay: ddp, 2 hosts' 2 1 "$workloads/three-layers.json"
replays 'replay: ddp, 4 hosts' 4 1 "$workloads/three-layers.json"
replays 'replay: ddp, scaled' 2 1 "$workloads/three-layers.json" --compute-scale 0.5 --bytes-scale 3
replays 'replay: ddp, gradients, 2 hosts' 2 1 "$workloads/three-layers.json" --data f32
replays 'replay: fsdp, 4 hosts' 4 1 "$scratch/fsdp.json"
replays 'replay: tensor, 2 hosts' 2 1 "$scratch/tensor.json"
replays 'replay: groups, 4 hosts' 4 1 "$workloads/groups.json"
replays 'replay: groups, 2 hosts x 2 processes' 2 2 "$workloads/groups.json"
replays 'replay: pipeline, 4 hosts' 4 1 "$workloads/pipeline.json" -c 2
replays 'replay: experts, 2 hosts' 2 1 "$workloads/experts.json" -c 2
replays 'replay: experts, 4 hosts, gradients' 4 1 "$workloads/experts.json" --data f32

if wanted 'replay: several workloads in turn'; then
  t 0 'replay: several workloads in turn' -- --hosts local:4 --replay-steps 3 --replay-skip 0 --json "$json" \
    --replay "$workloads/groups.json,$workloads/three-layers.json,$workloads/groups.json" -c 2
  plan groups 4 "$workloads/groups.json" && plan layers 4 "$workloads/three-layers.json"
  [[ $problem ]] || problem=$(check json "$json" 3 "$scratch/groups" "$scratch/layers" "$scratch/groups")
  report 'replay: several workloads in turn' "$problem"
fi

# calls NAME HOSTS WORKLOAD: NCCL is called for what the plan has, in its order: the calls of the one step.
calls() {
  wanted "$1" || return 0
  rm -rf "$scratch/calls" && mkdir "$scratch/calls"
  t 0 "$1" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "NCCL_DEBUG_FILE=$scratch/calls/%p" \
    -- --hosts "local:$2" --replay "$3" --replay-steps 1 --replay-skip 0 -c 0
  [[ $problem ]] || grep -q '; not checked$' "$table" || problem='claims to have checked'
  plan plan "$2" "$3"
  [[ $problem ]] || problem=$(check calls "$scratch/calls" "$scratch/plan" "$3")
  report "$1" "$problem"
}
calls 'replay: the calls of ddp' 2 "$workloads/three-layers.json"
calls 'replay: the calls of fsdp' 2 "$scratch/fsdp.json"
calls 'replay: the calls in groups' 4 "$workloads/groups.json"
calls 'replay: the calls of a pipeline' 4 "$workloads/pipeline.json"
calls 'replay: the calls of experts' 4 "$workloads/experts.json"

# Compute that leaves the network idle most of the time hides it: a step takes as long as what it computes, half as much
# again on a busy machine; and never less, which replay_check.py sees to.
name='replay: communication is hidden behind compute'
if wanted "$name"; then
  t 0 "$name" -- --hosts local:2 --replay "$workloads/three-layers.json" --replay-steps 5 --replay-skip 1 --compute-scale 20 --json "$json"
  [[ $problem ]] || python3 -c "import json, sys
row = json.load(open('$json'))['workloads'][0]
sys.exit(min(row['step_us']) > 1.5 * 20 * (2601 + 2200 + 500))" || problem='a step takes much longer than its compute'
  report "$name" "$problem"
fi

name='replay: the plan as text'
if wanted "$name"; then
  command=("$coll" --replay "$workloads/three-layers.json" --replay-list 3)
  problem=''
  plan plan 3 "$workloads/three-layers.json" && diff "$scratch/plan" "$workloads/three-layers.plan" >"$scratch/talk" ||
    problem='differs from three-layers.plan'
  for each in tuner_plugin/workloads/*.json; do
    each=${each##*/}
    [[ $problem ]] || plan plan 2 "${each%.json}" || plan plan 16 "${each%.json}" || problem="$each has no plan"
    [[ $problem ]] || grep -q "^workload ${each%.json} " "$scratch/plan" || problem="$each is called otherwise"
  done
  report "$name" "$problem"
fi

name='replay: the examples of docs/workloads.md'
if wanted "$name"; then
  t 0 "$name" -- --replay "$workloads/three-layers.json" --replay-steps 1 --replay-skip 0 --json "$json"
  [[ $problem ]] || problem=$(check document "$coll" docs/workloads.md "$json")
  report "$name" "$problem"
fi

# Debian's PyTorch; the first python3 in PATH may be another one.
name="replay: buckets are PyTorch's"
if wanted "$name"; then
  command=(/usr/bin/python3 -B tests/coll/replay_check.py buckets "$coll" tuner_plugin/workloads/*.json)
  "${command[@]}" >"$scratch/talk" 2>&1
  case $? in
    0) report "$name" '' ;;
    77) tap_skip "$name" "$(<"$scratch/talk")" ;;
    *) report "$name" 'buckets differ' ;;
  esac
fi

# ---- wrong data and wrong use ----

# sees FAULT WORKLOAD HOSTS
sees() {
  local name="replay sees: $1 in $2"
  wanted "$name" || return 0
  t 1 "$name" LD_LIBRARY_PATH="$lib" NCCL_HOME="$faulty" FAULTY_NCCL="$1" \
    -- --hosts "local:$3" --replay "$workloads/$2.json" --replay-steps 1 --replay-skip 0
  [[ $problem ]] || grep -qE '; [1-9][0-9]* wrong$' "$table" || problem='says nothing of wrong values'
  report "$name" "$problem"
}
sees byte three-layers 2
sees redop three-layers 2
sees past three-layers 2
sees shift pipeline 4
sees short experts 2
sed 's/9408/0/' "$workloads/three-layers.json" >"$scratch/bad.json"
sed 's/9408/9409/' "$workloads/three-layers.json" >"$scratch/other.json"
says 'replay: a mistake in the file' 2 'bad.json: layers\[0\].parameters\[0\]: 0, expected 1 to 68719476736' \
  -- --hosts local:2 --replay "$scratch/bad.json"
says 'replay: no such file' 2 'nothing.json: No such file' -- --replay "$scratch/nothing.json"
says 'replay: no such workload' 2 'no workload resnet51; built in: alexnet, ' -- --hosts local:2 --replay resnet51
says 'replay: an option of the table' 2 'coll: --replay excludes --iters' -- --replay resnet50 -n 5
says 'replay: several GPUs per process' 2 'use --ppn' -- --replay resnet50 -g 2
says 'replay: ranks that are no multiple of the groups' 1 'need a multiple of 4 ranks, and there are 2' \
  -- --hosts local:2 --replay "$workloads/groups.json"
if [[ $suite == trixie ]]; then
  sed 's/float32/f8e4m3/' "$workloads/three-layers.json" >"$scratch/f8.json"
  says 'replay: a type that this NCCL lacks' 1 'collective 1 has the type f8e4m3: .* since 2.24' \
    -- --hosts local:2 --replay "$scratch/f8.json"
fi
sed 's/"recv": 0, "elements": 4099 }], "group": "pp", "id": 1/"recv": 0, "elements": 4097 }], "group": "pp", "id": 1/' \
  "$workloads/pipeline.json" >"$scratch/short.json"
says 'replay: a receive of another size' 1 'events\[1\]: rank 0 sends 4099 elements of bfloat16, and rank 2 receives 4097 ' \
  -- --hosts local:4 --replay "$scratch/short.json"
sed '/"send": 1, "elements": 4099 }\], "group"/d' "$workloads/pipeline.json" >"$scratch/deadlock.json"
says 'replay: ranks that would wait forever' 1 'forever: rank 0 receives from rank 2 in events\[13\]; rank 2 receives from rank 0 in events\[6\]' \
  -- --hosts local:4 --replay "$scratch/deadlock.json"
says 'replay: no time left' 1 'no time left.*three-layers: ' \
  -- --hosts local:2 --replay "$workloads/three-layers.json" --replay-steps 1000000 -T 2

# Hosts whose files differ.
cat >"$scratch/with-other" <<END
#!/bin/sh
for word in "\$@"; do
  shift
  [ "\$word" != "$scratch/same.json" ] || word=$scratch/other.json
  set -- "\$@" "\$word"
done
exec "\$@"
END
chmod +x "$scratch/with-other"
cp "$workloads/three-layers.json" "$scratch/same.json"
says 'replay: hosts whose files differ' 1 'item 4 of the step is "collective 2 .* 9473 37892" here and "collective 2 .* 9472 37888" at rank 0' \
  -- --hosts "local,$scratch/with-other" --replay "$scratch/same.json"
