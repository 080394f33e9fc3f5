# SPDX-License-Identifier: Apache-2.0
"""Cases of lost packets: by chance, in one direction, of acknowledgements, for a while, and by a queue that is full."""
import time

from benchmark.case import LABELS, Case, Row, Variant, at_least, at_most, of, perf, shown
from benchmark.run import CLUSTER

LOST_SIZES = (8, 65536)


def black_out(bench):
    """Nothing arrives at the other host for 50 ms, twice a second, from the warm-up on."""
    for _ in range(10):
        time.sleep(0.5)
        bench.runner.run([CLUSTER, "fault", bench.cluster, "blackout", "1", "50"])


def lossy(name, title, cluster, target=None, tail=("rare", "p99.9"), meanwhile=None):
    """Messages whose packets are lost: the mean, and how long the rarest take."""
    arguments = ("--test", "latency", "--bytes", ",".join(str(size) for size in LOST_SIZES), "--time", "2s")

    def by_size(key):
        def measure(bench):
            found = bench.perf(key, list(arguments), None, meanwhile)
            for size in LOST_SIZES:
                for each in ("mean", tail[0]):
                    found[f"{each}-{size}"] = found["sizes"][size][f"{each}_us"]
            return found
        return Variant(key, LABELS[key], measure)
    variants = [by_size("stratus"), by_size("socket")]
    rows = []
    for size, text in zip(LOST_SIZES, ("8 B", "64 KiB")):
        for metric, what in ((f"mean-{size}", f"{text}: mean"), (f"{tail[0]}-{size}", f"{text}: {tail[1]}")):
            rows += [Row(f"{metric}-socket", f"{what}, stratus / Socket", of(metric, "stratus", "socket"), target,
                         shown(variants, metric, "us"))]
    return Case(name, f"half round trips {title}", cluster, variants, rows)


def lossy_bulk(cluster):
    """One connection as fast as it can: by itself, as by hand, and as Socket."""
    bulk = ("--test", "bandwidth", "--bytes", "512K", "--time", "2s")
    by_hand = [perf("stratus", *bulk, extra={"STRATUS_FLOWS": str(flows)}, name=f"flows-{flows}", label=f"{flows} flows")
               for flows in (1, 2, 8)]
    variants = [perf("stratus", *bulk), *by_hand,
                perf("socket", *bulk)]
    return Case("lossy-bulk", "1 connection, 512 KiB, where 1 % of the packets are lost", cluster, variants, [
        Row("socket", "stratus / Socket", of("gbps", "stratus", "socket"), at_least(1.2), shown(variants, "gbps", "Gb/s")),
        *(Row(each.key, f"by itself / {each.label}", of("gbps", "stratus", each.key)) for each in by_hand)])


def incast():
    """Each host gets from seven at once, and the last hop has room for few packets of up to 64 KiB."""
    sizes = {"64K": 65536, "1M": 1 << 20, "8M": 8 << 20}

    def coll(key):
        def measure(bench):
            found = bench.coll(key, ["-O", "alltoall", "--sizes", ",".join(sizes), "-d", "uint8", "-n", "4", "-w", "2", "-c", "1"])
            return {**found, **{text: found["rows"][size]["time_us"] for text, size in sizes.items()}}
        return Variant(key, LABELS[key], measure)
    variants = [coll("stratus"), coll("socket"), coll("socket-2x8")]
    rows = []
    for text in sizes:
        rows += [Row(f"{text}-socket", f"{text}: time, stratus / Socket", of(text, "stratus", "socket"), None,
                     shown(variants, text, "us"))]
    return Case("incast", "stock NCCL AllToAll, 8 hosts, 0.5 Gb/s NIC, 8 packets wait at the switch for a NIC",
                ["--hosts", "8", "--nic-gbps", "0.5", "--queue", "8"], variants, rows)


def cases():
    loss = ["--loss", "10"]
    return [
        lossy("lossy", "where 1 % of the packets are lost", loss, at_most(0.5)),
        lossy_bulk(loss),
        lossy("blackout", "while nothing arrives at one host for 50 ms, twice a second", [], tail=("longest", "the longest"),
              meanwhile=black_out),
        incast()]
