# SPDX-License-Identifier: Apache-2.0
schema = 1
[meta]
id = latency
[net]
latency_us = 7
