"""The buffers of the ethtool ioctl: the kernel writes the next piece of the input over the query."""

import contextlib
import ctypes
import struct

from fuzz_targets.pieces import split
from fuzz_targets.wire import counts
from roce_exporter.host.kernel.ethtool_ioctl import EthtoolIoctl

ALLOWED = (OSError,)
CORE = ("host/kernel/ethtool_ioctl.py",)
REFUSED = 0xFE
"""A piece of one or two bytes that begins with this byte is an errno."""


def decode(data: bytes) -> None:
    if not data:
        return
    answers = split(data[1:])

    def ioctl(_: int, __: int, argument: bytes) -> int:
        answer = next(answers, bytes([REFUSED, 19]))
        if len(answer) == 2 and answer[0] == REFUSED:
            raise OSError(answer[1], "refused")
        place = struct.unpack("16sP16x", argument)[1]
        # The kernel copies only the device's strings or counters, for which the buffer has slack.
        ctypes.memmove(place, answer, min(len(answer), len(reader._buffer)))
        return 0

    reader = EthtoolIoctl(ioctl, names_for=0.0 if data[0] & 1 else 1e9)
    try:
        with contextlib.suppress(*ALLOWED):
            ask(reader, data[0] >> 1 & 3)
    finally:
        reader.close()


def ask(reader: EthtoolIoctl, question: int) -> None:
    match question:
        case 0:
            for _ in range(2):
                names, values = reader.statistics("eth0")
                assert len(names) == len(values)
                assert all(0 <= value < 1 << 64 for value in values)
        case 1:
            assert len(reader.private_flags("eth0")) <= 32
        case 2:
            counts({"timeout": reader.pfc_prevention_timeout("eth0")})
        case 3:
            counts({"refresh": reader.statistics_refresh("eth0")})
