# Alibaba Cloud gn8 and ebmgn8 families, by GPU, with eRDMA
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = alibaba-gn8
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = alibaba  # product name of DMI (cloud-init ds-identify, 2026-08)
gpu = 10de:2329, 10de:26b9, 10de:2330  # alibabacloud.com help on-the-gpu-instance-configuration-erdma, 2026-08; not found again in 2026-11; PCI ids of pci.ids, 2026-08

[net]
flows = 8  # default of the plugin, 2026-11: Alibaba Cloud publishes no cap per flow; not measured
