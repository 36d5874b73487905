"""Pause frames and LLDP as a mirror port receives them; what a switch calls itself goes to labels and to a terminal."""

from roce_exporter.wire.decode.link_frames import read_lldp, read_mac_control

CORE = ("wire/decode/link_frames.py",)
WORDS = (b"\x88\xcc", b"\x88\x08\x01\x01", b"\x02\x07\x04", b"\x04\x03\x05", b"\x0a\x05leaf1", b"\x00\x00")


def decode(data: bytes) -> None:
    for offset in (0, 14, 18):
        read_mac_control(data, offset)
        if neighbour := read_lldp(data, offset):
            texts = [one for one in neighbour if isinstance(one, str)]
            assert all(one.isprintable() and len(one) <= 255 for one in texts)
