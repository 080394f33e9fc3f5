# Every section and key of schema 1, in the spellings a person would use. For tests: no measurement.
schema = 1

[meta]
id      = test-complete_1.0
created = 2026-08-01
source  = "two hosts, # is no comment here"   # but here it is
nccl_min = 2.19.1
nccl_max = 2.30

[match]
cloud         = AWS
instance_type = p4d.*, p4de.24xlarge
topology      = 43d74c2872d9

[net]
flows       = 8
chunk_bytes = 128K
speed_mbps  = 100000

[table allreduce nodes=2 ppn=8]
# bytes_lo  bytes_hi  algo  proto   channels
0           64K       Tree  LL      0
64K         1M        tree  ll128   2
4M          max       RING  simple  64

[table AllGather nodes=4 ppn=1]
1K 2K pat simple 1
[table reducescatter nodes=4 ppn=1]
[table broadcast nodes=4 ppn=1]
0 1 collnetdirect simple 0
1 2 collnetchain simple 0
[table reduce nodes=4 ppn=1]
0 1 nvls simple 0
1 2 nvlstree simple 0
[table allreduce nodes=4 ppn=8]
64K 1M ring simple 8 over=tree/simple default_us=812.45 choice_us=700 noise_pct=2.1
1M  2M tree ll128 0 over=ring/ll default_us=9.001 choice_us=8.5
