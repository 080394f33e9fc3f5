# GCP G2 and G4: L4 and RTX PRO 6000; up to 100 and 400 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = gcp-g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = gcp  # DMI names the cloud (cloud-init ds-identify, 2026-08)
instance_type = g2-*, g4-*  # inferred from GPUs and NICs, or metadata service (cloud.google.com compute/docs/gpus/gpu-network-bandwidth, 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11: Google limits egress per machine, and names no cap per flow within a VPC (compute/docs/network-bandwidth); not measured
