"""Checks of ECN on the lossless queues of a switch: on, with thresholds in order, and below the level at which pause begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import CUMULUS, EOS, NXOS, SONIC
from roce_exporter.checks.settings.check import Check
from roce_exporter.checks.switches.audit_check import on_queues

if TYPE_CHECKING:
    from roce_exporter.checks.settings.check import CheckResult
    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import QueueSettings, SwitchPortSettings

THRESHOLDS = {
    ANY: "set the ECN thresholds of queue {queue} on {port}: the minimum below the maximum, and below the pause threshold",
    SONIC: "ecnconfig -p WRED_PROFILE -gmin BYTES -gmax BYTES",
    NXOS: "in the queuing policy of {port}, class of queue {queue}: random-detect minimum-threshold BYTES bytes "
    "maximum-threshold BYTES bytes drop-probability PERCENT weight 0 ecn",
    EOS: "interface {port}, uc-tx-queue {queue}: random-detect ecn minimum-threshold BYTES bytes "
    "maximum-threshold BYTES bytes max-mark-probability PERCENT",
    CUMULUS: "nv set qos congestion-control default-global traffic-class {queue} min-threshold BYTES; "
    "nv set qos congestion-control default-global traffic-class {queue} max-threshold BYTES; nv config apply",
}


def switch_ecn(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether lossless queues mark packets, where the hosts use ECN."""
    if not profile.ecn:
        return None
    return on_queues(settings, "on", lambda queue: queue.ecn, lambda queue: "on" if queue.ecn else "off")


SWITCH_ECN = Check(
    "switch_ecn",
    "ECN",
    "Senders learn of congestion only by pause, which stops all traffic of the priority and spreads.",
    switch_ecn,
    {
        **THRESHOLDS,
        ANY: "set ECN on for queue {queue} of {port}",
        SONIC: "ecnconfig -q {queue} on",
        CUMULUS: "nv set qos congestion-control default-global traffic-class {queue} ecn enable; nv config apply",
    },
)


def switch_ecn_order(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the minimum is below the maximum."""
    if not _marks(settings):
        return None
    return on_queues(settings, "minimum below maximum", _in_order, _range)


def _in_order(queue: QueueSettings) -> bool | None:
    if not queue.ecn:
        return True
    return None if queue.minimum is None or queue.maximum is None else queue.minimum < queue.maximum


def _range(queue: QueueSettings) -> str:
    return f"{queue.minimum or 0:.0f} to {queue.maximum or 0:.0f} bytes" if queue.ecn else "off"


SWITCH_ECN_ORDER = Check(
    "switch_ecn_order",
    "ECN thresholds",
    "Between two equal thresholds there is no slope: either no packet is marked or all are.",
    switch_ecn_order,
    THRESHOLDS,
)


def switch_ecn_before_pause(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether marks begin before pause does."""
    known = any(queue.threshold is not None for queue in settings.queues.values())
    if not _marks(settings) or not known:
        # Most operating systems do not report the level at which they send pause.
        return None
    return on_queues(settings, "below the pause threshold", _before_pause, _levels)


def _before_pause(queue: QueueSettings) -> bool | None:
    if not queue.ecn:
        return True
    return None if queue.minimum is None or queue.threshold is None else queue.minimum < queue.threshold


def _levels(queue: QueueSettings) -> str:
    return f"{queue.minimum or 0:.0f}, pause at {queue.threshold or 0:.0f} bytes" if queue.ecn else "off"


def _marks(settings: SwitchPortSettings) -> bool:
    return any(queue.ecn for queue in settings.queues.values())


SWITCH_ECN_BEFORE_PAUSE = Check(
    "switch_ecn_before_pause",
    "ECN minimum",
    "Pause begins before the first mark: senders slow down only after the fabric has stopped them.",
    switch_ecn_before_pause,
    THRESHOLDS,
)

CHECKS = (SWITCH_ECN, SWITCH_ECN_ORDER, SWITCH_ECN_BEFORE_PAUSE)
