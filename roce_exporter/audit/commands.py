"""The commands that would mend a finding, with the values of the port and the profile. They are printed, never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit.arithmetic import SLOWEST, headroom, least_mtu
from roce_exporter.audit.wanted import lossless, roce_priority, wanted_tos

if TYPE_CHECKING:
    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile
    from roce_exporter.audit.verdict import Verdict

EIGHT = range(8)

ROUND = 100
"""MTUs are written in hundreds: 4200 for an RDMA MTU of 4096."""

DEFAULTS = {"dscp": 26, "priority": 3, "cnp_dscp": 48, "cnp_priority": 6, "tos": 106}
"""What a command names where the profile leaves it open: the values that most fabrics have."""


def mending(verdict: Verdict, profile: Profile) -> dict[str, str]:
    """The command by kind of NIC: `generic`, and `mlx5` and `bnxt` where theirs differs."""
    values = fill(verdict.facts, profile)
    return {kind: text.format(**values) for kind, text in verdict.check.mend._asdict().items() if text}


def best(verdict: Verdict, profile: Profile) -> str:
    """The command for the NIC that has the fault."""
    kind = {"mlx5": "mlx5", "bnxt_re": "bnxt"}.get(verdict.facts.dialect, "generic")
    found = mending(verdict, profile)
    return found.get(kind, found["generic"])


def fill(facts: Facts, profile: Profile) -> dict[str, object]:
    """The values that a command may name."""
    priority = roce_priority(facts, profile)
    wanted = {
        "dscp": profile.roce_dscp,
        "priority": priority,
        "cnp_dscp": profile.cnp_dscp,
        "cnp_priority": profile.cnp_priority,
        "tos": wanted_tos(profile),
    }
    values = DEFAULTS | {name: value for name, value in wanted.items() if value is not None}
    return {
        "device": facts.device,
        "port": facts.port,
        "netdev": facts.netdev or "NETDEV",
        "pci": facts.pci or "PCI",
        "trust": profile.trust or "dscp",
        "version": profile.roce_version or 2,
        "dcbx_owner": "fw" if profile.dcbx == "firmware" else "os",
        "mtu": -(-least_mtu(profile.rdma_mtu or 4096) // ROUND) * ROUND,
        **values,
        **_pfc(facts, profile, values["priority"]),
        **_scheduling(facts, profile, values["priority"], values["cnp_priority"]),
        **_buffers(facts, profile, values["priority"]),
    }


def _pfc(facts: Facts, profile: Profile, priority: int) -> dict[str, object]:
    on = lossless(facts, profile)
    if profile.lossless_priorities is None and len(on) != 1:
        on = (priority,)
    return {
        "mask": ",".join(str(int(one in on)) for one in EIGHT),
        "pfc": " ".join(("all:off", *(f"{one}:on" for one in on))),
    }


def _scheduling(facts: Facts, profile: Profile, priority: int, cnp: int) -> dict[str, object]:
    classes = facts.traffic_class or tuple(EIGHT)
    share, lane, urgent = profile.lossless_bandwidth or 50, classes[priority], classes[cnp]
    shares = [0] * len(EIGHT)
    rest = next(one for one in EIGHT if one not in (lane, urgent))
    shares[lane], shares[rest] = share, 100 - share
    return {
        "class": lane,
        "cnp_class": urgent,
        "bandwidth": share,
        "rest": 100 - share,
        "algorithms": ",".join("strict" if one == urgent else "ets" for one in EIGHT),
        "shares": ",".join(map(str, shares)),
    }


def _buffers(facts: Facts, profile: Profile, priority: int) -> dict[str, object]:
    metres = profile.cable_metres or facts.delay or 7
    on = lossless(facts, profile) or (priority,)
    return {
        "metres": metres,
        "headroom": headroom(facts.mtu or 1500, facts.speed or SLOWEST, metres),
        "buffer": facts.buffer_of[priority] if facts.buffer_of else 1,
        "buffers": ",".join(str(int(one in on)) for one in EIGHT),
    }
