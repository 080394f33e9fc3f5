# SPDX-License-Identifier: Apache-2.0
"""Chakra's execution traces, written here by the same library: the graph's order and bytes, ranks merged, and damage."""
import contextlib
import gzip
import io
import json
import os
import random

import chakra
from imported import calls, compute_us, exchanges, imported, of_rank, program, refused, run_inside, waits
from problem import Problem
from tap import Skip
from test_replay import NCCL, coll, listed, need_coll
from tool import mutate, read, run, scratch, write

ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, _, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, _, BARRIER = range(10)


def need_protobuf():
    try:
        return chakra.messages()
    except Problem as problem:
        raise Skip(problem.text) from None


def varint(value):
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def framed(message):
    content = message if isinstance(message, bytes) else message.SerializeToString()
    return varint(len(content)) + content


class Graph:
    """A trace of one rank, as chakra's generators write them: nodes in the order in which they are added."""

    def __init__(self):
        self.classes = need_protobuf()
        metadata = self.classes["GlobalMetadata"](version=b"1.1.1-chakra.0.0.4")
        self.messages = [metadata]

    def node(self, kind, name, *after, us=0, number=None, **attributes):
        node = self.classes["Node"](id=len(self.messages) if number is None else number, name=name.encode(), type=kind, duration_micros=us)
        node.data_deps.extend(each.id for each in after)
        for key, value in attributes.items():
            field = "string_val" if isinstance(value, str) else "bool_val" if isinstance(value, bool) else "int64_val"
            node.attr.add(name=key.encode(), **{field: value.encode() if isinstance(value, str) else value})
        self.messages.append(node)
        return node

    def compute(self, us, *after, **attributes):
        return self.node(chakra.COMP_NODE, f"compute_{len(self.messages)}", *after, us=us, **attributes)

    def collective(self, kind, size, *after, **attributes):
        return self.node(chakra.COMM_COLL_NODE, f"collective_{len(self.messages)}", *after, comm_type=kind, comm_size=size, **attributes)

    def send(self, peer, size, *after, **attributes):
        return self.node(chakra.COMM_SEND_NODE, f"send_{len(self.messages)}", *after, comm_dst=peer, comm_size=size, **attributes)

    def recv(self, peer, size, *after, **attributes):
        return self.node(chakra.COMM_RECV_NODE, f"recv_{len(self.messages)}", *after, comm_src=peer, comm_size=size, **attributes)

    def bytes(self):
        return b"".join(map(framed, self.messages))

    def write(self, name):
        return write(name, self.bytes())


def data_parallel():
    """Two buckets, the second of which the optimizer waits for; then what ZeRO would do."""
    graph = Graph()
    forward = graph.compute(100)
    backward = graph.compute(200, forward)
    first = graph.collective(ALL_REDUCE, 4096, backward)
    last = graph.collective(ALL_REDUCE, 4100, graph.compute(200, backward))
    step = graph.compute(50, first, last)
    graph.collective(ALL_GATHER, 1000, step)
    graph.collective(REDUCE_SCATTER, 4000, step)
    graph.collective(ALL_TO_ALL, 4002, step)
    graph.collective(BROADCAST, 8, step)
    graph.collective(BARRIER, 0, step)
    return graph


def test_a_graph_is_gone_through_in_order():
    found = imported(data_parallel().write("dp.0.et"), "--world", "2")[0]["events"]
    assert calls(found) == [("all_reduce", 1024, "float32", "world"), ("all_reduce", 1025, "float32", "world"),
                            ("all_gather", 250, "float32", "world"), ("reduce_scatter", 500, "float32", "world"),
                            ("alltoall", 2001, "uint8", "world"), ("broadcast", 2, "float32", "world"), ("all_reduce", 1, "float32", "world")]
    assert compute_us(found) == [300, 200, 50] and waits(found) == [1, 2]


