# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables and functions are those of tests/coll/run, which reads this file
#
# The cases of --replay: small workloads, a few short steps each.

cat >"$scratch/buckets.txt" <<'END'
batch 4
compute 2601
all_reduce 21000
compute 1200
all_reduce 9472
wait
compute 500
END
cat >"$scratch/sharded.txt" <<'END'
type bfloat16
all_gather 3001
all_gather 50001
wait 1
compute 300
wait
compute 100.5
reduce_scatter 50001 float32
alltoall 129
all_reduce 8
wait 2
compute 50
END
cat >"$scratch/experts.txt" <<'END'
type bfloat16
compute 100
alltoall sends=4096,0,129,7,2048,333,1,64
wait
compute 100
alltoall receives=4096,0,129,7,2048,333,1,64
wait
all_reduce 3000 float32
END
cat >"$scratch/pipeline.txt" <<'END'
type bfloat16
stages 2
0: compute 200
0: exchange 1 4099 0
0: compute 200
0: exchange 1 4099 4098
0: wait
0: compute 400
0: exchange 1 0 4098
0: wait
0: compute 400
1: exchange 0 0 4099
1: wait
1: compute 600
1: exchange 0 4098 4099
1: wait
1: compute 600
1: exchange 0 4098 0
all_reduce 20000 float32 copies
all_reduce 100 stages
all_reduce 1 float32
END
gradients=tests/data/codec/resnet18-gradient.f32
check() { python3 -B tests/coll/replay_check.py "$@" 2>&1; }

# replays NAME HOSTS PPN WORKLOAD OPTIONS...: no wrong value, and a JSON file that is the workload's.
replays() {
  local name=$1 hosts=$2 ppn=$3 workload=$scratch/$4.txt
  wanted "$name" || return 0
  shift 4
  t 0 "$name" -- --hosts "local:$hosts" --ppn "$ppn" --replay "$workload" --replay-steps 5 --replay-skip 1 -J "$json" "$@"
  [[ $problem ]] || problem=$(check json "$json" 5 "$workload")
  report "$name" "$problem"
}
replays 'replay: buckets, one rank' 1 1 buckets
replays 'replay: buckets, 4 hosts, scaled' 4 1 buckets --compute-scale 0.5 --bytes-scale 3
replays 'replay: buckets, gradients, 2 hosts' 2 1 buckets --data "$gradients"
replays 'replay: sharded, 3 hosts' 3 1 sharded
replays 'replay: pipeline, 4 hosts' 4 1 pipeline -c 2
replays 'replay: pipeline, 2 hosts x 2 processes' 2 2 pipeline
replays 'replay: experts, 2 hosts' 2 1 experts -c 2
replays 'replay: experts, 4 hosts, gradients' 4 1 experts --data "$gradients"

if wanted 'replay: several workloads in turn'; then
  t 0 'replay: several workloads in turn' -- --hosts local:4 --replay-steps 3 --replay-skip 0 -J "$json" \
    --replay "$scratch/pipeline.txt,$scratch/buckets.txt,$scratch/pipeline.txt" -c 2
  [[ $problem ]] || problem=$(check json "$json" 3 "$scratch"/{pipeline,buckets,pipeline}.txt)
  report 'replay: several workloads in turn' "$problem"
fi

# calls HOSTS WORKLOAD: NCCL is called for what the lines say, in their order: the calls of the one step.
calls() {
  local name="replay: the calls of $2"
  wanted "$name" || return 0
  rm -rf "$scratch/calls" && mkdir "$scratch/calls"
  t 0 "$name" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "NCCL_DEBUG_FILE=$scratch/calls/%p" \
    -- --hosts "local:$1" --replay "$scratch/$2.txt" --replay-steps 1 --replay-skip 0 -c 0
  [[ $problem ]] || grep -q '; not checked$' "$table" || problem='claims to have checked'
  [[ $problem ]] || problem=$(check calls "$scratch/calls" "$1" "$scratch/$2.txt")
  report "$name" "$problem"
}
calls 2 buckets
calls 3 sharded
calls 4 pipeline
calls 4 experts

# Compute that leaves the network idle most of the time hides it: a step takes as long as what it computes, half as much
# again on a busy machine; and never less, which replay_check.py sees to.
name='replay: communication is hidden behind compute'
if wanted "$name"; then
  t 0 "$name" -- --hosts local:2 --replay "$scratch/buckets.txt" --replay-steps 5 --replay-skip 1 --compute-scale 20 -J "$json"
  [[ $problem ]] || python3 -c "import json, sys
row = json.load(open('$json'))['workloads'][0]
sys.exit(min(row['step_us']) > 1.5 * 20 * (2601 + 1200 + 500))" || problem='a step takes much longer than its compute'
  report "$name" "$problem"
fi

# Jobs of today, very small: every value that arrives is right.
name="replay: today's jobs"
if wanted "$name"; then
  t 0 "$name" -- --hosts local:4 --replay llama2_7b_fsdp,mixtral_8x7b_ep,gpt_7b_tp8_pp2_hosts,bert_large_zero2 --replay-steps 1 \
    --replay-skip 0 --bytes-scale 1e-5 --compute-scale 1e-3
  [[ $problem ]] || [[ $(grep -c '; 0 wrong$' "$table") == 4 ]] || problem='wrong values'
  report "$name" "$problem"
fi

# ---- wrong data and wrong use ----

# sees FAULT WORKLOAD HOSTS
sees() {
  local name="replay sees: $1 in $2"
  wanted "$name" || return 0
  t 1 "$name" LD_PRELOAD="$faulty" FAULTY_NCCL="$1" \
    -- --hosts "local:$3" --replay "$scratch/$2.txt" --replay-steps 1 --replay-skip 0
  [[ $problem ]] || grep -qE '; [1-9][0-9]* wrong$' "$table" || problem='says nothing of wrong values'
  report "$name" "$problem"
}
sees byte buckets 2
sees past buckets 2
sees shift pipeline 4
sees short experts 2
echo 'all_reduce 0' >"$scratch/bad.txt"
says 'replay: a mistake in the file' 2 'bad.txt:1: elements: "0", expected 1 to ' -- --hosts local:2 --replay "$scratch/bad.txt"
says 'replay: no such workload' 2 'workload resnet51: No such file' -- --hosts local:2 --replay resnet51
says 'replay: an option of the table' 2 'coll: --replay excludes --iters' -- --replay resnet50 -n 5
says 'replay: several GPUs per process' 2 'use --ppn' -- --replay resnet50 -g 2
says 'replay: ranks that are no multiple of the stages' 1 '2 stages need a multiple of 2 ranks, not 3' \
  -- --hosts local:3 --replay "$scratch/pipeline.txt"
says 'replay: no time left' 1 'no time left.*buckets: ' \
  -- --hosts local:2 --replay "$scratch/buckets.txt" --replay-steps 1000000 -T 3
