# Any machine with RoCE cards whose fastest has 200 Gb/s; their TCP side
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = generic-roce-200g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
nic = mlx5_core, bnxt_en, ice, ionic  # drivers of rdma-core providers, 2026-08
nic_mbps = 200000  # as the driver says (ethtool link speed, 2026-11)

[net]
flows = 12  # one core moves a part of 200 Gb/s through one flow, 2026-11; not measured
