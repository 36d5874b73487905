"""Replies to Get and Subscribe of gNMI: protobuf messages whose values may be JSON."""

from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import LeafReader, flat, path_of, path_text

CORE = ("net/gnmi_messages.py", "net/json_reply.py")
WORDS = (b'{"a":[1]}', b"\x0a\x04", b"\x1a\x02", b"\x52\x02{}", b"NaN", b"[[[[")


def decode(data: bytes) -> None:
    reader, fault = LeafReader(), ""
    try:
        reader.add(data)
    except NetError as error:
        fault = str(error)
    assert "\n" not in fault
    for leaf in reader.leaves:
        for spot, _ in flat(leaf, {}):
            assert isinstance(spot, tuple)
    try:
        path = path_of(data.decode("utf-8", "replace"))
    except (NetError, ValueError):
        return
    assert path_of(path_text(path)) == path
