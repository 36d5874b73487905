"""What the replies of EOS mean: a pure function from replies to readings."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO
from roce_exporter.net import NetError
from roce_exporter.switches.readings import SwitchFact, SwitchReadings, label_text
from roce_exporter.switches.systems.eos.eos_eapi import drop_readings, ecn_readings, stuck_readings
from roce_exporter.switches.systems.eos.eos_gnmi import (
    EosView,
    priority_readings,
    queue_readings,
    setting_readings,
    watchdog_readings,
)
from roce_exporter.switches.systems.eos.eos_lldp import eapi_neighbors, gnmi_neighbors
from roce_exporter.switches.systems.eos.eos_models import (
    INTERFACE,
    PRIORITY,
    SYSTEM,
    active_priorities,
    configured_priorities,
    is_port,
    tables_of,
)
from roce_exporter.switches.targets import ALL_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roce_exporter.switches.readings import Replies, SwitchReading
    from roce_exporter.switches.systems.eos.eos_models import PfcPriorities, Tables
    from roce_exporter.switches.targets import SwitchTarget

EAPI_READINGS: Mapping[str, Callable[[Any, EosView], Iterator[SwitchReading]]] = {
    "ecn_counters": ecn_readings,
    "queue_drops": drop_readings,
    "watchdog_counters": stuck_readings,
}


def read(replies: Replies, target: SwitchTarget) -> SwitchReadings:
    """The readings of one round. If it is unknown which priorities have PFC, those with PFC frames count as such."""
    found = replies.replies
    tables = tables_of(chain.from_iterable(reply for reply in found.values() if isinstance(reply, tuple)))
    pfc = configured_priorities(tables) or active_priorities(tables)
    view = EosView(tables, pfc, target.priorities == ALL_PRIORITIES)
    readings = [
        *priority_readings(view),
        *watchdog_readings(view),
        *setting_readings(view),
        *queue_readings(view),
    ]
    faults = {}
    for source, interpret in EAPI_READINGS.items():
        try:
            readings += interpret(found[source], view) if source in found else ()
        except NetError as error:
            faults[source] = str(error)
    neighbors, lldp_fault = _neighbors(found, tables)
    return SwitchReadings(
        name=label_text(
            _text(tables[SYSTEM].get(()), "hostname") or _text(found.get("hostname"), "hostname")
        ),
        readings=tuple(reading for reading in readings if reading.values),
        facts=(*_switch_facts(found, tables), *_queue_facts(pfc), *neighbors),
        faults={**faults, **lldp_fault},
        sources=tuple(dict.fromkeys((*found, *replies.faults))),
    )


def _neighbors(found: Mapping[str, Any], tables: Tables) -> tuple[Iterable[SwitchFact], Mapping[str, str]]:
    """The neighbours that eAPI lists, or else those of openconfig-lldp, and the fault of a reply that is of no use."""
    try:
        if "lldp" in found:
            return tuple(eapi_neighbors(found["lldp"])), {}
    except NetError as error:
        return tuple(gnmi_neighbors(tables)), {"lldp": str(error)}
    return tuple(gnmi_neighbors(tables)), {}


def _switch_facts(found: Mapping[str, Any], tables: Tables) -> Iterator[SwitchFact]:
    version = _text(found.get("version"), "version") or _text(tables[SYSTEM].get(()), "software-version")
    model = _text(found.get("version"), "modelName")
    if version or model:
        yield SwitchFact(
            SWITCH_INFO, {"os": "eos", "version": label_text(version), "model": label_text(model)}
        )
    descriptions = {port: row.get("description", "") for (port,), row in tables[INTERFACE].items()}
    ports = dict.fromkeys((*(port for port, _ in tables[PRIORITY]), *descriptions))
    for port in filter(is_port, ports):
        description = label_text(descriptions.get(port) or "")
        yield SwitchFact(SWITCH_PORT_INFO, {"port": label_text(port), "description": description})


def _queue_facts(pfc: PfcPriorities) -> Iterator[SwitchFact]:
    """The queue of each priority with PFC, by the default map: no reply has the map of the switch."""
    for port, priorities in pfc.items():
        for priority in sorted(priorities):
            numbers = dict.fromkeys(("priority", "queue", "priority_group"), priority)
            yield SwitchFact(SWITCH_QUEUE_INFO, {"port": label_text(port), **numbers})


def _text(result: Any, name: str) -> str:
    value = result.get(name) if isinstance(result, dict) else None
    return value if isinstance(value, str) else ""
