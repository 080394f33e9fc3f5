# OCI BM.GPU4.8 and BM.GPU.A100-v2.8: 8 x A100, 8 x 2 x 100 Gb/s RoCE
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = oci-a100
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = oci  # chassis asset tag of DMI (cloud-init ds-identify, 2026-08)
instance_type = BM.GPU4.8, BM.GPU.A100-v2.8  # inferred from GPUs, or metadata service (docs.oracle.com iaas compute shapes, 2026-08; table not found again in 2026-11)

[net]
flows = 8  # default of the plugin, 2026-11: Oracle publishes no cap per flow; not measured
