"""The RDMA devices of this host and their properties: ports, network devices, PCI, GIDs.

Devices may come and go: every collection calls `list_devices`. `describe` is called for a new or replaced device, after a
read found it gone, and once a minute.
"""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from typing import NamedTuple

from roce_exporter.catalog import INDEX, dialect_of
from roce_exporter.host.kernel import Absent, Kernel, entries_of, read_or
from roce_exporter.model import IWARP, Device, Gid, Loss, Netdev, Port, RdmaDevice
from roce_exporter.model.ip import unmapped
from roce_exporter.model.values import reason_of

CLASS = "class/infiniband"
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_UPLINK = re.compile(r"p\d+")
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
_NODE_TYPE_RNIC = "4"
"""RDMA_NODE_RNIC of include/rdma/ib_verbs.h: an iWARP device."""


class Listed(NamedTuple):
    """One entry of the list of devices; a new incarnation is another device with the same name."""

    name: str
    incarnation: int


def list_devices(kernel: Kernel) -> tuple[Listed, ...]:
    """Every RDMA device in sysfs, or in netlink if there is no sysfs (a recording), sorted by name.

    OSError: the list exists and cannot be read.
    """
    try:
        names = kernel.entries(CLASS)
    except Absent:
        names = tuple(sorted(device.name for device in _netlink_devices(kernel)[0]))
    return tuple(Listed(name, read_or(0, kernel.identity, f"{CLASS}/{name}")) for name in names)


def describe(kernel: Kernel, listed: Listed) -> Device:
    """The properties of one device. A property that the host does not report is empty; a failed read adds a loss.

    Absent: the device was removed.
    """
    name = listed.name
    below = f"{CLASS}/{name}"
    devices, netlink_errno = _netlink_devices(kernel)
    netlink = next((device for device in devices if device.name == name), None)
    if netlink is None:
        kernel.identity(below)
    pci = read_or("", kernel.link, f"{below}/device")
    physical_function = read_or("", kernel.link, f"{below}/device/physfn")
    # Only a PF can have VFs. Without SR-IOV, and in a virtual machine, PF and VF look alike.
    has_functions = read_or("", kernel.text, f"{below}/device/sriov_totalvfs")
    facts = _Facts(kernel)
    ports = _ports(facts, name, netlink)
    driver = _driver(kernel, below, ports)
    return Device(
        name=name,
        driver=driver,
        dialect=dialect_of(driver) or INDEX.recognise(_counter_names(kernel, name, ports, netlink)),
        protocol=_protocol(kernel, name, ports, netlink),
        firmware=facts.text(f"{below}/fw_ver") or (netlink.firmware if netlink else ""),
        board=facts.text(f"{below}/board_id"),
        model=facts.text(f"{below}/hca_type"),
        node_guid=facts.text(f"{below}/node_guid") or (netlink.node_guid if netlink else ""),
        pci=pci if PCI_ADDRESS.fullmatch(pci) else "",
        function="vf" if physical_function else "pf" if has_functions else "",
        physical_function=physical_function,
        netlink=netlink,
        netlink_errno=netlink_errno,
        incarnation=listed.incarnation,
        ports=ports,
        losses=tuple(facts.losses),
    )


