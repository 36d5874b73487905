"""Messages of protocol buffers from a table of names and numbers, instead of generated code.

A table has the messages that are used and no others, so what is not in it can be neither sent nor read. The descriptors are
in a pool of their own: another copy of the same messages in this process does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}


def message_classes(package: str, messages: Mapping[str, str]) -> dict[str, type[Any]]:
    """The class of each message.

    `messages` maps a message's name to its fields: type, name and number of each, separated by commas, `repeated` before
    the type. They are `proto2`, so that presence is known without `oneof`.
    """
    file = FileDescriptorProto(name=f"roce_exporter/{package}.proto", package=package, syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            *label, kind, field, number = text.split()
            added = message.field.add(name=field, number=int(number))
            added.label = (
                FieldDescriptorProto.LABEL_REPEATED if label else FieldDescriptorProto.LABEL_OPTIONAL
            )
            added.type = KINDS.get(kind, FieldDescriptorProto.TYPE_MESSAGE)
            if kind not in KINDS:
                added.type_name = f".{package}.{kind}"
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}
