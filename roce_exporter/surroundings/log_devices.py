"""Which RDMA devices a name in the kernel log means, also after a device has gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.inventory import CLASS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device

MOST_DEVICES = 256
"""Devices that are remembered, with those that were removed: a device that is gone is what messages are about."""

PCIE_PORT = "pcieport"


class LogDevices:
    """The devices that the host has or had since the exporter started."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        """The names of each device, the one that was seen last at the end."""
        self._devices: dict[str, tuple[str, ...]] = {}
        """The devices of each name."""

    def __contains__(self, device: str) -> bool:
        return device in self._names

    def update(self, kernel: Kernel, devices: Iterable[Device]) -> None:
        """The devices that there are now; blocks, to read under which names messages may mention them."""
        for device in devices:
            self._names.pop(device.name, None)
            self._names[device.name] = _names(kernel, device)
        for gone in tuple(self._names)[:-MOST_DEVICES]:
            del self._names[gone]
        self._devices = self._by_name({device.name for device in devices})

    def concerned(self, names: Sequence[str]) -> tuple[str, ...]:
        """The devices that the most precise of these names means; empty if none of them is known."""
        for name in names:
            if owners := self._devices.get(name):
                return owners
        return ()

    def _by_name(self, present: set[str]) -> dict[str, tuple[str, ...]]:
        # A device that is there owns its address alone; a removed one may have been replaced or renamed.
        found: dict[str, list[str]] = {}
        for some in (present, self._names.keys() - present):
            taken = set(found)
            for device, names in self._names.items():
                for name in names if device in some else ():
                    if name not in taken:
                        found.setdefault(name, []).append(device)
        return {name: tuple(owners) for name, owners in found.items()}


def _names(kernel: Kernel, device: Device) -> tuple[str, ...]:
    """The device itself, its network devices, the functions below both, and the PCIe port that it is plugged into."""
    home = f"{CLASS}/{device.name}/device"
    netdevs = [netdev.name for port in device.ports for netdev in port.netdevs]
    links = [home, *(f"class/net/{netdev}/device" for netdev in netdevs)]
    functions = [_or_empty(kernel.link, link) for link in links]
    # A message about the port concerns the card, and not each of its VFs.
    port = "" if device.function == "vf" else _port_of(_or_empty(kernel.text, f"{home}/../uevent"))
    return tuple(dict.fromkeys(filter(None, (device.name, *netdevs, *functions, device.pci, port))))


def _port_of(uevent: str) -> str:
    facts = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    return facts.get("PCI_SLOT_NAME", "") if facts.get("DRIVER") == PCIE_PORT else ""


def _or_empty(read: Callable[[str], str], path: str) -> str:
    try:
        return read(path)
    except OSError:
        return ""
