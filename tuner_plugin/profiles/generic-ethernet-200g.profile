# Any machine whose fastest NIC has 200 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = generic-ethernet-200g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
nic_mbps = 200000  # as the driver says (ethtool link speed, 2026-11)

[net]
flows = 12  # one core moves a part of 200 Gb/s through one flow, 2026-11; not measured
