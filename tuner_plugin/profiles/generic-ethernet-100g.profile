# Any machine whose fastest NIC has 100 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = generic-ethernet-100g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
nic_mbps = 100000  # as the driver says (ethtool link speed, 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11; not measured
