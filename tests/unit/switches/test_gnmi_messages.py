"""The messages of gNMI: field numbers, every kind of value, and bytes that are no message."""

import json
from contextlib import suppress

import pytest
from gnmi_switch import REPLIES, get_response, ietf

from roce_exporter.net import NetError, gnmi_messages
from roce_exporter.net.gnmi_messages import (
    CLASSES,
    Element,
    Leaf,
    LeafReader,
    Spot,
    flat,
    get_request,
    once_request,
    path_of,
    path_text,
    plain_name,
)

PATH = path_of("a/b[k=v]")


def get_reply(data: bytes) -> tuple[Leaf, ...]:
    reader = LeafReader()
    reader.add(data)
    return tuple(reader.leaves)


def value_of(**value: object) -> object:
    return get_reply(get_response((PATH, value)))[0].value


def test_requests_are_those_that_the_wire_format_has() -> None:
    """Worked out by hand from gnmi.proto: field number and wire type, length, content."""
    element = b"\x1a\x03\x0a\x01a"  # Path.elem = 3: PathElem.name = 1
    assert get_request("X", [path_of("a")]) == b"\x0a\x03\x22\x01X" + b"\x12\x05" + element + b"\x28\x04"
    subscription = b"\x12\x07\x0a\x05" + element  # SubscriptionList.subscription = 2: Subscription.path = 1
    assert once_request([path_of("a")]) == b"\x0a\x0d" + subscription + b"\x28\x01\x40\x04"


@pytest.mark.parametrize(
    ("letter", "is_wide"), [("a", False), ("\u00e9", False), ("\u0142", True), ("\U0001f600", True)]
)
def test_texts_count_with_the_memory_that_they_take(letter, is_wide) -> None:
    text = letter + 100_000 * "a"
    for value in ({"json_ietf_val": f'["{text}"]'.encode()}, {"string_val": text}):
        reader, data = LeafReader(), get_response((PATH, value))
        reader.add(data)
        assert (reader.size > 1.9 * len(data)) == is_wide, value.keys()
    reader, data = LeafReader(), get_response((PATH, ietf(text)))  # escaped on the wire
    reader.add(data)
    assert reader.size == len(data)


def test_no_message_can_set_a_value() -> None:
    assert not [name for name in CLASSES if name.startswith("Set")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"string_val": "17"}, "17"),
        ({"int_val": -3}, -3),
        ({"uint_val": 2**64 - 1}, 2**64 - 1),
        ({"bool_val": False}, False),
        ({"double_val": 0.5}, 0.5),
        ({"float_val": 0.25}, 0.25),
        ({"decimal_val": {"digits": 125, "precision": 2}}, 1.25),
        ({"leaflist_val": {"element": [{"uint_val": 3}, {"uint_val": 4}]}}, [3, 4]),
        ({"json_val": b"[1]"}, [1]),
        ({"json_ietf_val": b'{"in-frames": "4711"}'}, {"in-frames": "4711"}),
        ({"ascii_val": "x"}, "x"),
        ({}, None),
    ],
)
def test_every_kind_of_value(value, expected) -> None:
    assert value_of(**value) == expected


def test_a_prefix_is_the_beginning_of_every_path() -> None:
    message = REPLIES["GetResponse"].FromString(get_response((path_of("c[k=v]"), {"uint_val": 1})))
    message.notification[0].prefix.elem.extend(gnmi_messages._encoded(path_of("a[x=y]/b")))
    assert get_reply(message.SerializeToString()) == (Leaf(path_of("a[x=y]/b/c[k=v]"), 1),)


@pytest.mark.parametrize(
    "reply", [get_response((PATH, ietf({"a": 1}))), b"<html>", b"HTTP/1.1 400 Bad Request\r\n"]
)
def test_a_reply_cut_off_anywhere_is_a_fault_or_a_shorter_reply(reply) -> None:
    for end in range(len(reply)):
        with suppress(NetError):
            assert isinstance(get_reply(reply[:end]), tuple)


@pytest.mark.parametrize("element", [b"\x0a\x01\xff", b"\x0a\x01\xe9"])
def test_text_in_another_encoding_does_not_cost_the_reply(element) -> None:
    message = REPLIES["GetResponse"]()
    update = message.notification.add().update.add()
    update.path.elem.append(element)
    update.val.MergeFromString(element)
    assert get_reply(message.SerializeToString()) == (Leaf((Element("\ufffd"),), "\ufffd"),)


