"""Samples to a Prometheus by its remote write: the protocol buffers of version 1, in Snappy's format without compression.

`--web.enable-remote-write-receiver` accepts them.
"""

import struct
import sys
import urllib.error
import urllib.request
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise

from servers import Running

STALE = struct.pack("<Q", 0x7FF0000000000002)
"""The value with which Prometheus marks the end of a series."""


def send(running: Running, series: Iterable[bytes]) -> None:
    """Write series; the samples of one must be in order.

    Raises:
        AssertionError: Prometheus refuses them.
    """
    body = b"".join(_field(1, one) for one in series)
    literals = (body[begin : begin + 65536] for begin in range(0, len(body), 65536))
    packed = _number(len(body)) + b"".join(
        b"\xf4" + struct.pack("<H", len(one) - 1) + one for one in literals
    )
    headers = {
        "Content-Encoding": "snappy",
        "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }
    try:
        urllib.request.urlopen(urllib.request.Request(f"{running.url}/api/v1/write", packed, headers)).close()
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error


def timed(labels: Mapping[str, str], values: Iterable[tuple[float, float]]) -> bytes:
    """A series with the times of its samples, in seconds since 1970."""
    samples = (
        b"\x09" + struct.pack("<d", value) + b"\x10" + _number(round(at * 1000)) for at, value in values
    )
    return _labels(labels) + b"".join(_field(2, one) for one in samples)


def regular(
    labels: Mapping[str, str], start: int, step: int, values: Sequence[float], *, before: bool = False
) -> bytes:
    """A series with a sample each `step` seconds from `start` on. A value that is not a number is no sample, and ends the series.

    `before`: whether the series had a sample a step earlier.
    """
    assert sys.byteorder == "little"
    written, numbers = bytearray(_template(start, step, len(values))), array("d", values).tobytes()
    size = RECORD
    for byte in range(8):
        written[3 + byte :: size] = numbers[byte::8]
    kept = [value == value for value in values]  # noqa: PLR0124 - what is not a number
    if not all(kept):
        found = bytearray()
        for place, (was, here) in enumerate(pairwise([before, *kept])):
            record = written[place * size : (place + 1) * size]
            if here:
                found += record
            elif was:
                found += record[:3] + STALE + record[11:]
        written = found
    return _labels(labels) + bytes(written)


RECORD = 18
"""Bytes of a sample of this century: the head of the field, the value, and the time in milliseconds."""


@cache
def _template(start: int, step: int, length: int) -> bytes:
    return b"".join(
        _field(2, b"\x09" + bytes(8) + b"\x10" + _number((start + step * place) * 1000))
        for place in range(length)
    )


def _labels(labels: Mapping[str, str]) -> bytes:
    return b"".join(
        _field(1, _field(1, key.encode()) + _field(2, text.encode()))
        for key, text in sorted(labels.items())
        if text
    )


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(content)) + content


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
