# SPDX-License-Identifier: Apache-2.0
"""SimAI's workload text, made here: the bytes and the order of its collectives; damaged ones are refused with file, line and reason."""
import re

from imported import calls, imported, refused
from test_simai import size_of
from tool import write

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0"
# Name, dependency; compute, collective and bytes of the forward pass, of gradients of inputs and of weights; update.
LAYERS = ("embedding -1 5000 ALLREDUCE 16384 10 NONE 0 20 ALLGATHER 65536 100",
          "attention -1 7000 ALLGATHER 8192 3500 REDUCESCATTER 4096 1 NONE 0 100",
          "experts -1 0 ALLTOALL_EP 12288 0 ALLTOALL_EP 12296 1 REDUCESCATTER_DP_EP 2048 100",
          "mlp -1 6600 REDUCESCATTER 8192 6600 ALLGATHER 8200 6600 ALLREDUCE 40000 100")
NAMES = {"ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter", "ALLTOALL": "alltoall"}
NAME, DEPENDENCY, COMPUTE, COLLECTIVE, BYTES, UPDATE = 0, 1, 2, 3, 4, 11


def text(head=HEAD, count=len(LAYERS), layers=LAYERS):
    return "\n".join([head, str(count), *layers, ""])


def word(layer, column, new):
    """The text with another word in a column of a layer; a column whose word is empty is missing."""
    words = LAYERS[layer].split()
    words[column] = new
    return text(layers=[*LAYERS[:layer], " ".join(words), *LAYERS[layer + 1:]])


def head(old, new):
    assert old in HEAD, old
    return text(HEAD.replace(old, new))


def line(layer):
    return layer + 3


def wanted():
    """(collective, bytes, group): forward, then from the last layer on those of inputs and of weights."""
    def one(words, at, group):
        name, _, suffix = words[at].partition("_")
        return [] if name == "NONE" else [(NAMES[name], int(words[at + 1]), suffix.lower() or group)]
    rows = [layer.split() for layer in LAYERS]
    return sum((one(words, COLLECTIVE, "tp") for words in rows), []) + \
        sum((one(words, 6, "tp") + one(words, 9, "dp") for words in reversed(rows)), [])


def test_bytes_and_order_are_the_texts():
    found = calls(imported(write("sound.txt", text()))[0]["events"])
    assert [(name, size_of(name, elements, kind, group), group) for name, elements, kind, group in found] == wanted(), found
    assert len(found) == 10