def element(name: str, keys: int = 0) -> dict[str, object]:
    return {"path": {"elem": [REPLIES["PathElem"](name=name, key=[{}] * keys).SerializeToString()]}}


@pytest.mark.parametrize(
    ("updates", "words"),
    [
        ([{}] * 101, "more than 100 values"),
        ([{"val": {"json_val": b"[" + b"0," * 50 + b"0]"}}] * 2, "more than 100 values"),
        ([{"val": {"leaflist_val": {"element": [{}] * 100}}}], "more than 100 values"),
        ([element(f"{number}") for number in range(51)], "more than 50 different elements"),
        ([{"path": {"elem": [b""] * 3000}}], "a path of more than 4096 bytes"),
        ([{"path": {"elem": [b""] * 33}}], "a path of more than 32 elements"),
        ([element(str(number) * 200) for number in range(5)], "different elements of paths, or longer ones"),
        ([element("a", 9)], "an element of a path with more than 8 keys"),
    ],
)
def test_parts_are_counted_before_objects_are_made_of_them(monkeypatch, updates, words) -> None:
    monkeypatch.setattr(gnmi_messages, "MOST_VALUES", 100)
    monkeypatch.setattr(gnmi_messages, "MOST_ELEMENTS", 50)
    monkeypatch.setattr(gnmi_messages, "ELEMENT_BYTES", 1000)
    message = REPLIES["GetResponse"](notification=[{"update": updates}])
    with pytest.raises(NetError, match=words):
        get_reply(message.SerializeToString())
    message = REPLIES["GetResponse"](notification=[{"update": updates[:-1]}])
    get_reply(message.SerializeToString())


def test_all_messages_of_a_stream_share_the_bounds_of_elements(monkeypatch) -> None:
    """Elements are kept from message to message: names that are always new must not fill the memory."""
    monkeypatch.setattr(gnmi_messages, "ELEMENT_BYTES", 1000)
    reader = gnmi_messages.LeafReader()
    updates = [[element(f"{number}" * 200)] for number in range(5)]
    messages = [REPLIES["SubscribeResponse"](update={"update": one}).SerializeToString() for one in updates]
    for message in messages[:-1] * 2:
        reader.next_message()
        reader.add(message)
    reader.next_message()
    with pytest.raises(NetError, match="or longer ones"):
        reader.add(messages[-1])


def test_an_element_that_is_no_message_is_a_fault() -> None:
    message = REPLIES["GetResponse"]()
    message.notification.add().update.add().path.elem.append(b"\x0a\x09x")
    with pytest.raises(NetError, match="a path that cannot be decoded"):
        get_reply(message.SerializeToString())


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a/b",
        "interfaces/interface[name=Ethernet1/1]/state",
        "a[x=1][y=*]/b",
        "COUNTERS/Ethernet*/Queues",
    ],
)
def test_paths_as_text_and_back(text) -> None:
    assert path_text(path_of(text)) == text


@pytest.mark.parametrize("text", ["[x=1]", "a[x]", "a]"])
def test_what_is_no_path_is_a_defect(text) -> None:
    with pytest.raises(ValueError, match="is not a path of gNMI"):
        path_of(text)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("arista-intf-augments:pfc", "pfc"), ("pfc", "pfc"), ("Ethernet1:3", "Ethernet1:3"), ("a:b:c", "b:c")],
)
def test_the_name_of_a_yang_module_is_cut_off(name, plain) -> None:
    assert plain_name(name) == plain


LISTS = {"x/queue": ("index", "queue-type")}


def test_a_document_is_the_same_as_its_leaves() -> None:
    document = {"m:queue": [{"m:index": 3, "queue-type": "UNICAST", "m:state": {"stuck-count": "2"}}]}
    spots = list(flat(Leaf(path_of("x"), json.loads(json.dumps(document))), LISTS))
    keys = {"index": "3", "queue-type": "UNICAST"}
    assert (Spot(("x", "queue", "state", "stuck-count"), keys), "2") in spots
    leaf = Leaf(path_of("x/queue[index=3][queue-type=UNICAST]/state/stuck-count"), "2")
    assert list(flat(leaf, LISTS)) == [(Spot(("x", "queue", "state", "stuck-count"), keys), "2")]


@pytest.mark.parametrize("entry", [{"index": 3}, 7, None, "x", []])
def test_an_entry_of_a_list_without_its_keys_is_left_out(entry) -> None:
    assert not list(flat(Leaf(path_of("x/queue"), [entry]), LISTS))
