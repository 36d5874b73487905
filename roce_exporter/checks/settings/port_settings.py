"""The settings of one network device of one RDMA port, taken from the readings of one collection, and what a profile requires of it.

A setting that could not be read is None, which a check must not treat as a value. Of the IP side see `sources.ip_side`. A rail is a network
device of an RDMA port that has an address which peers can use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import HW_COUNTERS
from roce_exporter.checks.settings.arithmetic import ECT_0, NOT_ECT, precedence_of, tos_of
from roce_exporter.checks.settings.profile import Profile
from roce_exporter.host.sources.configuration import CONFIGURATION
from roce_exporter.host.sources.ip_side import ADDRESSES, NO_GATEWAY, NOWHERE, REACHABLE, SYSCTLS, UNKNOWN
from roce_exporter.host.sources.netdev import DCB, LINK, PAUSE, SETTINGS, hardware_netdevs
from roce_exporter.host.sources.state_files import PCIE, PORT, UP
from roce_exporter.model import IWARP, WHOLE_DEVICE, DeviceReadings, Gid, Reading
from roce_exporter.model.ip import NEIGHBOUR_STATES, network_of, version_of

SOURCES = (CONFIGURATION, DCB, LINK, PAUSE, SETTINGS, PCIE, PORT, ADDRESSES)
"""The sources that report settings."""

ADAPTIVE = "roce_adp_retrans"
"""Counts retransmissions by mlx5's adaptive timer, one of the accelerations for lossy fabrics."""

PRIORITIES = range(8)
"""Of IEEE 802.1Q; a port has as many traffic classes and buffers."""

PCIE_NAMES = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")

VERSIONS = (4, 6)
LEAVES, GATEWAYS = {NOWHERE: "", UNKNOWN: None}, {NO_GATEWAY: ""}


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address with the length of its subnet."""

    address: str
    length: int
    scope: str
    failed: bool = False
    """Whether another host has it, as duplicate address detection of IPv6 found."""

    @property
    def subnet(self) -> str:
        """The prefix of its subnet."""
        return str(network_of(f"{self.address}/{self.length}"))


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A rule for packets from an address of the network device."""

    priority: int
    source: str
    table: int
    routes: int
    """Routes of that table that leave by the network device."""


@dataclass(frozen=True, slots=True)
class FollowedPath:
    """Where packets from an address to a prefix leave."""

    source: str
    prefix: str
    netdev: str | None
    """Empty: they do not leave. None: not known."""
    gateway: str
    mtu: int
    """0: no limit is known."""


@dataclass(frozen=True, slots=True)
class IpNetdev:
    """The IP side of one network device. Names in `missing` could not be read."""

    netdev: str
    addresses: tuple[OwnAddress, ...] = ()
    rules: tuple[OwnRule, ...] = ()
    paths: tuple[FollowedPath, ...] = ()
    unled: tuple[str, ...] = ()
    """Tables with routes by the network device to which no rule leads."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """What routes say about the MTU, by prefix."""
    gateways: Mapping[str, str] = field(default_factory=dict)
    """Address to state."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Other neighbours that do not resolve."""
    neighbours: Mapping[str, int] = field(default_factory=dict)
    """Number by state."""
    sysctls: Mapping[str, int] = field(default_factory=dict)
    """The values in effect."""
    missing: frozenset[str] = frozenset()

    def usable(self, version: int) -> tuple[OwnAddress, ...]:
        """The addresses of this version of IP that peers can use."""
        return tuple(
            one
            for one in self.addresses
            if one.scope in REACHABLE and not one.failed and version_of(one.address) == version
        )


@dataclass(frozen=True, slots=True)
class IpSide:
    """The IP side of one port, with what the host's other ports have."""

    own: tuple[IpNetdev, ...]
    """The port's network device (the bond, for a RoCE LAG) and those above it."""
    host: tuple[tuple[str, IpNetdev], ...] = ()
    """The network devices of all RDMA ports, each with the kind of its NIC."""

    def rails(self, version: int) -> tuple[IpNetdev, ...]:
        """The host's network devices with a usable address of this version."""
        return tuple(one for _, one in self.host if one.usable(version))

    @property
    def is_multi_rail(self) -> bool:
        """Whether this port is one of several rails."""
        return any(
            len(self.rails(version)) > 1 and any(one.usable(version) for one in self.own)
            for version in VERSIONS
        )


