"""What is set on one network device of one RDMA port, taken from the readings of one collection.

Everything that could not be read is None: a check must not take that for a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.catalog.row import HW_COUNTERS
from roce_exporter.kernel.dcb_netlink import DCBX_LLD_MANAGED
from roce_exporter.model import WHOLE_DEVICE, Gid
from roce_exporter.sources.configuration import CONFIGURATION
from roce_exporter.sources.dcb import DCB
from roce_exporter.sources.netdev import LINK, PAUSE, SETTINGS, hardware_netdevs
from roce_exporter.sources.pcie import PCIE
from roce_exporter.sources.port import PORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.model import Device, DeviceReadings

SOURCES = (CONFIGURATION, DCB, LINK, PAUSE, SETTINGS, PCIE, PORT)
"""The sources that tell settings, in the order in which `Values` holds them."""

ADAPTIVE = "roce_adp_retrans"
"""Counts retransmissions by mlx5's adaptive timer, one of the accelerations for lossy fabrics."""

EIGHT = range(8)

PCIE_NAMES = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """The PCIe link of a device, as it is and as it could be: transfers per second and lane, and lanes."""

    speed: int
    most_speed: int
    width: int
    most_width: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The settings of one network device and of the RDMA port above it. None: not told, or not to be read."""

    device: str
    port: int
    netdev: str
    dialect: str
    pci: str = ""
    kind: str = ""
    """Model and function: a VF is not set as its PF, nor the NIC for storage as that for jobs."""
    pfc: frozenset[int] | None = None
    """The priorities for which PFC is on."""
    delay: int | None = None
    """Allowance for the round trip: on mlx5 metres of cable, else bit times."""
    peer_pfc: frozenset[int] | None = None
    """The priorities for which PFC is on at the other end of the link, as that said by DCBX."""
    trust: str | None = None
    """`dscp` or `pcp`."""
    dscp_priority: Mapping[int, int] | None = None
    traffic_class: Numbers | None = None
    """Of each priority."""
    algorithm: Numbers | None = None
    """Of each traffic class: 0 strict, 1 credit-based shaper, 2 ETS, 255 the vendor's own."""
    bandwidth: Numbers | None = None
    """Of each traffic class in percent."""
    willing: bool | None = None
    buffer_of: Numbers | None = None
    """Of each priority."""
    buffer_bytes: Numbers | None = None
    dcbx: int | None = None
    """The bits of the DCBX mode."""
    global_pause: bool | None = None
    """Whether 802.3x pause is sent or obeyed."""
    prevention: int | None = None
    """Milliseconds after which the NIC stops pausing without end; 0: never."""
    refresh: int | None = None
    """Microseconds between two refreshes of the port's counters; 0: never."""
    cm_tos: int | None = None
    cm_version: int | None = None
    """The RoCE version that connections of RDMA-CM get: 1 or 2."""
    tclass_forced: bool | None = None
    tclass: int | None = None
    """ToS byte of all packets: forced on mlx5, configured on bnxt."""
    notification: frozenset[int] | None = None
    """Priorities of which the NIC, as notification point, answers marks by CNPs."""
    reaction: frozenset[int] | None = None
    """Priorities on which the NIC, as reaction point, slows down when it gets CNPs."""
    dcqcn: Mapping[str, int] | None = None
    """Parameters by `role.parameter.unit`."""
    mtu: int | None = None
    speed: int | None = None
    """Of the link, in bytes per second."""
    slot: Slot | None = None
    adaptive: bool | None = None
    """True: adaptive retransmission is on, for it happened. False: its counter is 0. None: the counter is missing.

    No interface of the kernel shows the setting itself.
    """
    gids: tuple[Gid, ...] = ()


class Values:
    """The numbers of one device's readings by source, port, network device and name."""

    def __init__(self, found: DeviceReadings) -> None:
        self._numbers: dict[tuple[str, int, str], dict[str, int]] = {}
        for reading in found.readings:
            if reading.source in SOURCES or reading.source == HW_COUNTERS:
                numbers = self._numbers.setdefault((reading.source, reading.port, reading.netdev), {})
                numbers |= {
                    name: value
                    for name, value in zip(reading.names, reading.values, strict=True)
                    if value is not None
                }

    def of(self, source: str, port: int = WHOLE_DEVICE, netdev: str = "") -> dict[str, int]:
        """The numbers of one place by name; empty when nothing was told."""
        return self._numbers.get((source, port, netdev), {})


def facts_of(found: DeviceReadings) -> tuple[Facts, ...]:
    """The settings of every network device of one RDMA device's Ethernet ports, and of ports that have none."""
    device, values = found.device, Values(found)
    return tuple(_facts(device, values, port, netdev) for port, netdev in _places(device))


