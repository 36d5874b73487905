"""The settings of one switch port, taken from the last answer of its switch. None: not read, or the switch does not report it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO
from roce_exporter.switches.pause.fabric import ECN_MAXIMUM, PAUSE_THRESHOLD, UNKNOWN_LINK, fabric_links
from roce_exporter.switches.switch_view import natural, view_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.switches.pause.fabric import FabricLink, PortId
    from roce_exporter.switches.switch_view import SwitchView, ViewValues

PFC_ENABLED = "roce_switch_pfc_enabled"
WATCHDOG_ENABLED = "roce_switch_pfc_watchdog_enabled"
WATCHDOG_ACTS = "roce_switch_pfc_watchdog_acts"
WATCHDOG_OVERRIDDEN = "roce_switch_pfc_watchdog_overridden"
WATCHDOG_DETECTION = "roce_switch_pfc_watchdog_detection_seconds"
ECN_ENABLED = "roce_switch_config_ecn_enabled"
ECN_MINIMUM = "roce_switch_config_ecn_minimum_bytes"
ECN_PROBABILITY = "roce_switch_config_ecn_probability_ratio"
SENT_PACKETS = "roce_switch_queue_transmit_packets_total"
HEADROOM = "roce_switch_buffer_headroom_bytes"

MANAGEMENT = re.compile(r"(eth\d|mgmt|ma\d|management|oob|lo|docker)", re.IGNORECASE | re.ASCII)
"""How the names of management ports begin: they have LLDP neighbours, and no PFC."""

WHOLE_SWITCH = ""
"""The port of settings that a switch has once."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The queue and the priority group of one lossless priority of one port."""

    queue: str
    group: str
    watchdog: bool | None = None
    acts: bool | None = None
    """Whether the watchdog does more than report."""
    detection: float | None = None
    """Seconds of pause until the watchdog acts."""
    ecn: bool | None = None
    minimum: float | None = None
    """Bytes in the queue from which on packets are marked."""
    maximum: float | None = None
    """Bytes in the queue at which the probability of a mark is highest."""
    probability: float | None = None
    headroom: float | None = None
    """Bytes."""
    threshold: float | None = None
    """Bytes of the priority group at which the switch sends pause."""


@dataclass(frozen=True, slots=True)
class SwitchPortSettings:
    """The settings of one port, or with the port `WHOLE_SWITCH` those of the switch."""

    device: str
    port: str
    dialect: str = ""
    """The catalogue's name of the operating system; empty if unknown."""
    pfc: frozenset[int] | None = None
    """The priorities with PFC."""
    queues: Mapping[int, QueueSettings] = field(default_factory=dict)
    """By priority; only priorities with PFC whose queue is known."""
    link: FabricLink = UNKNOWN_LINK
    neighbors_read: bool = True
    """Whether the switch reports neighbours at all, or none of its sources failed."""
    used: bool | None = None
    """Whether any queue of the port has sent a packet: one without a cable has not."""
    overridden: bool | None = None
    """Of the whole switch: whether its watchdog is forced on or off."""


def switch_port_settings(views: Sequence[SwitchView]) -> tuple[SwitchPortSettings, ...]:
    """The settings of all switches that answered: of each switch first the whole, then its ports in natural order."""
    values = {view.device: view_values(view) for view in views}
    links = fabric_links(views, values)
    return tuple(
        settings
        for view in views
        if view.samples.series
        for settings in _of_switch(view, values[view.device], links)
    )


def _of_switch(
    view: SwitchView, values: ViewValues, links: Mapping[PortId, FabricLink]
) -> Iterator[SwitchPortSettings]:
    dialect = next((os for os, *_ in values.labels(SWITCH_INFO.name)), "")
    yield SwitchPortSettings(view.device, WHOLE_SWITCH, dialect, overridden=values.flag(WATCHDOG_OVERRIDDEN))
    rows = (SWITCH_PORT_INFO.name, SWITCH_NEIGHBOR_INFO.name, SWITCH_QUEUE_INFO.name, PFC_ENABLED)
    ports = {labels[0] for row in rows for labels in values.labels(row) if not MANAGEMENT.match(labels[0])}
    for port in sorted(ports, key=natural):
        priorities = {
            int(priority): on
            for (at, priority), on in values.of(PFC_ENABLED).items()
            if at == port and priority.isdecimal()
        }
        sent = [packets for labels, packets in values.of(SENT_PACKETS).items() if labels[0] == port]
        yield SwitchPortSettings(
            view.device,
            port,
            dialect,
            # None if the switch reports the setting of no priority of the port: that PFC is off is a value, too.
            pfc=frozenset(one for one, on in priorities.items() if on) if priorities else None,
            queues={
                int(priority): _queue(values, port, queue, group)
                for at, priority, queue, group in values.labels(SWITCH_QUEUE_INFO.name)
                if at == port and priority.isdecimal()
            },
            link=links.get((view.device, port), UNKNOWN_LINK),
            neighbors_read=bool(values.labels(SWITCH_NEIGHBOR_INFO.name)) or not view.faults,
            used=any(sent) if sent else None,
        )


def _queue(values: ViewValues, port: str, queue: str, group: str) -> QueueSettings:
    return QueueSettings(
        queue=queue,
        group=group,
        watchdog=values.flag(WATCHDOG_ENABLED, port, queue),
        acts=values.flag(WATCHDOG_ACTS, port, queue),
        detection=values.value(WATCHDOG_DETECTION, port, queue),
        ecn=values.flag(ECN_ENABLED, port, queue),
        minimum=values.value(ECN_MINIMUM, port, queue),
        maximum=values.value(ECN_MAXIMUM, port, queue),
        probability=values.value(ECN_PROBABILITY, port, queue),
        headroom=values.value(HEADROOM, port, group),
        threshold=values.value(PAUSE_THRESHOLD, port, group),
    )
