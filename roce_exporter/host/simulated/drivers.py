"""How each driver reports the quantities of the model: names and units of its counters, and what it does not report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.conditions import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


@dataclass(frozen=True, slots=True)
class Driver:
    """One vendor's NIC and its driver. `{}` in `priority_counters` and `lossless_counters` is the priority."""

    name: str
    module: str
    """The kernel driver of the network device."""
    device: str
    """Name of the RDMA devices; `{}` is their number."""
    model: str
    firmware: str
    board: str
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


def amounts(reported: tuple[DriverCounter, ...], facts: Mapping[str, float]) -> tuple[int, ...]:
    """The counters' values, in the driver's own units."""
    return tuple(int(facts.get(fact, 0.0) / per) for _, fact, per in reported)


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


def still(*names: str) -> tuple[DriverCounter, ...]:
    """Counters that exist and that the model never changes."""
    return tuple(DriverCounter(name) for name in names)


def both_ways(*pairs: tuple[str, str]) -> tuple[DriverCounter, ...]:
    """Counters of each direction: `{way}` is rx or tx in the raw name, `{direction}` its long form in the quantity."""
    return tuple(
        DriverCounter(
            raw.replace("{way}", way).replace("{Way}", way.title()),
            fact.replace("{direction}", direction),
        )
        for raw, fact in pairs
        for way, direction in (("rx", "receive"), ("tx", "transmit"))
    )
