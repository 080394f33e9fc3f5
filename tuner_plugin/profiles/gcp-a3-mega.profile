# GCP A3 Mega: 8 x H100, 8 gVNICs of 200 Gb/s and one more
# Match and link facts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = gcp-a3-mega
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = gcp  # DMI names the cloud (cloud-init ds-identify, 2026-08)
instance_type = a3-megagpu-8g  # inferred from GPUs and NICs, or STRATUS_INSTANCE_TYPE (cloud.google.com compute/docs/gpus/gpu-network-bandwidth, 2026-11)

[net]
speed_mbps = 200000  # 8 x 200 Gb/s for GPUs, 1 x 200 (cloud.google.com compute/docs/gpus/gpu-network-bandwidth, 2026-11)
