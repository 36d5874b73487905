"""Essential facts that a device does not report although its interfaces work: a driver may have renamed a counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.drivers import ANY_FUNCTION, ESSENTIALS, PHYSICAL
from roce_exporter.model import WHOLE_DEVICE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from roce_exporter.catalog.drivers import Essential
    from roce_exporter.model import Device
    from roce_exporter.normalise.series import PlanKey, Series, Value

PFC_ENABLED = "roce_pfc_enabled"
IWARP = "iw"
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
