"""Checks of the PFC watchdog of a switch: on, acting, not overridden, and neither too fast nor too slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import CUMULUS, EOS, NXOS, SONIC
from roce_exporter.checks.settings.check import Check, CheckResult, judged, unreadable
from roce_exporter.checks.switches.audit_check import on_queues

if TYPE_CHECKING:
    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import QueueSettings, SwitchPortSettings

SONIC_START = "pfcwd start --action drop --restoration-time {milliseconds} {port} {milliseconds}"
NXOS_ON = "interface {port}: priority-flow-control watch-dog-interval on"
EOS_ON = "interface {port}: priority-flow-control pause watchdog"
CUMULUS_ON = "nv set interface {port} qos pfc-watchdog state enable; nv config apply"


def _word(on: bool) -> str:
    return "on" if on else "off"


def switch_watchdog(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog monitors all lossless queues."""
    wanted = profile.switch_watchdog
    if wanted is None:
        return None
    return on_queues(
        settings,
        _word(wanted),
        lambda queue: None if queue.watchdog is None else queue.watchdog == wanted,
        lambda queue: _word(bool(queue.watchdog)),
    )


SWITCH_WATCHDOG = Check(
    "switch_watchdog",
    "PFC watchdog",
    "A host that sends pause without end stops this queue, then the switch, then the fabric behind it.",
    switch_watchdog,
    {
        ANY: "set the PFC watchdog of {port} as the profile requires",
        SONIC: SONIC_START,
        NXOS: "priority-flow-control watch-dog-interval on; " + NXOS_ON,
        EOS: EOS_ON,
        CUMULUS: CUMULUS_ON,
    },
)


def switch_watchdog_acts(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog frees the queue, and does not only report."""
    if not profile.switch_watchdog or not any(queue.watchdog for queue in settings.queues.values()):
        return None
    if all(queue.acts is None for queue in settings.queues.values()):
        # Not every operating system has a watchdog that only reports.
        return None
    return on_queues(
        settings,
        "drops or forwards",
        lambda queue: queue.acts if queue.watchdog else True,
        lambda queue: "drops or forwards" if queue.acts else "only reports",
    )


SWITCH_WATCHDOG_ACTS = Check(
    "switch_watchdog_acts",
    "action of the watchdog",
    "The watchdog only writes a log line: the queue stays stopped.",
    switch_watchdog_acts,
    {
        ANY: "let the PFC watchdog of {port} drop the packets of a stopped queue",
        SONIC: SONIC_START,
        NXOS: NXOS_ON + " (without disable-action)",
        EOS: "interface {port}: priority-flow-control pause watchdog port action drop",
        CUMULUS: CUMULUS_ON,
    },
)


def switch_watchdog_overridden(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the watchdog of the whole switch is forced. Switches without such a setting have no result."""
    if settings.overridden is None:
        return None
    return judged(not settings.overridden, "no", "yes" if settings.overridden else "no")


SWITCH_WATCHDOG_OVERRIDDEN = Check(
    "switch_watchdog_overridden",
    "watchdog overridden",
    "All lossless queues drop packets, or none is protected, whatever the ports are set to.",
    switch_watchdog_overridden,
    {
        ANY: "remove the override of the PFC watchdog",
        SONIC: "pfcwd big_red_switch disable",
        NXOS: "no priority-flow-control watch-dog-interval force on (or off)",
    },
    whole=True,
)


def switch_watchdog_detection(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog acts after the NIC's own watchdog, and before the transport gives up."""
    least, most = profile.pfc_prevention, profile.switch_watchdog_most
    watched = any(queue.watchdog for queue in settings.queues.values())
    if not profile.switch_watchdog or (least is None and most is None) or not watched:
        return None
    expected = f"{least} ms or more" if most is None else f"{least or 0} to {most} ms"
    if all(queue.detection is None for queue in settings.queues.values()):
        return unreadable(expected)

    def is_right(queue: QueueSettings) -> bool | None:
        if queue.detection is None:
            return None
        milliseconds = queue.detection * 1000
        return (least is None or milliseconds >= least) and (most is None or milliseconds <= most)

    return on_queues(settings, expected, is_right, lambda queue: f"{(queue.detection or 0) * 1000:.0f} ms")


SWITCH_WATCHDOG_DETECTION = Check(
    "switch_watchdog_detection",
    "detection time of the watchdog",
    "Too short: packets are dropped before the NIC's own watchdog can stop its pause. Too long: connections of other hosts fail.",
    switch_watchdog_detection,
    {
        ANY: "set the detection time of the PFC watchdog to {milliseconds} ms",
        SONIC: SONIC_START,
        NXOS: "priority-flow-control watch-dog interval 100; priority-flow-control watch-dog shutdown-multiplier {multiplier}",
        EOS: "priority-flow-control pause watchdog default timeout {seconds:g}",
        CUMULUS: "nv set qos pfc-watchdog polling-interval 100; nv set qos pfc-watchdog robustness {multiplier}; nv config apply",
    },
)

CHECKS = (
    SWITCH_WATCHDOG,
    SWITCH_WATCHDOG_ACTS,
    SWITCH_WATCHDOG_DETECTION,
    SWITCH_WATCHDOG_OVERRIDDEN,
)
