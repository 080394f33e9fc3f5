# SPDX-License-Identifier: Apache-2.0
"""Chakra's traces, made here byte for byte, without protobuf: the bytes and the order of their collectives; damaged ones are refused
with file, byte and reason, and what is not needed is counted and named."""
import gzip
import re

from imported import calls, exchanges, imported, of_rank, refused
from names import BYTES_OF_TYPE
from test_chakra import need_protobuf, varint
from tool import write

COMPUTE, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
NUMBER, FIXED, BLOCK, GROUP = 0, 1, 2, 3  # wire types
RANKS = 2


def field(number, wire, content):
    return varint(number << 3 | wire) + content


def number(of, value):
    return field(of, NUMBER, varint(value & (1 << 64) - 1))


def block(of, content):
    return field(of, BLOCK, varint(len(content)) + content)


def attribute(name, value):
    kind = block(29, value) if isinstance(value, bytes) else number(27, value) if isinstance(value, bool) else number(9, value)
    return block(10, block(1, name.encode()) + kind)


def node(id_, kind, after=(), us=0, **attributes):
    """Its fields, each by its name: a test replaces one by other bytes, or by none."""
    fields = {"id": number(1, id_), "name": block(2, b"node%d" % id_), "type": number(3, kind)}
    if after:
        fields["data_deps"] = block(5, b"".join(map(varint, after)))
    if us:
        fields["duration_micros"] = number(7, us)
    return {**fields, **{name: attribute(name, value) for name, value in attributes.items()}}


def collective(id_, kind, size, after):
    return node(id_, COLLECTIVE, after, comm_type=kind, comm_size=size)


# (collective, bytes) of each, and what it is in the schema.
WANTED = (("all_reduce", 4096, 0), ("all_gather", 1000, 2), ("reduce_scatter", 4000, 7), ("alltoall", 4002, 6), ("broadcast", 8, 5))
METADATA = block(1, b"1.1.1-chakra.0.0.4")


def nodes():
    """Each step of compute has a collective behind it: nodes 1, 3, ... and 2, 4, ..."""
    found = []
    for each, (_, size, kind) in enumerate(WANTED):
        found.append(node(2 * each + 1, COMPUTE, [2 * each] if each else [], us=100))
        found.append(collective(2 * each + 2, kind, size, [2 * each + 1]))
    return found


def bodies(of=None):
    return [METADATA, *(b"".join(each.values()) for each in (nodes() if of is None else of))]


def file_of(found):
    return b"".join(varint(len(each)) + each for each in found)


def place(index, found=None):
    """The byte at which a message begins; 0 is the metadata, 1 the first node."""
    return len(file_of((found or bodies())[:index]))


def changed(index, **fields):
    """The trace with fields of a node replaced by other bytes, or added."""
    found = nodes()
    found[index - 1].update(fields)
    return file_of(bodies(found))


def added(*more):
    return file_of(bodies([*nodes(), *more]))


def replaced(index, content):
    found = bodies()
    found[index] = content
    return file_of(found)


def test_bytes_and_order_are_the_files():
    need_protobuf()
    found = calls(imported(write("sound.0.et", file_of(bodies())), "--world", str(RANKS))[0]["events"])
    sizes = [elements * BYTES_OF_TYPE[kind] * (RANKS if name in ("alltoall", "reduce_scatter") else 1) for name, elements, kind, _ in found]
    assert [(name, size) for (name, *_), size in zip(found, sizes)] == [each[:2] for each in WANTED], found


