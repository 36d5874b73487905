"""Checks of switch ports: what makes a priority lossless, the PFC watchdog, and ECN marks before pause.

A judge compares the settings of one port with the profile; its row in `OWN_CHECKS` says why it matters and how to fix it. The commands
are those of the vendors' manuals: SONiC command reference, Cisco Nexus 9000 QoS guide, Arista EOS manual, NVIDIA Cumulus NVUE
reference. They are printed, never run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import CUMULUS, EOS, NXOS, SONIC
from roce_exporter.checks.settings.check import Check, CheckResult, judged, unreadable
from roce_exporter.checks.settings.lossless_checks import judged_pfc
from roce_exporter.switches.pause.fabric import NO_NEIGHBOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_switches import QueueSettings, SwitchPortSettings

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
SONIC_START = "pfcwd start --action drop --restoration-time {milliseconds} {port} {milliseconds}"
NXOS_ON = "interface {port}: priority-flow-control watch-dog-interval on"
CUMULUS_ON = "nv set interface {port} qos pfc-watchdog state enable; nv config apply"


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
        priority: shown(queue)
        for priority, queue in found.items()
        if queue and results[priority] is not None and (priority in wrong or not wrong)
    }
    if len(set(texts.values())) == 1:
        return judged(not wrong, expected, next(iter(texts.values())))
    return judged(not wrong, expected, ", ".join(f"{priority}: {text}" for priority, text in texts.items()))


def switch_headroom(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether lossless priority groups have headroom for packets in flight after pause was sent."""
    return on_queues(
        settings,
        "above 0",
        lambda queue: None if queue.headroom is None else queue.headroom > 0,
        lambda queue: f"{queue.headroom or 0:.0f} bytes",
    )


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


def switch_dscp(_: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """The map from DSCP to priority. No switch's map is read, so this is never more than a reminder."""
    if profile.roce_dscp is None or profile.roce_priority is None:
        return None
    return unreadable(f"{profile.roce_dscp} to {profile.roce_priority}")


def switch_watchdog(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether the watchdog monitors all lossless queues."""
    wanted, words = profile.switch_watchdog, {True: "on", False: "off"}
    if wanted is None:
        return None
    return on_queues(
        settings,
        words[wanted],
        lambda queue: None if queue.watchdog is None else queue.watchdog == wanted,
        lambda queue: words[bool(queue.watchdog)],
    )


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
    if all(queue.detection is None for queue in settings.queues.values()):
        return unreadable(expected)

    def is_right(queue: QueueSettings) -> bool | None:
        if queue.detection is None:
            return None
        milliseconds = queue.detection * 1000
        return (least is None or milliseconds >= least) and (most is None or milliseconds <= most)

    return on_queues(settings, expected, is_right, lambda queue: f"{(queue.detection or 0) * 1000:.0f} ms")


def switch_watchdog_overridden(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the watchdog of the whole switch is forced. Switches without such a setting have no result."""
    if settings.overridden is None:
        return None
    return judged(not settings.overridden, "no", "yes" if settings.overridden else "no")


def switch_ecn(settings: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """Whether lossless queues mark packets, where the hosts use ECN."""
    if not profile.ecn:
        return None
    return on_queues(settings, "on", lambda queue: queue.ecn, lambda queue: "on" if queue.ecn else "off")


def switch_ecn_order(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the minimum is below the maximum."""
    return _thresholds(
        settings,
        "minimum below maximum",
        lambda queue: queue.maximum,
        lambda queue: f"{queue.minimum or 0:.0f} to {queue.maximum or 0:.0f} bytes",
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


OWN_CHECKS = (
    Check(
        "switch_pfc",
        "priorities with PFC",
        "Hosts have PFC on the profile's priorities: where the switch differs, packets are dropped, or pause is not obeyed.",
        lambda settings, profile: judged_pfc(settings.pfc, profile),
        {
            ANY: "set PFC on {port} on for priority {lossless}, and off for all others",
            SONIC: "{sonic_pfc}",
            NXOS: "interface {port}: priority-flow-control mode on; in the network-qos policy: pause pfc-cos {lossless}",
            EOS: "interface {port}: priority-flow-control on; {eos_pfc}",
            CUMULUS: "nv set qos pfc default-global switch-priority {lossless}; nv config apply",
        },
    ),
    Check(
        "switch_headroom",
        "headroom",
        "Packets in flight when the switch sends pause find no space: a lossless priority drops them.",
        switch_headroom,
        {
            ANY: "give priority {priority} of {port} a lossless buffer profile with headroom for its cable and speed",
            SONIC: "config interface buffer priority-group lossless add {port} {group}",
            NXOS: "in the input queuing policy of {port}, class of queue {queue}: "
            "pause buffer-size BYTES pause-threshold BYTES resume-threshold BYTES",
            CUMULUS: "nv set qos pfc default-global cable-length METRES; nv config apply",
        },
    ),
    Check(
        "switch_neighbor",
        "LLDP neighbour",
        "Alerts cannot name the host behind the port, and the pause tree ends there.",
        switch_neighbor,
        {
            ANY: "enable LLDP on the switch and at the other end of {port}, or add {port} to `links` of the target",
            SONIC: "config feature state lldp enabled; at the other end: lldpd; or add {port} to `links` of the target",
            NXOS: "feature lldp; at the other end: lldpd; or add {port} to `links` of the target",
            EOS: "lldp run; at the other end: lldpd; or add {port} to `links` of the target",
            CUMULUS: "systemctl enable --now lldpd, here and at the other end; or add {port} to `links` of the target",
        },
    ),
    Check(
        "switch_dscp",
        "priority of RoCE's DSCP",
        "RoCE packets go to a queue that is not the lossless one. The exporter does not read the map: check it by hand.",
        switch_dscp,
        {
            ANY: "compare the map of DSCP {dscp} with priority {priority}",
            SONIC: "compare: sonic-cfggen -d --var-json DSCP_TO_TC_MAP",
            NXOS: "compare: show policy-map type qos",
            EOS: "compare: show qos maps",
            CUMULUS: "compare: nv show qos mapping default-global dscp",
        },
        whole=True,
    ),
    Check(
        "switch_watchdog",
        "PFC watchdog",
        "A host that sends pause without end stops this queue, then the switch, then the fabric behind it.",
        switch_watchdog,
        {
            ANY: "set the PFC watchdog of {port} as the profile requires",
            SONIC: SONIC_START,
            NXOS: "priority-flow-control watch-dog-interval on; " + NXOS_ON,
            EOS: "interface {port}: priority-flow-control pause watchdog",
            CUMULUS: CUMULUS_ON,
        },
    ),
    Check(
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
    ),
    Check(
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
    ),
    Check(
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
    ),
    Check(
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
    ),
    Check(
        "switch_ecn_order",
        "ECN thresholds",
        "Between two equal thresholds there is no slope: either no packet is marked or all are.",
        switch_ecn_order,
        THRESHOLDS,
    ),
    Check(
        "switch_ecn_before_pause",
        "ECN minimum",
        "Pause begins before the first mark: senders slow down only after the fabric has stopped them.",
        switch_ecn_before_pause,
        THRESHOLDS,
    ),
)
