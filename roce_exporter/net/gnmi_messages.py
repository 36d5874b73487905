"""The messages of gNMI that the exporter sends and understands, by the numbers in gnmi.proto (openconfig/gnmi, version 0.10).

A table of messages instead of generated code: there is no message to set a value, so none can be sent. The descriptors
are in a pool of their own, see `net/grpc.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from sys import getsizeof
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from roce_exporter.net import NetError
from roce_exporter.net.grpc import NO_MESSAGE, fields, message_classes
from roce_exporter.net.json_reply import MOST_VALUES, count_values, decode_json

Keys = tuple[tuple[str, str], ...]

STEP = re.compile(r"(?P<name>[^/\[\]]+)(?P<keys>(\[[^=\]]+=[^\]]*\])*)(?:/|$)")
KEY = re.compile(r"\[([^=\]]+)=([^\]]*)\]")
MODULE = re.compile(r"[A-Za-z_][\w.-]*:(?=[A-Za-z_])", re.ASCII)
"""The name of a YANG module before a name (RFC 7951, section 4)."""

JSON_IETF = 4
"""Encoding of RFC 7951, the only one that SONiC has. What EOS answers in scalar values is understood as well."""
STREAM, ONCE = 0, 1
ON_CHANGE, SAMPLE = 1, 2
# Parts are taken as bytes where the wire format allows it: protobuf would make objects of all of them before they can be counted, some
# hundred bytes for two that were sent. A reply repeats the same few elements of paths thousands of times, and each is decoded once.
MESSAGES = {
    "Key": "string key 1, string value 2",
    "PathElem": "string name 1, repeated Key key 2",
    "Path": "string origin 2, repeated bytes elem 3, string target 4",
    "Decimal64": "int64 digits 1, uint32 precision 2",
    "TypedValue": "string string_val 1, int64 int_val 2, uint64 uint_val 3, bool bool_val 4, float float_val 6, "
    "Decimal64 decimal_val 7, bytes leaflist_val 8, bytes json_val 10, bytes json_ietf_val 11, string ascii_val 12, "
    "double double_val 14",
    "Update": "bytes path 1, bytes val 3",
    "GetRequest": "Path prefix 1, repeated Path path 2, int32 encoding 5",
    "Subscription": "Path path 1, int32 mode 2, uint64 sample_interval 3",
    "SubscriptionList": "Path prefix 1, repeated Subscription subscription 2, int32 mode 5, int32 encoding 8",
    "SubscribeRequest": "SubscriptionList subscribe 1",
}
"""The fields of each message: type, name and number."""
CLASSES = message_classes("gnmi", MESSAGES)
NOTIFICATION, SYNC_RESPONSE = 1, 3  # fields of SubscribeResponse; the first one of GetResponse, too
PREFIX, UPDATES, DELETES = 2, 4, 5  # fields of Notification
BEYOND_LATIN, TEXT_BYTES = re.compile(rb"[\xc4-\xf4]"), 4
"""The beginning of a letter in UTF-8 for which Python keeps a text with two or four bytes per letter."""
PATH_BYTES, PATH_ELEMENTS, ELEMENT_KEYS = 4096, 32, 8
MOST_ELEMENTS, ELEMENT_BYTES = 65_536, 4 << 20
"""Different ones of one reply, or of all messages of a stream, and their bytes together: a switch of 1,024 ports has some thousand of 30 bytes."""


class Element(NamedTuple):
    """One element of a path: a name, and the keys of a list."""

    name: str
    keys: Keys = ()


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
            members = (
                {plain_name(name): child for name, child in entry.items()} if isinstance(entry, dict) else {}
            )
            own = {key: str(members[key]) for key in keys if key in members}
            if len(own) == len(keys):
                yield from _descend(Spot(spot.names, {**spot.keys, **own}), members, lists)
    else:
        yield spot, value


def get_request(target: str, paths: Iterable[Iterable[Element]]) -> bytes:
    """A request for the values at some paths. `target` names the database on SONiC."""
    request = CLASSES["GetRequest"](encoding=JSON_IETF)
    request.prefix.target = target
    for path in paths:
        request.path.add(elem=_encoded(path))
    return bytes(request.SerializeToString())


def once_request(paths: Iterable[Iterable[Element]], origin: str = "") -> bytes:
    """A request for the values below some paths of the models of this origin, once."""
    request = CLASSES["SubscribeRequest"]()
    request.subscribe.mode = ONCE
    request.subscribe.encoding = JSON_IETF
    for path in paths:
        one = request.subscribe.subscription.add().path
        one.elem.extend(_encoded(path))
        if origin:
            one.origin = origin
    return bytes(request.SerializeToString())


def stream_request(
    subscriptions: Iterable[tuple[Iterable[Element], float]], origin: str = "", target: str = ""
) -> bytes:
    """A request for what changes below some paths, each with the seconds between two samples; 0: with each change."""
    request = CLASSES["SubscribeRequest"]()
    request.subscribe.encoding = JSON_IETF
    request.subscribe.prefix.target = target
    for path, seconds in subscriptions:
        one = request.subscribe.subscription.add(mode=SAMPLE if seconds else ON_CHANGE)
        one.sample_interval = int(seconds * 1e9)
        one.path.elem.extend(_encoded(path))
        one.path.origin = origin
    return bytes(request.SerializeToString())


def _encoded(path: Iterable[Element]) -> list[bytes]:
    encoded = []
    for name, keys in path:
        message = CLASSES["PathElem"](name=name)
        for key, value in keys:
            message.key.add(key=key, value=value)
        encoded.append(message.SerializeToString())
    return encoded


class LeafReader:
    """Takes the leaves of one reply, in one message or many, and counts the values in them."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.deleted: list[Path] = []
        """What the switch no longer has, before it set `leaves`."""
        self.size = 0
        """Bytes of the last message, and what its texts take beyond them."""
        self.values = 0
        self._elements = _Elements()

    def next_message(self) -> None:
        """Forget the values of the last message of a stream, which has no end. Elements of paths, which repeat, are kept."""
        self.leaves, self.deleted, self.values = [], [], 0

    def add(self, data: bytes) -> bool:
        """Take a reply to `get_request`, or one message of a subscription: then, whether the switch has sent everything once.

        Raises:
            NetError: it is no such reply, or has a value that cannot be decoded, or too many.
        """
        finished, self.size = False, len(data)
        for field, content in fields(data):
            if field == NOTIFICATION:
                prefix = self._path(next((part for number, part in fields(content) if number == PREFIX), b""))
                for number, update in fields(content):
                    if number == UPDATES:
                        self._count(1)
                        one = _decoded("Update", update)
                        self.leaves.append(Leaf(prefix + self._path(one.path), self._value(one.val)))
                    elif number == DELETES:
                        self._count(1)
                        self.deleted.append(prefix + self._path(update))
            finished = finished or (field == SYNC_RESPONSE and content != b"\0")
        return finished

    def _path(self, data: bytes) -> Path:
        if len(data) > PATH_BYTES:
            raise NetError(f"the reply has a path of more than {PATH_BYTES} bytes")
        elements = _decoded("Path", data).elem if data else ()
        if len(elements) > PATH_ELEMENTS:
            raise NetError(f"the reply has a path of more than {PATH_ELEMENTS} elements")
        return tuple(map(self._elements.__getitem__, elements))

    def _value(self, data: bytes) -> Any:
        """The value as JSON has it; None if the switch sent none that is known."""
        given = _decoded("TypedValue", data).ListFields()
        if not given:
            return None
        name, value = given[-1][0].name, given[-1][1]
        if name in ("json_ietf_val", "json_val"):
            self._count(count_values(value))
            if BEYOND_LATIN.search(value):
                self.size += (TEXT_BYTES - 1) * len(value)
            return decode_json(value)
        if name == "leaflist_val":
            items = []
            for field, item in fields(value):
                if field == 1:
                    self._count(1)
                    items.append(self._value(item))
            return items
        if name == "decimal_val":
            return value.digits / 10 ** min(value.precision, 18)
        if isinstance(value, str | bytes):
            value = _text(value)
            self.size += getsizeof(value) - len(value)
        return value

    def _count(self, more: int) -> None:
        self.values += more
        if self.values > MOST_VALUES:
            raise NetError(f"the reply has more than {MOST_VALUES:,} values")