def read_ip_settings(readings: Iterable[Reading], port: int) -> IpSide | None:
    """The IP side of a port; None if the host reports none."""
    own = tuple(
        _netdev(one.netdev, dict(zip(one.names, one.values, strict=True)))
        for one in readings
        if one.source == ADDRESSES and one.port == port
    )
    return IpSide(own) if own else None


def with_rails(sides: Sequence[tuple[str, IpSide | None]]) -> tuple[IpSide | None, ...]:
    """The sides of all ports, each with the kind of its NIC, completed by what the other ports have."""
    by_netdev = {one.netdev: (kind, one) for kind, side in sides if side for one in side.own}
    host = tuple(by_netdev.values())
    return tuple(replace(side, host=host) if side else None for _, side in sides)


def _netdev(netdev: str, values: Mapping[str, int | None]) -> IpNetdev:
    facts: dict[str, list[tuple[list[str], int]]] = {}
    for name, value in values.items():
        kind, *words = name.split(" ")
        if value is not None:
            facts.setdefault(kind, []).append((words, value))
    return IpNetdev(
        netdev,
        tuple(
            OwnAddress(address, int(length), scope, bool(failed))
            for (cidr, scope), failed in facts.get("address", ())
            for address, _, length in [cidr.partition("/")]
        ),
        tuple(
            OwnRule(int(one), source, int(table), count)
            for (one, source, table), count in facts.get("rule", ())
        ),
        tuple(
            FollowedPath(source, prefix, LEAVES.get(leaves, leaves), GATEWAYS.get(gateway, gateway), mtu)
            for (source, prefix, leaves, gateway), mtu in facts.get("path", ())
        ),
        tuple(table for (table,), _ in facts.get("unled", ())),
        {prefix: value for (prefix,), value in facts.get("limit", ())},
        {address: state for (address, state), _ in facts.get("gateway", ())},
        {address: state for (address, state), _ in facts.get("failing", ())},
        {state: value for (state,), value in facts.get("neighbours", ()) if state in NEIGHBOUR_STATES},
        # The kernel uses the larger one of conf/all and conf/DEV for all of these (include/linux/inetdevice.h).
        {
            name: max(everywhere, own)
            for name in SYSCTLS
            for everywhere, own in [(values.get(f"{name}.all"), values.get(f"{name}.own"))]
            if everywhere is not None and own is not None
        },
        frozenset(name for name, value in values.items() if value is None),
    )


Values = Mapping[str, int]
"""The values of one source, by name."""


class PcieLink(NamedTuple):
    """The PCIe link of a device, as negotiated and as the device supports it."""

    speed: int
    """Transfers per second and lane."""
    max_speed: int
    width: int
    """Lanes."""
    max_width: int


def _flag(values: Values, name: str) -> bool | None:
    return bool(values[name]) if name in values else None


def _numbers(values: Values, name: str) -> tuple[int, ...] | None:
    found = tuple(values[one] for number in PRIORITIES if (one := f"{name}_{number}") in values)
    return found if len(found) == len(PRIORITIES) else None


def _priorities(values: Values, name: str) -> frozenset[int] | None:
    found = _numbers(values, name)
    return None if found is None else frozenset(priority for priority in PRIORITIES if found[priority])


def _read(source: str, name: str, read: Callable[[Values, str], object] = Mapping.get) -> Any:
    """A field that is what a source reports by this name."""
    return field(default=None, metadata={"read": lambda values: read(values[source], name)})


