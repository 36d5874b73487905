"""How each driver reports the quantities of the model. `drivers.txt` has the drivers and the names of their counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from itertools import repeat
from operator import truediv
from pathlib import Path
from typing import Any, NamedTuple

from roce_exporter.host.simulated.conditions import PRIORITIES

GIGABIT = 10**9

RATES = {
    25: "25 Gb/sec (1X EDR)",
    40: "40 Gb/sec (4X QDR)",
    50: "50 Gb/sec (2X EDR)",
    100: "100 Gb/sec (4X EDR)",
    200: "200 Gb/sec (4X HDR)",
    400: "400 Gb/sec (4X NDR)",
    800: "800 Gb/sec (4X XDR)",
}
"""The text in sysfs for a number of gigabits per second."""


class DriverCounter(NamedTuple):
    """One counter: its name, the quantity it counts (empty: it stays 0), and how many units of it count as one."""

    raw: str
    fact: str = ""
    per: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """One vendor's NIC and its driver. `{}` in `priority_counters` and `lossless_counters` is the priority."""

    name: str
    module: str
    """The kernel driver of the network device."""
    device: str
    """Name of the RDMA devices; `{}` is their number."""
    model: str
    firmware: str
    board: str = ""
    speed: int
    """Bits per second."""
    down_rate: str
    """The speed in sysfs without a link."""
    hw_counters: tuple[DriverCounter, ...]
    ethtool: tuple[DriverCounter, ...]
    priority_counters: tuple[DriverCounter, ...]
    """Reported for all eight priorities."""
    lossless_counters: tuple[DriverCounter, ...] = ()
    """Reported only for priorities with PFC."""
    counters: tuple[DriverCounter, ...] = ()
    """The port counters of InfiniBand."""
    refresh: float = 0.0
    """Seconds from one refresh of `ethtool -S` to the next; 0: the hardware is queried each time."""
    dcb: bool = True
    """Whether the driver supports DCB netlink."""
    dcb_frames: str = "frames"
    """The pause frames that the driver reports to DCB as requests and indications: all `frames`, or `xoff`."""
    reports_trust: bool = True
    lag: bool = False
    """Two member ports below one RDMA device."""
    card_files: str = ""
    member_files: str = ""
    """The files of this driver."""


def amounts(facts: Iterable[str], per: Iterable[int], totals: Mapping[str, float]) -> tuple[int, ...]:
    """The values of counters of these facts, in the driver's own units."""
    return tuple(map(int, map(truediv, map(totals.get, facts, repeat(0.0)), per)))


def rate_text(speed: int) -> str:
    """The text in sysfs for this speed, given in bits per second."""
    gigabits = speed // GIGABIT
    return RATES.get(gigabits, f"{gigabits} Gb/sec")


def statistics(driver: Driver, lossless: tuple[int, ...]) -> tuple[DriverCounter, ...]:
    """The counters of `ethtool -S` while these priorities have PFC."""
    return (
        *driver.ethtool,
        *_expand(driver.priority_counters, tuple(PRIORITIES)),
        *_expand(driver.lossless_counters, lossless),
    )


def _expand(reported: tuple[DriverCounter, ...], priorities: tuple[int, ...]) -> Iterator[DriverCounter]:
    for priority in priorities:
        for raw, fact, per in reported:
            yield DriverCounter(raw.format(priority), fact.format(priority), per)


def counters(text: str) -> tuple[DriverCounter, ...]:
    """The counters in a list of words, in the form of `drivers.txt`."""
    found = []
    for word in text.split():
        raw, _, quantity = word.partition("=")
        fact, _, per = quantity.partition("/")
        for way, direction in (("rx", "receive"), ("tx", "transmit")) if "{way}" in raw else (("", ""),):
            found.append(
                DriverCounter(
                    raw.replace("{way}", way), fact.replace("{direction}", direction), int(per or 1)
                )
            )
    return tuple(found)


_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        ("hw_counters", "ethtool", "priority_counters", "lossless_counters", "counters"), counters
    ),
    **dict.fromkeys(("dcb", "reports_trust", "lag"), "yes".__eq__),
    "speed": lambda gigabits: int(gigabits) * GIGABIT,
    "refresh": float,
}
"""What reads the value of a key; any other is text."""


TABLE = ConfigParser(interpolation=None)
TABLE.read_string(Path(__file__).with_suffix(".txt").read_text("utf-8"))
FILES = TABLE["files"]
"""The files of every host (`host`), card, member, card of a LAG and member of one: see `static_files`."""


def _drivers() -> Iterator[Driver]:
    for name in TABLE.sections():
        if TABLE[name] is not FILES:
            keys = dict(TABLE[name])
            keys = {**TABLE[keys.pop("like", name)], **keys}
            yield Driver(name=name, **{key: _READERS.get(key, str)(text) for key, text in keys.items()})


DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in _drivers()}
"""Every driver by the name used on the command line."""
