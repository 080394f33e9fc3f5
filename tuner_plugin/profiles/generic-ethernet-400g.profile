# Any machine whose fastest NIC has 400 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = generic-ethernet-400g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
nic_mbps = 400000  # as the driver says (ethtool link speed, 2026-11)

[net]
flows = 16  # one core moves a part of 400 Gb/s through one flow, 2026-11; not measured
