"""Rules about the slot: errors (AER, PCIe Base Specification 6.2), width, speed, and whether it keeps up with the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.health.symptom import MEDIUM, Symptom, rose, texts
from roce_exporter.words import duration, number, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.symptom import Rule
    from roce_exporter.view.host_view import PortView

CORRECTED_EVENTS = 100.0
"""Corrected errors within the window of the alert: single ones are normal, this many wear the link out."""

CONGESTIONS = 3.0
"""Reports within `MEDIUM` that count: one is a burst."""

STALLS = (
    ("roce_pcie_write_stalled_seconds_total", "writes to memory"),
    ("roce_pcie_read_stalled_seconds_total", "reads from memory"),
)
WIDTH, WIDTH_MAX = "roce_pcie_link_width_lanes", "roce_pcie_link_width_max_lanes"
SPEED, SPEED_MAX = (
    "roce_pcie_link_speed_transfers_per_second",
    "roce_pcie_link_speed_max_transfers_per_second",
)


def _errors(device: PortView) -> Iterator[Symptom]:
    window = device.limit("pcie_errors", "window")
    corrected = device.rise("roce_pcie_correctable_errors_total", window)
    logged = device.events("roce_kernel_log_events_total", window, event="pcie_aer_correctable")
    many = max(corrected.amount if corrected else 0.0, logged)
    if many >= CORRECTED_EVENTS:
        yield Symptom("pcie_errors", (f"{number(many)} corrected errors within {duration(window)}",))


def _width(device: PortView) -> Iterator[Symptom]:
    now, most = device.highest(WIDTH), device.highest(WIDTH_MAX)
    if now is not None and most is not None and now < most:
        yield Symptom("pcie_narrow", (f"{now:.0f} of {most:.0f} lanes are in use",), weight=1 - now / most)


def _speed(device: PortView) -> Iterator[Symptom]:
    """A slower slot is permanent on a card that is newer than its board: a note, unless it fell or the slot limits the traffic."""
    now, most = device.highest(SPEED), device.highest(SPEED_MAX)
    if now is None or most is None or now >= most:
        return
    before = max(value for track in device.tracks(SPEED) for _, value in track.points)
    limits = stalled(device)
    said = f"{now / 1e9:g} GT/s per lane, the card supports {most / 1e9:g}"
    fell = f"it was {before / 1e9:g} GT/s before" if before > now else None
    yield Symptom("pcie_slow", texts([said, fell, *limits]), note=not fell and not limits)


def stalled(port: PortView) -> list[str]:
    """A sentence per kind of access that waits for PCIe, or for each sign that PCIe is full; empty if none is seen."""
    found = []
    for name, what in STALLS:
        for track in port.tracks(name):
            rise = port.rise_of(name, track, MEDIUM)
            if rise and rise.rate > port.limit("pcie_stalls", "ratio"):
                found.append(
                    f"{what} were stalled in {share(min(rise.rate, 1.0))} of the seconds ({duration(rise.seconds)})"
                )
    window = port.limit("pcie_overflows", "window")
    overflows = port.rise("roce_pcie_buffer_overflows_total", window)
    if overflows and overflows.amount:
        found.append(rose(overflows, "packets dropped because PCIe did not drain the NIC"))
    for way in ("inbound", "outbound"):
        times = port.rise(f"roce_pcie_{way}_congestions_total", MEDIUM)
        if times and times.amount >= CONGESTIONS:
            found.append(rose(times, f"times the NIC reported {way} PCIe traffic as congested"))
    full = [way for way in ("inbound", "outbound") if port.highest(f"roce_pcie_{way}_congested")]
    return [*found, *(f"the NIC reports that {way} PCIe traffic is congested now" for way in full)]


def sees_stalls(port: PortView) -> bool:
    """Whether the driver reports PCIe stalls at all."""
    return any(port.current(name) for name, _ in STALLS) or bool(port.current("roce_pcie_inbound_congested"))


def _congestion(port: PortView) -> Iterator[Symptom]:
    evidence = stalled(port)
    if not evidence:
        return
    whole = bool(port.current(WIDTH)) and port.highest(WIDTH) == port.highest(WIDTH_MAX)
    slow = port.highest(SPEED) != port.highest(SPEED_MAX)
    against = (
        "width and speed of the slot are full: rather IOMMU, NUMA placement or memory"
        if whole and not slow
        else None
    )
    yield Symptom("pcie_congestion", tuple(evidence), texts([against]))


PCIE_PORT_RULES: tuple[Rule, ...] = (_congestion,)
"""Rules of one port."""
PCIE_DEVICE_RULES: tuple[Rule, ...] = (_errors, _width, _speed)
"""Rules of a whole device."""
