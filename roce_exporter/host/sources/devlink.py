"""devlink of a device: health reporters, versions, and the counters of mlx5's reporter `vnic`.

A device has the devlink instance of its function, those of auxiliary devices below it (mlx5 has its reporters `tx` and `rx` on
`auxiliary/mlx5_core.eth.0`), and in a LAG those of all members. Reporters of one name are one series: in error if any of them
is, with the sums of the counts. So the number of series does not depend on the number of ports.

Three sources, because they cost and fail differently: states are in memory, versions and `vnic` are firmware commands, and
`vnic` needs CAP_NET_ADMIN.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from roce_exporter.host.kernel import VNIC, Absent, HealthReporter, Kernel, read_or
from roce_exporter.host.sources.netdev import hardware_netdevs
from roce_exporter.host.sources.query_reader import QueryReader
from roce_exporter.model import WHOLE_DEVICE, Device

T = TypeVar("T")
DEVLINK, DEVLINK_INFO, DEVLINK_VNIC = "devlink", "devlink_info", "devlink_vnic"
MOST_INSTANCES = 8  # instances of one device that are read
READABLE = "readable"  # name of the value that says whether `vnic` may be read
SUBFUNCTION = ".sf."  # in the names of auxiliary devices that have RDMA devices of their own


def instances_of(kernel: Kernel, device: Device) -> tuple[str, ...]:
    """The devlink instances that a device can have, its own function's first; empty if it has no function."""
    found = dict.fromkeys(instance for place in places_of(device) for instance in instances_at(kernel, place))
    return tuple(found)[:MOST_INSTANCES]


def places_of(device: Device) -> tuple[str, ...]:
    """The links below /sys to the functions of a device: its own, and those of its network devices (the members of a LAG)."""
    netdevs = (f"class/net/{netdev}/device" for _, netdev in hardware_netdevs(device))
    return (f"class/infiniband/{device.name}/device", *netdevs)


def instances_at(kernel: Kernel, place: str) -> Iterator[str]:
    """The devlink instances that a function can have: its own and those of auxiliary devices below it."""
    name = read_or("", kernel.link, place)
    if not name:
        return
    bus = read_or("", kernel.link, f"{place}/subsystem") or "pci"
    yield f"{bus}/{name}"
    for entry in read_or((), kernel.entries, place):  # none if the function is being removed
        own = "." in entry and SUBFUNCTION not in entry
        if own and read_or("", kernel.link, f"{place}/{entry}/subsystem") == "auxiliary":
            yield f"auxiliary/{entry}"


def devlink_readers(kernel: Kernel, device: Device) -> tuple[QueryReader, ...]:
    """The three sources of a device, each with one reading for the whole device."""
    return tuple(
        QueryReader(source, partial(numbers, kernel, device), device.name, WHOLE_DEVICE)
        for source, numbers in _PARTS.items()
    )


def _health(kernel: Kernel, device: Device) -> Mapping[str, int]:
    """The health reporters: `REPORTER state`, `REPORTER errors`, `REPORTER recoveries`, `REPORTER dumped`."""
    reporters = [one for found in _each(kernel, device, kernel.devlink_reporters) for one in found]
    names = dict.fromkeys(one.name for one in reporters)
    return {
        f"{name} {what}": value
        for name in names
        for what, value in _merged([one for one in reporters if one.name == name])
    }


def _merged(same: list[HealthReporter]) -> Iterator[tuple[str, int]]:
    yield "state", int(not all(one.is_healthy for one in same))
    yield "errors", sum(one.errors for one in same)
    yield "recoveries", sum(one.recoveries for one in same)
    if dumps := [one.dumped for one in same if one.dumped is not None]:
        yield "dumped", int(max(dumps))


def _versions(kernel: Kernel, device: Device) -> Mapping[str, int]:
    """The versions: `STAGE COMPONENT VERSION`, with the value 1."""
    versions = [one for found in _each(kernel, device, kernel.devlink_versions) for one in found]
    return {f"{one.stage} {one.component} {one.version}": 1 for one in versions}


def _vnic(kernel: Kernel, device: Device) -> Mapping[str, int]:
    """The counters of the reporter `vnic`, by the driver's names, and whether they may be read."""
    found: dict[str, int] = {READABLE: 1}
    try:
        for numbers in _each(kernel, device, partial(_vnic_of, kernel)):
            for name, value in numbers.items():
                found[name] = found.get(name, 0) + value
    except PermissionError:
        return {READABLE: 0}
    return found


def _vnic_of(kernel: Kernel, instance: str) -> Mapping[str, int]:
    # Without the privilege the kernel does not say whether the reporter exists; its list does.
    if all(one.name != VNIC for one in kernel.devlink_reporters(instance)):
        raise Absent(errno.EOPNOTSUPP, "no reporter vnic", instance)
    return kernel.devlink_vnic(instance)


def _each(kernel: Kernel, device: Device, read: Callable[[str], T]) -> list[T]:
    """What each instance of the device has, without instances that do not have it.

    Raises:
        Absent: no instance has it.
        OSError: an instance fails.
    """
    found = []
    for instance in instances_of(kernel, device):
        with contextlib.suppress(Absent):
            found.append(read(instance))
    if not found:
        raise Absent(errno.EOPNOTSUPP, "no such part of devlink", device.name)
    return found


_PARTS = {DEVLINK: _health, DEVLINK_INFO: _versions, DEVLINK_VNIC: _vnic}
