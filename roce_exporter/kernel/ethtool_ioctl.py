"""`ethtool -S`: the driver's private counters, by ioctl, for no netlink message tells them.

include/uapi/linux/ethtool.h and net/ethtool/ioctl.c. Three questions in a row: how many there are, what they are
called, what they are. The kernel copies as many as there are *now*, whatever room the caller announced (kernels before
2026), so the buffers have slack, and a set that changed between two questions is asked for again. Names are asked for
again although their number is the same: mlx5 changes them when PFC moves to another priority. Not at every look of the
fast loop, though: the kernel prints them one by one, under the RTNL lock, which took forty times as long as the values.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.kernel import Absent
from roce_exporter.kernel.names import encode_netdev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ioctl = Callable[[int, int, bytes], object]

SIOCETHTOOL = 0x8946
GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37
GCOALESCE, GPFLAGS, GTUNABLE = 0x0E, 0x27, 0x48
STATISTICS_SET, PRIVATE_FLAGS_SET = 1, 2
"""ETH_SS_STATS and ETH_SS_PRIV_FLAGS."""
FLAGS = 32
"""Private flags are the bits of one word."""
PFC_PREVENTION_TIMEOUT, UNSIGNED_16 = 3, 2
"""ETHTOOL_PFC_PREVENTION_TOUT and ETHTOOL_TUNABLE_U16."""

NAMES_SECONDS = 1.0
"""How old names may be for the fast loop, which looks ten times as often; a scrape asks every time. What moves to another
name meanwhile makes no storm: that takes several looks, and an impossible jump is dropped."""

NAME_BYTES = 32
VALUE_BYTES = 8
SLACK = 1024
"""Counters that may be added between two questions, as by `ethtool -L`, without harm."""
MOST = 1 << 16
"""No driver has a tenth as many counters; more is a driver gone mad."""
TRIES = 3

_REQUEST = struct.Struct("16sP16x")
_SET_INFO = struct.Struct("=IIQI")
_STRINGS = struct.Struct("=III")
_STATS = struct.Struct("=II")
_FLAGS = struct.Struct("=II")
_TUNABLE = struct.Struct("=IIIIH")
_COALESCE = struct.Struct("=23I")

Names = tuple[str, ...]


class _Known(NamedTuple):
    """The names of one network device: when they were asked for, as the kernel gave them, and decoded."""

    read_at: float
    raw: bytes
    names: Names


class EthtoolIoctl:
    """One socket. Not to be shared between threads: make one per thread, it is cheap."""

    def __init__(
        self,
        ioctl: Ioctl = fcntl.ioctl,
        names_for: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Names that are `names_for` seconds old, by this clock, are asked for anew; by default at every read."""
        self._ioctl = ioctl
        self._names_for = names_for
        self._clock = clock
        self._socket: socket.socket | None = None
        self._room = bytearray()
        self._requests: dict[str, bytes] = {}
        """Per network device the `struct ifreq` that names it and the room as it is now."""
        self._known: dict[str, _Known] = {}

    def statistics(self, netdev: str) -> tuple[Names, Sequence[int]]:
        """Names and values, in the driver's order and units.

        The names are the same object as long as they have not changed, and may be as old as they were allowed to be.
        A name may stand there twice.

        Raises:
            Absent: the driver has none.
            OSError: ENODEV, there is no such network device in this namespace; EAGAIN, the counters kept changing;
                any other errno is the kernel's.
        """
        for _ in range(TRIES):
            count = self._count(netdev, STATISTICS_SET)
            if count == 0:
                raise Absent(errno.EOPNOTSUPP, "the driver has no private counters", netdev)
            names = self._names(netdev, count)
            values = self._values(netdev, count) if names is not None else None
            if names is not None and values is not None:
                return names, values
        raise OSError(errno.EAGAIN, f"its counters changed {TRIES} times while they were read", netdev)

    def private_flags(self, netdev: str) -> dict[str, bool]:
        """The driver's own switches, as `ethtool --show-priv-flags` prints them.

        Raises:
            Absent: the driver has none.
            OSError: as in `statistics`.
        """
        count = self._count(netdev, PRIVATE_FLAGS_SET)
        names = self._strings(netdev, PRIVATE_FLAGS_SET, min(count, FLAGS)) if count else None
        if names is None:
            raise Absent(errno.EOPNOTSUPP, "the driver has no private flags", netdev)
        bits = _FLAGS.unpack_from(self._query(netdev, _FLAGS.pack(GPFLAGS, 0), 0))[1]
        return {name: bool(bits >> position & 1) for position, name in enumerate(_decode_names(names))}

    def pfc_prevention_timeout(self, netdev: str) -> int:
        """For how many milliseconds the NIC may send pause without end before its watchdog stops it.

        0: for ever. 65535: the driver's own choice, on mlx5 100 ms.

        Raises:
            Absent: the driver has no such watchdog.
            OSError: as in `statistics`.
        """
        request = _TUNABLE.pack(GTUNABLE, PFC_PREVENTION_TIMEOUT, UNSIGNED_16, 2, 0)
        return int(_TUNABLE.unpack_from(self._query(netdev, request, 0))[4])

    def statistics_refresh(self, netdev: str) -> int:
        """Every how many microseconds the NIC gives its counters to the host; 0: never, or the driver has no such thing.

        Raises:
            Absent: the driver tells nothing of coalescing.
            OSError: as in `statistics`.
        """
        request = _COALESCE.pack(GCOALESCE, *(0,) * 22)
        return int(_COALESCE.unpack_from(self._query(netdev, request, 0))[9])

    def close(self) -> None:
        """Close the socket. The next question opens another."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def __del__(self) -> None:
        # A worker thread that ends takes its socket along.
        self.close()

    def _count(self, netdev: str, strings: int) -> int:
        answer = self._query(netdev, _SET_INFO.pack(GSSET_INFO, 0, 1 << strings, 0), 0)
        _, _, mask, count = _SET_INFO.unpack_from(answer)
        if count > MOST:
            raise OSError(errno.EMSGSIZE, f"its driver announces {count} counters", netdev)
        return count if mask else 0

    def _names(self, netdev: str, count: int) -> Names | None:
        """The names; None when there are not as many as were announced."""
        known, now = self._known.get(netdev), self._clock()
        if known and len(known.names) == count and now - known.read_at < self._names_for:
            return known.names
        if self._query_strings(netdev, STATISTICS_SET, count) != count:
            return None
        # Compared where they are: a copy of 64 kB per look would take longer than all that is made of the values.
        if not (known and len(known.names) == count and self._room.startswith(known.raw, _STRINGS.size)):
            raw = self._copy(_STRINGS.size, NAME_BYTES * count)
            # Alike network devices share their names: sixteen times 2,000 texts would be megabytes.
            alike = next((one for one in self._known.values() if one.raw == raw), None)
            known = alike or _Known(now, raw, _decode_names(raw))
        self._known[netdev] = known._replace(read_at=now)
        return known.names

    def _strings(self, netdev: str, strings: int, count: int) -> bytes | None:
        """What is in a set of strings, 32 bytes each; None when there are not as many as were announced."""
        if self._query_strings(netdev, strings, count) != count:
            return None
        return self._copy(_STRINGS.size, NAME_BYTES * count)

    def _query_strings(self, netdev: str, strings: int, count: int) -> int:
        """Have a set of strings written into the room; returns how many there are."""
        answer = self._query(netdev, _STRINGS.pack(GSTRINGS, strings, count), NAME_BYTES * (count + SLACK))
        return int(_STRINGS.unpack_from(answer)[2])

    def _values(self, netdev: str, count: int) -> Sequence[int] | None:
        """The values; None when there are not as many as were announced (0: the kernel found that itself)."""
        answer = self._query(netdev, _STATS.pack(GSTATS, count), VALUE_BYTES * (count + SLACK))
        if _STATS.unpack_from(answer)[1] != count:
            return None
        # No number of the thousands is made before it is asked for: most names have no row.
        return memoryview(self._copy(_STATS.size, VALUE_BYTES * count)).cast("Q")

    def _copy(self, start: int, size: int) -> bytes:
        return bytes(memoryview(self._room)[start : start + size])

    def _query(self, netdev: str, request: bytes, room: int) -> bytearray:
        if len(self._room) < len(request) + room:
            self._room = bytearray(len(request) + room)
            self._requests.clear()
        self._room[: len(request)] = request
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._ioctl(self._socket.fileno(), SIOCETHTOOL, self._request(netdev))
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise Absent(errno.EOPNOTSUPP, "the driver does not tell", netdev) from None
            raise OSError(error.errno, os.strerror(error.errno or 0), netdev) from None
        return self._room

    def _request(self, netdev: str) -> bytes:
        request = self._requests.get(netdev)
        if request is None:
            name = encode_netdev(netdev)
            # Stays true as long as the room is not made anew: its bytes are changed in place and never moved.
            place = ctypes.addressof(ctypes.c_char.from_buffer(self._room))
            request = self._requests[netdev] = _REQUEST.pack(name, place)
        return request


def _decode_names(raw: bytes) -> Names:
    """32 bytes each, cut at the NUL; ethtool prints them without the white space around."""
    pieces = (raw[start : start + NAME_BYTES] for start in range(0, len(raw), NAME_BYTES))
    return tuple(piece.partition(b"\0")[0].decode("utf-8", "backslashreplace").strip() for piece in pieces)
