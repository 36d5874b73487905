"""The commands that fix a finding, filled in with the values of the port and the profile. They are printed, never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.arithmetic import SLOWEST, headroom, least_mtu
from roce_exporter.checks.settings.ip_settings import VERSIONS, OwnAddress
from roce_exporter.checks.settings.port_settings import (
    PRIORITIES,
    expected_tos,
    lossless_priorities,
    roce_priority,
)

if TYPE_CHECKING:
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile

FIRST_TABLE = 101
"""Routing table of the first rail in a command; a host's own convention may differ."""

ROUND = 100
"""MTUs are rounded up to hundreds: 4200 for an RDMA MTU of 4096."""

DEFAULTS = {"dscp": 26, "priority": 3, "cnp_dscp": 48, "cnp_priority": 6, "tos": 106}
"""Used in a command if the profile leaves the value open: what most fabrics use."""


def fill(settings: PortSettings, profile: Profile) -> dict[str, object]:
    """The values that a command may contain, by name."""
    expected = {
        "dscp": profile.roce_dscp,
        "priority": roce_priority(settings, profile),
        "cnp_dscp": profile.cnp_dscp,
        "cnp_priority": profile.cnp_priority,
        "tos": expected_tos(profile),
    }
    values = DEFAULTS | {name: value for name, value in expected.items() if value is not None}
    return {
        "device": settings.device,
        "port": settings.port,
        "netdev": settings.netdev or "NETDEV",
        "pci": settings.pci or "PCI",
        "trust": profile.trust or "dscp",
        "version": profile.roce_version or 2,
        "dcbx_owner": "fw" if profile.dcbx == "firmware" else "os",
        "prevention": profile.pfc_prevention or 100,
        "mtu": -(-least_mtu(profile.rdma_mtu or 4096) // ROUND) * ROUND,
        **values,
        **_pfc(settings, profile, values["priority"]),
        **_scheduling(settings, profile, values["priority"], values["cnp_priority"]),
        **_buffers(settings, profile, values["priority"]),
        **_addresses(settings),
    }


def _pfc(settings: PortSettings, profile: Profile, priority: int) -> dict[str, object]:
    on = lossless_priorities(settings, profile)
    if profile.lossless_priorities is None and len(on) != 1:
        on = (priority,)
    return {
        "mask": ",".join(str(int(one in on)) for one in PRIORITIES),
        "pfc": " ".join(("all:off", *(f"{one}:on" for one in on))),
    }


def _scheduling(settings: PortSettings, profile: Profile, priority: int, cnp: int) -> dict[str, object]:
    classes = settings.traffic_class or tuple(PRIORITIES)
    share, roce, urgent = profile.lossless_bandwidth or 50, classes[priority], classes[cnp]
    shares = [0] * len(PRIORITIES)
    rest = next(one for one in PRIORITIES if one not in (roce, urgent))
    shares[roce], shares[rest] = share, 100 - share
    return {
        "class": roce,
        "cnp_class": urgent,
        "bandwidth": share,
        "rest": 100 - share,
        "algorithms": ",".join("strict" if one == urgent else "ets" for one in PRIORITIES),
        "shares": ",".join(map(str, shares)),
    }


def _buffers(settings: PortSettings, profile: Profile, priority: int) -> dict[str, object]:
    metres = profile.cable_metres or settings.delay or 7
    on = lossless_priorities(settings, profile) or (priority,)
    return {
        "metres": metres,
        "headroom": headroom(settings.mtu or 1500, settings.speed or SLOWEST, metres),
        "buffer": settings.buffer_of[priority] if settings.buffer_of else 1,
        "buffers": ",".join(str(int(one in on)) for one in PRIORITIES),
    }


def _addresses(settings: PortSettings) -> dict[str, object]:
    """The first usable address of the port; its table is the number of its place among the host's rails."""
    side = settings.ip
    own = next(iter(side.own), None) if side else None
    if side is None or own is None:
        places = {"ip_netdev": settings.netdev or "NETDEV", "address": "ADDRESS", "length": "LENGTH"}
        return {**places, "subnet": "SUBNET", "table": FIRST_TABLE, "gateway": "GATEWAY", "via": ""}
    found = [(one, address) for one in side.own for version in VERSIONS for address in one.usable(version)]
    one, address = found[0] if found else (own, OwnAddress("ADDRESS", 0, ""))
    position = [netdev.netdev for _, netdev in side.host].index(one.netdev) if side.host else 0
    gateway = next(iter(one.gateways), "")
    table = FIRST_TABLE + position
    return {
        "ip_netdev": one.netdev,
        "address": address.address,
        "length": address.length if found else "LENGTH",
        "subnet": address.subnet if found else "SUBNET",
        "table": table,
        "gateway": gateway or "GATEWAY",
        "via": f"; ip route add default via {gateway} dev {one.netdev} table {table}" if gateway else "",
    }
