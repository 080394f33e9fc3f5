# SPDX-License-Identifier: Apache-2.0
"""Points: what every format of measurements is read into, and the arithmetic of collectives.

GB/s are 10^9 bytes a second and sizes are bytes as nccl-tests shows them, everywhere."""
import dataclasses
import math
import statistics

# Our words, in the order of reports; profiles and samples know the first five.
OPERATIONS = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather",
              "scatter", "sendrecv", "hypercube")
TITLES = {"allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter",
          "broadcast": "Broadcast", "reduce": "Reduce", "alltoall": "AlltoAll", "alltoallv": "AlltoAllv",
          "gather": "Gather", "scatter": "Scatter", "sendrecv": "SendRecv", "hypercube": "HyperCube"}
BYTES_MAX = 1 << 62
TIME_US_MAX = 1e12  # eleven days


def operation_of(word):
    """Our word for "all_reduce_perf", "AllReduce", "alltoall"; None if there is none."""
    plain = word.rsplit("/", 1)[-1].lower().removesuffix("_perf").replace("_", "").replace("-", "")
    return plain if plain in OPERATIONS else None


def bus_factor(operation, ranks):
    """busbw / algbw as nccl-tests has it (doc/PERFORMANCE.md there); None where it depends on the data."""
    if not ranks or operation == "alltoallv":
        return None
    if operation == "allreduce":
        return 2 * (ranks - 1) / ranks
    return 1.0 if operation in ("broadcast", "reduce", "sendrecv") else (ranks - 1) / ranks


@dataclasses.dataclass(frozen=True)
class Cell:
    """What ran: an entry of NCCL's cost table, with channels and chunk (0: NCCL's own)."""
    algo: str
    proto: str
    channels: int = 0
    chunk: int = 0

    def __str__(self):
        text = f"{self.algo} {self.proto}"
        if self.channels:
            text += f" {self.channels}ch"
        if self.chunk:
            text += f" {size_text(self.chunk)} chunk"
        return text


@dataclasses.dataclass
class Source:
    """One input file, and how it was made."""
    path: str
    kind: str = ""
    label: str = ""
    sha256: str = ""
    facts: dict = dataclasses.field(default_factory=dict)    # NAME: TEXT, shown as they are
    command: list = dataclasses.field(default_factory=list)  # without secrets
    environment: dict = dataclasses.field(default_factory=dict)  # the same
    notes: list = dataclasses.field(default_factory=list)    # warnings for the reader
    points: list = dataclasses.field(default_factory=list)
    profile: object = None  # of a profile: read_profile.Profile
    sections: list = dataclasses.field(default_factory=list)  # of formats that are shown as tables: document.Section


@dataclasses.dataclass
class Point:
    source: Source
    line: int        # in the source; 0: not known
    operation: str
    bytes: int
    time_us: float   # of one call: the median where calls were timed one by one, else their mean
    in_place: bool = False
    type: str = None
    redop: str = None
    root: int = None
    nodes: int = None
    ppn: int = None
    n: int = None          # calls behind the time
    noise: float = None    # median absolute deviation of the calls, as a part of the time
    busbw: float = None    # as the file has it, GB/s
    wrong: int = None      # elements; None: not checked
    cell: Cell = None
    is_default: bool = None  # NCCL chose; None: not known
    environment: str = ""
    run: str = ""

    @property
    def ranks(self):
        return self.nodes * self.ppn if self.nodes and self.ppn else None

    @property
    def shape(self):
        return (self.nodes, self.ppn)

    @property
    def busbw_gbs(self):
        return busbw_gbs(self.operation, self.bytes, self.time_us, self.ranks) or self.busbw


def busbw_gbs(operation, size, time_us, ranks):
    factor = bus_factor(operation, ranks)
    return None if factor is None else size / time_us / 1e3 * factor


def check_time(time_us, what):
    """Why this is no time of a call, or None."""
    if not math.isfinite(time_us) or time_us < 0 or time_us > TIME_US_MAX:
        return f"{what} must be microseconds, 0 to {TIME_US_MAX:g}, not {time_us:g}"
    return None


def median_and_noise(times):
    """(median, its relative median absolute deviation; None for fewer than three times)."""
    middle = statistics.median(times)
    if len(times) < 3 or middle <= 0:
        return middle, None
    return middle, statistics.median(abs(each - middle) for each in times) / middle


def geomean(values):
    return math.exp(statistics.fmean(math.log(each) for each in values)) if values else None


# ---- text ----

def size_text(size):
    """As nccl-tests takes it: 8, 64K, 1536, 1G."""
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def number_text(value, digits=3):
    """That many digits that mean something, without an exponent: 0.0123, 1.23, 12.3, 1234."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 6)}f}"


def percent_text(part):
    return "-" if part is None else f"{part * 100:.1f} %"


def shape_text(shape):
    nodes, ppn = shape
    if nodes is None or ppn is None:
        return "shape not known"
    return f"{nodes} node{'s' if nodes != 1 else ''} x {ppn} rank{'s' if ppn != 1 else ''}"


def nccl_text(code):
    """22809 -> 2.28.9."""
    if not code or code < 2000:
        return "not known"
    if code < 10000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