class _Facts:
    """Reads files with properties of a device. A file that fails only costs its label, and is added to the losses."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.losses: list[Loss] = []

    def text(self, path: str) -> str:
        try:
            return self.kernel.text(path)
        except Absent:
            return ""
        except OSError as error:
            self.losses.append(Loss(path.rpartition("/")[2], reason_of(error)))
            return ""


def _driver(kernel: Kernel, below: str, ports: tuple[Port, ...]) -> str:
    """The driver of the PCI function below the RDMA device, or of its network device: they are the same."""
    if driver := read_or("", kernel.link, f"{below}/device/driver"):
        return driver
    for port in ports:
        for netdev in port.netdevs:
            if netdev.role != "bond" and (found := read_or("", kernel.ethtool_driver, netdev.name)):
                return found
    return ""


def _netlink_devices(kernel: Kernel) -> tuple[tuple[RdmaDevice, ...], int]:
    """The devices that RDMA netlink lists, and its errno if it exists and fails."""
    try:
        return kernel.rdma_devices(), 0
    except Absent:
        return (), 0
    except OSError as error:
        return (), error.errno or errno.EIO


def _ports(facts: _Facts, name: str, netlink: RdmaDevice | None) -> tuple[Port, ...]:
    kernel = facts.kernel
    listed = read_or((), kernel.rdma_ports, netlink) if netlink else ()
    netdevs = {port.number: port.netdev for port in listed}
    try:
        # A set, because the folders 1 and 01 of a recording are the same port.
        numbers = sorted(
            {int(entry) for entry in kernel.entries(f"{CLASS}/{name}/ports") if entry.isdecimal()}
        )
    except Absent:
        numbers = sorted(netdevs)
    return tuple(_port(facts, name, number, netdevs.get(number), len(numbers)) for number in numbers)


def _port(facts: _Facts, name: str, number: int, netdev: str | None, ports: int) -> Port:
    kernel = facts.kernel
    # Netlink decides, even if it reports no network device: in another network namespace the GIDs still name the host's
    # network devices, and a device of that name there may be a different one.
    gids = _gids(kernel, f"{CLASS}/{name}/ports/{number}")
    if netdev is None:
        netdev = _netdev_of_gids(kernel, gids) or _netdev_of_function(kernel, name, number, ports)
    link_layer = facts.text(f"{CLASS}/{name}/ports/{number}/link_layer")
    netdev = _bond_of_lag(kernel, name, netdev)
    members = tuple(Netdev(slave, "member") for slave in _bond_slaves(kernel, netdev)) if netdev else ()
    own = (Netdev(netdev, "bond" if members else "port"),) if netdev else ()
    return Port(number, link_layer, (*own, *members), gids)


def _bond_of_lag(kernel: Kernel, name: str, netdev: str) -> str:
    """The bond above a network device if the RDMA device represents the whole bond; else the network device itself.

    For a RoCE LAG of mlx5, RDMA netlink names a member port (the first or the active one) and not the bond
    (mlx5_lag_get_roce_netdev). Members with RDMA devices of their own were bonded without RDMA.
    """
    master = read_or("", kernel.link, f"class/net/{netdev}/master") if netdev else ""
    members = _bond_slaves(kernel, master) if master else ()
    whole = members and all(
        read_or((), kernel.entries, f"class/net/{member}/device/infiniband") in ((), (name,))
        for member in members
    )
    return master if whole else netdev


def _gids(kernel: Kernel, port: str) -> tuple[Gid, ...]:
    # Up to 1,024 slots. Type and netdev of an empty slot fail with EINVAL by design, so the GID itself is read first.
    found = []
    for slot in sorted(int(slot) for slot in entries_of(kernel, f"{port}/gids") if slot.isdecimal()):
        gid = read_or("", kernel.text, f"{port}/gids/{slot}")
        if gid in ("", _NO_GID):
            continue
        kind = read_or("", kernel.text, f"{port}/gid_attrs/types/{slot}")
        netdev = read_or("", kernel.text, f"{port}/gid_attrs/ndevs/{slot}")
        with suppress(ValueError):  # not an address: the slot is left out
            found.append(Gid(slot, kind, netdev, str(unmapped(gid))))
    return tuple(found)


def _netdev_of_gids(kernel: Kernel, gids: tuple[Gid, ...]) -> str:
    # A GID may belong to a VLAN device; the port's own network device is the one below it.
    for gid in gids:
        if gid.netdev:
            entries = entries_of(kernel, f"class/net/{gid.netdev}")
            lower = [entry.removeprefix("lower_") for entry in entries if entry.startswith("lower_")]
            vlan = len(lower) == 1 and not _bond_slaves(kernel, gid.netdev)
            return lower[0] if vlan else gid.netdev
    return ""


def _netdev_of_function(kernel: Kernel, name: str, number: int, ports: int) -> str:
    """The port's own network device among those of its PCI function; empty if it is ambiguous."""
    netdevs = entries_of(kernel, f"{CLASS}/{name}/device/net")
    if ports > 1:
        netdevs = tuple(one for one in netdevs if _netdev_text(kernel, one, "dev_port") == str(number - 1))
    if len(netdevs) > 1:
        # In switchdev mode the representors are listed next to the uplink, which alone is named p0, p1, ...
        netdevs = tuple(
            one for one in netdevs if _UPLINK.fullmatch(_netdev_text(kernel, one, "phys_port_name"))
        )
    return netdevs[0] if len(netdevs) == 1 else ""


def _netdev_text(kernel: Kernel, netdev: str, file: str) -> str:
    return read_or("", kernel.text, f"class/net/{netdev}/{file}")


def _bond_slaves(kernel: Kernel, netdev: str) -> tuple[str, ...]:
    return tuple(read_or("", kernel.text, f"class/net/{netdev}/bonding/slaves").split())


def _protocol(kernel: Kernel, name: str, ports: tuple[Port, ...], netlink: RdmaDevice | None) -> str:
    if netlink and netlink.protocol:
        return netlink.protocol
    if read_or("", kernel.text, f"{CLASS}/{name}/node_type").startswith(_NODE_TYPE_RNIC):
        return IWARP
    layers = {port.link_layer for port in ports}
    return {"Ethernet": "roce", "InfiniBand": "ib"}.get(layers.pop(), "") if len(layers) == 1 else ""


def _counter_names(
    kernel: Kernel, name: str, ports: tuple[Port, ...], netlink: RdmaDevice | None
) -> set[str]:
    """Names of the hardware counters, which identify the dialect if the driver is not reported."""
    names: set[str] = set()
    for below in ("hw_counters", *(f"ports/{port.number}/hw_counters" for port in ports)):
        names.update(read_or((), kernel.entries, f"{CLASS}/{name}/{below}"))
    for port in ports if netlink and not names else ():
        names.update(read_or({}, kernel.rdma_statistics, netlink, port.number))  # type: ignore[arg-type]  # not None here
    return names