def _decoded(kind: str, data: bytes) -> Any:
    try:
        return CLASSES[kind].FromString(data)
    except DecodeError:
        raise NetError(NO_MESSAGE) from None


class _Elements(dict[bytes, Element]):
    """Elements of paths by their encoding."""

    size = 0

    def __missing__(self, data: bytes) -> Element:
        self.size += len(data)
        if len(self) >= MOST_ELEMENTS or self.size > ELEMENT_BYTES:
            raise NetError(
                f"the reply has more than {MOST_ELEMENTS:,} different elements of paths, or longer ones"
            )
        try:
            message = CLASSES["PathElem"].FromString(data)
        except DecodeError:
            raise NetError("the reply has a path that cannot be decoded") from None
        if len(message.key) > ELEMENT_KEYS:
            raise NetError(f"the reply has an element of a path with more than {ELEMENT_KEYS} keys")
        # Servers in Go send keys in any order.
        keys = tuple(sorted((_text(one.key), _text(one.value)) for one in message.key))
        found = Element(_text(message.name), keys)
        self[data] = found
        return found


def _text(value: str | bytes) -> str:
    """A text of a message. protobuf returns bytes for one that is not UTF-8, such as a neighbour's name in another encoding."""
    return value if isinstance(value, str) else value.decode(errors="replace")
