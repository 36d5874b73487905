"""The audit of switches: every check of every port. Pure functions over the last answers; nothing is changed on a switch."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.switches import audit_comparison, audit_lossless, audit_marking, audit_watchdog
from roce_exporter.checks.switches.audit_check import fill_in
from roce_exporter.checks.switches.audit_comparison import compare_ports
from roce_exporter.checks.switches.audit_settings import WHOLE_SWITCH, switch_port_settings
from roce_exporter.switches.pause.fabric import NO_NEIGHBOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import SwitchPortSettings
    from roce_exporter.switches.switch_view import SwitchView

OWN_CHECKS = (*audit_lossless.CHECKS, *audit_watchdog.CHECKS, *audit_marking.CHECKS)

SWITCH_CHECKS = (*OWN_CHECKS, *audit_comparison.CHECKS)


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
