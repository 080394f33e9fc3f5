# AWS P6: 8 x B200 or B300
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = aws-p6
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = aws  # DMI names cloud and type (cloud-init ds-identify, 2026-08)
instance_type = p6-b200.48xlarge, p6-b300.48xlarge  # docs.aws.amazon.com instance-types, 2026-08

[net]
flows = 16  # 5 Gb/s per flow, 10 in a cluster placement group, 25 with ENA Express (docs.aws.amazon.com ec2-instance-network-bandwidth, 2026-11); not measured
