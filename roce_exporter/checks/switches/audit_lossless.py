"""Checks of what makes a priority lossless on a switch: PFC, headroom, the map of DSCPs, and a known neighbour.

The commands are those of the vendors' manuals: SONiC command reference, Cisco Nexus 9000 QoS guide, Arista EOS manual, NVIDIA
Cumulus NVUE reference. They are printed, never run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import CUMULUS, EOS, NXOS, SONIC
from roce_exporter.checks.settings.check import Check, CheckResult, judged, unreadable
from roce_exporter.checks.settings.lossless_checks import judged_pfc
from roce_exporter.checks.switches.audit_check import on_queues
from roce_exporter.switches.pause.fabric import NO_NEIGHBOR

if TYPE_CHECKING:
    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_settings import SwitchPortSettings


def switch_pfc(settings: SwitchPortSettings, profile: Profile) -> CheckResult:
    """Whether PFC is on for the lossless priorities of the hosts, and no other; without them, for one at most."""
    return judged_pfc(settings.pfc, profile)


SWITCH_PFC = Check(
    "switch_pfc",
    "priorities with PFC",
    "Hosts have PFC on the profile's priorities: where the switch differs, packets are dropped, or pause is not obeyed.",
    switch_pfc,
    {
        ANY: "set PFC on {port} on for priority {lossless}, and off for all others",
        SONIC: "{sonic_pfc}",
        NXOS: "interface {port}: priority-flow-control mode on; in the network-qos policy: pause pfc-cos {lossless}",
        EOS: "interface {port}: priority-flow-control on; {eos_pfc}",
        CUMULUS: "nv set qos pfc default-global switch-priority {lossless}; nv config apply",
    },
)


def switch_headroom(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether lossless priority groups have headroom for packets in flight after pause was sent."""
    return on_queues(
        settings,
        "above 0",
        lambda queue: None if queue.headroom is None else queue.headroom > 0,
        lambda queue: f"{queue.headroom or 0:.0f} bytes",
    )


SWITCH_HEADROOM = Check(
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
)


def switch_neighbor(settings: SwitchPortSettings, _: Profile) -> CheckResult | None:
    """Whether the neighbour of a port with PFC is known. Without it, no alert names the host behind the port.

    A port that has never sent a packet has no cable, so it needs no neighbour.
    """
    if not settings.pfc:
        return None
    if settings.link.kind == NO_NEIGHBOR and settings.used is False:
        return None
    if settings.link.kind == NO_NEIGHBOR:
        return judged(False, "known", "none") if settings.neighbors_read else unreadable("known")
    return judged(True, "known", settings.link)


SWITCH_NEIGHBOR = Check(
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
)


def switch_dscp(_: SwitchPortSettings, profile: Profile) -> CheckResult | None:
    """The map from DSCP to priority. No switch's map is read, so this is never more than a reminder."""
    if profile.roce_dscp is None or profile.roce_priority is None:
        return None
    return unreadable(f"{profile.roce_dscp} to {profile.roce_priority}")


SWITCH_DSCP = Check(
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
)

CHECKS = (SWITCH_PFC, SWITCH_HEADROOM, SWITCH_NEIGHBOR, SWITCH_DSCP)
