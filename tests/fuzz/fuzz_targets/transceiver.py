"""A transceiver's memory, 128 bytes a part, in the order of PARTS; parts that the input lacks are zero."""

import contextlib

from roce_exporter.host.kernel.transceiver import PageAddress, read_transceiver
from roce_exporter.host.recorded.ethtool_text import parse_transceiver, print_transceiver

ALLOWED = (OSError,)
CORE = ("host/kernel/transceiver.py", "host/recorded/ethtool_text.py")
PARTS = ((0x50, -1), (0x50, 0), (0x50, 1), (0x50, 2), (0x50, 3), (0x50, 0x11), (0x51, -1))


def decode(data: bytes) -> None:
    memory = data.ljust(128 * len(PARTS), b"\0")

    def read(place: PageAddress) -> bytes:
        start = 128 * PARTS.index((place.i2c, place.page if place.offset >= 128 else -1))
        return memory[start : start + 128][place.offset % 128 :][: place.length]

    with contextlib.suppress(*ALLOWED):
        found = read_transceiver(read)
        assert all(type(value) is int for value in found.values())
        assert parse_transceiver(print_transceiver(found)) == found
    parse_transceiver(data.decode("utf-8", "replace"))
