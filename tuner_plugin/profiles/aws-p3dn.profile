# AWS P3dn: 8 x V100, one NIC of 100 Gb/s
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = aws-p3dn
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = aws  # DMI names cloud and type (cloud-init ds-identify, 2026-08)
instance_type = p3dn.24xlarge  # docs.aws.amazon.com instance-types, 2026-08

[net]
speed_mbps = 100000  # one ENA of 100 Gb/s (docs.aws.amazon.com instance-types, 2026-08)
flows = 20  # 5 Gb/s per flow; 10 flows do in a cluster placement group with 10, 4 with ENA Express with 25 (docs.aws.amazon.com ec2-instance-network-bandwidth, 2026-11); not measured