def test_bytes_are_the_files():
    path = scratch("dp.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(imported(data_parallel().write("dp.0.et"), "--world", "2")[0], file)
    # Those of the larger buffer: an AllGather's input is one of two shares.
    found = [(words[1], int(words[7])) for kind, words in listed(path, 2) if kind == "collective"]
    assert found == [("all_reduce", 4096), ("all_reduce", 4100), ("all_gather", 2000), ("reduce_scatter", 4000), ("alltoall", 4002),
                     ("broadcast", 8), ("all_reduce", 4)], found


def test_nodes_in_any_order():
    """A node may stand before those that it depends on."""
    graph = data_parallel()
    head, nodes = graph.messages[:1], graph.messages[1:]
    graph.messages = head + nodes[4:6] + nodes[:4] + nodes[6:]
    found = imported(graph.write("mixed.0.et"), "--world", "2")[0]["events"]
    assert [each[:2] for each in calls(found)[:3]] == [("all_reduce", 1025), ("all_reduce", 1024), ("all_gather", 250)] or \
        [each[:2] for each in calls(found)[:3]] == [("all_reduce", 1024), ("all_reduce", 1025), ("all_gather", 250)]
    assert compute_us(found)[-1] == 50 and sum(compute_us(found)) == 550


def test_packed_files():
    path = write("dp.0.et.gz", gzip.compress(data_parallel().bytes()))
    assert len(calls(imported(path, "--world", "2")[0]["events"])) == 7


def test_with_gpus_what_the_host_does_is_no_compute():
    graph = Graph()
    launch = graph.compute(1000, is_cpu_op=True)
    graph.collective(ALL_REDUCE, 64, graph.compute(30, launch, is_cpu_op=False), is_cpu_op=False)
    assert compute_us(imported(graph.write("gpu.0.et"), "--world", "2")[0]["events"]) == [30]


def pipeline():
    """Rank 0 sends two microbatches to rank 1, and gets two back; what nothing orders is one call."""
    first, last = Graph(), Graph()
    forward = first.compute(10)
    first.send(1, 400, forward)
    second = first.compute(10, forward)
    first.send(1, 400, second)
    back = first.recv(1, 200, second)
    first.collective(ALL_REDUCE, 80, first.compute(20, back, first.recv(1, 200)))
    got = last.recv(0, 400)
    done = last.compute(30, got)
    last.recv(0, 400, done)
    last.send(0, 200, done)
    last.send(0, 200, done)
    last.collective(ALL_REDUCE, 80, done)
    return first.write("pipe.0.et"), last.write("pipe.1.et")


def test_a_pipeline_of_two_ranks():
    workload, said = imported(*pipeline())
    first, last = (of_rank(workload["events"], rank) for rank in range(2))
    assert [parts for _, _, parts in exchanges(first)] == [
        [("send", 1, 100)], [("send", 1, 100), ("recv", 1, 50), ("recv", 1, 50)]], first
    assert [parts for _, _, parts in exchanges(last)] == [[("recv", 0, 100)], [("recv", 0, 100), ("send", 0, 50), ("send", 0, 50)]], last
    assert compute_us(first) == [10, 10, 20] and waits(first) == [2] and compute_us(last) == [30]
    assert "Chakra trace, step 0 of 2 ranks" in said


def test_a_pipeline_is_replayed():
    need_coll()
    path, results = scratch("pipe.json"), scratch("pipe-results.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(imported(*pipeline())[0], file)
    coll("--hosts", "local:2", "--replay", path, "--replay-steps", "1", "--replay-skip", "0", "-T", "100", "--json", results, NCCL_HOME=NCCL)
    found, = json.loads(read(results))["workloads"]
    assert found["wrong"] == 0 and found["collectives"] == 3, found


def test_groups_of_a_file_beside_it():
    graph = Graph()
    graph.collective(ALL_GATHER, 64, graph.compute(5), pg_name="3")
    path, groups = graph.write("groups.1.et"), write("groups.json", json.dumps({"3": [1, 3], "4": [0, 1, 2, 3]}))
    workload, _ = imported(path, groups)
    assert workload["groups"] == [{"name": "group3", "size": 2, "stride": 2}]
    assert calls(workload["events"]) == [("all_gather", 16, "float32", "group3")]
    assert "which ranks its group '3' has is not in the trace: give the file of groups" in refused(path)


def test_groups_that_pytorch_wrote():
    graph = Graph()
    node = graph.node(chakra.METADATA_NODE, "## process_group:init ##")
    node.inputs.values = str([json.dumps([{"pg_name": "0", "ranks": [0, 1, 2, 3]}, {"pg_name": "7", "ranks": [0, 1]}])]).encode()
    graph.collective(ALL_REDUCE, 64, graph.compute(5), pg_name="7")
    graph.collective(ALL_REDUCE, 32, pg_name="0")
    workload, _ = imported(graph.write("pg.0.et"))
    assert workload["groups"] == [{"name": "group7", "size": 2, "stride": 1}]
    assert calls(workload["events"]) == [("all_reduce", 16, "float32", "group7"), ("all_reduce", 8, "float32", "world")]


def test_what_is_not_needed_is_counted_and_named():
    graph = data_parallel()
    graph.node(chakra.MEM_LOAD_NODE, "load weights", us=7)
    graph.node(chakra.MEM_STORE_NODE, "store weights", us=7)
    graph.node(99, "from the future")
    graph.collective(ALL_REDUCE, 0)
    graph.compute(1).data_deps.append(4711)
    graph.messages[2].data_deps.append(2)  # as PyTorch's converter writes some
    lost = graph.node(chakra.METADATA_NODE, "## process_group:init ##")
    lost.inputs.values = b"[{broken"
    workload, said = imported(graph.write("notes.0.et"), "--world", "2")
    assert len(calls(workload["events"])) == 7
    for note in ("left out: nodes of memory, 2: 12 (load weights), 13 (store weights)",
                 "left out: nodes of no known type, 1: 14 (from the future)", "left out: 1 call of no elements",
                 "left out: dependencies on nodes that are not there, 1: 16 (compute_16)",
                 "left out: dependencies on nodes themselves, 1: 2 (compute_2)",
                 "left out: lists of process groups that cannot be read, 1: 17 (## process_group:init ##)"):
        assert note in said, (note, said)


def spoilt(change):
    """The trace of data parallelism with a node of it, or its bytes, changed."""
    graph = data_parallel()
    content = change(graph)
    return content if isinstance(content, bytes) else graph.bytes()


def attribute(number, name, value):
    def change(graph):
        found = next(each for each in graph.messages[number].attr if each.name == name.encode())
        found.int64_val = value
    return change


def without(number, name):
    def change(graph):
        node = graph.messages[number]
        left = [each for each in node.attr if each.name != name.encode()]
        del node.attr[:]
        node.attr.extend(left)
    return change


def put(number, **values):
    def change(graph):
        for name, value in values.items():
            setattr(graph.messages[number], name, value)
    return change


def depend(number, *others):
    return lambda graph: graph.messages[number].data_deps.extend(others)


def replaced(number, content):
    return lambda graph: b"".join(content if index == number else framed(each) for index, each in enumerate(graph.messages))


DAMAGED = (
    (lambda graph: graph.bytes()[:-1], "of which the file has"), (lambda graph: graph.bytes()[:64], "the file ends early"),
    (lambda graph: graph.bytes() + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "expected the length of a message"),
    (lambda graph: graph.bytes() + b"\xff\xff\xff\xff\x0f", "expected the length of a message, at most 67108864"),
    (replaced(3, framed(b"\xff\xff\xff")), ": no good node of Chakra's schema"), (replaced(3, framed(b"\x12\x7f" + b"a")), ": no good node"),
    (put(4, id=3), "node 3, 'compute_4': its id is also that of the node at byte "),
    (depend(1, 6), "is in a circle of dependencies"), (without(3, "comm_type"), "node 3, 'collective_3': comm_type: missing, expected"),
    (without(3, "comm_size"), "node 3, 'collective_3': comm_size: missing, expected"),
    (attribute(3, "comm_type", 10), "comm_type: 10, expected a whole number from 0 to 9"),
    (attribute(3, "comm_type", -1), "comm_type: -1, expected a whole number from 0 to 9"),
    (attribute(3, "comm_type", GATHER), "GATHER: no collective that a workload file can name; --skip gather leaves it out"),
    (attribute(3, "comm_size", -4), "comm_size: -4, expected a whole number from 0"),
    (attribute(3, "comm_size", 1 << 50), f"comm_size: {1 << 50}, expected a whole number from 0"),
    (attribute(8, "comm_size", 4001), "comm_size: 4001, expected a multiple of 2, the ranks of its group"),
    (put(1, duration_micros=10 ** 12), "node 1, 'compute_1': duration_micros: 1000000000000, expected at most"),
    (lambda graph: graph.messages[3].attr.add(name=b"pg_name", string_val=b"9") and None, "which ranks its group '9' has is not in the trace"),
    (lambda graph: graph.messages[3].attr.add(name=b"pg_name", int64_val=9) and None, "pg_name: expected a text"),
    (lambda graph: graph.send(5, 64) and None, "its peer is rank 5, which is not in its group"),
    (lambda graph: graph.send(1, 0) and None, "comm_size: 0, expected a whole number from 1"),
    (lambda graph: graph.node(chakra.COMM_RECV_NODE, "recv", comm_size=8) and None, "comm_src: missing, expected a whole number"),
)


def test_damaged_files_are_refused_with_the_place():
    need_protobuf()
    assert len(DAMAGED) > 20
    for change, says in DAMAGED:
        path = write("damaged.0.et", spoilt(change))
        said = refused(path, "--world", "2", run=run_inside)
        assert said.startswith(f"stratus-tune: {path}: byte ") and says in said, (said, says)
    quiet = Graph()
    quiet.compute(5)
    assert "no communication in it" in refused(quiet.write("quiet.0.et"), "--world", "2", run=run_inside)


def test_without_the_library_it_says_what_to_install():
    os.makedirs(scratch("without"))
    write("without/sitecustomize.py", "import sys; sys.modules['google.protobuf'] = None\n")
    _, said = run("workload", data_parallel().write("dp.0.et"), status=1, environment={"PYTHONPATH": scratch("without")})
    assert "needs python3-protobuf (apt-get install python3-protobuf, or pip install protobuf)" in said, said


def test_names_may_be_anything():
    graph = data_parallel()
    graph.messages[1].name = b"caf\xe9 \x1b[31m"
    assert len(calls(imported(graph.write("latin.0.et"), "--world", "2")[0]["events"])) == 7


def test_mutations_are_read_or_refused():
    """Whatever is in a file: a workload, or one line that names the file."""
    content = data_parallel().bytes()
    seed = int(os.environ.get("SEED") or 1)
    chance, refusals = random.Random(seed), 0
    for turn in range(200):
        path = write("mutant.0.et", mutate(chance, content))
        options = program().parse(["workload", path, "--world", "2"])
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = program().status_of(lambda: program().run(options))  # pylint: disable=cell-var-from-loop
        assert status in (0, 1) and (status == 0 or path in said.getvalue()), f"SEED={seed}, turn {turn}: {status} {said.getvalue()}"
        refusals += status
    assert 50 < refusals < 200, refusals
