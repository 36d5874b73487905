"""Convert readings to samples in base units, by a plan that is made once per device and kept.

A plan is replaced only when the device or the set of raw names changes, and the new plan keeps the spelling chosen for
each series: another choice would look like a counter reset that never happened. A plan also lists the essential facts that a device
does not report although its interfaces work: a driver may have renamed a counter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from roce_exporter.catalog import INDEX, Index
from roce_exporter.catalog.drivers import ANY_FUNCTION, ESSENTIALS, PHYSICAL, Essential
from roce_exporter.catalog.named import DEVICE_INFO, GID_INFO, PORT_INFO, PORT_NETDEV_INFO
from roce_exporter.catalog.row import Row
from roce_exporter.model import IWARP, WHOLE_DEVICE, Device, DeviceReadings, Port, Reading
from roce_exporter.normalise.series import PlanKey, Samples, Series, Value
from roce_exporter.normalise.series_plan import (
    Chosen,
    Place,
    Source,
    ValuePlan,
    ValuePosition,
    choose,
    value_plan,
    values_of,
)

PFC_ENABLED = "roce_pfc_enabled"
INFINIBAND = "InfiniBand"
VIRTUAL = "vf"

Unmapped = tuple[str, int, str]
"""Source, port and raw name."""


class MissingFact(NamedTuple):
    """A fact that no series of the port has."""

    port: str
    fact: str
    pfc: tuple[int, ...] | None
    """Positions of the values that show whether PFC is on, if the fact is required only then; None: always required."""


def missing_facts(
    device: Device, key: PlanKey, series: Sequence[Series], unmapped: Collection[Unmapped]
) -> tuple[MissingFact, ...]:
    """The facts that ports of this device should report but do not, by the table of essential facts.

    `key` lists the interfaces that responded and their names, `series` the resulting series. iWARP devices and InfiniBand
    ports have no RoCE facts.
    """
    if device.protocol == IWARP:
        return ()
    wanted = [essential for essential in ESSENTIALS if essential.dialect == device.dialect]
    return tuple(
        missing
        for port in device.ports
        if port.link_layer != INFINIBAND
        for essential in wanted
        if _is_judged(essential, device, port.number, key, unmapped)
        for missing in _of_port(essential, str(port.number), series)
    )


def missing_now(missing: Sequence[MissingFact], values: Sequence[Value]) -> Iterator[tuple[str, str]]:
    """Port and name of each missing fact, given the values of one collection."""
    for one in missing:
        if one.pfc is None or any(values[position] == 1 for position in one.pfc):
            yield one.port, one.fact


def _is_judged(
    essential: Essential, device: Device, port: int, key: PlanKey, unmapped: Collection[Unmapped]
) -> bool:
    if essential.required == PHYSICAL and device.function == VIRTUAL:
        return False
    of_port = (port, WHOLE_DEVICE)
    if not any(source == essential.source and where in of_port and names for source, where, _, names in key):
        return False
    if any(source == essential.source and where in of_port for source, where, _ in unmapped):
        return True
    return essential.required == ANY_FUNCTION or essential.required == PHYSICAL == device.function


def _of_port(essential: Essential, port: str, series: Sequence[Series]) -> Iterator[MissingFact]:
    mine = [(position, one) for position, one in enumerate(series) if one.labels[1:2] in ((port,), ("all",))]
    if any(one.row.name in essential.metrics for _, one in mine):
        return
    enabled = tuple(position for position, one in mine if one.row.name == PFC_ENABLED)
    yield MissingFact(port, essential.fact, enabled if essential.where_pfc_is_on else None)


Fact = tuple["Row", tuple[str, ...]]
"""A row and the values of its labels."""


def device_facts(device: Device) -> tuple[Fact, ...]:
    """Every info series of one device and its ports."""
    return (
        (DEVICE_INFO, _device_labels(device)),
        *(fact for port in device.ports for fact in _port_facts(device.name, port)),
    )


def _device_labels(device: Device) -> tuple[str, ...]:
    return (
        device.name,
        device.driver,
        device.protocol,
        device.firmware,
        device.board,
        device.model,
        device.node_guid,
        device.pci,
        device.function,
        device.physical_function,
    )


def _port_facts(device: str, port: Port) -> Iterator[Fact]:
    number = str(port.number)
    netdev = port.netdevs[0] if port.netdevs else None
    lag = "true" if netdev and netdev.role == "bond" else "false"
    yield PORT_INFO, (device, number, port.link_layer, netdev.name if netdev else "", lag)
    for one in port.netdevs:
        yield PORT_NETDEV_INFO, (device, number, one.name, one.role)
    for gid in port.gids:
        yield GID_INFO, (device, number, str(gid.index), gid.type, gid.netdev, gid.address)


@dataclass(slots=True)
class Plan:
    """How the values of one device's readings become the values of its series."""

    device: Device
    key: PlanKey
    sources: tuple[Source, ...]
    unmapped: tuple[tuple[str, int, str], ...]
    """Source, port and raw name of each name without a row."""
    missing: tuple[MissingFact, ...] = ()
    """Essential facts that no series has."""
    series: tuple[Series, ...] = ()
    constant: tuple[Value, ...] = ()
    values: ValuePlan = ValuePlan()  # noqa: RUF009 - frozen


