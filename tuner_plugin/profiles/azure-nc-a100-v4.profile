# Azure NC A100 v4: 1 to 4 x A100 PCIe, Ethernet only
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = azure-nc-a100-v4
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = azure  # chassis asset tag of DMI (cloud-init ds-identify, 2026-08)
instance_type = Standard_NC*ads_A100_v4  # inferred from GPUs, or metadata service (learn.microsoft.com azure virtual-machines sizes gpu-accelerated, 2026-08; not found again in 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11: Azure names the sum of a machine's NICs, and no cap per flow; not measured