def damaged():
    """(what is damaged, the file, its line, the reason)."""
    sound = text().encode()
    first = LAYERS[0].split()
    return (
        ("an empty file", "", 1, "is empty"),
        ("blanks alone", " \n\t\n", 1, "is empty"),
        ("an empty first line", "\n" + text(), 1, "is empty, expected HYBRID_TRANSFORMER_FWD_IN_BCKWD or"),
        ("the kind of parallelism", head("HYBRID_", "HYBRIT_"), 1, "HYBRIT_TRANSFORMER_FWD_IN_BCKWD: layers of this kind"),
        ("the first line's end", text(HEAD[:60]), 1, "all_gpus: is missing"),
        ("a key that is there twice", head(" ep: 2", " ep: 2 ep: 4"), 1, "ep: is there twice"),
        ("bytes of a key", text().encode().replace(b"vpp:", b"v\xffp:"), 1, "v\ufffdp:: unknown; expected one of"),
        ("a number of ranks", head("all_gpus: 16", "all_gpus: 1e12"), 1, "all_gpus:: 1e12, expected a whole number from 1 to"),
        ("a checkpoint's layer", head("checkpoints: 0", "checkpoints: 1 4"), 1, "checkpoints: layer 4, and the 4 layers are 0 to 3"),
        ("an initiating layer", head("_initiates: 0", "_initiates: 1 9"), 1, "checkpoint_initiates: layer 9, and the 4 layers are"),
        ("all behind the first line", HEAD + "\n", 2, "expected the number of layers"),
        ("the number of layers: a word", text(count="many"), 2, "number of layers: many, expected a whole number"),
        ("the number of layers: none", text(count=0), 2, "number of layers: 0, expected a whole number from 1"),
        ("the number of layers: more", text(count=5), 2, "4 layers follow, and 5 are announced: the end is missing"),
        ("the number of layers: fewer", text(count=3), line(3), "4 layers follow, and 3 are announced"),
        ("half of the file", sound[:len(sound) // 2], 2, "layers follow, and 4 are announced: the end is missing"),
        ("the last line's end", sound[:-20], line(3), "9 words, expected 12: name, dependency"),
        ("a column too few", word(1, UPDATE, ""), line(1), "11 words, expected 12: name, dependency"),
        ("a column too many", word(1, UPDATE, "100 0"), line(1), "13 words, expected 12: name, dependency"),
        ("an unknown collective", word(2, COLLECTIVE, "ALLTOSOME"), line(2), "ALLTOSOME: expected NONE or ALLREDUCE,"),
        ("an unknown group", word(2, COLLECTIVE, "ALLTOALL_TP"), line(2), "ALLTOALL_TP: expected NONE or ALLREDUCE,"),
        ("a collective that is lost", word(3, COLLECTIVE, "NONE"), line(3), "bytes: 8192, expected 0, as its collective is NONE"),
        ("bytes: a word", word(0, BYTES, "0x4000"), line(0), "bytes: 0x4000, expected a whole number from 0"),
        ("bytes: negative", word(0, BYTES, "-16384"), line(0), "bytes: -16384, expected a whole number from 0"),
        ("bytes: absurd", word(0, BYTES, "9" * 14), line(0), f"bytes: {'9' * 14}, expected a whole number"),
        ("bytes: more than NCCL's calls take", word(0, BYTES, str(2 ** 46)), line(0), f"{2 ** 44} elements, expected 1 to"),
        ("bytes: no number", word(0, BYTES, "nan"), line(0), "bytes: nan, expected a whole number"),
        ("bytes: what only Python reads", word(0, BYTES, "16_384"), line(0), "bytes: 16_384, expected a whole number"),
        ("bytes: digits of another script", word(0, BYTES, "\u0661\u0666"), line(0), "bytes: \u0661\u0666, expected a whole number"),
        ("bytes: no UTF-8", sound.replace(b"16384", b"16\xff84"), line(0), "bytes: 16\ufffd84, expected a whole number"),
        ("compute: a word", word(1, COMPUTE, "fast"), line(1), "compute: fast, expected a whole number from 0"),
        ("compute: absurd", word(1, COMPUTE, "1e18"), line(1), "compute: 1e18, expected a whole number from 0 to"),
        ("update: endless", word(1, UPDATE, "inf"), line(1), "update: inf, expected a whole number"),
        ("a dependency on no layer", word(1, DEPENDENCY, "4"), line(1), "dependency: 4, expected a whole number from -1 to 3"),
        ("a negative dependency", word(1, DEPENDENCY, "-2"), line(1), "dependency: -2, expected a whole number from -1"),
        ("all collectives", text(layers=[" ".join([*first[:3], *["NONE", "0", "1"] * 3])] * 4), 2, "4 layers follow, and none has a collective"),
    )


def test_damaged_texts():
    cases = damaged()
    assert len(cases) > 20
    for what, content, number, reason in cases:
        path = write("damaged.txt", content)
        said = refused(path)
        assert re.match(rf"stratus-tune: {re.escape(path)}:{number}: ", said) and reason in said, (what, said)


def test_bytes_that_are_zero():
    """No line: whoever reads the rest of such a file reads what is not there."""
    content = text().encode().replace(b"mlp", b"m\0p")
    path = write("zero.txt", content)
    assert f"{path}: is no text: byte {content.index(0)} is zero" in refused(path)


def test_what_is_not_needed_is_counted_and_named():
    rows = [each.replace("-1", "0", 1) if each.startswith("mlp") else each.replace("16384", "0") for each in LAYERS]
    workload, said = imported(write("notes.txt", text(layers=rows).encode().replace(b"attention", b"att\xff\xfe")))
    assert len(calls(workload["events"])) == 9
    assert "left out: 1 call of no elements: line 3" in said and "left out: line 6: dependencies of layers, which SimAI" in said, said
