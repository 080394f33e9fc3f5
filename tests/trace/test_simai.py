# SPDX-License-Identifier: Apache-2.0
"""SimAI's workload text: the collectives of the workload are those of the text, in its order, with its bytes; damage is named."""
import json

from imported import calls, compute_us, data, imported, refused, run_inside, waits
from names import BYTES_OF_TYPE
from test_replay import listed
from tool import read, scratch, write

FILE = data("simai.txt")
RANKS = {"tp": 2, "dp": 4, "ep": 2, "dp_ep": 2}
# In the order in which SimAI issues them: forward; then from the last layer on, gradients of inputs and of weights.
WANTED = [("all_reduce", 16384, "tp"), ("all_gather", 8192, "tp"), ("alltoall", 12288, "ep"), ("reduce_scatter", 8192, "tp"),
          ("all_gather", 8192, "tp"), ("all_reduce", 40000, "dp"), ("alltoall", 12290, "ep"), ("reduce_scatter", 4096, "dp_ep"),
          ("all_gather", 65536, "dp")]


def size_of(collective, elements, kind, group):
    return elements * BYTES_OF_TYPE[kind] * (RANKS[group] if collective != "all_reduce" else 1)


def test_collectives_are_the_texts():
    workload, said = imported(FILE, "--batch", "3")
    assert [(name, size_of(name, elements, kind, group), group) for name, elements, kind, group in calls(workload["events"])] == WANTED
    assert workload["groups"] == [{"name": "tp", "size": 2, "stride": 1}, {"name": "ep", "size": 2, "stride": 2},
                                  {"name": "dp", "size": 4, "stride": 2}, {"name": "dp_ep", "size": 2, "stride": 4}]
    # Those of weights run on; nanoseconds are microseconds with a fraction.
    assert waits(workload["events"]) == [1, 2, 3, 4, 5, 7]
    assert compute_us(workload["events"]) == [556.002, 1750, 660.348, 660.348, 660.348, 0.001 + 1750 + 1.5 + 0.001 + 0.001 + 0.001, 0.002]
    assert workload["name"] == "simai" and workload["batch"] == 3
    assert "left out: what stages send each other, 8388608 bytes at a time" in said and "left out: 1 call of no elements" in said


def test_the_plan_has_the_texts_bytes():
    path = scratch("simai.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(imported(FILE)[0], file)
    found = [(words[1], int(words[7]), words[5]) for kind, words in listed(path, 16) if kind == "collective"]
    assert found == WANTED, found


def test_repeated_forward_passes():
    """Layers 2 and 3 are computed anew before the gradients of layer 4, which initiates it from the checkpoint at 2 on."""
    text = read(FILE).replace("checkpoints: 0 checkpoint_initiates: 0", "checkpoints: 1 2 checkpoint_initiates: 1 4")
    found = [(name, group) for name, _, _, group in calls(imported(write("again.txt", text))[0]["events"])]
    assert found[:6] == [(name, group) for name, _, group in WANTED[:6]]
    assert found[6:] == [("all_reduce", "tp"), ("all_gather", "tp"), *[(name, group) for name, _, group in WANTED[6:]]]


def test_bytes_that_are_no_whole_elements():
    _, said = imported(write("odd.txt", read(FILE).replace("ALLGATHER\t65536", "ALLGATHER\t65537")))
    assert "1 collectives whose bytes are no whole elements of each rank: rounded up" in said


def test_groups_of_one_rank_move_nothing():
    text = read(FILE).replace("NPU_group: 2 ep: 2", "NPU_group: 1 ep: 1")
    found = calls(imported(write("alone.txt", text))[0]["events"])
    assert [(name, group) for name, _, _, group in found] == [("all_reduce", "dp"), ("reduce_scatter", "dp_ep"), ("all_gather", "dp")]


DAMAGED = (
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DATA", ":1: DATA: layers of this kind of parallelism are not read; expected HYBRID_TRANSFORMER"),
    ("NPU_group: 2", "NPU_group: two", ":1: model_parallel_NPU_group:: two, expected a whole number from 1"),
    ("NPU_group: 2", "NPU_group: 0", ":1: model_parallel_NPU_group:: 0, expected a whole number from 1"),
    ("NPU_group: 2", "NPU_group: 3", ":1: all_gpus: 16, expected a multiple of 3 x 2, tensors and stages"),
    ("model_parallel_NPU_group: 2 ", "", ":1: model_parallel_NPU_group: is missing"),
    (" all_gpus: 16", "", ":1: all_gpus: is missing"),
    (" ep: 2", " ep: 3", ":1: ep: 3, expected to divide the 4 ranks that are data parallel"),
    (" ga: 1", " gas: 1", ":1: gas:: unknown; expected one of model_parallel_NPU_group:,"),
    (" pp_comm: 8388608.0", " pp_comm:", ":1: pp_comm:: its number is missing"),
    ("checkpoints: 0", "checkpoints: 99", ":1: checkpoints: 99 layers, and"),
    ("checkpoint_initiates: 0", "checkpoint_initiates: 1 3", ":1: checkpoint_initiates: 3, before which no layer is a checkpoint"),
    ("\n6\n", "\nsix\n", ":2: number of layers: six, expected a whole number"),
    ("\n6\n", "\n6 7\n", ":2: expected the number of layers"),
    ("\n6\n", "\n7\n", ":2: 6 layers follow, and 7 are announced: the end is missing"),
    ("\n6\n", "\n5\n", ":8: 6 layers follow, and 5 are announced: who wrote it counted wrong"),
    ("1750000\tALLGATHER", "1750000\tALLGATTER", ":6: ALLGATTER: expected NONE or ALLREDUCE,"),
    ("ALLTOALL_EP\t12288", "ALLTOALL_PE\t12288", ":7: ALLTOALL_PE: expected NONE or"),
    ("ALLTOALL_EP\t12288", "ALLTOALL_EP\t-5", ":7: bytes: -5, expected a whole number from 0"),
    ("ALLTOALL_EP\t12288", "ALLTOALL_EP\t12288.5", ":7: bytes: 12288.5, expected a whole number"),
    ("1750000\t", "fast\t", ":6: compute: fast, expected a whole number from 0"),
    ("1750000\t", "", ":6: 11 words, expected 12: name, dependency, three times compute, collective and bytes, update"),
    ("mlp_row\t-1", "mlp_row\t-2", ":8: dependency: -2, expected a whole number from -1"),
    ("40000\t100", "40000\tnan", ":8: update: nan, expected a whole number"),
    ("40000", "99999999999999999", ":8: bytes: 99999999999999999, expected a whole number from 0"),
)


def test_damaged_texts_are_refused_with_the_place():
    text = read(FILE)
    assert len(DAMAGED) > 20
    for old, new, says in DAMAGED:
        assert old in text, old
        path = write("damaged.txt", text.replace(old, new, 1))
        said = refused(path, run=run_inside)
        assert said.startswith(f"stratus-tune: {path}{says}"), (said, says)
