# SPDX-License-Identifier: Apache-2.0
"""The messages of MLCommons Chakra's execution traces: those fields that are needed, decoded by Google's protobuf. A file is
messages, each behind its length: GlobalMetadata, then one Node after the other (schema/protobuf/et_def.proto)."""
import re
import warnings

from problem import Problem

METADATA_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE = range(1, 8)
KNOWN_LAST = 10  # STORAGE_NODE, BATCH_NODE and CHECKPOINT_NODE follow
MESSAGE_MAX = 1 << 26  # bytes; a node has some hundred
NEEDS = "needs python3-protobuf (apt-get install python3-protobuf, or pip install protobuf)"

# What is read, and the other fields of a Node: one that protobuf does not know is then a rare thing, worth a look of its own.
# name: (number, type, is it repeated). Types are those of descriptor.proto's FieldDescriptorProto, or messages. Texts are bytes here, as
# names may be anything.
FIELDS = {
    "Attribute": {"name": (1, "BYTES", False), "double_val": (3, "DOUBLE", False), "int32_val": (7, "INT32", False),
                  "int64_val": (9, "INT64", False), "uint32_val": (11, "UINT32", False), "uint64_val": (13, "UINT64", False),
                  "sint32_val": (15, "SINT32", False), "sint64_val": (17, "SINT64", False), "bool_val": (27, "BOOL", False),
                  "string_val": (29, "BYTES", False)},
    "GlobalMetadata": {"version": (1, "BYTES", False), "attr": (2, "Attribute", True)},
    "IOInfo": {"values": (1, "BYTES", False), "shapes": (2, "BYTES", False), "types": (3, "BYTES", False)},
    "Node": {"id": (1, "UINT64", False), "name": (2, "BYTES", False), "type": (3, "UINT32", False), "ctrl_deps": (4, "UINT64", True),
             "data_deps": (5, "UINT64", True), "start_time_micros": (6, "UINT64", False), "duration_micros": (7, "UINT64", False),
             "inputs": (8, "IOInfo", False), "outputs": (9, "IOInfo", False), "attr": (10, "Attribute", True)},
}
FIELD_OF_NUMBER = {kind: {field[0]: (name, *field[1:]) for name, field in fields.items()} for kind, fields in FIELDS.items()}
NUMBER, EIGHT, LENGTH, FOUR = 0, 1, 2, 5  # wire types: how a field's end is found
WIRE_TYPES = {"BYTES": LENGTH, "DOUBLE": EIGHT, **dict.fromkeys(FIELDS, LENGTH)}  # of others NUMBER
VALUES = tuple(name for name in FIELDS["Attribute"] if name.endswith("_val"))


