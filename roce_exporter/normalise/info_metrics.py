"""The properties of a device as labels of the info metrics, each with the constant value 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.named import DEVICE_INFO, GID_INFO, PORT_INFO, PORT_NETDEV_INFO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.row import Row
    from roce_exporter.model import Device, Port

Fact = tuple["Row", tuple[str, ...]]
"""A row and the values of its labels."""


def device_facts(device: Device) -> tuple[Fact, ...]:
    """Every info series of one device and its ports."""
    return (
        (DEVICE_INFO, _device_labels(device)),
        *(fact for port in device.ports for fact in _port_facts(device.name, port)),
    )


def _device_labels(device: Device) -> tuple[str, ...]:
    return (
        device.name,
        device.driver,
        device.protocol,
        device.firmware,
        device.board,
        device.model,
        device.node_guid,
        device.pci,
        device.function,
        device.physical_function,
    )


def _port_facts(device: str, port: Port) -> Iterator[Fact]:
    number = str(port.number)
    netdev = port.netdevs[0] if port.netdevs else None
    lag = "true" if netdev and netdev.role == "bond" else "false"
    yield PORT_INFO, (device, number, port.link_layer, netdev.name if netdev else "", lag)
    for one in port.netdevs:
        yield PORT_NETDEV_INFO, (device, number, one.name, one.role)
    for gid in port.gids:
        yield GID_INFO, (device, number, str(gid.index), gid.type, gid.netdev, gid.address)
