# GCP A2 with 8 or 16 x A100: 100 Gb/s
# Match and link facts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = gcp-a2-8g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = gcp  # DMI names the cloud (cloud-init ds-identify, 2026-08)
instance_type = a2-highgpu-8g, a2-ultragpu-8g, a2-megagpu-16g  # inferred from GPUs and NICs, or STRATUS_INSTANCE_TYPE (cloud.google.com compute/docs/gpus/gpu-network-bandwidth, 2026-11)

[net]
speed_mbps = 100000  # 100 Gb/s per VM, one gVNIC (cloud.google.com compute/docs/gpus/gpu-network-bandwidth, 2026-11)
