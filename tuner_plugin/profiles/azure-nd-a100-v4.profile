# Azure ND A100 v4: 8 x A100, 8 x 200 Gb/s InfiniBand beside Ethernet
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = azure-nd-a100-v4
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = azure  # chassis asset tag of DMI (cloud-init ds-identify, 2026-08)
instance_type = Standard_ND96*_v4  # inferred from GPUs, or metadata service (learn.microsoft.com azure virtual-machines sizes gpu-accelerated, 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11: Azure names the sum of a machine's NICs, and no cap per flow; not measured
