# AWS G5, G6, G6e, G7e: one to eight A10G, L4, L40S, RTX PRO 6000; the speed depends on the size
# Match, link facts and flow counts only: nobody has measured collectives for these tables yet.
schema = 1

[meta]
id = aws-g
created = 2026-11-21
source = "public documents of the provider; not measured"

[match]
cloud = aws  # DMI names cloud and type (cloud-init ds-identify, 2026-08)
instance_type = g5.*, g6.*, g6e.*, g7e.*  # docs.aws.amazon.com instance-types, 2026-08

[net]
flows = 8  # 5 Gb/s per flow, 10 in a cluster placement group (docs.aws.amazon.com ec2-instance-network-bandwidth, 2026-11); cards of up to 100 Gb/s, four in g6e.48xlarge (efa-acc-inst-types, 2026-11), those of g7e not found again; not measured
