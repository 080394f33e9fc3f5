# SPDX-License-Identifier: Apache-2.0
"""What the jobs found, as checks and ratios."""

# Two ranks add two numbers, in any order alike. Four add in an order that depends on NCCL's channels, of which transports have
# different numbers: losses in float32 differ in the last bits, a wrong gradient shows in the first digits.
LOSS_DIFFERENCE = 1e-4


class Check:
    """Counts, and keeps what failed."""

    def __init__(self):
        self.list = []

    def that(self, is_good, name, detail=""):
        self.list.append({"check": name, "ok": bool(is_good), **({"detail": str(detail)} if detail and not is_good else {})})

    @property
    def failed(self):
        return [each for each in self.list if not each["ok"]]


def network_of(log):
    """The network that NCCL says it uses, or None."""
    for line in log.splitlines():
        if "Using network " in line:
            return line.split("Using network ", 1)[1].split()[0]
    return None


def check_network(check, label, transport, logs):
    wanted = "stratus" if transport.startswith("stratus") else "Socket"
    used = [network_of(log) for log in logs]
    check.that(all(each == wanted for each in used), f"{label}: every rank uses {wanted}", f"used are {used}")


def losses_agree(found, reference):
    """None, or how they differ. Both: what ranks found, of one mode."""
    for rank, (one, other) in enumerate(zip(found, reference)):
        if len(one) != len(other) or not one:
            return f"rank {rank} has {len(one)} losses, and {len(other)}"
        for step, (a, b) in enumerate(zip(one, other)):
            if a == b:
                continue
            if len(found) == 2:
                return f"rank {rank}, step {step}: {a!r} and {b!r}, of 2 ranks, must be the same"
            if not abs(a - b) <= LOSS_DIFFERENCE * abs(b):
                return f"rank {rank}, step {step}: {a!r} and {b!r}"
    return None


def is_learning(losses):
    return len(losses) > 1 and all(one == one for one in losses) and losses[-1] < losses[0]


def modes_of(found, mode):
    """What ranks found of this mode, None where they skipped it."""
    of_ranks = [rank.get(mode, {"skipped": "not asked for"}) for rank in found]
    return None if any("skipped" in each for each in of_ranks) else of_ranks


def check_job(check, label, found, reference):
    """`reference`: (another transport, what the same job found through that); None: there is none."""
    for mode in ("ddp", "fsdp"):
        own = modes_of(found, mode)
        if own is None:
            continue
        losses = [each["losses"] for each in own]
        check.that(all(is_learning(each) for each in losses), f"{label}: {mode} learns", losses[0])
        other = modes_of(reference[1], mode) if reference else None
        if other is not None:
            difference = losses_agree(losses, [each["losses"] for each in other])
            check.that(difference is None, f"{label}: {mode} has the losses of {reference[0]}", difference)
    own = modes_of(found, "bandwidth")
    if own is not None:
        wrong = sum(each["wrong_values"] for each in own)
        check.that(wrong == 0, f"{label}: AllReduce is exact", f"{wrong} wrong values")


def rates(found):
    """{mode: rate of the slowest rank}; steps per second, for bandwidth GB/s."""
    result = {}
    for mode, key in (("ddp", "steps_per_second"), ("fsdp", "steps_per_second"), ("bandwidth", "gbps")):
        own = modes_of(found, mode)
        if own is not None:
            result[mode] = min(each[key] for each in own)
    return result


def ratios(of_transports, base):
    """{transport: {mode: how many times as fast as `base`}}"""
    if base not in of_transports:
        return {}
    return {name: {mode: round(rate / of_transports[base][mode], 3) for mode, rate in found.items() if of_transports[base].get(mode)}
            for name, found in of_transports.items() if name != base}
