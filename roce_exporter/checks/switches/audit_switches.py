"""The audit of switches: every check of every port. Pure functions over the last answers; nothing is changed on a switch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.checks.switches import audit_comparison, audit_lossless, audit_marking, audit_watchdog
from roce_exporter.checks.switches.audit_check import SwitchVerdict
from roce_exporter.checks.switches.audit_comparison import compare_ports
from roce_exporter.checks.switches.audit_settings import WHOLE_SWITCH, switch_port_settings
from roce_exporter.switches.pause.fabric import NO_NEIGHBOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import SwitchPortSettings
    from roce_exporter.switches.switch_view import SwitchView

OWN_CHECKS = (*audit_lossless.CHECKS, *audit_watchdog.CHECKS, *audit_marking.CHECKS)

SWITCH_CHECKS = (*OWN_CHECKS, *audit_comparison.CHECKS)


def audit_switches(views: Sequence[SwitchView], profile: Profile) -> tuple[SwitchVerdict, ...]:
    """The verdicts of all checks that the profile enables: by switch and port, in the order of `SWITCH_CHECKS`.

    A switch that did not answer has no verdicts.
    """
    every = switch_port_settings(views)
    chosen = [settings for settings in every if _is_audited(settings, profile)]
    audited = {(settings.device, settings.port): number for number, settings in enumerate(chosen)}
    found = [verdict for settings in chosen for verdict in _of_port(settings, profile)]
    # Both ends of a link are needed, also where only one of them is audited.
    found += [
        verdict
        for verdict in compare_ports(every, profile)
        if (verdict.settings.device, verdict.settings.port) in audited
    ]
    return tuple(sorted(found, key=lambda one: audited[one.settings.device, one.settings.port]))


def _is_audited(settings: SwitchPortSettings, profile: Profile) -> bool:
    if settings.port == WHOLE_SWITCH:
        return True
    if profile.switch_ports is not None:
        return re.fullmatch(profile.switch_ports, settings.port) is not None
    return bool(settings.pfc) or settings.link.kind != NO_NEIGHBOR


def _of_port(settings: SwitchPortSettings, profile: Profile) -> Iterator[SwitchVerdict]:
    whole = settings.port == WHOLE_SWITCH
    for check in OWN_CHECKS:
        if check.whole == whole and (result := check.judge(settings, profile)) is not None:
            yield SwitchVerdict(check, settings, result)
