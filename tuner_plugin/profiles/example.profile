# An example of the format, to copy from. Nobody measured these rows: they show what can be said, and
# without a [match] section the profile is used only where STRATUS_PROFILE names it.
schema = 1

[meta]
id = example
source = "an example of the format, not measured"
nccl_min = 2.21.5
nccl_max = 2.30

# Link facts for the net plugin.
[net]
flows = 8
chunk_bytes = 128K

# Communicators of 8 nodes with 8 ranks each.
[table allreduce nodes=8 ppn=8]
# bytes_lo  bytes_hi  algo  proto   channels
  8         64K       tree  ll      0
  64K       4M        tree  simple  0
  4M        max       ring  simple  8

[table allgather nodes=8 ppn=8]
  1M        max       ring  simple  8
