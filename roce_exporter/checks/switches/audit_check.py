"""How one result is made of several lossless queues of a switch port, and the values that its commands contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.check import CheckResult, judged, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import QueueSettings, SwitchPortSettings

DEFAULT_PRIORITY = 3
"""Used in a command if neither profile nor port has a lossless priority: what most fabrics use."""

DEFAULT_MILLISECONDS = 400
"""Used in a command if the profile sets no limit."""


def on_queues(
    settings: SwitchPortSettings,
    expected: str,
    is_right: Callable[[QueueSettings], bool | None],
    shown: Callable[[QueueSettings], str],
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
        priority: shown(queue) for priority, queue in found.items() if queue and results[priority] is not None
    }
    return judged(not wrong, expected, _joined({one: texts[one] for one in wrong or texts}))


def _joined(texts: Mapping[int, str]) -> str:
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{priority}: {text}" for priority, text in texts.items())


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
