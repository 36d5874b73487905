"""The hot set: the rows of the catalogue that the detectors need, read from one network device.

The catalogue defines the raw names, by the same plan as for a scrape; this module contains no driver knowledge.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import CATALOG, check
from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.fastloop.episodes import Counts
from roce_exporter.fastloop.watch import PauseKey
from roce_exporter.host.kernel import BYTES_PER_MEGABIT
from roce_exporter.model import DeviceReadings
from roce_exporter.model.values import check_counters, make_reading
from roce_exporter.normalise.normaliser import Normaliser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device
    from roce_exporter.normalise.series import Series, Value

PAUSED = "paused"
XOFF, FRAMES = "xoff", "frames"
XON, TRANSITIONS = "xon", "transitions"
PACKETS = "packets"

MEANING = {
    "roce_pfc_receive_pause_seconds_total": (PAUSED, "receive"),
    "roce_pfc_transmit_pause_seconds_total": (PAUSED, "transmit"),
    "roce_pfc_receive_xoff_frames_total": (XOFF, "receive"),
    "roce_pfc_transmit_xoff_frames_total": (XOFF, "transmit"),
    "roce_pfc_receive_xon_frames_total": (XON, "receive"),
    "roce_pfc_transmit_xon_frames_total": (XON, "transmit"),
    "roce_pfc_receive_frames_total": (FRAMES, "receive"),
    "roce_pfc_transmit_frames_total": (FRAMES, "transmit"),
    "roce_pfc_receive_transitions_total": (TRANSITIONS, "receive"),
    "roce_pfc_transmit_transitions_total": (TRANSITIONS, "transmit"),
    # Received pause blocks what this host sends, and the other way round.
    "roce_priority_transmit_packets_total": (PACKETS, "receive"),
    "roce_priority_receive_packets_total": (PACKETS, "transmit"),
}
"""The role of each row of the hot set in a detector, and the direction of pause."""

STALLED = "roce_pcie_write_stalled_seconds_total"
STALLING = "roce_pcie_write_stalled_ratio"
"""Not used for detection, but reported with a storm: the host may be slow to accept received data."""

RECEIVED = "roce_priority_receive_packets_total"

INDEX = check(row for row in CATALOG if row.name in MEANING or row.name in (STALLED, STALLING))


class Hot(NamedTuple):
    """The hot set of one read."""

    begin: float
    end: float
    """Begin and end of the kernel call in monotonic seconds, without our own processing."""
    counts: Mapping[PauseKey, Counts]
    shape: object
    """The same object as long as the driver has the same counters."""
    stalled: Value
    """Seconds in which PCIe stalled writes to memory; None: not counted."""
    stalling: Value
    """Share of the last second in which PCIe stalled; None: not reported."""
    received: Value
    """Packets received, all priorities together; None: not counted."""


class HotCounters:
    """The hot set of one network device."""

    def __init__(self, kernel: Kernel, device: Device, port: int, netdev: str) -> None:
        self._kernel = kernel
        self._device = device
        self._port = port
        self._netdev = netdev
        self._normaliser = Normaliser(INDEX)
        self._series: tuple[Series, ...] = ()
        self._picks: dict[PauseKey, itemgetter[tuple[Value, ...]]] = {}
        """Picks the `Counts` of each priority and direction from the values followed by a None."""
        self._stalled: tuple[int, ...] = ()
        self._stalling: tuple[int, ...] = ()
        self._received: tuple[int, ...] = ()

    def read(self, clock: Callable[[], float]) -> Hot:
        """The current hot set; `clock` returns monotonic seconds.

        Raises:
            Absent: the driver has no private counters.
            OSError: as raised by the kernel.
        """
        begin = clock()
        names, values = self._kernel.ethtool_statistics(self._netdev)
        end = clock()
        checked = check_counters(values)
        reading = make_reading(ETHTOOL, self._device.name, self._port, names, checked, netdev=self._netdev)
        samples = self._normaliser.normalise(DeviceReadings(self._device, (reading,)))
        if samples.series is not self._series:
            self._series = tuple(samples.series)
            self._picks = _picks(samples.series)
            self._stalled = _positions(samples.series, STALLED)
            self._stalling = _positions(samples.series, STALLING)
            self._received = _positions(samples.series, RECEIVED)
        now = (*samples.values, None)
        return Hot(
            begin,
            end,
            {key: Counts._make(pick(now)) for key, pick in self._picks.items()},
            self._series,
            _sum(self._stalled, now),
            _sum(self._stalling, now),
            _sum(self._received, now),
        )


def _picks(series: Sequence[Series]) -> dict[PauseKey, itemgetter[tuple[Value, ...]]]:
    places: dict[PauseKey, dict[str, int]] = {}
    for position, one in enumerate(series):
        if one.row.name in MEANING:
            quantity, direction = MEANING[one.row.name]
            places.setdefault(PauseKey(one.labels[-1], direction), {})[quantity] = position
    nowhere = len(series)
    # Packets are counted for every priority, but a priority without pause counters is not watched.
    return {
        key: itemgetter(
            found.get(PAUSED, nowhere),
            found.get(XOFF if XOFF in found else FRAMES, nowhere),
            found.get(TRANSITIONS if PAUSED in found else XON, nowhere),
            found.get(PACKETS, nowhere),
        )
        for key, found in sorted(places.items())
        if found.keys() != {PACKETS}
    }


def _positions(series: Sequence[Series], name: str) -> tuple[int, ...]:
    return tuple(position for position, one in enumerate(series) if one.row.name == name)


def _sum(positions: Sequence[int], values: Sequence[Value]) -> Value:
    return sum([values[position] or 0 for position in positions]) if positions else None


LINK_FILES = ("operstate", "carrier_down_count")
RARE_FILES = ("speed",)

# Seconds between two reads of the speed, which the kernel gets from the driver under its configuration lock.
SPEED_EVERY = 30.0


class LinkState(NamedTuple):
    """The link below a network device."""

    up: bool
    downs: int
    speed: float | None
    """Bytes per second; None: not known."""


class LinkFiles:
    """The state of one link, from sysfs. A link whose state cannot be read counts as up."""

    def __init__(self, kernel: Kernel, netdev: str) -> None:
        below = f"class/net/{netdev}"
        self._often = kernel.open_files([f"{below}/{name}" for name in LINK_FILES])
        self._rarely = kernel.open_files([f"{below}/{name}" for name in RARE_FILES])
        self._texts: list[bytes | OSError | None] = []
        self._state = ""
        self._count = 0
        self._speed: float | None = None
        self._downs = -1
        self._speed_read = -SPEED_EVERY

    def read(self, now: float) -> LinkState:
        """The current link state; the speed may be up to `SPEED_EVERY` seconds old unless the link went down since."""
        texts = self._often.read()
        if texts != self._texts:
            self._texts, (self._state, downs) = texts, map(_text, texts)
            self._count = int(downs) if downs.isdecimal() else 0
        count = self._count
        if count != self._downs or now - self._speed_read >= SPEED_EVERY:
            self._downs, self._speed_read = count, now
            (speed,) = (_text(content) for content in self._rarely.read())
            self._speed = int(speed) * BYTES_PER_MEGABIT if speed.isdecimal() and int(speed) else None
        return LinkState(self._state not in ("down", "lowerlayerdown", "notpresent"), count, self._speed)

    def close(self) -> None:
        self._often.close()
        self._rarely.close()


def read_cross_check(kernel: Kernel, device: str, port: int) -> int | None:
    """The RDMA port's own byte counters of both directions, in its own unit; None if it has none.

    Read only while all other counters are unchanged: those of `ethtool -S` may be frozen while this one increases.
    """
    below = f"class/infiniband/{device}/ports/{port}/counters"
    try:
        return sum(int(kernel.text(f"{below}/{name}")) for name in ("port_rcv_data", "port_xmit_data"))
    except (OSError, ValueError):
        return None


def _text(content: bytes | OSError | None) -> str:
    return content.decode("ascii", "replace").strip() if isinstance(content, bytes) else ""
