"""What the pause tree does not know, said per switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.named import SWITCH_NEIGHBOR_INFO, SWITCH_QUEUE_INFO, SWITCH_SOURCE_UP
from roce_exporter.switches.pause.port_pause import place_order
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.switches.pause.fabric_links import FabricLink, PortId
    from roce_exporter.switches.pause.port_pause import PausePlace, PortPause
    from roce_exporter.switches.switch_view import SwitchView, ViewValues

STALE = 120.0
"""Seconds after which an answer is old: two scrapes at the longest usual interval."""


SHORT = 5.0
"""Seconds; most switches refresh their counters once a second, and some once in ten."""


class PauseGap(NamedTuple):
    """Something that the tree does not know."""

    switch: str
    """Empty if it is about no single switch."""
    text: str


def pause_gaps(
    views: Sequence[SwitchView],
    values: Mapping[str, ViewValues],
    pauses: Mapping[PausePlace, PortPause],
    links: Mapping[PortId, FabricLink],
) -> tuple[PauseGap, ...]:
    """All gaps, switch by switch."""
    places: dict[str, list[PausePlace]] = {}
    for place in sorted(pauses, key=place_order):
        places.setdefault(place.switch, []).append(place)
    found: list[PauseGap] = []
    for view in views:
        here = places.get(view.device, [])
        texts = [*_of_answer(view, values[view.device])]
        if here:
            texts += _of_ports({place: pauses[place] for place in here}, values[view.device], links)
        found += [PauseGap(view.device, text) for text in texts]
    return tuple(found)


def _of_answer(view: SwitchView, values: ViewValues) -> Iterator[str]:
    for source, fault in view.faults.items():
        yield f"source {source}: {fault}" if source else fault
    named = set(view.faults)
    down = (labels[0] for labels, value in values.of(SWITCH_SOURCE_UP.name).items() if not value)
    yield from (f"source {source} could not be used" for source in down if source not in named)
    if not view.samples.series:
        if not view.faults:
            yield "has not answered"
    elif view.before is None or view.seconds <= 0:
        yield "answered once: rates need two answers, only states are known"
    elif view.seconds < SHORT:
        yield f"the last two answers are {view.seconds:.1f} s apart: its rates are rough"
    if view.samples.series and view.age > STALE:
        yield f"the last answer is {view.age:.0f} s old"


def _of_ports(
    pauses: Mapping[PausePlace, PortPause], values: ViewValues, links: Mapping[PortId, FabricLink]
) -> Iterator[str]:
    estimated = tuple(str(place.port) for place, pause in pauses.items() if pause.estimated)
    if estimated:
        yield f"pause time is estimated by the switch on {few(tuple(dict.fromkeys(estimated)))}"
    if not values.labels(SWITCH_NEIGHBOR_INFO.name):
        yield "reports no LLDP neighbours"
    else:
        active = (place for place, pause in pauses.items() if pause.is_paused or pause.transmits)
        alone = dict.fromkeys(place.port for place in active if place[:2] not in links)
        if alone:
            yield f"no neighbour is known on {few(tuple(alone))}, which have pause"
    if not values.labels(SWITCH_QUEUE_INFO.name):
        yield "which queue a priority has is not read: full queues and its watchdog are not known"
    elif all(pause.fill.is_full is None for pause in pauses.values()):
        yield "how full its queues are is not read: incast there cannot be seen"
