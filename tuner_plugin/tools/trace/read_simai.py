# SPDX-License-Identifier: Apache-2.0
"""SimAI's workload text (AICB writes it, SimAI's simulators read it) into a timeline.

Facts from aliyun/SimAI astra-sim-alibabacloud/astra-sim/workload/Workload.cc. Read with success: its
example/workload_analytical.txt, 3324 collectives, and microAllReduce.txt.

Forward: compute, then the collective, which is waited for. Then from the last layer on: gradients of inputs,
likewise, and of weights, whose collective runs on; checkpoint_initiates repeats the forward pass from the checkpoint
before it. Times are nanoseconds, sizes those of the larger buffer. Without a suffix the first two are of the tensor
parallel group, the last of the data parallel one; _EP, _DP_EP name the experts' and what is data parallel of them.
Ranks are numbered as Megatron-LM does: tensors, then data, whose first part experts are, then stages. Small sizes are
the text's (SimAI raises them to 4096 bytes). The time of an update, and a layer's dependency, which must be on a
layer that is there, are passed over."""
import re

from calls import ELEMENTS_MAX, empty_note
from names import BYTES_OF_TYPE, type_of_bytes
from problem import Problem, lines_text
from step import Call, Compute, Timeline, Wait

POLICIES = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER")
# Of ASTRA-sim 1.0, whose text it is; their layers mean something else.
OTHERS = ("MICRO", "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED", "HYBRID_CUSTOMIZED",
          "DISTRIBUTED_INFERENCE")
KEYS = {"model_parallel_NPU_group:": "tp", "ep:": "ep", "pp:": "pp", "vpp:": "vpp", "ga:": "ga", "all_gpus:": "all", "pp_comm": "pp_comm",
        "pp_comm:": "pp_comm"}
LISTS = {"checkpoints:": "checkpoints", "checkpoint_initiates:": "initiates"}
COLLECTIVES = {"ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter", "ALLTOALL": "alltoall"}
COLUMNS = 12
RANKS_MAX, LAYERS_MAX, BYTES_MAX, NS_MAX = 1 << 20, 1 << 20, 1 << 46, 1e12  # as much compute as a workload file may have
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")  # float() takes more: 1_000, digits of other scripts


def is_simai(text):
    """By its first word, or, where that is damaged, by a key of the first line that no other format has."""
    first = text.lstrip().partition("\n")[0].split()
    return bool(first) and (first[0] in (*POLICIES, *OTHERS) or "model_parallel_NPU_group:" in first)


class Line:
    """Words of a line, checked."""

    def __init__(self, path, number, text):
        self.path, self.number, self.words = path, number, text.split()

    def fail(self, text):
        raise Problem(text, self.path, self.number)

    def whole(self, word, what, low, high):
        """AICB writes some as 8388608.0."""
        value = float(word) if NUMBER.fullmatch(word) else None
        if value is None or not low <= value <= high or value != int(value):
            self.fail(f"{what}: {word[:40]}, expected a whole number from {low} to {high:.0f}")
        return int(value)