def framing():
    """(what is damaged, the file, the byte, the reason): how messages lie in the file, and the fields in a message."""
    sound, last = file_of(bodies()), len(bodies()) - 1
    end = len(sound)
    cut_attribute = nodes()[1]["comm_size"][:-2]
    # Places of fields: behind the length of node 2, which is one byte, and its fields before.
    begin = place(2) + 1
    sizes = {name: len(content) for name, content in nodes()[1].items()}
    return (
        ("a number that does not end, as a length", sound + b"\xff\xff", end, "expected the length of a message, at most"),
        ("a length of eleven bytes", sound + b"\x80" * 10 + b"\x01", end, "expected the length of a message, at most"),
        ("an absurd length", sound + varint(1 << 40), end, "expected the length of a message, at most"),
        ("a length beyond the end", sound + b"\x50\x08\x01", end, "a message of 80 bytes, of which the file has 2: the file ends early"),
        ("the last byte", sound[:-1], place(last), "of which the file has"),
        ("all but a part of the metadata", sound[:9], 0, "a message of 20 bytes, of which the file has 8: the file ends early"),
        ("all nodes", sound[:place(1)], place(1), "the file ends, expected a node"),
        ("the metadata", sound[place(1):], 0, "expected Chakra's GlobalMetadata"),
        ("the metadata's field", b"\x09" + sound[1:], 0, "expected Chakra's GlobalMetadata"),
        ("the length of the metadata", b"\x13" + sound[1:], 0, "expected Chakra's GlobalMetadata"),
        ("zeros at the end", sound + bytes(40), end, "a message of no bytes, expected a node"),
        ("zeros alone", bytes(40), 1, "a message of no bytes, expected a node"),
        ("two files in one", sound + sound, end + 1, "id: wire type 2, expected 0"),
        ("id: wire type", changed(2, id=block(1, b"\x02")), begin, "id: wire type 2, expected 0"),
        ("type: wire type", changed(2, type=field(3, FIXED, bytes(8))), begin + sizes["id"] + sizes["name"], "type: wire type 1, expected 0"),
        ("name: wire type", changed(2, name=number(2, 2)), begin + sizes["id"], "name: wire type 0, expected 2"),
        ("a group, which is long gone", changed(2, id=field(1, GROUP, b"")), begin, "id: wire type 3, which it cannot have"),
        ("a wire type that is none", changed(2, id=field(1, 7, b"\x02")), begin, "id: wire type 7, which it cannot have"),
        ("a field without number", changed(2, id=b"\x00\x02"), begin, "field 0: wire type 0, which it cannot have"),
        ("a number that does not end", replaced(2, number(1, 2) + b"\x18\xff"), begin + 2, "type: a number that does not end"),
        ("a text beyond its node", replaced(2, number(1, 2) + b"\x12\x7fabc"), begin + 2, "name: 127 bytes, of which 3 are there"),
        ("an attribute beyond its node", changed(2, comm_size=cut_attribute), place(2) + 1 + sum(sizes.values()) - sizes["comm_size"],
         "attr: "),
        ("a value's wire type", changed(2, comm_size=block(10, block(1, b"comm_size") + field(9, BLOCK, b"\x01\x08"))),
         begin + sum(sizes.values()) - sizes["comm_size"] + 13, "int64_val: wire type 2, expected 0"),
    )


