"""`ethtool -S`: the driver's private counters, by ioctl, because no netlink message has them.

include/uapi/linux/ethtool.h and net/ethtool/ioctl.c. Three requests in a row: the number of counters, their names, their
values. Kernels before 2026 copy the *current* number of counters, whatever the size of the caller's buffer. So the buffers
have slack, and a set that changed between two requests is read again. Names are read again even if their number is the
same: mlx5 changes them when PFC moves to another priority. The fast loop reads them less often: the kernel prints them
one by one under the RTNL lock, which takes forty times as long as the values.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.names import encode_netdev, keep

Ioctl = Callable[[int, int, bytes], object]

SIOCETHTOOL = 0x8946
GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37
GCOALESCE, GPFLAGS, GTUNABLE = 0x0E, 0x27, 0x48
STATISTICS_SET, PRIVATE_FLAGS_SET = 1, 2
"""ETH_SS_STATS and ETH_SS_PRIV_FLAGS."""
FLAGS = 32  # private flags are the bits of one word
PFC_PREVENTION_TIMEOUT, UNSIGNED_16 = 3, 2  # ETHTOOL_PFC_PREVENTION_TOUT and ETHTOOL_TUNABLE_U16

# Maximum age of names in the fast loop, which polls ten times as often; a scrape always reads them. A value
# that moves to another name meanwhile cannot cause a storm: that takes several samples, and an impossible
# jump is dropped.
NAMES_SECONDS = 1.0
NAME_BYTES = 32
VALUE_BYTES = 8
SLACK = 1024
"""Number of counters that may be added between two requests, as by `ethtool -L`, without a buffer overrun."""
# No driver has a tenth of this number of counters; more is a driver bug.
MOST = 1 << 16
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
    """The names of one network device: when they were read, as the kernel returned them, and decoded."""

    read_at: float
    raw: bytes
    names: Names


class EthtoolIoctl:
    """One socket. Not thread-safe: make one per thread, it is cheap.

    Every request may raise:
        Absent: the driver does not have it.
        OSError: ENODEV, there is no such network device in this namespace; EAGAIN, the counters kept changing; any other
            errno is the kernel's.
    """

    def __init__(
        self, ioctl: Ioctl = fcntl.ioctl, names_for: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Names are cached for `names_for` seconds by this clock; by default they are read every time."""
        self._ioctl = ioctl
        self._names_for = names_for
        self._clock = clock
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._requests: dict[str, bytes] = {}
        """Per network device the `struct ifreq` with its name and the current address of the buffer."""
        self._known: dict[str, _Known] = {}

    def statistics(self, netdev: str) -> tuple[Names, Sequence[int]]:
        """Names and values, in the driver's order and units.

        The names are the same object as long as they have not changed, and may be up to `names_for` seconds old.
        Names may repeat.
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
        """The driver's private flags, as `ethtool --show-priv-flags` prints them."""
        count = self._count(netdev, PRIVATE_FLAGS_SET)
        asked = min(count, FLAGS)
        if not count or self._query_strings(netdev, PRIVATE_FLAGS_SET, asked) != asked:
            raise Absent(errno.EOPNOTSUPP, "the driver has no private flags", netdev)
        names = self._copy(_STRINGS.size, NAME_BYTES * asked)
        bits = _FLAGS.unpack_from(self._query(netdev, _FLAGS.pack(GPFLAGS, 0), 0))[1]
        return {name: bool(bits >> position & 1) for position, name in enumerate(_decode_names(names))}

    def pfc_prevention_timeout(self, netdev: str) -> int:
        """Milliseconds for which the NIC may send pause without interruption before its watchdog stops it.

        0: no limit. 65535: the driver's own choice, on mlx5 100 ms.
        """
        request = _TUNABLE.pack(GTUNABLE, PFC_PREVENTION_TIMEOUT, UNSIGNED_16, 2, 0)
        return int(_TUNABLE.unpack_from(self._query(netdev, request, 0))[4])

    def statistics_refresh(self, netdev: str) -> int:
        """Interval in microseconds at which the NIC writes its counters to the host; 0: never, or not supported."""
        request = _COALESCE.pack(GCOALESCE, *(0,) * 22)
        return int(_COALESCE.unpack_from(self._query(netdev, request, 0))[9])

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    def __del__(self) -> None:
        # Closes the socket of a worker thread that ends.
        self.close()

    def _count(self, netdev: str, strings: int) -> int:
        answer = self._query(netdev, _SET_INFO.pack(GSSET_INFO, 0, 1 << strings, 0), 0)
        _, _, mask, count = _SET_INFO.unpack_from(answer)
        if count > MOST:
            raise OSError(errno.EMSGSIZE, f"its driver announces {count} counters", netdev)
        return count if mask else 0

    def _names(self, netdev: str, count: int) -> Names | None:
        """The names; None if their number differs from `count`."""
        known, now = self._known.get(netdev), self._clock()
        if known and len(known.names) == count and now - known.read_at < self._names_for:
            return known.names
        if self._query_strings(netdev, STATISTICS_SET, count) != count:
            return None
        # Compared in place: copying 64 kB per sample would take longer than all processing of the values.
        if not (known and len(known.names) == count and self._buffer.startswith(known.raw, _STRINGS.size)):
            raw = self._copy(_STRINGS.size, NAME_BYTES * count)
            # Identical network devices share their names: sixteen times 2,000 strings would be megabytes.
            alike = next((one for one in self._known.values() if one.raw == raw), None)
            known = alike or _Known(now, raw, _decode_names(raw))
        keep(self._known, netdev, known._replace(read_at=now))
        return known.names

    def _query_strings(self, netdev: str, strings: int, count: int) -> int:
        """Have the kernel write a set of strings into the buffer; returns their number."""
        answer = self._query(netdev, _STRINGS.pack(GSTRINGS, strings, count), NAME_BYTES * (count + SLACK))
        return int(_STRINGS.unpack_from(answer)[2])

    def _values(self, netdev: str, count: int) -> Sequence[int] | None:
        """The values; None if their number differs from `count` (0: the kernel itself noticed that)."""
        answer = self._query(netdev, _STATS.pack(GSTATS, count), VALUE_BYTES * (count + SLACK))
        if _STATS.unpack_from(answer)[1] != count:
            return None
        # A view: Python makes a number only for a value that is used, and most names have no row.
        return memoryview(self._copy(_STATS.size, VALUE_BYTES * count)).cast("Q")

    def _copy(self, start: int, size: int) -> bytes:
        return bytes(memoryview(self._buffer)[start : start + size])

    def _query(self, netdev: str, request: bytes, space: int) -> bytearray:
        if len(self._buffer) < len(request) + space:
            self._buffer = bytearray(len(request) + space)
            self._requests.clear()
        self._buffer[: len(request)] = request
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._ioctl(self._socket.fileno(), SIOCETHTOOL, self._request(netdev))
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise Absent(errno.EOPNOTSUPP, "not supported by the driver", netdev) from None
            raise OSError(error.errno, os.strerror(error.errno or 0), netdev) from None
        return self._buffer

    def _request(self, netdev: str) -> bytes:
        request = self._requests.get(netdev)
        if request is None:
            name = encode_netdev(netdev)
            # Valid until the buffer is replaced: its bytes are changed in place and never moved.
            place = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
            request = _REQUEST.pack(name, place)
            keep(self._requests, netdev, request)
        return request


def _decode_names(raw: bytes) -> Names:
    """32 bytes each, cut at the NUL; ethtool strips the white space around them."""
    pieces = (raw[start : start + NAME_BYTES] for start in range(0, len(raw), NAME_BYTES))
    return tuple(piece.partition(b"\0")[0].decode("utf-8", "backslashreplace").strip() for piece in pieces)
