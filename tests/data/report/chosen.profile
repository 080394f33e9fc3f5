# Made for the samples beside it: nobody measured anything.
schema = 1
[meta]
id = invented
created = 2026-08-01
source = "chosen for invented samples"
nccl_min = 2.28.3
nccl_max = 2.28
[table allreduce nodes=2 ppn=8]
65536 262144 ring ll 0
[table allreduce nodes=4 ppn=8]
65536 262144 tree ll 0
262144 1048576 tree ll 0
4194304 16777216 ring ll128 0
[table allgather nodes=4 ppn=8]
65536 262144 ring ll 0
262144 1048576 ring ll 0
4194304 16777216 ring ll128 0
[table allgather nodes=8 ppn=8]
65536 262144 ring ll 0
262144 1048576 ring ll 0
4194304 16777216 ring ll128 0
16777216 67108864 ring ll128 0
