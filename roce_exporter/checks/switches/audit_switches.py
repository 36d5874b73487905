"""All checks of all ports of switches, and those that compare ports: pure functions over the last answers; nothing is changed.

A judge compares the settings of one port with the profile; its entry in `checks.txt` says why it matters and how to fix it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO
from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.settings.check import (
    Check,
    CheckResult,
    equal,
    findings_of,
    judged,
    on_or_off,
    read_checks,
    unreadable,
)
from roce_exporter.checks.settings.port_checks import judged_pfc, listed
from roce_exporter.checks.settings.profile import Profile
from roce_exporter.switches.pause.fabric import (
    ECN_MAXIMUM,
    HOST,
    NO_NEIGHBOR,
    PAUSE_THRESHOLD,
    SWITCH,
    UNKNOWN_LINK,
    FabricLink,
    PortId,
    fabric_links,
    switch_plan,
)
from roce_exporter.switches.switch_view import SwitchView, ViewValues, natural, view_values

PFC_ENABLED = "roce_switch_pfc_enabled"
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
    netdev = ""
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
    lossless: tuple[int, ...] | None = None
    """The priorities with PFC by the switches file, which takes precedence over the profile; None: it does not say."""

    def intended(self, profile: Profile) -> Profile:
        """The profile of this switch."""
        return profile if self.lossless is None else replace(profile, lossless_priorities=self.lossless)


def switch_port_settings(views: Sequence[SwitchView]) -> tuple[SwitchPortSettings, ...]:
    """The settings of all switches that answered: of each switch first the whole, then its ports in natural order."""
    values = {view.device: view_values(view) for view in views}
    links = fabric_links(tuple(map(switch_plan, views)))
    return tuple(
        settings
        for view in views
        if view.samples.series
        for settings in _of_switch(view, values[view.device], links)
    )


def _of_switch(
    view: SwitchView, values: ViewValues, links: Mapping[PortId, FabricLink]
) -> Iterator[SwitchPortSettings]:
    dialect = next((os for os, *_ in values[SWITCH_INFO.name]), "")
    yield SwitchPortSettings(
        view.device, WHOLE_SWITCH, dialect, overridden=values.flag("roce_switch_pfc_watchdog_overridden")
    )
    rows = (SWITCH_PORT_INFO.name, SWITCH_NEIGHBOR_INFO.name, SWITCH_QUEUE_INFO.name, PFC_ENABLED)
    ports = {labels[0] for row in rows for labels in values[row] if not MANAGEMENT.match(labels[0])}
    for port in sorted(ports, key=natural):
        priorities = {
            int(priority): on
            for (at, priority), on in values[PFC_ENABLED].items()
            if at == port and priority.isdecimal()
        }
        packets = values["roce_switch_queue_transmit_packets_total"]
        sent = [count for (at, *_), count in packets.items() if at == port]
        yield SwitchPortSettings(
            view.device,
            port,
            dialect,
            # None if the switch reports the setting of no priority of the port: that PFC is off is a value, too.
            pfc=frozenset(one for one, on in priorities.items() if on) if priorities else None,
            queues={
                int(priority): _queue(values, port, queue, group)
                for at, priority, queue, group in values[SWITCH_QUEUE_INFO.name]
                if at == port and priority.isdecimal()
            },
            link=links.get((view.device, port), UNKNOWN_LINK),
            neighbors_read=bool(values[SWITCH_NEIGHBOR_INFO.name]) or not view.faults,
            used=any(sent) if sent else None,
            lossless=view.lossless,
        )


def _queue(values: ViewValues, port: str, queue: str, group: str) -> QueueSettings:
    config = "roce_switch_config_ecn"
    return QueueSettings(
        queue=queue,
        group=group,
        watchdog=values.flag("roce_switch_pfc_watchdog_enabled", port, queue),
        acts=values.flag("roce_switch_pfc_watchdog_acts", port, queue),
        detection=values.value("roce_switch_pfc_watchdog_detection_seconds", port, queue),
        ecn=values.flag(f"{config}_enabled", port, queue),
        minimum=values.value(f"{config}_minimum_bytes", port, queue),
        maximum=values.value(ECN_MAXIMUM, port, queue),
        probability=values.value(f"{config}_probability_ratio", port, queue),
        headroom=values.value("roce_switch_buffer_headroom_bytes", port, group),
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


def on_queues(
    settings: SwitchPortSettings,
    expected: object,
    is_right: Callable[[QueueSettings], bool | None],
    shown: Callable[[QueueSettings], object],
) -> CheckResult | None:
    """The result over all priorities with PFC of a port: wrong if one is wrong, unreadable if one cannot be read.

    None if the port has PFC on no priority.
    """
    if settings.pfc is None:
        return unreadable(expected)
    if not settings.pfc:
        return None
    found = {priority: settings.queues.get(priority) for priority in sorted(settings.pfc)}
    results = {priority: None if queue is None else is_right(queue) for priority, queue in found.items()}
    wrong = [priority for priority, right in results.items() if right is False]
    if not wrong and None in results.values():
        return unreadable(expected)
    texts = {
        priority: shown(queue)
        for priority, queue in found.items()
        if queue and results[priority] is not None and (priority in wrong or not wrong)
    }
    same = {*texts.values()}
    each = ", ".join(f"{priority}: {text}" for priority, text in texts.items())
    return judged(not wrong, expected, same.pop() if len(same) == 1 else each)


def switch_neighbor(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the neighbour of a port with PFC is known. Without it, no alert names the host behind the port.

    A port that has never sent a packet has no cable, so it needs no neighbour.
    """
    if not settings.pfc:
        return None
    if settings.link.kind != NO_NEIGHBOR:
        return judged(True, "known", settings.link)
    if settings.used is False:
        return None
    return judged(False, "known", "none") if settings.neighbors_read else unreadable("known")


