# AWS P5en: 8 x H200, 16 cards of 200 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = aws-p5en
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = aws  # DMI names cloud and type (cloud-init ds-identify, 2026-08)
instance_type = p5en.48xlarge  # docs.aws.amazon.com instance-types, 2026-08

[net]
speed_mbps = 200000  # 16 cards of 200 Gb/s (aws-ofi-nccl platform-aws.cpp, 2026-08; cards not found again in 2026-11), 3200 together, of which IP may use 800 (docs.amazonaws.cn efa-acc-inst-types, 2026-11)
flows = 40  # 5 Gb/s per flow; 20 flows do in a cluster placement group with 10, 8 with ENA Express with 25 (docs.aws.amazon.com ec2-instance-network-bandwidth, 2026-11); not measured
