"""All checks of all ports of switches, and those that compare ports: pure functions over the last answers; nothing is changed."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.settings.check import Check, CheckResult, judged, not_alone, unreadable
from roce_exporter.checks.settings.lossless_checks import listed
from roce_exporter.checks.switches.audit_check import fill_in
from roce_exporter.checks.switches.audit_settings import WHOLE_SWITCH, switch_port_settings
from roce_exporter.checks.switches.switch_checks import LOSSLESS_CHECKS, MARKING_CHECKS, WATCHDOG_CHECKS
from roce_exporter.switches.pause.fabric import HOST, NO_NEIGHBOR, SWITCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import SwitchPortSettings
    from roce_exporter.switches.switch_view import SwitchView

ROLES = {HOST: "hosts", SWITCH: "switches"}
"""What a port leads to. Ports with other links are not compared: their role is not known."""

COMPARED = ("minimum", "maximum", "probability", "threshold")
"""Fields of `QueueSettings` that are equal among ports of one role; headroom depends on the cable."""

JudgedPort = tuple[Check, "SwitchPortSettings", CheckResult]
Comparable = tuple[tuple[str, object], ...]


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

COMPARISONS = (SWITCH_PEER_PFC, SWITCH_CONSISTENT)


def compare_ports(ports: Sequence[SwitchPortSettings], profile: Profile) -> Iterator[JudgedPort]:
    """The verdicts of the checks that need more than one port."""
    by_place = {(settings.device, settings.port): settings for settings in ports}
    for settings in ports:
        if settings.link.peer is not None and (peer := by_place.get(settings.link.peer)):
            yield SWITCH_PEER_PFC, settings, _peer(settings, peer)
    if profile.consistent:
        roles: dict[tuple[str, str], list[SwitchPortSettings]] = {}
        for settings in ports:
            if settings.link.kind in ROLES and settings.pfc:
                roles.setdefault((settings.device, settings.link.kind), []).append(settings)
        for alike in roles.values():
            if len(alike) > 1:
                yield from _consistent(alike)


def _peer(settings: SwitchPortSettings, peer: SwitchPortSettings) -> CheckResult:
    if settings.pfc is None or peer.pfc is None:
        return unreadable(f"as on {peer.device} {peer.port}")
    expected = f"{listed(settings.pfc)} as here"
    return judged(settings.pfc == peer.pfc, expected, listed(peer.pfc))


def _consistent(ports: Sequence[SwitchPortSettings]) -> Iterator[JudgedPort]:
    """The most frequent values are the expected ones; if two are equally frequent, those of the first port."""
    values = [_comparable(settings) for settings in ports]
    usual, _ = Counter(one for one in values if one).most_common(1)[0] if any(values) else ((), 0)
    model = next((settings for settings, one in zip(ports, values, strict=True) if one == usual), ports[0])
    for settings, found in zip(ports, values, strict=True):
        expected = f"as {model.port}, to {ROLES[settings.link.kind]}"
        result = unreadable(expected)
        if usual and found:
            names = sorted({name for name, value in set(found) ^ set(usual)})
            result = judged(not names, expected, f"differs in {', '.join(names)}" if names else "equal")
        yield SWITCH_CONSISTENT, settings, result


def _comparable(settings: SwitchPortSettings) -> Comparable:
    return tuple(
        (f"{name} of {priority}", value)
        for priority, queue in sorted(settings.queues.items())
        for name in COMPARED
        if (value := getattr(queue, name)) is not None
    )


OWN_CHECKS = (*LOSSLESS_CHECKS, *WATCHDOG_CHECKS, *MARKING_CHECKS)

SWITCH_CHECKS = (*OWN_CHECKS, *COMPARISONS)


def audit_switches(views: Sequence[SwitchView], profile: Profile) -> Report:
    """The findings of all checks that the profile enables: by switch and port, in the order of `SWITCH_CHECKS`.

    What could not be read of a switch is not checked; one that did not answer has no findings.
    """
    every = switch_port_settings(views)
    chosen = [settings for settings in every if _is_audited(settings, profile)]
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


def _is_audited(settings: SwitchPortSettings, profile: Profile) -> bool:
    if settings.port == WHOLE_SWITCH:
        return True
    if profile.switch_ports is not None:
        return re.fullmatch(profile.switch_ports, settings.port) is not None
    return bool(settings.pfc) or settings.link.kind != NO_NEIGHBOR