def switch_watchdog_acts(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog frees the queue, and does not only report."""
    queues = settings.queues.values()
    if not profile.switch_watchdog or not any(queue.watchdog for queue in queues):
        return None
    if all(queue.acts is None for queue in queues):
        # Not every operating system has a watchdog that only reports.
        return None
    return on_queues(
        settings,
        "drops or forwards",
        lambda queue: queue.acts if queue.watchdog else True,
        lambda queue: "drops or forwards" if queue.acts else "only reports",
    )


def switch_watchdog_detection(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog acts after the NIC's own watchdog, and before the transport gives up."""
    least, most = profile.pfc_prevention, profile.switch_watchdog_most
    watched = any(queue.watchdog for queue in settings.queues.values())
    if not profile.switch_watchdog or (least is None and most is None) or not watched:
        return None
    expected = f"{least} ms or more" if most is None else f"{least or 0} to {most} ms"
    bounds = (least or 0), (inf if most is None else most)
    return on_queues(
        settings,
        expected,
        lambda queue: None if queue.detection is None else bounds[0] <= queue.detection * 1000 <= bounds[1],
        lambda queue: f"{(queue.detection or 0) * 1000:.0f} ms",
    )


def switch_ecn_before_pause(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether marks begin before pause does."""
    if all(queue.threshold is None for queue in settings.queues.values()):
        # Most operating systems do not report the level at which they send pause.
        return None
    return _thresholds(
        settings,
        "below the pause threshold",
        lambda queue: queue.threshold,
        lambda queue: f"{queue.minimum or 0:.0f}, pause at {queue.threshold or 0:.0f} bytes",
    )


def _thresholds(
    settings: SwitchPortSettings,
    expected: str,
    limit: Callable[[QueueSettings], float | None],
    shown: Callable[[QueueSettings], str],
) -> CheckResult | None:
    """Whether the ECN minimum of each queue that marks is below its limit; None if no queue marks."""

    def is_right(queue: QueueSettings) -> bool | None:
        most = limit(queue)
        if not queue.ecn:
            return True
        return None if queue.minimum is None or most is None else queue.minimum < most

    if not any(queue.ecn for queue in settings.queues.values()):
        return None
    return on_queues(settings, expected, is_right, lambda queue: shown(queue) if queue.ecn else "off")


JUDGES: Mapping[str, Callable[[SwitchPortSettings, Profile], CheckResult | None]] = {
    "switch_pfc": lambda port, profile: judged_pfc(port.pfc, port.intended(profile)),
    # Whether lossless priority groups have headroom for packets in flight after pause was sent.
    "switch_headroom": lambda port, _: on_queues(
        port,
        "above 0",
        lambda queue: None if queue.headroom is None else queue.headroom > 0,
        lambda queue: f"{queue.headroom or 0:.0f} bytes",
    ),
    # No switch's map is read, so this is never more than a reminder.
    "switch_dscp": lambda _, profile: (
        unreadable(f"{profile.roce_dscp} to {profile.roce_priority}")
        if profile.roce_dscp is not None and profile.roce_priority is not None
        else None
    ),
    # Switches without such a setting have no result.
    "switch_watchdog_overridden": lambda port, _: (
        None if port.overridden is None else equal("no", "yes" if port.overridden else "no")
    ),
    # Whether the watchdog monitors all lossless queues.
    "switch_watchdog": lambda port, profile: (
        on_queues(
            port,
            on_or_off(profile.switch_watchdog),
            lambda queue: None if queue.watchdog is None else queue.watchdog == profile.switch_watchdog,
            lambda queue: on_or_off(queue.watchdog),
        )
        if profile.switch_watchdog is not None
        else None
    ),
    # Whether the minimum is below the maximum.
    "switch_ecn_order": lambda port, _: _thresholds(
        port,
        "minimum below maximum",
        lambda queue: queue.maximum,
        lambda queue: f"{queue.minimum or 0:.0f} to {queue.maximum or 0:.0f} bytes",
    ),
    # Where the hosts use ECN.
    "switch_ecn": lambda port, profile: (
        on_queues(port, "on", lambda queue: queue.ecn, lambda queue: on_or_off(queue.ecn))
        if profile.ecn
        else None
    ),
}
"""Checks that differ in the fact and what is expected of it; the others have a function of their name."""

SWITCH_CHECKS = tuple(read_checks(Path(__file__).with_name("checks.txt"), {**globals(), **JUDGES}))
SWITCH_PEER_PFC, SWITCH_CONSISTENT = SWITCH_CHECKS[-2:]
"""They compare ports, the others judge one."""


def fill_in(settings: SwitchPortSettings, profile: Profile) -> dict[str, object]:
    """The values that a command may contain, by name."""
    wanted = settings.intended(profile).lossless_priorities
    lossless = (DEFAULT_PRIORITY,) if wanted is None else wanted
    if wanted is None and settings.pfc:
        lossless = (min(settings.pfc),)
    on = settings.pfc or frozenset()
    priority = min(lossless, default=DEFAULT_PRIORITY)
    queue = settings.queues.get(priority)
    later = max(DEFAULT_MILLISECONDS, profile.pfc_prevention or 0)
    milliseconds = min(later, profile.switch_watchdog_most or later)
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
        for check in SWITCH_CHECKS
        if check.whole == (settings.port == WHOLE_SWITCH)
        and (result := check.judge(settings, profile)) is not None
    ]
    # Both ends of a link are needed, also where only one of them is audited.
    found += [one for one in compare_ports(every, profile) if (one[1].device, one[1].port) in audited]
    found.sort(key=lambda one: audited[one[1].device, one[1].port])
    sources: defaultdict[tuple[str, str], list[str]] = defaultdict(list)  # by switch and fault
    for view in views:
        for source, fault in view.faults.items():
            sources[view.device, fault] += filter(None, [source])
    gaps = [
        NotChecked(f"{', '.join(names)}: {fault}" if names else fault, device, "", True)
        for (device, fault), names in sources.items()
    ]
    return Report(findings_of(Topic.SWITCHES, found, profile, fill_in), tuple(gaps))
