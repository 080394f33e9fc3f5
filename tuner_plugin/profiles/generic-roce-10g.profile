# Any machine with RoCE cards whose fastest has 10 Gb/s; their TCP side
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = generic-roce-10g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
nic = mlx5_core, bnxt_en, ice, ionic  # drivers of rdma-core providers, 2026-08
nic_mbps = 10000  # as the driver says (ethtool link speed, 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11; not measured
