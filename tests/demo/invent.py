# SPDX-License-Identifier: Apache-2.0
"""A measurement of scripts/demo that never was."""

# bytes: time in us of Socket, of Socket as on AWS, of stratus. Worst at 64 B, best at 64 MiB.
TIMES = {64: (90.0, 120.0, 100.0), 4096: (100.0, 150.0, 102.0), 1 << 20: (8000.0, 4000.0, 4000.0),
         64 << 20: (600000.0, 300000.0, 150000.0)}


def document(**changes):
    runs = [{"net": net, "op": "all_reduce", "bytes": size, "time_us": times[place], "algbw_gbs": size / times[place] / 1e3,
             "busbw_gbs": size / times[place] / 1e3, "wrong": 0}
            for place, net in enumerate(("socket", "socket-aws", "stratus")) for size, times in TIMES.items()]
    return {"version": 1, "hosts": 2, "limit": {"nic_gbps": 4.0, "flow_gbps": 0.5}, "congestion_control": "cubic", "rounds": 3,
            "is_quick": False, "date": "2026-11-26", "stratus": "stratus 0.1.0", "commit": "abc1234", "has_changes": False,
            "nccl": "2.29.7", "gpu": "emulated", "cpu": "Invented", "cpus": 2, "kernel": "Linux 6.1", "runs": runs, **changes}
