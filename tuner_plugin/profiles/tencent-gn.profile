# Tencent Cloud GN7, GN10X, PNV4: T4, V100, A10
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = tencent-gn
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = tencent  # vendor of DMI (dmidecode of a CVM instance, 2026-08)
gpu = 10de:1eb8, 10de:1db5, 10de:2236  # cloud.tencent.com GPU instance families, 2026-08; not found again in 2026-11; PCI ids of pci.ids, 2026-08

[net]
flows = 8  # default of the plugin, 2026-11: Tencent Cloud publishes no cap per flow; not measured
