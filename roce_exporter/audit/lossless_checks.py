"""Checks of what makes a priority lossless: trust, PFC, its mapping, buffers, scheduling, and who sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit.arithmetic import SLOWEST, headroom
from roce_exporter.audit.facts import is_firmware_managed
from roce_exporter.audit.verdict import Answer, Check, Mend, judged, unreadable
from roce_exporter.audit.wanted import lossless, priority_of, roce_priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile

ETS = 2
"""IEEE_8021QAZ_TSA_ETS of include/uapi/linux/dcbnl.h."""

SETUP = "bnxt_setupcc.sh -d {device} -i {netdev} -m 3 -s {dscp} -p {cnp_dscp} -r {priority} -c {cnp_priority}"
"""Broadcom's script sets PFC, mapping, scheduling and congestion control in one go."""


def listed(priorities: Iterable[int]) -> str:
    """Priorities as people write them: `3,4`, or `none`."""
    return ",".join(map(str, sorted(priorities))) or "none"


def trust(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the priority is taken from where the profile wants it; where PFC is on: from the DSCP."""
    wanted = profile.trust or ("dscp" if lossless(facts, profile) else None)
    if wanted is None:
        return None
    return unreadable(wanted) if facts.trust is None else judged(facts.trust == wanted, wanted, facts.trust)


def pfc(facts: Facts, profile: Profile) -> Answer:
    """Whether PFC is on for what the profile wants, and else for one priority at most."""
    wanted = profile.lossless_priorities
    expected = "at most one" if wanted is None else listed(wanted)
    if facts.pfc is None:
        return unreadable(expected)
    right = len(facts.pfc) <= 1 if wanted is None else facts.pfc == set(wanted)
    return judged(right, expected, listed(facts.pfc))


def peer_pfc(facts: Facts, profile: Profile) -> Answer | None:  # noqa: ARG001 - every check gets the profile
    """Whether the switch has PFC on for the same priorities. Only firmware that speaks DCBX knows."""
    if facts.peer_pfc is None or facts.pfc is None:
        return None
    return judged(facts.peer_pfc == facts.pfc, f"{listed(facts.pfc)} as here", listed(facts.peer_pfc))


def dscp_priority(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the DSCP of RoCE leads to its priority; without a DSCP in the profile, whether any does."""
    priority = roce_priority(facts, profile)
    if priority is None or facts.trust == "pcp":
        return None
    if profile.roce_dscp is None:
        expected = f"some DSCP to {priority}"
        if facts.dscp_priority is None:
            return unreadable(expected)
        found = listed(dscp for dscp, given in facts.dscp_priority.items() if given == priority)
        return judged(found != "none", expected, found)
    return _mapped(facts, profile.roce_dscp, priority)


def cnp_mapping(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the DSCP of CNPs leads to their priority."""
    if profile.cnp_dscp is None or profile.cnp_priority is None or facts.trust == "pcp":
        return None
    return _mapped(facts, profile.cnp_dscp, profile.cnp_priority)


def _mapped(facts: Facts, dscp: int, priority: int) -> Answer:
    expected, given = f"{dscp} to {priority}", priority_of(facts, dscp)
    return (
        unreadable(expected) if given is None else judged(given == priority, expected, f"{dscp} to {given}")
    )


def lossless_bandwidth(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the traffic class of RoCE has its share of the bandwidth."""
    priority, wanted = roce_priority(facts, profile), profile.lossless_bandwidth
    if priority is None or wanted is None:
        return None
    expected = f"ETS, {wanted} % or more"
    if facts.traffic_class is None or facts.algorithm is None or facts.bandwidth is None:
        return unreadable(expected)
    number = facts.traffic_class[priority]
    share, algorithm = facts.bandwidth[number], facts.algorithm[number]
    return judged(
        algorithm == ETS and share >= wanted,
        expected,
        f"{_scheduler(algorithm)}, {share} % of class {number}",
    )


def cnp_strict(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the traffic class of CNPs goes before all others."""
    if not profile.cnp_strict or profile.cnp_priority is None:
        return None
    if facts.traffic_class is None or facts.algorithm is None:
        return unreadable("strict")
    number = facts.traffic_class[profile.cnp_priority]
    algorithm = facts.algorithm[number]
    return judged(algorithm == 0, "strict", f"{_scheduler(algorithm)}, class {number}")


def _scheduler(algorithm: int) -> str:
    return {0: "strict", 1: "credit-based shaper", ETS: "ETS", 255: "vendor"}.get(algorithm, str(algorithm))


def lossless_buffer(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the lossless priorities have receive buffers that no lossy priority shares."""
    priorities = lossless(facts, profile)
    if not priorities or facts.dialect != "mlx5":
        return None
    if facts.buffer_of is None:
        return unreadable("of its own")
    own = {facts.buffer_of[priority] for priority in priorities}
    lossy = (priority for priority in range(8) if priority not in priorities)
    shared = sorted(priority for priority in lossy if facts.buffer_of[priority] in own)
    return judged(
        not shared, "of its own", f"shared with priority {listed(shared)}" if shared else "of its own"
    )


def headroom_bytes(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the lossless buffers hold what is on its way when pause is asked for."""
    priorities = lossless(facts, profile)
    if not priorities or facts.dialect != "mlx5":
        return None
    metres = profile.cable_metres or facts.delay
    if facts.buffer_of is None or facts.buffer_bytes is None or facts.mtu is None or metres is None:
        return unreadable("as much as cable, speed and MTU need")
    needed = headroom(facts.mtu, facts.speed or SLOWEST, metres)
    smallest = min(facts.buffer_bytes[facts.buffer_of[priority]] for priority in priorities)
    return judged(smallest >= needed, f"{needed} bytes or more for {metres} m", f"{smallest} bytes")


def cable_metres(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the driver was told of a cable as long as the longest. mlx5 takes 7 m as it comes."""
    wanted = profile.cable_metres
    if wanted is None or facts.dialect != "mlx5" or not lossless(facts, profile):
        return None
    expected = f"{wanted} m or more"
    return (
        unreadable(expected)
        if facts.delay is None
        else judged(facts.delay >= wanted, expected, f"{facts.delay} m")
    )


def dcbx(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the one who shall set DCB does."""
    if profile.dcbx is None:
        return None
    if facts.dcbx is None:
        return unreadable(profile.dcbx)
    found = "firmware" if is_firmware_managed(facts.dcbx) else "host"
    return judged(found == profile.dcbx, profile.dcbx, found)


def global_pause(facts: Facts, profile: Profile) -> Answer | None:
    """Whether 802.3x pause is off, or as the profile wants it."""
    wanted = profile.global_pause
    if wanted is None:
        return None
    expected = _switch(wanted)
    if facts.global_pause is None:
        return unreadable(expected)
    return judged(facts.global_pause == wanted, expected, _switch(facts.global_pause))


def _switch(on: bool) -> str:
    return "on" if on else "off"


def pfc_prevention(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the NIC stops a storm of its own before the switch must."""
    wanted = profile.pfc_prevention
    if wanted is None or facts.dialect != "mlx5" or not lossless(facts, profile):
        return None
    expected = f"{wanted} ms or less"
    if facts.prevention is None:
        return unreadable(expected)
    found = f"{facts.prevention} ms" if facts.prevention else "never"
    return judged(0 < facts.prevention <= wanted, expected, found)


CHECKS = (
    Check(
        "trust",
        "trust",
        "RoCE packets without a VLAN tag get priority 0, which is lossy, unless the port goes by their DSCP.",
        trust,
        Mend(
            "dcb apptrust set dev {netdev} order dscp",
            "mlnx_qos -i {netdev} --trust {trust}",
            "dcb app replace dev {netdev} dscp-prio {dscp}:{priority}",
        ),
    ),
    Check(
        "pfc",
        "priorities with PFC",
        "Without PFC the priority drops; with PFC on several, NIC and switch have no headroom for all of them.",
        pfc,
        Mend(
            "dcb pfc set dev {netdev} prio-pfc {pfc}",
            "mlnx_qos -i {netdev} --pfc {mask}",
            "dcb pfc set dev {netdev} prio-pfc {pfc}",
        ),
    ),
    Check(
        "peer_pfc",
        "PFC of the switch port",
        "A priority that is lossless on one side of the link only drops, or pauses what nobody stops.",
        peer_pfc,
        Mend(
            "set the same PFC priorities on the switch port, or here: dcb pfc set dev {netdev} prio-pfc {pfc}"
        ),
    ),
    Check(
        "dscp_priority",
        "priority of RoCE's DSCP",
        "RoCE packets land in another queue than the one that is lossless.",
        dscp_priority,
        Mend(
            "dcb app replace dev {netdev} dscp-prio {dscp}:{priority}",
            "mlnx_qos -i {netdev} --dscp2prio set,{dscp},{priority}",
            SETUP,
        ),
    ),
    Check(
        "cnp_mapping",
        "priority of the CNPs' DSCP",
        "CNPs land in a queue where they wait or are dropped, and senders slow down too late.",
        cnp_mapping,
        Mend(
            "dcb app replace dev {netdev} dscp-prio {cnp_dscp}:{cnp_priority}",
            "mlnx_qos -i {netdev} --dscp2prio set,{cnp_dscp},{cnp_priority}",
            SETUP,
        ),
    ),
    Check(
        "lossless_bandwidth",
        "share of RoCE's traffic class",
        "Under load the class is starved, or starves all others.",
        lossless_bandwidth,
        Mend(
            "dcb ets set dev {netdev} tc-tsa all:ets {cnp_class}:strict tc-bw all:0 0:{rest} {class}:{bandwidth}",
            "mlnx_qos -i {netdev} --tsa {algorithms} --tcbw {shares}",
            SETUP,
        ),
    ),
    Check(
        "cnp_strict",
        "scheduling of CNPs",
        "CNPs wait behind the traffic that they are to slow down.",
        cnp_strict,
        Mend(
            "dcb ets set dev {netdev} tc-tsa {cnp_class}:strict",
            "mlnx_qos -i {netdev} --tsa {algorithms} --tcbw {shares}",
            SETUP,
        ),
    ),
    Check(
        "lossless_buffer",
        "receive buffer",
        "A lossy priority in the same buffer uses up the headroom, or is paused along.",
        lossless_buffer,
        Mend(
            "dcb buffer set dev {netdev} prio-buffer all:0 {priority}:1",
            "mlnx_qos -i {netdev} --prio2buffer {buffers}",
        ),
    ),
    Check(
        "headroom",
        "size of the receive buffer",
        "What is on its way when pause is asked for does not fit: a lossless priority drops.",
        headroom_bytes,
        Mend(
            "dcb buffer set dev {netdev} buffer-size {buffer}:{headroom}",
            "mlnx_qos -i {netdev} --cable_len {metres}",
        ),
    ),
    Check(
        "cable_length",
        "cable length",
        "The driver reckons headroom for a shorter cable: a lossless priority drops when pause comes.",
        cable_metres,
        Mend("dcb pfc set dev {netdev} delay {metres}", "mlnx_qos -i {netdev} --cable_len {metres}"),
    ),
    Check(
        "dcbx",
        "who sets DCB",
        "Host and firmware overwrite each other: settings change with the switch's, or are lost.",
        dcbx,
        Mend(
            "dcb dcbx set dev {netdev} host ieee",
            "mlnx_qos -i {netdev} --dcbx {dcbx_owner}",
        ),
    ),
    Check(
        "global_pause",
        "global pause (802.3x)",
        "It stops all priorities of the port at once, and on most NICs PFC does nothing beside it.",
        global_pause,
        Mend("ethtool -A {netdev} autoneg off rx off tx off"),
    ),
    Check(
        "pfc_prevention",
        "the NIC's own pause watchdog",
        "A host that hangs pauses its switch port until then, and the fabric behind it.",
        pfc_prevention,
        Mend("ethtool --set-tunable {netdev} pfc-prevention-tout auto"),
    ),
)
