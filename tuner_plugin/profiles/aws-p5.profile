# AWS P5 and P5e: 8 x H100 or H200, 32 cards of 100 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = aws-p5
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = aws  # DMI names cloud and type (cloud-init ds-identify, 2026-08)
instance_type = p5.48xlarge, p5e.48xlarge  # docs.aws.amazon.com instance-types, 2026-08

[net]
speed_mbps = 100000  # 32 cards, 3200 Gb/s together, of which IP may use 800: more than 8 ENA interfaces share it (docs.aws.amazon.com efa-acc-inst-types, 2026-11)
flows = 20  # 5 Gb/s per flow; 10 flows do in a cluster placement group with 10, 4 with ENA Express with 25 (docs.aws.amazon.com ec2-instance-network-bandwidth, 2026-11); not measured