def _places(device: Device) -> Iterator[tuple[int, str]]:
    if device.protocol not in ("roce", ""):
        return
    told = {port for port, _ in hardware_netdevs(device)}
    ethernet = {port.number for port in device.ports if port.link_layer in ("Ethernet", "")}
    yield from (leg for leg in hardware_netdevs(device) if leg[0] in ethernet)
    yield from ((number, "") for number in sorted(ethernet - told))


def _facts(device: Device, values: Values, port: int, netdev: str) -> Facts:
    here = (port, netdev)
    dcb, settings = values.of(DCB, *here), values.of(SETTINGS, *here)
    own = values.of(CONFIGURATION, *here)
    of_port = values.of(CONFIGURATION, port)
    state, whole = values.of(PORT, port), values.of(PCIE)
    dcqcn = {name: value for name, value in own.items() if name.count(".") == 2}  # noqa: PLR2004 - role.parameter.unit
    forced = of_port.get("traffic_class_forced")
    return Facts(
        device=device.name,
        port=port,
        netdev=netdev,
        dialect=device.dialect,
        pci=device.pci,
        kind=f"{device.model} {device.function}".strip(),
        pfc=_priorities(dcb, "pfc_enabled"),
        delay=dcb.get("pfc_delay"),
        peer_pfc=_priorities(dcb, "peer_pfc_enabled"),
        trust=_trust(device.dialect, dcb, own),
        dscp_priority=_dscp_priority(dcb),
        traffic_class=_numbers(dcb, "priority_traffic_class"),
        algorithm=_numbers(dcb, "ets_algorithm"),
        bandwidth=_numbers(dcb, "ets_transmit_bandwidth"),
        willing=_flag(dcb, "ets_willing"),
        buffer_of=_numbers(dcb, "priority_buffer"),
        buffer_bytes=_numbers(dcb, "buffer_bytes"),
        dcbx=dcb.get("dcbx_mode"),
        global_pause=_global_pause(values.of(PAUSE, *here)),
        prevention=settings.get("pfc_prevention_timeout"),
        refresh=settings.get("stats_block_microseconds"),
        cm_tos=of_port.get("cm_tos"),
        cm_version=of_port.get("cm_roce_version"),
        tclass_forced=None if forced is None else bool(forced),
        tclass=of_port.get("traffic_class", _configured_tos(dcqcn)),
        notification=_priorities(own, "notification_enabled"),
        reaction=_priorities(own, "reaction_enabled"),
        dcqcn=dcqcn or None,
        mtu=state.get("mtu"),
        speed=values.of(LINK, *here).get("speed", state.get("rate")),
        slot=Slot(*(whole[name] for name in PCIE_NAMES))
        if all(name in whole for name in PCIE_NAMES)
        else None,
        adaptive=_adaptive(values, port),
        gids=next((one.gids for one in device.ports if one.number == port), ()),
    )


def _trust(dialect: str, dcb: Mapping[str, int], own: Mapping[str, int]) -> str | None:
    told = own.get("trust_dscp", dcb.get("trust_dscp"))
    if told is None and dialect == "mlx5" and "dscp_mappings" in dcb:
        # mlx5 has no trust in its DCB: the first mapping of a DSCP switches it to DSCP, the last to go back to PCP.
        told = dcb["dscp_mappings"]
    return None if told is None else "dscp" if told else "pcp"


def _dscp_priority(dcb: Mapping[str, int]) -> dict[int, int] | None:
    if "dscp_mappings" not in dcb:
        return None
    prefix = "dscp_priority_"
    return {int(name.removeprefix(prefix)): value for name, value in dcb.items() if name.startswith(prefix)}


def _global_pause(pause: Mapping[str, int]) -> bool | None:
    if "receive" not in pause or "transmit" not in pause:
        return None
    return bool(pause["receive"] or pause["transmit"])


def _configured_tos(dcqcn: Mapping[str, int]) -> int | None:
    dscp, ecn = dcqcn.get("cc.roce_dscp.one"), dcqcn.get("cc.ecn_codepoint.one")
    return None if dscp is None or ecn is None else dscp << 2 | ecn


def _adaptive(values: Values, port: int) -> bool | None:
    return _flag(values.of(HW_COUNTERS, port), ADAPTIVE)


def _flag(numbers: Mapping[str, int], name: str) -> bool | None:
    return bool(numbers[name]) if name in numbers else None


def _numbers(numbers: Mapping[str, int], name: str) -> Numbers | None:
    found = tuple(numbers[one] for number in EIGHT if (one := f"{name}_{number}") in numbers)
    return found if len(found) == len(EIGHT) else None


def _priorities(numbers: Mapping[str, int], name: str) -> frozenset[int] | None:
    found = _numbers(numbers, name)
    return None if found is None else frozenset(priority for priority in EIGHT if found[priority])


def is_firmware_managed(dcbx: int) -> bool:
    """Whether the NIC's firmware speaks DCBX, so that what the host sets may be overruled (DCB_CAP_DCBX_LLD_MANAGED)."""
    return bool(dcbx & DCBX_LLD_MANAGED)