@dataclass(frozen=True, slots=True)
class PortSettings:
    """The settings of one network device and of the RDMA port on top of it. None: not reported, or not readable."""

    device: str
    port: int
    netdev: str
    dialect: str
    pci: str = ""
    kind: str = ""
    """Model and function: a VF and its PF, or NICs of two models, are configured differently on purpose."""
    pfc: frozenset[int] | None = _read(DCB, "pfc_enabled", _priorities)
    """The priorities with PFC."""
    delay: int | None = _read(DCB, "pfc_delay")
    """Allowance for the round trip: metres of cable on mlx5, bit times elsewhere."""
    peer_pfc: frozenset[int] | None = _read(DCB, "peer_pfc_enabled", _priorities)
    """The priorities with PFC at the other end of the link, as received by DCBX."""
    trust: str | None = None
    """`dscp` or `pcp`."""
    dscp_priority: Mapping[int, int] | None = None
    traffic_class: tuple[int, ...] | None = _read(DCB, "priority_traffic_class", _numbers)
    """By priority."""
    algorithm: tuple[int, ...] | None = _read(DCB, "ets_algorithm", _numbers)
    """By traffic class: 0 strict, 1 credit-based shaper, 2 ETS, 255 vendor-specific."""
    bandwidth: tuple[int, ...] | None = _read(DCB, "ets_transmit_bandwidth", _numbers)
    """By traffic class, in percent."""
    buffer_of: tuple[int, ...] | None = _read(DCB, "priority_buffer", _numbers)
    """The receive buffer of each priority."""
    buffer_bytes: tuple[int, ...] | None = _read(DCB, "buffer_bytes", _numbers)
    dcbx: int | None = _read(DCB, "dcbx_mode")
    """The bits of the DCBX mode."""
    global_pause: bool | None = None
    """Whether 802.3x pause is on, for receive or transmit."""
    prevention: int | None = _read(SETTINGS, "pfc_prevention_timeout")
    """Milliseconds of continuous pause after which the NIC stops pausing; 0: never."""
    refresh: int | None = _read(SETTINGS, "stats_block_microseconds")
    """Microseconds between two updates of the port's counters; 0: never."""
    cm_tos: int | None = _read(CONFIGURATION, "cm_tos")
    cm_version: int | None = _read(CONFIGURATION, "cm_roce_version")
    """The RoCE version of RDMA-CM connections: 1 or 2."""
    tclass_forced: bool | None = _read(CONFIGURATION, "traffic_class_forced", _flag)
    tclass: int | None = None
    """The ToS byte of all packets: forced on mlx5, configured on bnxt."""
    notification: frozenset[int] | None = _read(CONFIGURATION, "notification_enabled", _priorities)
    """The priorities on which the NIC, as notification point, answers ECN marks with CNPs."""
    reaction: frozenset[int] | None = _read(CONFIGURATION, "reaction_enabled", _priorities)
    """The priorities on which the NIC, as reaction point, slows down when it receives CNPs."""
    dcqcn: Mapping[str, int] | None = None
    """Congestion control parameters by `role.parameter.unit`."""
    mtu: int | None = _read(PORT, "mtu")
    speed: int | None = None
    """The speed of the link in bytes per second."""
    pcie: PcieLink | None = None
    adaptive: bool | None = _read(HW_COUNTERS, ADAPTIVE, _flag)
    """True: adaptive retransmission is on, because it happened. False: its counter is 0. None: no such counter.

    No interface of the kernel exposes the setting itself.
    """
    gids: tuple[Gid, ...] = ()
    up: bool | None = _read(PORT, UP, _flag)
    """Whether the port is active."""
    ip: IpSide | None = None
    """Addresses, neighbours and routes; None where the host does not report them, as in older recordings."""
    iwarp: bool = False
    """Whether the port speaks iWARP, which is TCP: only its IP side is read, and judged."""


_READ = {one.name: one.metadata["read"] for one in fields(PortSettings) if one.metadata}


def port_settings(found: DeviceReadings) -> tuple[PortSettings, ...]:
    """The settings of every network device of one RDMA device's Ethernet ports, and of each port without one."""
    device = found.device
    if device.protocol not in ("roce", IWARP, ""):
        return ()
    netdevs = [*hardware_netdevs(device)]
    ethernet = {port.number for port in device.ports if port.link_layer in ("Ethernet", "")}
    alone = sorted(ethernet - {port for port, _ in netdevs})
    places = [*(place for place in netdevs if place[0] in ethernet), *((port, "") for port in alone)]
    return tuple(_settings(found, port, netdev) for port, netdev in places)