class Head:
    """The first line."""

    def __init__(self, line):
        self.line = line
        if not line.words:
            line.fail(f"is empty, expected {' or '.join(POLICIES)}, and the numbers of ranks")
        if line.words[0] not in POLICIES:
            line.fail(f"{line.words[0][:40]}: layers of this kind of parallelism are not read; expected {' or '.join(POLICIES)}")
        self.values, self.lists, at = {"ep": 1, "pp": 1, "pp_comm": 0}, {name: set() for name in LISTS.values()}, 1
        seen = set()
        while at < len(line.words):
            word = line.words[at]
            if word not in KEYS and word not in LISTS:
                line.fail(f"{word[:40]}: unknown; expected one of {', '.join((*KEYS, *LISTS))}")
            if at + 1 == len(line.words):
                line.fail(f"{word}: its number is missing")
            name = LISTS.get(word) or KEYS[word]
            if name in seen:
                line.fail(f"{word} is there twice")
            seen.add(name)
            least = 0 if word in LISTS or word.startswith("pp_comm") else 1
            number = line.whole(line.words[at + 1], word, least, BYTES_MAX if least == 0 else RANKS_MAX)
            if word in LISTS:
                layers = line.words[at + 2:at + 2 + number]
                if len(layers) < number:
                    line.fail(f"{word} {number} layers, and {len(layers)} are named")
                self.lists[name] = {line.whole(each, word, 0, LAYERS_MAX) for each in layers}
                at += number
            else:
                self.values[name] = number
            at += 2
        for word, name in (("model_parallel_NPU_group:", "tp"), ("all_gpus:", "all")):
            if name not in self.values:
                line.fail(f"{word} is missing")

    def check_layers(self, count):
        for word, name in LISTS.items():
            beyond = max(self.lists[name], default=0)
            if beyond >= count:
                self.line.fail(f"{word} layer {beyond}, and the {count} layers are 0 to {count - 1}")

    def groups(self):
        """(size, stride), where ranks are numbered as Megatron-LM does: tensors first, then data, which experts divide, then stages."""
        tensors, stages, experts, ranks = (self.values[name] for name in ("tp", "pp", "ep", "all"))
        if ranks % (tensors * stages):
            self.line.fail(f"all_gpus: {ranks}, expected a multiple of {tensors} x {stages}, tensors and stages")
        data = ranks // (tensors * stages)
        if data % experts:
            self.line.fail(f"ep: {experts}, expected to divide the {data} ranks that are data parallel")
        return {"tp": (tensors, 1), "dp": (data, tensors), "ep": (experts, tensors), "dp_ep": (data // experts, tensors * experts)}


class Layer:
    """Compute in microseconds and communication of each of the three passes."""

    def __init__(self, line, count):
        if len(line.words) != COLUMNS:
            line.fail(f"{len(line.words)} words, expected {COLUMNS}: name, dependency, three times compute, collective and bytes, update")
        self.line = line
        self.has_dependency = line.whole(line.words[1], "dependency", -1, count - 1) >= 0
        line.whole(line.words[11], "update", 0, NS_MAX)
        self.passes = [self.read_pass(at) for at in (2, 5, 8)]  # forward, gradients of inputs, gradients of weights

    def read_pass(self, at):
        compute, word, size = self.line.words[at:at + 3]
        name, _, suffix = word.partition("_")
        if word != "NONE" and (name not in COLLECTIVES or suffix not in ("", "EP", "DP_EP")):
            self.line.fail(f"{word[:40]}: expected NONE or {', '.join(COLLECTIVES)}, each also with _EP or _DP_EP")
        size = self.line.whole(size, "bytes", 0, BYTES_MAX)
        if word == "NONE" and size:
            self.line.fail(f"bytes: {size}, expected 0, as its collective is NONE")
        return self.line.whole(compute, "compute", 0, NS_MAX) / 1e3, COLLECTIVES.get(name), suffix.lower(), size


class Reader:
    def __init__(self, path, text):
        self.path, self.timeline = path, Timeline(path, "SimAI workload", is_step=True)
        lines = [Line(path, number, line) for number, line in enumerate(text.split("\n"), 1)]
        self.head = Head(lines[0])
        self.forms = self.head.groups()
        self.layers = self.read_layers(lines)
        self.head.check_layers(len(self.layers))
        self.padded = self.alone = 0
        self.empty = []  # lines of calls of no elements

    def read_layers(self, lines):
        if len(lines) < 2 or len(lines[1].words) != 1:
            raise Problem("expected the number of layers", self.path, 2)
        count = lines[1].whole(lines[1].words[0], "number of layers", 1, LAYERS_MAX)
        rest = [line for line in lines[2:] if line.words]
        if len(rest) != count:
            place = rest[count] if len(rest) > count else lines[1]
            place.fail(f"{len(rest)} layers follow, and {count} are announced: " +
                       ("the end is missing" if len(rest) < count else "who wrote it counted wrong"))
        return [Layer(line, count) for line in rest]

    def group_of(self, suffix, is_weights):
        name = suffix or ("dp" if is_weights else "tp")
        size, _ = self.forms[name]
        if size == self.head.values["all"]:
            return "world", size
        if size > 1:
            self.timeline.groups[name] = self.forms[name]
        return name, size

    def take(self, layer, number, has_wait=True):
        """One pass of a layer. The text has bytes, of the larger buffer of a rank, as nccl-tests counts."""
        us, collective, suffix, size = layer.passes[number]
        if us > 0:
            self.timeline.add(Compute(us))
        if not collective:
            return
        if size == 0:
            self.empty.append(layer.line.number)
            return
        group, ranks = self.group_of(suffix, number == 2)
        if ranks == 1:
            self.alone += 1
            return
        element = type_of_bytes(size)
        parts = BYTES_OF_TYPE[element] * (1 if collective == "all_reduce" else ranks)
        self.padded += size % parts > 0
        elements = -(-size // parts)
        if elements > ELEMENTS_MAX:
            layer.line.fail(f"{elements} elements, expected 1 to {ELEMENTS_MAX}")
        call = Call(collective, elements, element, group, place=f"{self.path}: line {layer.line.number}")
        self.timeline.add(call)
        if has_wait:
            self.timeline.add(Wait(call))

    def read(self):
        """Forward, each collective waited for; then backward, where those of weights run on. Where a layer initiates it, the
        forward pass from the nearest checkpoint on is repeated."""
        for layer in self.layers:
            self.take(layer, 0)
        for index in reversed(range(len(self.layers))):
            if index in self.head.lists["initiates"]:
                begin = max((each for each in self.head.lists["checkpoints"] if each <= index), default=None)
                if begin is None:
                    self.head.line.fail(f"checkpoint_initiates: {index}, before which no layer is a checkpoint")
                for layer in self.layers[begin:index]:
                    self.take(layer, 0)
            self.take(self.layers[index], 1)
            self.take(self.layers[index], 2, has_wait=False)
        self.add_notes()
        return self.timeline

    def add_notes(self):
        if not self.timeline.calls():
            raise Problem(f"{len(self.layers)} layers follow, and none has a collective that moves anything", self.path, 2)
        if self.empty:
            self.timeline.notes.append(empty_note(len(self.empty), lines_text(sorted(set(self.empty)))))
        depending = [layer.line.number for layer in self.layers if layer.has_dependency]
        if depending:
            self.timeline.notes.append(f"left out: {lines_text(depending)}: dependencies of layers, which SimAI does not look at")
        if self.alone:
            self.timeline.notes.append(f"left out: {self.alone} collectives of groups of one rank")
        if self.padded:
            self.timeline.notes.append(f"{self.padded} collectives whose bytes are no whole elements of each rank: rounded up")
        if self.head.values["pp_comm"]:
            self.timeline.notes.append(f"left out: what stages send each other, {self.head.values['pp_comm']} bytes at a time: the text does "
                                       "not say when")


def read_simai(path, text):
    return Reader(path, text).read()
