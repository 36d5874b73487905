"""Rules about transceivers, against the module's own alarm limits (SFF-8472, SFF-8636, CMIS), and about temperatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.health import port_causes
from roce_exporter.checks.health.sign import Sign
from roce_exporter.words import duration, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.sign import Cause, Rule
    from roce_exporter.view.host_view import PortView

WINDOW = 900.0
"""Seconds for which an event of the module counts as recent."""


class OpticalLimit(NamedTuple):
    """A value of a lane, and the module's own alarm limit for it."""

    name: str
    alarm: str
    cause: Cause
    too_low: bool
    scale: float
    unit: str


POWER = "roce_transceiver_{}_power{}_watts"
BIAS = "roce_transceiver_bias{}_amperes"

OPTICAL_LIMITS = (
    OpticalLimit(
        POWER.format("receive", ""),
        POWER.format("receive", "_low_alarm"),
        port_causes.RECEIVE_POWER_LOW,
        too_low=True,
        scale=1e3,
        unit="mW",
    ),
    OpticalLimit(
        POWER.format("receive", ""),
        POWER.format("receive", "_high_alarm"),
        port_causes.RECEIVE_POWER_HIGH,
        too_low=False,
        scale=1e3,
        unit="mW",
    ),
    OpticalLimit(
        POWER.format("transmit", ""),
        POWER.format("transmit", "_low_alarm"),
        port_causes.TRANSMIT_POWER_LOW,
        too_low=True,
        scale=1e3,
        unit="mW",
    ),
    OpticalLimit(
        BIAS.format(""),
        BIAS.format("_high_alarm"),
        port_causes.LASER_BIAS_HIGH,
        too_low=False,
        scale=1e3,
        unit="mA",
    ),
)

MODULE_EVENTS = (
    ("roce_transceiver_unplugs_total", "times the transceiver was unplugged"),
    ("roce_transceiver_bus_failures_total", "times its management bus was stuck"),
    ("roce_transceiver_shorts_total", "times the cable was shorted"),
)


def _light(port: PortView) -> Iterator[Sign]:
    for one in OPTICAL_LIMITS:
        yield from _beyond(port, one)


def _beyond(port: PortView, one: OpticalLimit) -> Iterator[Sign]:
    """Each lane beyond the module's own limit. A limit of 0 is none; a dark port has no link, which others report."""
    limits = {track.labels["netdev"]: value for track, value in port.current(one.alarm) if value > 0}
    for track, value in port.current(one.name):
        netdev = track.labels["netdev"]
        most = limits.get(netdev)
        if most is None or not (value < most if one.too_low else value > most):
            continue
        if one.too_low and port.highest("roce_link_up", netdev=netdev) != 1:
            continue
        lane = f" on lane {track.labels['lane']}" if track.labels.get("lane") else ""
        shown = f"{value * one.scale:.3g} {one.unit}{lane} of {netdev}"
        yield Sign(one.cause, (f"{shown}, the module's alarm limit is {most * one.scale:.3g} {one.unit}",))


def _heat(port: PortView) -> Iterator[Sign]:
    limits = {
        track.labels["netdev"]: value
        for track, value in port.current("roce_transceiver_temperature_high_alarm_celsius")
        if value > 0
    }
    for track, value in port.current("roce_transceiver_temperature_celsius"):
        most = limits.get(track.labels["netdev"])
        if most is not None and value > most:
            said = f"the transceiver of {track.labels['netdev']} has {value:.0f} °C, its alarm limit is {most:.0f}"
            yield Sign(port_causes.TOO_HOT, (said,))
    count = port.rose("roce_transceiver_overheats_total", WINDOW)
    if count:
        yield Sign(
            port_causes.TOO_HOT,
            (f"the transceiver was too hot {number(count)} times within {duration(WINDOW)}",),
        )


def _nic_heat(device: PortView) -> Iterator[Sign]:
    limits = {
        track.labels["sensor"]: value
        for track, value in device.current("roce_temperature_critical_celsius")
        if value > 0
    }
    for track, value in device.current("roce_temperature_celsius"):
        sensor = track.labels["sensor"]
        if sensor in limits and value >= limits[sensor]:
            said = f"sensor {sensor} has {value:.0f} °C, {limits[sensor]:.0f} is critical"
            yield Sign(port_causes.TOO_HOT, (said,))


def _module(port: PortView) -> Iterator[Sign]:
    for name, what in MODULE_EVENTS:
        rise = port.rise(name, WINDOW)
        if rise and rise.amount:
            yield Sign(
                port_causes.MODULE_FAULT, (f"{number(rise.amount)} {what} within {duration(rise.seconds)}",)
            )


OPTICS_RULES: tuple[Rule, ...] = (_light, _heat, _module)
"""Rules of one port."""
DEVICE_HEAT_RULES: tuple[Rule, ...] = (_nic_heat,)
"""Rules of a whole device."""