def facts():
    """(what is damaged, the file, the node, the reason): nodes that can be read, and make no sense."""
    circle = nodes()
    circle[4]["data_deps"] = block(5, varint(8))  # node 5 waits for 8, which is behind it; 9 and 10 are not of that circle
    huge = 1 << 45
    return (
        ("a circle", file_of(bodies(circle)), 5, "is in a circle of dependencies, with nodes 8, 7, 6"),
        ("a circle behind nodes that wait for it", file_of(bodies([*circle[8:], *circle[:8]])), 8, "circle of dependencies, with nodes 7, 6, 5"),
        ("an id that is there twice", changed(4, id=number(1, 2)), 2, f"its id is also that of the node at byte {place(2)}"),
        ("an id that is lost, twice", file_of(bodies([{**each, "id": b""} if at in (2, 3) else each for at, each in enumerate(nodes())])), 0,
         f"its id is also that of the node at byte {place(3)}"),
        ("no kind of collective", changed(2, comm_type=b""), 2, "comm_type: missing, expected a whole number"),
        ("an unknown collective", changed(2, comm_type=attribute("comm_type", 10)), 2, "comm_type: 10, expected a whole number from 0 to 9"),
        ("a negative collective", changed(2, comm_type=attribute("comm_type", -1)), 2, "comm_type: -1, expected a whole number from 0"),
        ("a kind that is a text", changed(2, comm_type=attribute("comm_type", b"ALL_REDUCE")), 2, "comm_type: ALL_REDUCE, expected"),
        ("a collective that no file can name", changed(2, comm_type=attribute("comm_type", 3)), 2, "GATHER: no collective"),
        ("no size", changed(2, comm_size=b""), 2, "comm_size: missing, expected a whole number"),
        ("a negative size", changed(2, comm_size=attribute("comm_size", -4096)), 2, "comm_size: -4096, expected a whole number from 0"),
        ("an absurd size", changed(2, comm_size=attribute("comm_size", 1 << 62)), 2, f"comm_size: {1 << 62}, expected a whole number"),
        ("more than NCCL's calls take", changed(2, comm_size=attribute("comm_size", huge)), 2, f"{huge // 4} elements, expected 1 to"),
        ("a size that is a long text", changed(2, comm_size=attribute("comm_size", b"x" * 5000)), 2, f"comm_size: {'x' * 40}, expected"),
        ("a size without a share for each rank", changed(6, comm_size=attribute("comm_size", 4001)), 6, "expected a multiple of 2, the ranks"),
        ("two sizes", changed(2, more=attribute("comm_size", 64)), 2, "comm_size is there twice"),
        ("two kinds", changed(2, more=attribute("comm_type", 2)), 2, "comm_type is there twice"),
        ("a type that no node has", changed(2, type=number(3, 99)), 2, "type: 99, expected one of communication, as it has comm_size"),
        ("no type", changed(2, type=b""), 2, "type: 0, expected one of communication, as it has comm_size"),
        ("absurd compute", changed(1, duration_micros=number(7, 1 << 63)), 1, f"duration_micros: {1 << 63}, expected at most"),
        ("negative compute", changed(1, duration_micros=number(7, -5)), 1, f"duration_micros: {(1 << 64) - 5}, expected at most"),
        ("a group that is nowhere", changed(2, pg_name=attribute("pg_name", b"9")), 2, "which ranks its group '9' has is not in the trace"),
        ("a group that is no UTF-8", changed(2, pg_name=attribute("pg_name", b"\xff\xfe")), 2, "which ranks its group '\ufffd\ufffd' has is not"),
        ("a group that is a number", changed(2, pg_name=attribute("pg_name", 9)), 2, "pg_name: expected a text"),
        ("who ran it", changed(2, is_cpu_op=attribute("is_cpu_op", b"no")), 2, "is_cpu_op: no, expected true or false"),
        ("a peer that is no rank", added(node(11, SEND, comm_dst=RANKS, comm_size=64)), 11, "its peer is rank 2, which is not in its group"),
        ("a negative peer", added(node(11, RECV, comm_src=-1, comm_size=64)), 11, "comm_src: -1, expected a whole number from 0"),
        ("no peer", added(node(11, SEND, comm_size=64)), 11, "comm_dst: missing, expected a whole number"),
        ("more than a send takes", added(node(11, SEND, comm_dst=1, comm_size=huge)), 11, f"{huge // 4} elements, expected 1 to"),
    )


def refused_at(path, begin, what, reason):
    said = refused(path, "--world", str(RANKS))
    assert re.match(rf"stratus-tune: {re.escape(path)}: {begin}", said) and reason in said, (what, begin, said)


def test_damaged_framing():
    need_protobuf()
    cases = framing()
    assert len(cases) > 20
    for what, content, byte, reason in cases:
        refused_at(write("damaged.0.et", content), f"byte {byte}: ", what, reason)