@dataclass(slots=True)
class Normaliser:
    """Keeps one plan per device."""

    index: Index = INDEX
    plans: dict[str, Plan] = field(default_factory=dict)
    _chosen: dict[str, tuple[int, Chosen]] = field(default_factory=dict)
    """Per device its incarnation and, per series, the source and raw names of the first value."""

    def normalise(self, found: DeviceReadings) -> Samples:
        """The samples of one device in one collection."""
        device, readings = found.device, found.readings
        plan = self.plans.get(device.name)
        if plan is None or plan.device is not device or not _is_of(plan.key, readings):
            key = tuple((reading.source, reading.port, reading.netdev, reading.names) for reading in readings)
            if plan is None or plan.device is not device or plan.key != key:
                plan = self.plans[device.name] = self._plan(device, key)
        return Samples(plan.series, plan.constant + values_of(plan.values, readings))

    def forget(self, gone: Iterable[str]) -> None:
        """Drop the plans of removed devices."""
        for name in gone:
            self.plans.pop(name, None)
            self._chosen.pop(name, None)

    def _plan(self, device: Device, key: PlanKey) -> Plan:
        # A replugged device may choose again: its counters begin at 0 anyway.
        incarnation, chosen = self._chosen.get(device.name, (device.incarnation, {}))
        if incarnation != device.incarnation:
            chosen = {}
        self._chosen[device.name] = (device.incarnation, chosen)
        sources = choose(self.index, device.dialect, _places(device, key), chosen)
        plan = Plan(device, key, sources, tuple(_unmapped(self.index, device, key)))
        facts = device_facts(device)
        plan.constant = (1,) * len(facts)
        plan.series = (
            *(Series(row, labels) for row, labels in facts),
            *(source.series for source in sources),
        )
        plan.missing = missing_facts(device, key, plan.series, plan.unmapped)
        plan.values = value_plan(sources)
        return plan


def _is_of(key: PlanKey, readings: Sequence[Reading]) -> bool:
    """Whether these readings certainly have this key: it is not made, and names are compared by identity."""
    if len(key) != len(readings):
        return False
    for (source, port, netdev, names), reading in zip(key, readings, strict=True):
        if (
            reading.names is not names
            or reading.port != port
            or reading.source != source
            or reading.netdev != netdev
        ):
            return False
    return True


def _places(device: Device, key: PlanKey) -> dict[Place, dict[str, ValuePosition]]:
    """The position of each raw name. Names of a port override those of the whole device."""
    found: dict[Place, dict[str, ValuePosition]] = {}
    order = sorted(range(len(key)), key=lambda reading: key[reading][1] == WHOLE_DEVICE)
    for reading in order:
        source, port, netdev, names = key[reading]
        labels = (("device", device.name), ("port", port_label(device, port)), ("netdev", netdev))
        of_port = found.setdefault((source, labels), {})
        for position, name in enumerate(names):
            of_port.setdefault(name, ValuePosition(reading, position))
    return found


def port_label(device: Device, port: int) -> str:
    """The label `port`; for a value of the whole device its only port, or `all` if it has several."""
    if port != WHOLE_DEVICE:
        return str(port)
    return str(device.ports[0].number) if len(device.ports) == 1 else "all"


def _unmapped(index: Index, device: Device, key: PlanKey) -> Iterator[tuple[str, int, str]]:
    for source, port, _, names in key:
        for name in names:
            if not index.claimed(device.dialect, source, name) and not index.left_out(
                device.dialect, source, name
            ):
                yield source, port, name
