"""Checks of congestion control: which marks RoCE packets carry, who answers them, and how the answer travels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit.arithmetic import dscp_of, is_ect
from roce_exporter.audit.lossless_checks import SETUP, listed
from roce_exporter.audit.verdict import Answer, Check, Mend, judged, unreadable
from roce_exporter.audit.wanted import lossless, priority_of, roce_priority, wanted_tos

if TYPE_CHECKING:
    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile

ENABLED = "cc.enabled.one"
CNP_DSCP = "np.cnp_dscp.one"
CNP_PRIORITY = "np.cnp_priority.one"


def cm_tos(facts: Facts, profile: Profile) -> Answer | None:
    """Whether connections of RDMA-CM get the ToS byte of RoCE."""
    return _tos(facts, profile, facts.cm_tos)


def traffic_class(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the NIC puts the ToS byte of RoCE on all packets.

    Where it forces none each program chooses its own, and most choose 0.
    """
    wanted = wanted_tos(profile)
    if facts.tclass_forced is False:
        return None if wanted is None else judged(False, _expected(profile, wanted), "not set")
    return _tos(facts, profile, facts.tclass)


def _tos(facts: Facts, profile: Profile, found: int | None) -> Answer | None:
    wanted = wanted_tos(profile)
    if wanted is None:
        return _fitting_tos(facts, profile, found)
    expected = _expected(profile, wanted)
    if found is None:
        return unreadable(expected)
    right = found == wanted or (profile.ecn is None and dscp_of(found) == profile.roce_dscp)
    return judged(right, expected, _shown(found))


def _fitting_tos(facts: Facts, profile: Profile, found: int | None) -> Answer | None:
    """Without a DSCP in the profile: whether switches may mark the packets, and their DSCP is lossless."""
    priority = roce_priority(facts, profile)
    # 0 is what RDMA-CM has when nobody set it; programs choose their own then.
    if not found or priority is None:
        return None
    given = priority_of(facts, dscp_of(found))
    right = is_ect(found) and given in (None, priority)
    return judged(right, f"ECT, and a DSCP of priority {priority}", _shown(found))


def _expected(profile: Profile, wanted: int) -> str:
    return f"DSCP {profile.roce_dscp}" if profile.ecn is None else _shown(wanted)


def _shown(tos: int) -> str:
    ecn = ("no ECT", "ECT(1)", "ECT(0)", "CE")[tos & 3]
    return f"{tos} (DSCP {dscp_of(tos)}, {ecn})"


def notification_point(facts: Facts, profile: Profile) -> Answer | None:
    """Whether marks on RoCE's priority are answered by CNPs."""
    return _enabled(facts, profile, facts.notification, facts.reaction)


def reaction_point(facts: Facts, profile: Profile) -> Answer | None:
    """Whether CNPs slow RoCE's priority down."""
    return _enabled(facts, profile, facts.reaction, facts.notification)


def _enabled(
    facts: Facts, profile: Profile, mine: frozenset[int] | None, other: frozenset[int] | None
) -> Answer | None:
    priority = roce_priority(facts, profile)
    if priority is None:
        return None
    if profile.ecn is None:
        # Nobody says whether it shall be on: half of it is wrong in any case.
        if mine is None or other is None or priority not in other:
            return None
    elif mine is None:
        return _whole(facts, "on" if profile.ecn else "off")
    wanted = profile.ecn is not False
    return judged(
        (priority in (mine or ())) == wanted,
        f"{'on' if wanted else 'off'} for {priority}",
        listed(mine or ()),
    )


def _whole(facts: Facts, expected: str) -> Answer:
    """Of bnxt: it has one switch for both points and all priorities."""
    switch = (facts.dcqcn or {}).get(ENABLED)
    if switch is None:
        return unreadable(expected)
    found = "on" if switch else "off"
    return judged(found == expected, expected, found)


