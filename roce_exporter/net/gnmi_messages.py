"""The messages of gNMI that the exporter sends and understands, by the numbers in gnmi.proto (openconfig/gnmi, version 0.10).

A table of 14 messages instead of generated code: there is no message to set a value, so none can be sent. The descriptors
are in a pool of their own, see `net/grpc.py`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import DecodeError

from roce_exporter.net import NetError
from roce_exporter.net.grpc import message_classes
from roce_exporter.net.json_reply import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Keys = tuple[tuple[str, str], ...]

STEP = re.compile(r"(?P<name>[^/\[\]]+)(?P<keys>(\[[^=\]]+=[^\]]*\])*)(?:/|$)")
KEY = re.compile(r"\[([^=\]]+)=([^\]]*)\]")
MODULE = re.compile(r"[A-Za-z_][\w.-]*:(?=[A-Za-z_])", re.ASCII)
"""The name of a YANG module before a name (RFC 7951, section 4)."""

JSON_IETF = 4
"""Encoding of RFC 7951, the only one that SONiC has. What EOS answers in scalar values is understood as well."""
ONCE = 1
# Elements of paths are taken as bytes, which the wire format allows: a reply repeats the same few elements thousands of times,
# and each is decoded once.
MESSAGES = {
    "Key": "string key 1, string value 2",
    "PathElem": "string name 1, repeated Key key 2",
    "Path": "string origin 2, repeated bytes elem 3, string target 4",
    "Decimal64": "int64 digits 1, uint32 precision 2",
    "ScalarArray": "repeated TypedValue element 1",
    "TypedValue": "string string_val 1, int64 int_val 2, uint64 uint_val 3, bool bool_val 4, float float_val 6, "
    "Decimal64 decimal_val 7, ScalarArray leaflist_val 8, bytes json_val 10, bytes json_ietf_val 11, string ascii_val 12, "
    "double double_val 14",
    "Update": "Path path 1, TypedValue val 3",
    "Notification": "Path prefix 2, repeated Update update 4",
    "GetRequest": "Path prefix 1, repeated Path path 2, int32 encoding 5",
    "GetResponse": "repeated Notification notification 1",
    "Subscription": "Path path 1",
    "SubscriptionList": "Path prefix 1, repeated Subscription subscription 2, int32 mode 5, int32 encoding 8",
    "SubscribeRequest": "SubscriptionList subscribe 1",
    "SubscribeResponse": "Notification update 1, bool sync_response 3",
}
"""The fields of each message: type, name and number."""
CLASSES = message_classes("gnmi", MESSAGES)


class Element(NamedTuple):
    """One element of a path: a name, and the keys of a list."""

    name: str
    keys: Keys = ()


LEAVES = 200_000
"""Most leaves of one message: a switch of 512 ports, each with 20 queues, has half of that."""

Path = tuple[Element, ...]


class Leaf(NamedTuple):
    """A path of a reply and its value, as JSON has it: one leaf of a model, or a document."""

    path: Path
    value: Any


class Spot(NamedTuple):
    """Where a leaf of a model is: the names of its path, and the values of the keys in it, in their order."""

    names: tuple[str, ...]
    keys: Mapping[str, str]


def plain_name(name: str) -> str:
    """A name without the YANG module that defines it: `arista-intf-augments:pfc` is `pfc`."""
    if ":" not in name:
        return name
    return name[found.end() :] if (found := MODULE.match(name)) else name


def path_of(text: str) -> Path:
    """The path that a text such as `interfaces/interface[name=*]/state` writes.

    Raises:
        ValueError: the text is no path: a defect, for paths are constants.
    """
    found, end = [], 0
    while end < len(text):
        step = STEP.match(text, end)
        if step is None:
            raise ValueError(f"{text} is not a path of gNMI")
        found.append(Element(step["name"], tuple((key[1], key[2]) for key in KEY.finditer(step["keys"]))))
        end = step.end()
    return tuple(found)


def path_text(path: Path) -> str:
    """The path as text, for people."""
    return "/".join(name + "".join(f"[{key}={value}]" for key, value in keys) for name, keys in path)


def flat(leaf: Leaf, lists: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Spot, Any]]:
    """The leaves of a model that a reply holds, also where the switch sent a document for a whole subtree.

    `lists` has the keys of the model's lists by their paths, without keys. An entry of a list without its keys is left out.
    """
    names = tuple(plain_name(step.name) for step in leaf.path)
    keys = {plain_name(key): value for step in leaf.path for key, value in step.keys}
    yield from _descend(Spot(names, keys), leaf.value, lists)


def _descend(spot: Spot, value: Any, lists: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Spot, Any]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _descend(Spot((*spot.names, plain_name(name)), spot.keys), child, lists)
    elif isinstance(value, list) and (keys := lists.get("/".join(spot.names))):
        for entry in value:
            yield from _descend_entry(spot, entry, keys, lists)
    else:
        yield spot, value


def _descend_entry(
    spot: Spot, entry: Any, keys: tuple[str, ...], lists: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Spot, Any]]:
    members = {plain_name(name): child for name, child in entry.items()} if isinstance(entry, dict) else {}
    own = {key: str(members[key]) for key in keys if key in members}
    if len(own) == len(keys):
        yield from _descend(Spot(spot.names, {**spot.keys, **own}), members, lists)


class SubscribeReply(NamedTuple):
    """One message of a subscription."""

    leaves: tuple[Leaf, ...]
    finished: bool
    """Whether the switch has sent everything once."""


def get_request(target: str, paths: Iterable[Iterable[Element]]) -> bytes:
    """A request for the values at some paths. `target` names the database on SONiC."""
    request = CLASSES["GetRequest"](encoding=JSON_IETF)
    request.prefix.target = target
    for path in paths:
        request.path.add(elem=_encoded(path))
    return bytes(request.SerializeToString())


def once_request(paths: Iterable[Iterable[Element]]) -> bytes:
    """A request for the values below some paths, once."""
    request = CLASSES["SubscribeRequest"]()
    request.subscribe.mode = ONCE
    request.subscribe.encoding = JSON_IETF
    for path in paths:
        request.subscribe.subscription.add().path.elem.extend(_encoded(path))
    return bytes(request.SerializeToString())


def _encoded(path: Iterable[Element]) -> list[bytes]:
    encoded = []
    for name, keys in path:
        message = CLASSES["PathElem"](name=name)
        for key, value in keys:
            message.key.add(key=key, value=value)
        encoded.append(message.SerializeToString())
    return encoded


def get_reply(data: bytes) -> tuple[Leaf, ...]:
    """The leaves of a reply to `get_request`.

    Raises:
        NetError: it is no such reply, or holds a value that cannot be decoded.
    """
    response = _decoded("GetResponse", data)
    elements = _Elements()
    return _bounded(leaf for one in response.notification for leaf in _leaves(one, elements))


def subscribe_reply(data: bytes) -> SubscribeReply:
    """One message of a subscription.

    Raises:
        NetError: it is no such message, or holds a value that cannot be decoded.
    """
    response = _decoded("SubscribeResponse", data)
    leaves = _bounded(_leaves(response.update, _Elements())) if response.HasField("update") else ()
    return SubscribeReply(leaves, bool(response.sync_response))


def _bounded(leaves: Iterator[Leaf]) -> tuple[Leaf, ...]:
    found = tuple(islice(leaves, LEAVES + 1))
    if len(found) > LEAVES:
        raise NetError(f"the reply has more than {LEAVES:,} values")
    return found


def _decoded(kind: str, data: bytes) -> Any:
    try:
        return CLASSES[kind].FromString(data)
    except DecodeError:
        raise NetError("the reply is not a gNMI message: check the port") from None


class _Elements(dict[bytes, Element]):
    """Elements of paths by their encoding."""

    def __missing__(self, data: bytes) -> Element:
        try:
            message = CLASSES["PathElem"].FromString(data)
        except DecodeError:
            raise NetError("the reply has a path that cannot be decoded") from None
        keys = tuple((_text(one.key), _text(one.value)) for one in message.key)
        found = Element(_text(message.name), keys)
        self[data] = found
        return found


def _leaves(notification: Any, elements: _Elements) -> Iterator[Leaf]:
    prefix = tuple(map(elements.__getitem__, notification.prefix.elem))
    for update in notification.update:
        path = prefix + tuple(map(elements.__getitem__, update.path.elem))
        yield Leaf(path, _value(update.val))


def _value(typed: Any) -> Any:
    """The value as JSON has it; None if the switch sent none that is known."""
    fields = typed.ListFields()
    if not fields:
        return None
    name, value = fields[-1][0].name, fields[-1][1]
    if name in ("json_ietf_val", "json_val"):
        return decode_json(value)
    if name == "leaflist_val":
        return [_value(item) for item in value.element]
    if name == "decimal_val":
        return value.digits / 10 ** min(value.precision, 18)
    return _text(value) if isinstance(value, bytes) else value


def _text(value: str | bytes) -> str:
    """A text of a message. protobuf returns bytes for one that is not UTF-8, such as a neighbour's name in another encoding."""
    return value if isinstance(value, str) else value.decode(errors="replace")