def test_damaged_nodes():
    need_protobuf()
    cases = facts()
    assert len(cases) > 20
    for what, content, id_, reason in cases:
        refused_at(write("damaged.0.et", content), rf"byte \d+: node {id_}, 'node\d+': ", what, reason)


def test_files_without_anything_in_them():
    need_protobuf()
    said = refused(write("empty.0.et", b""))
    assert "empty.0.et:1: is empty" in said, said
    quiet = write("quiet.0.et", file_of(bodies([node(1, COMPUTE, us=5)])))
    refused_at(quiet, "no communication in it: none of its 1 nodes", "no collective", "moves anything")
    packed = gzip.compress(file_of(bodies()))
    refused_at(write("cut.0.et.gz", packed[:-20]), "cannot be unpacked", "a cut archive", "the file is cut or damaged")


def test_one_damaged_file_of_several():
    """The message names the damaged one."""
    need_protobuf()
    sound, bad = write("job.0.et", file_of(bodies())), write("job.1.et", file_of(bodies())[:-3])
    said = refused(sound, bad)
    assert said.startswith(f"stratus-tune: {bad}: byte {place(len(bodies()) - 1)}: "), said


def test_what_is_not_needed_is_counted_and_named():
    need_protobuf()
    content = added(node(20, COMPUTE, [4711], us=1), node(21, COMPUTE, [21], us=1), node(22, 99), node(23, 2), collective(24, 0, 0, [1]),
                    node(25, COMPUTE, us=1, comm_size=64))
    workload, said = imported(write("notes.0.et", content), "--world", str(RANKS))
    assert len(calls(workload["events"])) == len(WANTED)
    for note in ("dependencies on nodes that are not there, 1: 20 (node20)", "dependencies on nodes themselves, 1: 21 (node21)",
                 "nodes of no known type, 1: 22 (node22)", "nodes of memory, 1: 23 (node23)", "1 call of no elements: node 24 (node24)",
                 "comm_size of nodes that are no communication, 1: 25 (node25)"):
        assert f"left out: {note}" in said, (note, said)


def test_circles_of_the_host_are_broken_where_they_are():
    """What only waits for a circle is not taken for a part of it."""
    need_protobuf()
    kernel = [{**each, "is_cpu_op": attribute("is_cpu_op", False)} for each in nodes()]
    host = [node(30, COMPUTE, [31], us=9, is_cpu_op=True), node(31, COMPUTE, [32], us=9, is_cpu_op=True), node(32, COMPUTE, [31], us=9, is_cpu_op=True)]
    workload, said = imported(write("host.0.et", file_of(bodies([*host, *kernel]))), "--world", str(RANKS))
    assert "circles of dependencies of the host, broken, 1: 31 (node31)" in said, said
    assert [each["compute_us"] for each in workload["events"] if "compute_us" in each] == [100] * len(WANTED)


def test_numbers_as_truths():
    """Older converters write 0 and 1 of is_cpu_op."""
    need_protobuf()
    kernel = [{**each, "is_cpu_op": block(10, block(1, b"is_cpu_op") + number(7, 0))} for each in nodes()]
    host = node(30, COMPUTE, us=7777, is_cpu_op=1)
    workload, _ = imported(write("old.0.et", file_of(bodies([host, *kernel]))), "--world", str(RANKS))
    assert [each["compute_us"] for each in workload["events"] if "compute_us" in each] == [100] * len(WANTED)


def test_sends_have_the_files_bytes():
    need_protobuf()
    first = write("pair.0.et", file_of(bodies([node(1, SEND, comm_dst=1, comm_size=400)])))
    last = write("pair.1.et", file_of(bodies([node(1, RECV, comm_src=0, comm_size=400)])))
    workload, _ = imported(first, last)
    assert [exchanges(of_rank(workload["events"], rank)) for rank in range(2)] == \
        [[("float32", "world", [("send", 1, 100)])], [("float32", "world", [("recv", 0, 100)])]]
