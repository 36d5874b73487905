"""All checks of all ports of switches, and those that compare ports: pure functions over the last answers; nothing is changed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO
from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.settings.check import Check, CheckResult, judged, not_alone, unreadable
from roce_exporter.checks.settings.lossless_checks import listed
from roce_exporter.checks.switches.switch_checks import OWN_CHECKS
from roce_exporter.switches.pause.fabric import (
    ECN_MAXIMUM,
    HOST,
    NO_NEIGHBOR,
    PAUSE_THRESHOLD,
    SWITCH,
    UNKNOWN_LINK,
    fabric_links,
)
from roce_exporter.switches.switch_view import natural, view_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.checks.settings.profile import Profile
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


ROLES = {HOST: "hosts", SWITCH: "switches"}
"""What a port leads to. Ports with other links are not compared: their role is not known."""

COMPARED = ("minimum", "maximum", "probability", "threshold")
"""Fields of `QueueSettings` that are equal among ports of one role; headroom depends on the cable."""

DEFAULT_PRIORITY = 3
"""Used in a command if neither profile nor port has a lossless priority: what most fabrics use."""

DEFAULT_MILLISECONDS = 400
"""Used in a command if the profile sets no limit."""

JudgedPort = tuple[Check, SwitchPortSettings, CheckResult]


SWITCH_PEER_PFC = Check(
    "switch_peer_pfc",
    "PFC at the other end",
    "A priority that is lossless on one side of the link only drops packets, or sends pause that the other side ignores.",
    not_alone,
    {
        ANY: "set the same priorities with PFC on both ends of the link of {port}",
        SONIC: "config interface pfc priority {port} PRIORITY on (or off), or the same at the other end",
    },
)

SWITCH_CONSISTENT = Check(
    "switch_consistent",
    "thresholds as on similar ports",
    "Flows through the port with other thresholds are marked or paused earlier or later than all others.",
    not_alone,
    {ANY: "compare the ports: roce-exporter check switches --format=json; then give them one profile"},
)


def compare_ports(ports: Sequence[SwitchPortSettings], profile: Profile) -> Iterator[JudgedPort]:
    """The verdicts of the checks that need more than one port."""
    by_place = {(settings.device, settings.port): settings for settings in ports}
    for settings in ports:
        if settings.link.peer is not None and (peer := by_place.get(settings.link.peer)):
            result = unreadable(f"as on {peer.device} {peer.port}")
            if settings.pfc is not None and peer.pfc is not None:
                expected = f"{listed(settings.pfc)} as here"
                result = judged(settings.pfc == peer.pfc, expected, listed(peer.pfc))
            yield SWITCH_PEER_PFC, settings, result
    if profile.consistent:
        roles: dict[tuple[str, str], list[SwitchPortSettings]] = {}
        for settings in ports:
            if settings.link.kind in ROLES and settings.pfc:
                roles.setdefault((settings.device, settings.link.kind), []).append(settings)
        for alike in roles.values():
            if len(alike) > 1:
                yield from _consistent(alike)


def _consistent(ports: Sequence[SwitchPortSettings]) -> Iterator[JudgedPort]:
    """The most frequent values are the expected ones; if two are equally frequent, those of the first port."""
    values = [
        tuple(
            (f"{name} of {priority}", value)
            for priority, queue in sorted(settings.queues.items())
            for name in COMPARED
            if (value := getattr(queue, name)) is not None
        )
        for settings in ports
    ]
    usual, _ = Counter(one for one in values if one).most_common(1)[0] if any(values) else ((), 0)
    model = next((settings for settings, one in zip(ports, values, strict=True) if one == usual), ports[0])
    for settings, found in zip(ports, values, strict=True):
        expected = f"as {model.port}, to {ROLES[settings.link.kind]}"
        result = unreadable(expected)
        if usual and found:
            names = sorted({name for name, value in set(found) ^ set(usual)})
            result = judged(not names, expected, f"differs in {', '.join(names)}" if names else "equal")
        yield SWITCH_CONSISTENT, settings, result


SWITCH_CHECKS = (*OWN_CHECKS, SWITCH_PEER_PFC, SWITCH_CONSISTENT)


def fill_in(settings: SwitchPortSettings, profile: Profile) -> dict[str, object]:
    """The values that a command may contain, by name."""
    wanted = profile.lossless_priorities
    lossless = (DEFAULT_PRIORITY,) if wanted is None else wanted
    if wanted is None and settings.pfc:
        lossless = (min(settings.pfc),)
    on = settings.pfc or frozenset()
    priority = min(lossless, default=DEFAULT_PRIORITY)
    queue = settings.queues.get(priority)
    limits = (profile.pfc_prevention or 0, profile.switch_watchdog_most or DEFAULT_MILLISECONDS)
    milliseconds = min(max(DEFAULT_MILLISECONDS, limits[0]), limits[1])
    # Only what differs; all of it where nothing does, for the JSON has commands for each check.
    changes = [(one, one in lossless) for one in sorted(on ^ set(lossless) or lossless)]
    return {
        "port": settings.port or "PORT",
        "priority": priority,
        "lossless": ",".join(map(str, lossless)) or "none",
        "queue": queue.queue if queue else priority,
        "group": queue.group if queue else priority,
        "milliseconds": milliseconds,
        "seconds": milliseconds / 1000,
        "multiplier": max(1, milliseconds // 100),
        "dscp": "DSCP" if profile.roce_dscp is None else profile.roce_dscp,
        "sonic_pfc": "; ".join(
            f"config interface pfc priority {settings.port} {one} {'on' if wanted_on else 'off'}"
            for one, wanted_on in changes
        ),
        "eos_pfc": "; ".join(
            f"priority-flow-control priority {one} {'no-drop' if wanted_on else 'drop'}"
            for one, wanted_on in changes
        ),
    }


def audit_switches(views: Sequence[SwitchView], profile: Profile) -> Report:
    """The findings of all checks that the profile enables: by switch and port, in the order of `SWITCH_CHECKS`.

    What could not be read of a switch is not checked; one that did not answer has no findings.
    """
    every = switch_port_settings(views)
    chosen = [
        settings
        for settings in every
        if settings.port == WHOLE_SWITCH
        or (
            re.fullmatch(profile.switch_ports, settings.port)
            if profile.switch_ports is not None
            else settings.pfc or settings.link.kind != NO_NEIGHBOR
        )
    ]
    audited = {(settings.device, settings.port): number for number, settings in enumerate(chosen)}
    found = [
        (check, settings, result)
        for settings in chosen
        for check in OWN_CHECKS
        if check.whole == (settings.port == WHOLE_SWITCH)
        and (result := check.judge(settings, profile)) is not None
    ]
    # Both ends of a link are needed, also where only one of them is audited.
    found += [one for one in compare_ports(every, profile) if (one[1].device, one[1].port) in audited]
    found.sort(key=lambda one: audited[one[1].device, one[1].port])
    findings = [
        check.finding(
            Topic.SWITCHES,
            (settings.device, settings.port, ""),
            result,
            dialect=settings.dialect,
            fill=partial(fill_in, settings, profile),
        )
        for check, settings, result in found
    ]
    gaps = [
        NotChecked(f"{source}: {fault}" if source else fault, view.device, "", True)
        for view in views
        for source, fault in view.faults.items()
    ]
    return Report(tuple(findings), tuple(gaps))
