# SPDX-License-Identifier: Apache-2.0
"""The messages of MLCommons Chakra's execution traces: those fields that are needed, decoded by Google's protobuf. A file is
messages, each behind its length: GlobalMetadata, then one Node after the other (schema/protobuf/et_def.proto)."""
from problem import Problem

METADATA_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE = range(1, 8)
KNOWN_LAST = 10  # STORAGE_NODE, BATCH_NODE and CHECKPOINT_NODE follow
MESSAGE_MAX = 1 << 26  # bytes; a node has some hundred
NEEDS = "needs python3-protobuf (apt-get install python3-protobuf, or pip install protobuf)"

# name: (number, type, is it repeated). Types are those of descriptor.proto's FieldDescriptorProto, or messages. Texts are bytes here, as
# names may be anything.
FIELDS = {
    "Attribute": {"name": (1, "BYTES", False), "double_val": (3, "DOUBLE", False), "int32_val": (7, "INT32", False),
                  "int64_val": (9, "INT64", False), "uint32_val": (11, "UINT32", False), "uint64_val": (13, "UINT64", False),
                  "sint32_val": (15, "SINT32", False), "sint64_val": (17, "SINT64", False), "bool_val": (27, "BOOL", False),
                  "string_val": (29, "BYTES", False)},
    "GlobalMetadata": {"version": (1, "BYTES", False), "attr": (2, "Attribute", True)},
    "IOInfo": {"values": (1, "BYTES", False)},
    "Node": {"id": (1, "UINT64", False), "name": (2, "BYTES", False), "type": (3, "UINT32", False), "ctrl_deps": (4, "UINT64", True),
             "data_deps": (5, "UINT64", True), "duration_micros": (7, "UINT64", False), "inputs": (8, "IOInfo", False),
             "attr": (10, "Attribute", True)},
}
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


def is_chakra(content):
    """The first message must be GlobalMetadata: nothing but fields 1 and 2, both with a length, to its very end. What follows
    begins as a Node does."""
    size, at = varint(content, 0)
    if size is None or not content or at + size > len(content):
        return False
    end = at + size
    while at < end:
        tag = content[at]
        length, at = varint(content, at + 1)
        if tag not in (0x0A, 0x12) or length is None:
            return False
        at += length
    size, at = varint(content, end)
    return at > end and content[at:at + 1] in (b"\x08", b"\x12")  # of a node, its number or its name


def read_messages(path, content):
    """(the metadata, [(place in the file, Node)])."""
    classes, at, found = messages(), 0, []
    from google.protobuf.message import DecodeError
    while at < len(content):
        place = at
        size, at = varint(content, at)
        if size is None or size > MESSAGE_MAX:
            raise Problem(f"byte {place}: expected the length of a message, at most {MESSAGE_MAX}", path)
        if at + size > len(content):
            raise Problem(f"byte {place}: a message of {size} bytes, of which the file has {len(content) - at}: the file ends early", path)
        message = classes["Node" if found else "GlobalMetadata"]()
        try:
            message.ParseFromString(content[at:at + size])
        except DecodeError:
            raise Problem(f"byte {place}: no good {'node' if found else 'metadata'} of Chakra's schema", path) from None
        found.append((place, message))
        at += size
    return found[0][1], found[1:]


def text_of(content):
    return content.decode("utf-8", errors="replace")


def attributes(message):
    """{name: value} of those with one value of a known type."""
    found = {text_of(each.name): getattr(each, value) for each in message.attr for value in VALUES if each.HasField(value)}
    return {name: text_of(value) if isinstance(value, bytes) else value for name, value in found.items()}