def cnp_dscp(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the NIC's CNPs have the DSCP that the fabric treats as such."""
    return _parameter(facts, profile.cnp_dscp, CNP_DSCP)


def cnp_priority(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the NIC's CNPs have their priority, and in any case none that is lossless."""
    if profile.cnp_priority is not None:
        return _parameter(facts, profile.cnp_priority, CNP_PRIORITY)
    found, priorities = (facts.dcqcn or {}).get(CNP_PRIORITY), lossless(facts, profile)
    if found is None or not priorities:
        return None
    return judged(found not in priorities, f"not {listed(priorities)}, which is lossless", found)


def _parameter(facts: Facts, wanted: int | None, name: str) -> Answer | None:
    if wanted is None:
        return None
    found = (facts.dcqcn or {}).get(name)
    return unreadable(wanted) if found is None else judged(found == wanted, wanted, found)


def cm_version(facts: Facts, profile: Profile) -> Answer | None:
    """Whether connections of RDMA-CM are of the wanted RoCE version."""
    wanted = profile.roce_version
    if wanted is None:
        return None
    expected = f"RoCE v{wanted}"
    if facts.cm_version is None:
        return unreadable(expected)
    return judged(facts.cm_version == wanted, expected, f"RoCE v{facts.cm_version}")


def adaptive_retransmission(facts: Facts, profile: Profile) -> Answer | None:
    """Whether a host that is declared lossless retransmits by the rules for lossy fabrics.

    No interface of the kernel shows the setting, so it is judged by its effect: what has never happened does no harm where it
    should be off, and is no proof where it should be on.
    """
    if profile.adaptive_retransmission is None or facts.dialect != "mlx5":
        return None
    expected = "on" if profile.adaptive_retransmission else "off"
    if facts.adaptive is None or profile.adaptive_retransmission > facts.adaptive:
        return unreadable(expected)
    if not facts.adaptive:
        return judged(True, expected, "none happened")
    return judged(profile.adaptive_retransmission, expected, "on, for it happened")


CHECKS = (
    Check(
        "cm_tos",
        "ToS of RDMA-CM connections",
        "Without ECT (104 instead of 106) switches cannot mark and only pause or drop; with 0 the traffic is lossy.",
        cm_tos,
        Mend(
            "mkdir -p /sys/kernel/config/rdma_cm/{device} && "
            "echo {tos} > /sys/kernel/config/rdma_cm/{device}/ports/{port}/default_roce_tos",
            "cma_roce_tos -d {device} -p {port} -t {tos}",
        ),
    ),
    Check(
        "traffic_class",
        "traffic class of all connections",
        "Without ECT (104 instead of 106) switches cannot mark and only pause or drop; programs that choose none send "
        "with 0, which is lossy.",
        traffic_class,
        Mend(
            "start the programs with NCCL_IB_TC={tos} and UCX_IB_TRAFFIC_CLASS={tos}",
            "echo {tos} > /sys/class/infiniband/{device}/tc/{port}/traffic_class",
            SETUP,
        ),
    ),
    Check(
        "notification_point",
        "CNPs for marked packets",
        "Marks of the switches are not answered: senders never slow down.",
        notification_point,
        Mend(
            "switch congestion control on with the tool of the NIC's vendor",
            "echo 1 > /sys/class/net/{netdev}/ecn/roce_np/enable/{priority}",
            "echo 1 > /sys/kernel/debug/bnxt_re/{pci}/cc_config/enable_cc",
        ),
    ),
    Check(
        "reaction_point",
        "reaction to CNPs",
        "CNPs are ignored: this host goes on sending at full speed into a queue that is full.",
        reaction_point,
        Mend(
            "switch congestion control on with the tool of the NIC's vendor",
            "echo 1 > /sys/class/net/{netdev}/ecn/roce_rp/enable/{priority}",
            "echo 1 > /sys/kernel/debug/bnxt_re/{pci}/cc_config/enable_cc",
        ),
    ),
    Check(
        "cnp_dscp",
        "DSCP of CNPs",
        "Switches put CNPs into a queue where they wait or are dropped.",
        cnp_dscp,
        Mend(
            "set the DSCP of CNPs to {cnp_dscp} with the tool of the NIC's vendor",
            "echo {cnp_dscp} > /sys/class/net/{netdev}/ecn/roce_np/cnp_dscp",
            SETUP,
        ),
    ),
    Check(
        "cnp_priority",
        "priority of CNPs",
        "CNPs wait behind the traffic that they are to slow down, or get lost.",
        cnp_priority,
        Mend(
            "set the priority of CNPs to {cnp_priority} with the tool of the NIC's vendor",
            "echo {cnp_priority} > /sys/class/net/{netdev}/ecn/roce_np/cnp_802p_prio",
            SETUP,
        ),
    ),
    Check(
        "roce_version",
        "RoCE version of RDMA-CM",
        "RoCE v1 is no IP: it is not routed, has no DSCP, and cannot be marked.",
        cm_version,
        Mend(
            "mkdir -p /sys/kernel/config/rdma_cm/{device} && "
            "echo 'RoCE v{version}' > /sys/kernel/config/rdma_cm/{device}/ports/{port}/default_roce_mode",
            "cma_roce_mode -d {device} -p {port} -m {version}",
        ),
    ),
    Check(
        "adaptive_retransmission",
        "adaptive retransmission",
        "An acceleration for lossy fabrics is on where the fabric is declared lossless: one of the two is wrong.",
        adaptive_retransmission,
        Mend(
            "switch it off with the tool of the NIC's vendor",
            'mlxreg -d {pci} --reg_name ROCE_ACCL --set "roce_adp_retrans_en=0x0" -y',
        ),
    ),
)