def _settings(found: DeviceReadings, port: int, netdev: str) -> PortSettings:
    device, values = found.device, defaultdict[str, dict[str, int]](dict)
    for one in found.readings:
        wanted = device.protocol != IWARP and (one.source in SOURCES or one.source == HW_COUNTERS)
        here = one.port == (WHOLE_DEVICE if one.source == PCIE else port) and one.netdev in ("", netdev)
        if wanted and here:
            pairs = zip(one.names, one.values, strict=True)
            values[one.source] |= {name: value for name, value in pairs if value is not None}
    dcb, own, pcie = values[DCB], values[CONFIGURATION], values[PCIE]
    pauses = [values[PAUSE][way] for way in ("receive", "transmit") if way in values[PAUSE]]
    dcqcn = {name: value for name, value in own.items() if name.count(".") == 2}  # noqa: PLR2004 - role.parameter.unit
    dscp, ecn = dcqcn.get("cc.roce_dscp.one"), dcqcn.get("cc.ecn_codepoint.one")
    by_dscp = own.get("trust_dscp", dcb.get("trust_dscp"))
    if by_dscp is None and family_of(device.dialect).trust_by_mappings:
        by_dscp = dcb.get("dscp_mappings")
    of_dscp = {int(name[14:]): value for name, value in dcb.items() if name.startswith("dscp_priority_")}
    return PortSettings(
        device=device.name,
        port=port,
        netdev=netdev,
        dialect=device.dialect,
        pci=device.pci,
        kind=f"{device.model} {device.function}".strip(),
        trust=None if by_dscp is None else "dscp" if by_dscp else "pcp",
        dscp_priority=of_dscp if "dscp_mappings" in dcb else None,
        global_pause=any(pauses) if len(pauses) > 1 else None,
        tclass=own.get("traffic_class", None if dscp is None or ecn is None else tos_of(dscp, ecn)),
        dcqcn=dcqcn or None,
        speed=values[LINK].get("speed", values[PORT].get("rate")),
        pcie=PcieLink(*(pcie[name] for name in PCIE_NAMES)) if {*PCIE_NAMES} <= pcie.keys() else None,
        gids=next((one.gids for one in device.ports if one.number == port), ()),
        ip=read_ip_settings(found.readings, port),
        iwarp=device.protocol == IWARP,
        **{name: read(values) for name, read in _READ.items()},
    )


def lossless_priorities(settings: PortSettings, profile: Profile) -> tuple[int, ...]:
    """The priorities that must have PFC; if the profile does not list them, those that have PFC."""
    if profile.lossless_priorities is not None:
        return profile.lossless_priorities
    return tuple(sorted(settings.pfc or ()))


def roce_priority(settings: PortSettings, profile: Profile) -> int | None:
    """The priority of RoCE packets; None if neither the profile nor the port determines it."""
    if profile.roce_priority is not None:
        return profile.roce_priority
    priorities = lossless_priorities(settings, profile)
    return priorities[0] if len(priorities) == 1 else None


def expected_tos(profile: Profile) -> int | None:
    """The ToS byte of RoCE packets; None if the profile sets no DSCP."""
    if profile.roce_dscp is None:
        return None
    return tos_of(profile.roce_dscp, ECT_0 if profile.ecn else NOT_ECT)


def mapped_dscps(settings: PortSettings, priority: int) -> list[int]:
    """The DSCPs that a port maps to a priority, as far as its driver reports the map."""
    return [dscp for dscp, given in (settings.dscp_priority or {}).items() if given == priority]


def priority_of(settings: PortSettings, dscp: int) -> int | None:
    """The priority that a port assigns to packets with this DSCP; None if its mapping is not reported.

    Drivers report only DSCPs with a mapping. The driver table says what the others get.
    """
    if settings.dscp_priority is None:
        return None
    by_precedence = family_of(settings.dialect).dscp_by_precedence
    return settings.dscp_priority.get(dscp, precedence_of(tos_of(dscp)) if by_precedence else 0)