def messages():
    """The classes of these messages, by name."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise Problem(f"a Chakra trace {NEEDS}") from None
    file = descriptor_pb2.FileDescriptorProto(name="stratus_chakra.proto", package="stratus_chakra", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, is_repeated) in fields.items():
            added = message.field.add(name=field, number=number, label=kinds.LABEL_REPEATED if is_repeated else kinds.LABEL_OPTIONAL)
            if kind in FIELDS:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".stratus_chakra.{kind}"
            else:
                added.type = kinds.Type.Value(f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = {name: pool.FindMessageTypeByName(f"stratus_chakra.{name}") for name in FIELDS}
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return {name: message_factory.GetMessageClass(each) for name, each in described.items()}
    return {name: message_factory.MessageFactory(pool).GetPrototype(each) for name, each in described.items()}


def varint(content, at):
    """(a number of protobuf's wire format, the place behind it); (None, at) where there is none."""
    value = 0
    for count in range(10):
        if at + count >= len(content):
            break
        value |= (content[at + count] & 0x7F) << 7 * count
        if content[at + count] < 0x80:
            return value, at + count + 1
    return None, at


def metadata_end(content):
    """Where the first message ends, if it is GlobalMetadata: nothing but fields 1 and 2, both with a length, to its very end. Else None."""
    size, at = varint(content, 0)
    if size is None or at + size > len(content):
        return None
    end = at + size
    while at < end:
        tag = content[at]
        length, at = varint(content, at + 1)
        if tag not in (0x0A, 0x12) or length is None:
            return None
        at += length
    return end if at == end else None


def is_chakra(content):
    """GlobalMetadata, and behind it what begins as a Node does: with its number or its name."""
    end = metadata_end(content)
    if end is None:
        return False
    _, at = varint(content, end)
    return at > end and content[at:at + 1] in (b"\x08", b"\x12")


def is_named_chakra(path):
    return re.search(r"\.et(\.gz)?$", path) is not None


def fault(kind, content, begin):
    """(place, what is wrong) of the first field of a message that is not as the schema says; None where all are. `begin`: its place in
    the file."""
    at = 0
    while at < len(content):
        place = begin + at
        tag, at = varint(content, at)
        if tag is None:
            return place, "a field's number does not end"
        number, wire = tag >> 3, tag & 7
        name, wanted, is_repeated = FIELD_OF_NUMBER[kind].get(number, (f"field {number}", None, False))
        if wire not in (NUMBER, EIGHT, LENGTH, FOUR) or number == 0:
            return place, f"{name}: wire type {wire}, which it cannot have"
        size = {EIGHT: 8, FOUR: 4}.get(wire, 0)
        if wire in (NUMBER, LENGTH):
            value, at = varint(content, at)
            if value is None:
                return place, f"{name}: a number that does not end"
            size = value if wire == LENGTH else 0
        if at + size > len(content):
            return place, f"{name}: {size} bytes, of which {len(content) - at} are there"
        # Repeated numbers may be one field of all of them.
        if wanted and wire != WIRE_TYPES.get(wanted, NUMBER) and not (is_repeated and wire == LENGTH):
            return place, f"{name}: wire type {wire}, expected {WIRE_TYPES.get(wanted, NUMBER)}"
        inner = fault(wanted, content[at:at + size], begin + at) if wanted in FIELDS else None
        if inner:
            return inner
        at += size
    return None


def parsed(classes, kind, content, begin, path):
    """A message, whose fields have the types of the schema. protobuf passes over those that have others."""
    from google.protobuf.message import DecodeError
    message, is_whole, is_known = classes[kind](), False, False
    try:
        is_whole = message.ParseFromString(content) == len(content)  # it may stop before the end, and only warn
        size = message.ByteSize()
        message.DiscardUnknownFields()
        is_known = message.ByteSize() == size
    except DecodeError:
        pass
    wrong = None if is_whole and is_known else fault(kind, content, begin)
    if wrong or not is_whole:
        place, why = wrong or (begin, "protobuf cannot read it")
        raise Problem(f"byte {place}: no good {'node' if kind == 'Node' else 'metadata'} of Chakra's schema: {why}", path)
    return message


def read_messages(path, content):
    """(the metadata, [(place in the file, Node)])."""
    classes, at, found = messages(), 0, []
    warnings.filterwarnings("ignore", "Unexpected end-group tag")  # `parsed` says it, with the place
    while at < len(content):
        place = at
        size, at = varint(content, at)
        if size is None or size > MESSAGE_MAX:
            raise Problem(f"byte {place}: expected the length of a message, at most {MESSAGE_MAX}", path)
        if at + size > len(content):
            raise Problem(f"byte {place}: a message of {size} bytes, of which the file has {len(content) - at}: the file ends early", path)
        if found and size == 0:
            raise Problem(f"byte {place}: a message of no bytes, expected a node", path)
        if not found and metadata_end(content) is None:
            raise Problem(f"byte {place}: expected Chakra's GlobalMetadata: its version and attributes, and nothing else", path)
        found.append((place, parsed(classes, "Node" if found else "GlobalMetadata", content[at:at + size], at, path)))
        at += size
    if len(found) < 2:
        raise Problem(f"byte {at}: the file ends, expected a node", path)
    return found[0][1], found[1:]


def text_of(content):
    return content.decode("utf-8", errors="replace")


def attributes(message):
    """{name: value} of those with one value of a known type."""
    found = {text_of(each.name): getattr(each, value) for each in message.attr for value in VALUES if each.HasField(value)}
    return {name: text_of(value) if isinstance(value, bytes) else value for name, value in found.items()}
